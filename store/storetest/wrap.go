package storetest

import (
	"io"
	"io/fs"

	"github.com/troupe-broker/troupe/store"
)

// call is one operation that passes through a wrapped file system.
type call struct {
	op   string
	name string
	data []byte // of a write, or the buffer of a read
	off  int64
	size int64 // bytes that an allocation or a write adds, 0 for others
	file store.File
}

// wrapped is a file system whose every operation goes through around, which may
// wait, fail, or change what do does. do returns the number of bytes for reads and
// writes.
type wrapped struct {
	inner  store.FS
	around func(c *call, do func() (int, error)) (int, error)
}

func (w *wrapped) pass(op, name string, do func() error) error {
	_, err := w.around(&call{op: op, name: name}, func() (int, error) { return 0, do() })
	return err
}

func (w *wrapped) OpenFile(name string, flag int, perm fs.FileMode) (store.File, error) {
	var f store.File
	err := w.pass("open", name, func() (err error) {
		f, err = w.inner.OpenFile(name, flag, perm)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &wrappedFile{w, f, name}, nil
}

func (w *wrapped) OpenDir(name string) (store.Dir, error) {
	var d store.Dir
	err := w.pass("open", name, func() (err error) {
		d, err = w.inner.OpenDir(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &wrappedDir{w, d, name}, nil
}

func (w *wrapped) Rename(from, to string) error {
	return w.pass("rename", to, func() error { return w.inner.Rename(from, to) })
}

func (w *wrapped) Remove(name string) error {
	return w.pass("remove", name, func() error { return w.inner.Remove(name) })
}

func (w *wrapped) RemoveAll(name string) error {
	return w.pass("remove", name, func() error { return w.inner.RemoveAll(name) })
}

func (w *wrapped) MkdirAll(name string, perm fs.FileMode) error {
	return w.pass("mkdir", name, func() error { return w.inner.MkdirAll(name, perm) })
}

func (w *wrapped) ReadDir(name string) (list []store.DirEntry, err error) {
	err = w.pass("readdir", name, func() (err error) {
		list, err = w.inner.ReadDir(name)
		return err
	})
	return list, err
}

func (w *wrapped) Stat(name string) (info store.FileInfo, err error) {
	err = w.pass("stat", name, func() (err error) {
		info, err = w.inner.Stat(name)
		return err
	})
	return info, err
}

func (w *wrapped) Usage(name string) (store.Usage, error) { return w.inner.Usage(name) }
func (w *wrapped) Lock(name string) (io.Closer, error)    { return w.inner.Lock(name) }
func (w *wrapped) BootID() (string, error)                { return w.inner.BootID() }

type wrappedFile struct {
	w *wrapped
	store.File
	name string
}

func (f *wrappedFile) around(c call, do func() (int, error)) (int, error) {
	c.name, c.file = f.name, f.File
	return f.w.around(&c, do)
}

func (f *wrappedFile) ReadAt(p []byte, off int64) (int, error) {
	return f.around(call{op: "read", data: p, off: off}, func() (int, error) { return f.File.ReadAt(p, off) })
}

func (f *wrappedFile) ReadNow(p []byte, off int64) (int, error) {
	return f.around(call{op: "read", data: p, off: off}, func() (int, error) { return f.File.ReadNow(p, off) })
}

func (f *wrappedFile) WriteAt(p []byte, off int64) (int, error) {
	return f.around(call{op: "write", data: p, off: off, size: int64(len(p))}, func() (int, error) { return f.File.WriteAt(p, off) })
}

func (f *wrappedFile) Truncate(size int64) error {
	_, err := f.around(call{op: "truncate"}, func() (int, error) { return 0, f.File.Truncate(size) })
	return err
}

func (f *wrappedFile) Allocate(off, n int64) error {
	_, err := f.around(call{op: "allocate", size: n}, func() (int, error) { return 0, f.File.Allocate(off, n) })
	return err
}

func (f *wrappedFile) Sync() error {
	_, err := f.around(call{op: "sync"}, func() (int, error) { return 0, f.File.Sync() })
	return err
}

func (f *wrappedFile) Map(off, n int64) (m store.Mapping, err error) {
	_, err = f.around(call{op: "map"}, func() (int, error) {
		m, err = f.File.Map(off, n)
		return 0, err
	})
	return m, err
}

type wrappedDir struct {
	w *wrapped
	store.Dir
	name string
}

func (d *wrappedDir) Sync() error   { return d.w.pass("syncdir", d.name, d.Dir.Sync) }
func (d *wrappedDir) SyncFS() error { return d.w.pass("syncfs", d.name, d.Dir.SyncFS) }

// Slow makes every operation of a file system wait: wait is called before it, with
// the operation (open, rename, remove, mkdir, readdir, stat, read, write, truncate,
// allocate, sync, map, syncdir, syncfs) and the name of the file.
func Slow(inner store.FS, wait func(op, name string)) store.FS {
	return &wrapped{inner, func(c *call, do func() (int, error)) (int, error) {
		wait(c.op, c.name)
		return do()
	}}
}
