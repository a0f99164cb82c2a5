package storetest

import (
	"errors"
	"io"
	"io/fs"

	"github.com/troupe-broker/troupe/store"
)

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// memFile is an open file of a Disk.
type memFile struct {
	fs     *memFS
	n      *inode
	name   string
	closed bool
}

func (f *memFile) enter(op string) error {
	if err := f.fs.enter(op, f.name); err != nil {
		return err
	}
	if f.closed {
		f.fs.disk.mu.Unlock()
		return pathError(op, f.name, fs.ErrClosed)
	}
	return nil
}

func (f *memFile) leave() { f.fs.disk.mu.Unlock() }

func (f *memFile) Name() string { return f.name }

func (f *memFile) Size() (int64, error) {
	if err := f.enter("stat"); err != nil {
		return 0, err
	}
	defer f.leave()
	return f.n.size, nil
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.enter("read"); err != nil {
		return 0, err
	}
	defer f.leave()
	if off >= f.n.size {
		return 0, io.EOF
	}
	n := copy(p, f.n.buf[off:f.n.size])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.enter("write"); err != nil {
		return 0, err
	}
	end := off + int64(len(p))
	if end > f.n.size {
		f.n.checkMapped()
		if err := f.fs.disk.reserve(end - f.n.size); err != nil {
			f.leave()
			return 0, pathError("write", f.name, err)
		}
		f.n.resize(end)
	}
	copy(f.n.buf[off:], p)
	f.n.clean = false
	f.n.soil(off, end)
	f.n.modified = f.fs.disk.now
	f.fs.point("write", f.name)
	return len(p), nil
}

func (f *memFile) Truncate(size int64) error {
	if err := f.enter("truncate"); err != nil {
		return err
	}
	f.n.checkMapped()
	if err := f.fs.disk.reserve(size - f.n.size); err != nil {
		f.leave()
		return pathError("truncate", f.name, err)
	}
	f.n.resize(size)
	f.n.modified = f.fs.disk.now
	f.fs.point("truncate", f.name)
	return nil
}

func (f *memFile) Allocate(off, n int64) error {
	if err := f.enter("fallocate"); err != nil {
		return err
	}
	if end := off + n; end > f.n.size {
		f.n.checkMapped()
		if err := f.fs.disk.reserve(end - f.n.size); err != nil {
			f.leave()
			return pathError("fallocate", f.name, err)
		}
		f.n.resize(end)
	}
	f.fs.point("truncate", f.name)
	return nil
}

func (f *memFile) Sync() error {
	if err := f.enter("fdatasync"); err != nil {
		return err
	}
	f.n.sync()
	f.fs.point("sync", f.name)
	return nil
}

// Wash is called by the fault twin when it makes a sync fail: the pages are clean
// from then on and not on the platter.
func (f *memFile) Wash() {
	if f.enter("fdatasync") != nil {
		return
	}
	f.n.wash()
	f.leave()
}

// mapSlack is the room left behind a mapping for writes that go beyond it.
const mapSlack = 64 << 10

func (f *memFile) Map(off, n int64) (store.Mapping, error) {
	if err := f.enter("mmap"); err != nil {
		return nil, err
	}
	defer f.leave()
	if need := off + n; int64(len(f.n.buf)) < need {
		if f.n.mapped > 0 {
			return nil, pathError("mmap", f.name, errors.New("storetest: a second, larger mapping"))
		}
		f.n.growBuffer(need + mapSlack)
	}
	f.n.mapped++
	f.n.lent, f.n.clean = true, false
	return &memMapping{f: f, n: f.n, b: f.n.buf[off : off+n : off+n]}, nil
}

func (f *memFile) Resident(int64, int64) bool {
	if f.enter("mincore") != nil {
		return true
	}
	defer f.leave()
	d := f.fs.disk
	return d.Cold == 0 || d.rand.IntN(100) >= d.Cold
}

func (f *memFile) ReadNow(p []byte, off int64) (int, error) {
	if !f.Resident(off, int64(len(p))) {
		return 0, store.ErrWouldWait
	}
	return f.ReadAt(p, off)
}

func (f *memFile) Identity() (store.FileID, error) {
	if err := f.enter("stat"); err != nil {
		return store.FileID{}, err
	}
	defer f.leave()
	return store.FileID{Device: 1, Inode: f.n.id}, nil
}

func (f *memFile) Fd() (uintptr, bool) { return 0, false }

func (f *memFile) Close() error {
	if err := f.enter("close"); err != nil {
		return err
	}
	defer f.leave()
	f.closed = true
	f.n.opens--
	f.fs.disk.release(f.n)
	return nil
}

// memMapping aliases the file's cache.
type memMapping struct {
	f *memFile
	n *inode
	b []byte
}

func (m *memMapping) Bytes() []byte { return m.b }

func (m *memMapping) Sync() error {
	if err := m.f.fs.enter("msync", m.f.name); err != nil {
		return err
	}
	m.n.sync()
	m.f.fs.point("sync", m.f.name)
	return nil
}

func (m *memMapping) Close() error {
	if err := m.f.fs.enter("munmap", m.f.name); err != nil {
		return err
	}
	defer m.f.leave()
	m.n.checkMapped()
	m.n.mapped--
	m.b = nil
	return nil
}

// memDir is an open directory of a Disk.
type memDir struct {
	fs   *memFS
	n    *inode
	name string
}

func (d *memDir) Sync() error {
	if err := d.fs.enter("fsync", d.name); err != nil {
		return err
	}
	d.n.syncNames()
	d.fs.point("syncdir", d.name)
	return nil
}

func (d *memDir) SyncFS() error {
	if err := d.fs.enter("syncfs", d.name); err != nil {
		return err
	}
	for _, n := range d.fs.disk.inodes {
		switch {
		case n.dir:
			n.syncNames()
		case n.links+n.opens > 0:
			n.sync()
		}
	}
	d.fs.point("syncfs", d.name)
	return nil
}

func (d *memDir) Close() error { return nil }
