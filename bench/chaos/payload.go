package main

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/troupe-broker/troupe/bench/chaos/check"
)

// value is record n of a worker in a partition: their names, the number, and a filling whose size changes with the number and stays below size bytes.
// librdkafka.py makes the same.
func value(worker, tp string, n int64, size int) []byte {
	head := fmt.Sprintf("%s/%s/%d/", worker, tp, n)
	return append([]byte(head), bytes.Repeat([]byte{byte('a' + n%26)}, int(n*37%int64(size)))...)
}

// recognise reads who sent a value. One that was not meant for this partition is nobody's.
func recognise(v []byte, tp string, offset int64) check.Record {
	r := check.Record{Offset: offset, CRC: crc32.ChecksumIEEE(v)}
	parts := bytes.SplitN(v, []byte("/"), 4)
	if len(parts) != 4 || string(parts[1]) != tp {
		return r
	}
	n, err := strconv.ParseInt(string(parts[2]), 10, 64)
	if err != nil || n < 0 {
		return r
	}
	r.Worker, r.Number = string(parts[0]), n
	return r
}
