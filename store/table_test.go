package store

import (
	"encoding/binary"
	"io/fs"
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
)

// countingFS opens one file in memory and counts how often it is read.
type countingFS struct {
	FS
	b     []byte
	reads int
}

type countingFile struct {
	bytesFile
	fs *countingFS
}

func (f *countingFile) ReadAt(p []byte, off int64) (int, error) {
	f.fs.reads++
	return f.bytesFile.ReadAt(p, off)
}

func (s *countingFS) OpenFile(string, int, fs.FileMode) (File, error) {
	return &countingFile{bytesFile: bytesFile{b: s.b}, fs: s}, nil
}

// Who reads a log from its beginning to its end asks the index for one place after the
// other. Halving from the middle each time, it read five blocks of a file of 32 for each.
func TestReadingOnReadsEachBlockOfAnIndexAFewTimes(t *testing.T) {
	const blocks, every = 32, 4096
	perBlock := tableBuffer / offsetEntrySize
	disk := &countingFS{}
	for i := range blocks * perBlock {
		disk.b = binary.BigEndian.AppendUint32(disk.b, uint32(i))
		disk.b = binary.BigEndian.AppendUint32(disk.b, uint32(i*every))
	}
	x := newOffsetIndex(disk, "index", 0)
	if err := x.load(); err != nil {
		t.Fatal(err)
	}
	for i := range blocks * perBlock {
		p, err := x.byPosition(int64(i)*every + 1)
		if err != nil || p.pos != int64(i)*every || p.offset != ident.Offset(i) {
			t.Fatalf("position %d is at %+v, %v", i*every+1, p, err)
		}
	}
	if most := blocks * 6; disk.reads > most {
		t.Fatalf("an index of %d blocks was read %d times, want at most %d", blocks, disk.reads, most)
	}
	// Backwards, and to places of other blocks, the answers are the same.
	for i := blocks*perBlock - 1; i >= 0; i -= perBlock/3 + 1 {
		if p, err := x.byOffset(ident.Offset(i)); err != nil || p.offset != ident.Offset(i) {
			t.Fatalf("offset %d is at %+v, %v", i, p, err)
		}
	}
}
