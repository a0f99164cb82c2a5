package main

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// partitionDir writes a small partition by hand, in Kafka's formats: two batches, reserved space behind them, and what
// lies beside a segment.
func partitionDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first, second := batchOf(t, 100, record.CodecNone, "a", "b"), batchOf(t, 102, record.CodecGzip, "c")
	segment := append(append([]byte{}, first...), second...)
	put("00000000000000000100.log", append(segment, make([]byte, 512)...))

	index := binary.BigEndian.AppendUint32(nil, 2)
	index = binary.BigEndian.AppendUint32(index, uint32(len(first)))
	put("00000000000000000100.index", append(index, make([]byte, 16)...))

	times := binary.BigEndian.AppendUint64(nil, 1_700_000_000_002)
	put("00000000000000000100.timeindex", binary.BigEndian.AppendUint32(times, 2))

	put("leader-epoch-checkpoint", []byte("0\n2\n0 0\n3 101\n"))
	put("partition.metadata", []byte("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n"))
	put("00000000000000000103.snapshot", snapshotOf(4711))
	return dir
}

func batchOf(t *testing.T, base int64, codec record.Codec, values ...string) []byte {
	t.Helper()
	b := record.NewBuilder()
	b.Codec = codec
	for i, v := range values {
		b.Append(ident.Millis(1_700_000_000_000+base-100+int64(i)), []byte("k"+v), []byte(v), record.KeyValue{Key: "h", Value: []byte("1")})
	}
	batch, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := record.Split(batch)
	if err != nil {
		t.Fatal(err)
	}
	v.SetBaseOffset(ident.Offset(base))
	v.SetLeaderEpoch(3)
	return batch
}

func snapshotOf(producer int64) []byte {
	body := binary.BigEndian.AppendUint32(nil, 1)
	body = binary.BigEndian.AppendUint64(body, uint64(producer))
	body = binary.BigEndian.AppendUint16(body, 2)   // epoch
	body = binary.BigEndian.AppendUint32(body, 9)   // last sequence
	body = binary.BigEndian.AppendUint64(body, 102) // last offset
	body = binary.BigEndian.AppendUint32(body, 0)   // offset delta
	body = binary.BigEndian.AppendUint64(body, 1_700_000_000_002)
	body = binary.BigEndian.AppendUint32(body, 0xffffffff) // coordinator epoch
	body = binary.BigEndian.AppendUint64(body, ^uint64(0)) // no transaction
	b := binary.BigEndian.AppendUint16(nil, 1)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
	return append(b, body...)
}

func TestGoldenDump(t *testing.T) {
	dir := partitionDir(t)
	golden(t, "dump", transcript(t, strings.NewReplacer(dir, "orders-0"), [][]string{
		{"dump", dir},
		{"dump", filepath.Join(dir, "00000000000000000100.log"), "--records", "--check"},
		{"dump", filepath.Join(dir, "00000000000000000100.log"), "--records", "-o", "json"},
		{"dump", filepath.Join(dir, "00000000000000000103.snapshot"), "-o", "yaml"},
		{"dump", filepath.Join(dir, "00000000000000000100.index"), "--check"},
		{"dump", filepath.Join(dir, "00000000000000000100.timeindex"), "--check"},
	}))
}

func TestDumpFindsDamage(t *testing.T) {
	const segment, index, times, snapshot, epochs = "00000000000000000100.log", "00000000000000000100.index", "00000000000000000100.timeindex", "00000000000000000103.snapshot", "leader-epoch-checkpoint"
	for _, c := range []struct {
		name, file string
		harm       func(b []byte) []byte
		want       string
	}{
		{"a flipped bit", segment, func(b []byte) []byte { b[70] ^= 1; return b }, "damaged at 0"},
		{"a torn batch", segment, func(b []byte) []byte { return b[:160] }, "a torn write"},
		{"bytes behind reserved space", segment, func(b []byte) []byte { b[len(b)-1] = 1; return b }, "bytes behind reserved space"},
		{"a length that cannot be", segment, func(b []byte) []byte { b[8] = 0xff; return b }, "damaged at 0"},
		{"an index that points beside", index, func(b []byte) []byte { b[7]++; return b }, "no batch of the segment"},
		{"a time index that is too old", times, func(b []byte) []byte { b[7]--; return b }, "younger than"},
		{"half an entry", times, func(b []byte) []byte { return append(b, 1, 2) }, "too few for an entry"},
		{"a snapshot with another checksum", snapshot, func(b []byte) []byte { b[12] ^= 1; return b }, "checksum"},
		{"a snapshot of a later version", snapshot, func(b []byte) []byte { b[1] = 2; return b }, "version 2"},
		{"fewer epochs than announced", epochs, func(b []byte) []byte { return b[:8] }, "2 entries are announced, and 1 follow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := partitionDir(t)
			file := filepath.Join(dir, c.file)
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if r := troupe(t, "", nil, "dump", "--check", file); r.code != exitDone {
				t.Fatalf("the sound file: %s", r.err)
			}
			if err := os.WriteFile(file, c.harm(b), 0o600); err != nil {
				t.Fatal(err)
			}
			r := troupe(t, "", nil, "dump", "--check", file)
			if r.code != exitFailed || !strings.Contains(r.err, codeDamage) || !strings.Contains(r.err, c.want) {
				t.Errorf("exit %d, %s; want %q", r.code, r.err, c.want)
			}
		})
	}
}
