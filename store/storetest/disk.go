package storetest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// SectorBytes is the unit in which unsynced bytes survive a power loss.
const SectorBytes = 512

// ErrDead is what a handle answers whose process was killed.
var ErrDead = errors.New("storetest: the process that opened this is dead")

// Point is a moment at which a history can be cut: one operation that changes what
// is durable, or could be.
type Point struct {
	N    int    // from 1, in order
	Op   string // sync, syncdir, syncfs, rename, remove, create, truncate, write
	Name string
}

// Disk is the memory and the platter of one machine.
type Disk struct {
	mu          sync.Mutex
	rand        *rand.Rand
	root        *inode
	inodes      []*inode // by id, oldest first; those that nothing leads to go now and then
	boot        int      // counts power losses
	incarnation int      // counts deaths of the process
	locks       map[string]bool
	nextInode   uint64
	now         ident.Millis
	points      int

	// Capacity is the size of the disk in bytes; 0: no bound. Set it at any time
	// between operations.
	Capacity int64
	used     int64
	// WholeSync lets Usage say that a sync of the whole file system is in order.
	WholeSync bool
	// Cold is the chance, in percent, that a range of a file is said to need the
	// disk.
	Cold int
	// Writeback is the chance, in percent, that an operation is accompanied by the
	// kernel writing some dirty sectors back on its own account.
	Writeback int
	// OnPoint is called after each operation that is a Point, without a lock held.
	OnPoint func(Point)
}

// inode is a file or a directory. A file's bytes in the cache are buf[:size]; what
// is on the platter is durable.
type inode struct {
	id       uint64
	dir      bool
	modified ident.Millis
	links    int // names in the cache; a file without one lives while it is open
	opens    int
	freed    bool // its space was given back

	buf     []byte
	size    int64
	mapped  int  // mappings that alias buf
	lent    bool // one did, since the last death
	clean   bool // durable is buf[:size], and nothing is mapped that could change that
	durable []byte
	// washed holds sectors that a failed sync left clean: they count as written
	// until they change again.
	washed map[int64][SectorBytes]byte

	names        map[string]*inode
	durableNames map[string]*inode
	pending      []nameOp // since the directory was last synced
}

// nameOp is one change of a directory: to is "" for a removal, from is "" for a
// creation, both are set for a rename.
type nameOp struct {
	from, to string
	node     *inode
}

// NewDisk returns an empty disk. Equal seeds and equal histories give equal disks.
func NewDisk(seed uint64) *Disk {
	d := &Disk{rand: newRand(seed), locks: map[string]bool{}}
	d.root = d.newInode(true)
	d.root.links = 1
	return d
}

func newRand(seed uint64) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return rand.New(rand.NewChaCha8(key))
}

func (d *Disk) newInode(dir bool) *inode {
	d.nextInode++
	n := &inode{id: d.nextInode, dir: dir, modified: d.now}
	if dir {
		n.names, n.durableNames = map[string]*inode{}, map[string]*inode{}
	}
	d.inodes = append(d.inodes, n)
	return n
}

// FS is the disk as the living process sees it.
func (d *Disk) FS() store.FS {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &memFS{disk: d, incarnation: d.incarnation}
}

// SetNow sets the clock that stamps files.
func (d *Disk) SetNow(now ident.Millis) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = now
}

// Used is the number of bytes that files take.
func (d *Disk) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used
}

// Kill ends the process: its handles are dead, its locks are free, the page cache
// stays as it is.
func (d *Disk) Kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.die()
	d.each(func(n *inode) {
		n.checkMapped()
		if n.lent {
			// A goroutine of the dead process may still write into its mapping.
			n.buf, n.lent = bytes.Clone(n.buf[:n.size]), false
		}
	})
}

func (d *Disk) die() {
	d.incarnation++
	d.locks = map[string]bool{}
	d.each(func(n *inode) { n.opens, n.mapped = 0, 0 })
	d.recount()
}

// Crash cuts the power: of the bytes and names that were not synced any subset
// survives, drawn from seed.
func (d *Disk) Crash(seed uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := newRand(seed)
	d.each(func(n *inode) {
		n.checkMapped()
		if n.dir {
			n.crashNames(r)
		} else {
			n.crashBytes(r)
		}
	})
	d.boot++
	d.die()
}

// recount counts the used bytes anew; what no name leads to is gone.
func (d *Disk) recount() {
	d.used = 0
	links := map[*inode]int{d.root: 1}
	d.each(func(n *inode) {
		for _, child := range n.names {
			links[child]++
		}
	})
	clear(d.inodes)
	d.inodes = d.inodes[:0]
	d.each(func(n *inode) {
		n.links, n.freed = links[n], false
		if n.links > 0 {
			d.used += n.size
		}
		d.inodes = append(d.inodes, n)
	})
	slices.SortFunc(d.inodes, func(a, b *inode) int { return cmp.Compare(a.id, b.id) })
}

// each visits every inode that has a name, in an order that depends on nothing but
// the history.
func (d *Disk) each(visit func(*inode)) {
	seen := map[*inode]bool{}
	var walk func(n *inode)
	walk = func(n *inode) {
		if seen[n] {
			return
		}
		seen[n] = true
		for _, names := range []map[string]*inode{n.names, n.durableNames} {
			for _, name := range slices.Sorted(maps.Keys(names)) {
				walk(names[name])
			}
		}
		for _, op := range n.pending {
			walk(op.node)
		}
		visit(n)
	}
	walk(d.root)
}

// Clone is a copy of the disk at this moment: the same cache, the same platter, no
// hooks, and a process of its own.
func (d *Disk) Clone() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := &Disk{
		rand: newRand(d.nextInode), locks: map[string]bool{}, nextInode: d.nextInode, now: d.now, boot: d.boot,
		incarnation: d.incarnation + 1, Capacity: d.Capacity, WholeSync: d.WholeSync,
	}
	twins := map[*inode]*inode{}
	d.each(func(n *inode) {
		n.checkMapped()
		twins[n] = &inode{
			id: n.id, dir: n.dir, modified: n.modified, buf: bytes.Clone(n.buf[:n.size]), size: n.size,
			durable: bytes.Clone(n.durable), washed: maps.Clone(n.washed),
		}
	})
	translate := func(names map[string]*inode) map[string]*inode {
		out := make(map[string]*inode, len(names))
		for name, n := range names {
			out[name] = twins[n]
		}
		return out
	}
	for n, twin := range twins {
		if n.dir {
			twin.names, twin.durableNames = translate(n.names), translate(n.durableNames)
			for _, op := range n.pending {
				twin.pending = append(twin.pending, nameOp{op.from, op.to, twins[op.node]})
			}
		}
	}
	c.root = twins[d.root]
	c.recount()
	return c
}

// Flip inverts one bit of a file, in the cache and on the platter: bit rot that no
// sync notices. It panics when there is no such byte.
func (d *Disk) Flip(name string, byteAt int64, bit uint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.lookup(name)
	if err != nil || byteAt >= n.size {
		panic(fmt.Sprintf("storetest: no byte %d in %s: %v", byteAt, name, err))
	}
	n.buf[byteAt] ^= 1 << bit
	n.clean = false
	if byteAt < int64(len(n.durable)) {
		n.durable[byteAt] ^= 1 << bit
	}
}

// Dump lists the files with their sizes, for messages of failed tests.
func (d *Disk) Dump() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b strings.Builder
	var walk func(at string, n *inode)
	walk = func(at string, n *inode) {
		if !n.dir {
			fmt.Fprintf(&b, "%s %d bytes, %d durable\n", at, n.size, len(n.durable))
		}
		for _, name := range slices.Sorted(maps.Keys(n.names)) {
			walk(path.Join(at, name), n.names[name])
		}
	}
	walk("/", d.root)
	return b.String()
}

// Paths.

func split(name string) []string {
	name = filepath.ToSlash(name)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	clean := path.Clean(name)
	if clean == "/" {
		return nil
	}
	return strings.Split(clean[1:], "/")
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func (d *Disk) lookup(name string) (*inode, error) {
	return d.descend(split(name))
}

func (d *Disk) descend(parts []string) (*inode, error) {
	n := d.root
	for _, part := range parts {
		if !n.dir {
			return nil, syscall.ENOTDIR
		}
		child, ok := n.names[part]
		if !ok {
			return nil, fs.ErrNotExist
		}
		n = child
	}
	return n, nil
}

// parent finds the directory that holds name, and the last part of the path.
func (d *Disk) parent(name string) (*inode, string, error) {
	parts := split(name)
	if len(parts) == 0 {
		return nil, "", syscall.EINVAL
	}
	dir, err := d.descend(parts[:len(parts)-1])
	if err != nil {
		return nil, "", err
	}
	if !dir.dir {
		return nil, "", syscall.ENOTDIR
	}
	return dir, parts[len(parts)-1], nil
}
