package store

import (
	"fmt"
	"os"
	"strconv"

	"github.com/troupe-broker/troupe/wire/ident"
)

// CheckIndexes reads a segment's index files entry by entry and compares them with
// its batches. Missing files are in order: they are caches.
func CheckIndexes(fs FS, dir, name string) error {
	n, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return err
	}
	base := ident.Offset(n)
	f, err := fs.OpenFile(segmentName(dir, base, suffixLog), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err != nil {
		return err
	}
	starts := map[int64]ident.Offset{} // last offset by position
	tops := map[ident.Offset]ident.Millis{}
	top := ident.NoTimestamp
	sc := newScanner(nil, f, 0, size, base)
	for {
		v, pos, err := sc.batch()
		if err != nil {
			break
		}
		starts[pos] = v.LastOffset()
		top = max(top, v.MaxTimestamp())
		tops[v.LastOffset()] = top
	}
	if err := checkOffsetIndex(fs, dir, base, starts); err != nil {
		return err
	}
	return checkTimeIndex(fs, dir, base, tops)
}

func checkOffsetIndex(fs FS, dir string, base ident.Offset, starts map[int64]ident.Offset) error {
	x := newOffsetIndex(fs, segmentName(dir, base, suffixIndex), base)
	if err := x.load(); err != nil {
		if isNotExist(err) {
			return nil
		}
		return err
	}
	last := place{offset: base - 1, pos: -1}
	for i := range x.count() {
		p, err := x.entry(i)
		if err != nil {
			return err
		}
		if p.offset <= last.offset || p.pos <= last.pos {
			return fmt.Errorf("%s: entry %d, %+v, is not above %+v", x.name, i, p, last)
		}
		if end, ok := starts[p.pos]; !ok || end != p.offset {
			return fmt.Errorf("%s: entry %d, %+v: the batch there ends with %d (%t)", x.name, i, p, end, ok)
		}
		last = p
	}
	return x.close()
}

func checkTimeIndex(fs FS, dir string, base ident.Offset, tops map[ident.Offset]ident.Millis) error {
	x := newTimeIndex(fs, segmentName(dir, base, suffixTimeIndex), base)
	if err := x.load(); err != nil {
		if isNotExist(err) {
			return nil
		}
		return err
	}
	last := moment{ident.NoTimestamp, base}
	for i := range x.count() {
		m, err := x.entry(i)
		if err != nil {
			return err
		}
		if m.timestamp <= last.timestamp || m.offset < last.offset {
			return fmt.Errorf("%s: entry %d, %+v, is not above %+v", x.name, i, m, last)
		}
		if top, ok := tops[m.offset]; !ok || top != m.timestamp {
			return fmt.Errorf("%s: entry %d, %+v: the greatest timestamp up to there is %d (%t)", x.name, i, m, top, ok)
		}
		last = m
	}
	return x.close()
}

// Seal appends the checksum line of a sealed text.
func Seal(text []byte) []byte { return seal(text) }

// ShrinkTables makes the buffers of all indexes small, so that short histories meet
// them full. It returns what undoes it.
func ShrinkTables(size int) (undo func()) {
	old := tableBuffer
	tableBuffer = size
	return func() { tableBuffer = old }
}

// MappedTo is the offset below which the run knows the keys; 0: not yet.
func (r *CleanRun) MappedTo() ident.Offset {
	if r.keys == nil {
		return 0
	}
	return r.end
}
