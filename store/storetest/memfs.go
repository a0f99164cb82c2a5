package storetest

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"syscall"

	"github.com/troupe-broker/troupe/store"
)

// memFS is a Disk as one process sees it.
type memFS struct {
	disk        *Disk
	incarnation int
}

// enter locks the disk for an operation. The caller calls leave.
func (m *memFS) enter(op, name string) error {
	m.disk.mu.Lock()
	if m.incarnation != m.disk.incarnation {
		m.disk.mu.Unlock()
		return pathError(op, name, ErrDead)
	}
	m.disk.breathe()
	return nil
}

// point ends an operation at which a history can be cut.
func (m *memFS) point(op, name string) {
	d := m.disk
	d.points++
	p, hook := Point{d.points, op, name}, d.OnPoint
	d.mu.Unlock()
	if hook != nil {
		hook(p)
	}
}

func (m *memFS) OpenFile(name string, flag int, _ fs.FileMode) (store.File, error) {
	if err := m.enter("open", name); err != nil {
		return nil, err
	}
	n, err := m.disk.lookup(name)
	switch {
	case err == nil && n.dir:
		err = syscall.EISDIR
	case err == nil && flag&os.O_EXCL != 0:
		err = fs.ErrExist
	case isNotExist(err) && flag&os.O_CREATE != 0:
		var dir *inode
		var last string
		if dir, last, err = m.disk.parent(name); err == nil {
			n = m.disk.newInode(false)
			n.opens, n.links = 1, 1
			dir.record(nameOp{to: last, node: n})
			m.point("create", name)
			return &memFile{fs: m, n: n, name: name}, nil
		}
	}
	if err != nil {
		m.disk.mu.Unlock()
		return nil, pathError("open", name, err)
	}
	n.opens++
	if flag&os.O_TRUNC != 0 && n.size > 0 {
		n.checkMapped()
		m.disk.used -= n.size
		n.resize(0)
		m.point("truncate", name)
	} else {
		m.disk.mu.Unlock()
	}
	return &memFile{fs: m, n: n, name: name}, nil
}

func (m *memFS) OpenDir(name string) (store.Dir, error) {
	if err := m.enter("open", name); err != nil {
		return nil, err
	}
	defer m.disk.mu.Unlock()
	n, err := m.disk.lookup(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &memDir{fs: m, n: n, name: name}, nil
}

func (m *memFS) Rename(from, to string) error {
	if err := m.enter("rename", from); err != nil {
		return err
	}
	if err := m.rename(from, to); err != nil {
		m.disk.mu.Unlock()
		return pathError("rename", from, err)
	}
	m.point("rename", to)
	return nil
}

func (m *memFS) rename(from, to string) error {
	source, last, err := m.disk.parent(from)
	if err != nil {
		return err
	}
	n, ok := source.names[last]
	if !ok {
		return fs.ErrNotExist
	}
	target, newLast, err := m.disk.parent(to)
	if err != nil {
		return err
	}
	if over := target.names[newLast]; over != nil && over != n {
		if over.dir && len(over.names) > 0 {
			return syscall.ENOTEMPTY
		}
		over.links--
		defer m.disk.release(over)
	}
	if source == target {
		source.record(nameOp{last, newLast, n})
		return nil
	}
	source.record(nameOp{from: last, node: n})
	target.record(nameOp{to: newLast, node: n})
	return nil
}

func (m *memFS) Remove(name string) error {
	if err := m.enter("remove", name); err != nil {
		return err
	}
	if err := m.remove(name, false); err != nil {
		m.disk.mu.Unlock()
		return pathError("remove", name, err)
	}
	m.point("remove", name)
	return nil
}

func (m *memFS) remove(name string, all bool) error {
	dir, last, err := m.disk.parent(name)
	if err != nil {
		return err
	}
	n, ok := dir.names[last]
	if !ok {
		return fs.ErrNotExist
	}
	if n.dir && len(n.names) > 0 && !all {
		return syscall.ENOTEMPTY
	}
	for _, child := range slices.Sorted(maps.Keys(n.names)) {
		if err := m.remove(name+"/"+child, true); err != nil {
			return err
		}
	}
	dir.record(nameOp{from: last, node: n})
	n.links--
	m.disk.release(n)
	return nil
}

func (m *memFS) RemoveAll(name string) error {
	if err := m.enter("remove", name); err != nil {
		return err
	}
	err := m.remove(name, true)
	if err != nil && !isNotExist(err) {
		m.disk.mu.Unlock()
		return pathError("remove", name, err)
	}
	m.point("remove", name)
	return nil
}

func (m *memFS) MkdirAll(name string, _ fs.FileMode) error {
	if err := m.enter("mkdir", name); err != nil {
		return err
	}
	n := m.disk.root
	for _, part := range split(name) {
		child := n.names[part]
		if child == nil {
			child = m.disk.newInode(true)
			child.links = 1
			n.record(nameOp{to: part, node: child})
		}
		if !child.dir {
			m.disk.mu.Unlock()
			return pathError("mkdir", name, syscall.ENOTDIR)
		}
		n = child
	}
	m.point("create", name)
	return nil
}

func (m *memFS) ReadDir(name string) ([]store.DirEntry, error) {
	if err := m.enter("readdir", name); err != nil {
		return nil, err
	}
	defer m.disk.mu.Unlock()
	n, err := m.disk.lookup(name)
	if err == nil && !n.dir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	var list []store.DirEntry
	for _, child := range slices.Sorted(maps.Keys(n.names)) {
		list = append(list, store.DirEntry{Name: child, Dir: n.names[child].dir})
	}
	return list, nil
}

func (m *memFS) Stat(name string) (store.FileInfo, error) {
	if err := m.enter("stat", name); err != nil {
		return store.FileInfo{}, err
	}
	defer m.disk.mu.Unlock()
	n, err := m.disk.lookup(name)
	if err != nil {
		return store.FileInfo{}, pathError("stat", name, err)
	}
	return store.FileInfo{Size: n.size, Dir: n.dir, Modified: n.modified, ID: store.FileID{Device: 1, Inode: n.id}}, nil
}

func (m *memFS) Usage(name string) (store.Usage, error) {
	if err := m.enter("statfs", name); err != nil {
		return store.Usage{}, err
	}
	defer m.disk.mu.Unlock()
	total := m.disk.Capacity
	if total == 0 {
		total = 1 << 40
	}
	return store.Usage{Total: total, Free: total - m.disk.used, Own: m.disk.WholeSync, Flushes: m.disk.WholeSync}, nil
}

func (m *memFS) Lock(name string) (io.Closer, error) {
	f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := m.enter("lock", name); err != nil {
		return nil, err
	}
	defer m.disk.mu.Unlock()
	if m.disk.locks[name] {
		f.(*memFile).n.opens--
		return nil, pathError("lock", name, store.ErrLocked)
	}
	m.disk.locks[name] = true
	return &memLock{f.(*memFile)}, nil
}

func (m *memFS) BootID() (string, error) {
	if err := m.enter("boot id", ""); err != nil {
		return "", err
	}
	defer m.disk.mu.Unlock()
	return fmt.Sprintf("boot-%d", m.disk.boot), nil
}

type memLock struct{ f *memFile }

func (l *memLock) Close() error {
	m := l.f.fs
	if err := m.enter("unlock", l.f.name); err != nil {
		return err
	}
	delete(m.disk.locks, l.f.name)
	m.disk.mu.Unlock()
	return l.f.Close()
}
