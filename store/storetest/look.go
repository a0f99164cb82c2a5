package storetest

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/store"
)

// Look is a view of a [Disk] from outside: no operation of the process, so that it
// draws nothing, and no fault and no hook hears of it.
type Look struct {
	disk    *Disk
	platter bool
}

// Cache shows what the process sees.
func (d *Disk) Cache() Look { return Look{disk: d} }

// Platter shows what the process would see if the power failed now and nothing survived
// that was not synced: of all that a power loss may leave, the least.
func (d *Disk) Platter() Look { return Look{disk: d, platter: true} }

// Read returns the bytes of a file. They alias the disk, and are valid until it
// changes.
func (l Look) Read(name string) ([]byte, error) {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	n, err := l.find(name)
	switch {
	case err != nil:
		return nil, pathError("read", name, err)
	case n.dir:
		return nil, pathError("read", name, fs.ErrInvalid)
	}
	return l.bytes(n), nil
}

// List returns the entries of a directory by name.
func (l Look) List(name string) ([]store.DirEntry, error) {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	n, err := l.find(name)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	names := l.names(n)
	list := make([]store.DirEntry, 0, len(names))
	for _, child := range slices.Sorted(maps.Keys(names)) {
		list = append(list, store.DirEntry{Name: child, Dir: names[child].dir})
	}
	return list, nil
}

// File is a file as a [Look] shows it.
type File struct {
	Name  string // without its directory
	Bytes []byte // as Read returns them
}

// Files returns the files of a directory whose names end so, by name.
func (l Look) Files(name, suffix string) ([]File, error) {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	n, err := l.find(name)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	var files []File
	for child, c := range l.names(n) {
		if !c.dir && strings.HasSuffix(child, suffix) {
			files = append(files, File{child, l.bytes(c)})
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

func (l Look) bytes(n *inode) []byte {
	if l.platter {
		return n.durable
	}
	return n.buf[:n.size:n.size]
}

func (l Look) names(n *inode) map[string]*inode {
	if l.platter {
		return n.durableNames
	}
	return n.names
}

func (l Look) find(name string) (*inode, error) {
	n := l.disk.root
	for _, part := range split(name) {
		if n = l.names(n)[part]; n == nil {
			return nil, fs.ErrNotExist
		}
	}
	return n, nil
}

// Overwrite replaces the bytes of a file, in the cache and on the platter: damage that
// no sync notices. It panics when there is no such file, or it is mapped.
func (d *Disk) Overwrite(name string, content []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.lookup(name)
	if err != nil || n.dir || n.mapped > 0 {
		panic(fmt.Sprintf("storetest: %s is no file that can be overwritten: %v", name, err))
	}
	d.used += int64(len(content)) - n.size
	n.buf, n.size, n.durable, n.washed, n.clean = bytes.Clone(content), int64(len(content)), bytes.Clone(content), nil, true
}
