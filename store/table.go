package store

import (
	"errors"
	"fmt"
	"os"
)

// table is a file of records of one width, ascending, written at the end and
// searched by halving: what .index and .timeindex have in common. Appended records
// collect in memory and are written when the buffer is full or flush is called; a
// table is a cache of the log, so nothing is lost when they are not.
type table struct {
	fs    FS
	name  string
	width int

	file    File // nil: closed, opened again when needed
	written int  // records in the file
	tail    []byte

	// hurried: the caller may not wait for the disk, ErrWouldWait tells it that it
	// would have to.
	hurried bool

	block   []byte // one piece of the file, read by the last search
	blockAt int    // its first record
	blockN  int    // its records
}

// tableBuffer is the size in bytes of the buffer of appended records, and of the
// pieces in which a file is read. Tests make it small.
var tableBuffer = 4096

func newTable(fs FS, name string, width int) table {
	return table{fs: fs, name: name, width: width}
}

// count is the number of records.
func (t *table) count() int { return t.written + len(t.tail)/t.width }

// bufferFull tells whether the next append writes the buffer first.
func (t *table) bufferFull() bool { return len(t.tail)+t.width > tableBuffer }

// append adds a record and returns the room for it, to be filled by the caller.
func (t *table) append() ([]byte, error) {
	if t.bufferFull() {
		if err := t.flush(); err != nil {
			return nil, err
		}
	}
	if t.tail == nil {
		t.tail = make([]byte, 0, tableBuffer)
	}
	n := len(t.tail)
	t.tail = t.tail[:n+t.width]
	return t.tail[n:], nil
}

// flush writes what is buffered. On an error the records stay buffered, the
// file's end is where it was.
func (t *table) flush() error {
	if len(t.tail) == 0 && t.file != nil {
		return nil
	}
	if err := t.open(os.O_RDWR | os.O_CREATE); err != nil {
		return err
	}
	if len(t.tail) == 0 {
		return nil
	}
	if _, err := t.file.WriteAt(t.tail, int64(t.written)*int64(t.width)); err != nil {
		return err
	}
	t.written += len(t.tail) / t.width
	t.tail = t.tail[:0]
	t.blockN = 0
	return nil
}

// load takes in an existing file; a partial record at its end is cut off by the
// next write. A missing file is an empty table and an error.
func (t *table) load() error {
	if err := t.open(os.O_RDWR); err != nil {
		return err
	}
	size, err := t.file.Size()
	if err != nil {
		return err
	}
	t.written = int(size / int64(t.width))
	if size%int64(t.width) != 0 {
		return fmt.Errorf("%s: %d bytes are no whole number of %d-byte entries: %w", t.name, size, t.width, ErrFormat)
	}
	return nil
}

func (t *table) open(flag int) error {
	if t.file != nil {
		return nil
	}
	f, err := t.fs.OpenFile(t.name, flag, 0o644)
	if err != nil {
		return err
	}
	t.file = f
	return nil
}

// at returns record i. The slice is valid until the next call.
func (t *table) at(i int) ([]byte, error) {
	if i >= t.written {
		return t.tail[(i-t.written)*t.width:][:t.width], nil
	}
	if i < t.blockAt || i >= t.blockAt+t.blockN {
		if err := t.fetch(i); err != nil {
			return nil, err
		}
	}
	return t.block[(i-t.blockAt)*t.width:][:t.width], nil
}

// fetch reads the block of the file that holds record i.
func (t *table) fetch(i int) error {
	if t.hurried && t.file == nil {
		return ErrWouldWait
	}
	if err := t.open(os.O_RDWR); err != nil {
		return err
	}
	per := tableBuffer / t.width
	if t.block == nil {
		t.block = make([]byte, per*t.width)
	}
	t.blockN = 0
	first := i - i%per
	n := min(per, t.written-first)
	read := t.file.ReadAt
	if t.hurried {
		read = t.file.ReadNow
	}
	if _, err := read(t.block[:n*t.width], int64(first)*int64(t.width)); err != nil {
		return err
	}
	t.blockAt, t.blockN = first, n
	return nil
}

// search returns the number of leading records for which below is true; below must
// be true for a prefix of the table.
//
// It begins with the block that the last search ended in, and the one behind it: who
// reads a log from one end to the other looks for one place after the other, and
// halving from the middle reads half a dozen blocks each time.
func (t *table) search(below func(record []byte) bool) (int, error) {
	lo, hi := t.narrow(0, t.count(), below)
	if behind := t.blockAt + t.blockN; t.blockN > 0 && lo == behind && lo < min(hi, t.written) {
		if err := t.fetch(lo); err != nil {
			return 0, err
		}
		lo, hi = t.narrow(lo, hi, below)
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		r, err := t.at(mid)
		if err != nil {
			return 0, err
		}
		if below(r) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, nil
}

// narrow takes from the bounds of a search what the block in memory tells.
func (t *table) narrow(lo, hi int, below func(record []byte) bool) (int, int) {
	n := t.blockN
	switch {
	case n == 0:
		return lo, hi
	case !below(t.block[:t.width]):
		return lo, t.blockAt
	case !below(t.block[(n-1)*t.width:][:t.width]):
		return t.blockAt + 1, t.blockAt + n - 1
	default:
		return t.blockAt + n, hi
	}
}

// cut keeps the first n records.
func (t *table) cut(n int) error {
	t.blockN = 0
	if n >= t.written {
		t.tail = t.tail[:(n-t.written)*t.width]
		return nil
	}
	t.tail = t.tail[:0]
	if err := t.open(os.O_RDWR); err != nil {
		return err
	}
	if err := t.file.Truncate(int64(n) * int64(t.width)); err != nil {
		return err
	}
	t.written = n
	return nil
}

// rest closes the file and gives the buffers back; the table stays usable.
func (t *table) rest() error {
	t.tail, t.block, t.blockN = nil, nil, 0
	return t.close()
}

func (t *table) close() error {
	if t.file == nil {
		return nil
	}
	f := t.file
	t.file = nil
	return f.Close()
}

// sync writes what is buffered and makes it durable. The name is not covered.
func (t *table) sync() error {
	if err := t.flush(); err != nil {
		return err
	}
	return t.file.Sync()
}

// forget drops file and contents, to be built anew.
func (t *table) forget() error {
	t.written, t.tail, t.block, t.blockN = 0, nil, nil, 0
	err := t.close()
	if rm := t.fs.Remove(t.name); rm != nil && !isNotExist(rm) {
		err = errors.Join(err, rm)
	}
	return err
}
