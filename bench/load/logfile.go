package load

import (
	"bufio"
	"encoding/binary"
	"errors"
	"os"
)

// WriteLog writes a file of at least total bytes of p's batch, each with the offsets
// that follow the one before, as a broker would have stored them. It returns the first
// offset after the last.
func (p Payload) WriteLog(path string, total int64) (end int64, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	batch, records := p.Batch()
	w := bufio.NewWriterSize(f, 1<<20)
	for size := int64(0); size < total; size += int64(len(batch)) {
		binary.BigEndian.PutUint64(batch, uint64(end)) // the CRC does not cover it
		if _, err := w.Write(batch); err != nil {
			return 0, err
		}
		end += int64(records)
	}
	return end, w.Flush()
}
