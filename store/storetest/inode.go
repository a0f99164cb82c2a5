package storetest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
)

// change applies one name operation to a set of names.
func (op nameOp) apply(names map[string]*inode) {
	if op.from != "" && names[op.from] == op.node {
		delete(names, op.from)
	}
	if op.to != "" {
		names[op.to] = op.node
	}
}

func (n *inode) record(op nameOp) {
	op.apply(n.names)
	n.pending = append(n.pending, op)
}

func (n *inode) syncNames() {
	if len(n.pending) == 0 {
		return
	}
	n.durableNames = maps.Clone(n.names)
	n.pending = nil
}

// crashNames keeps any subset of the name operations since the last sync of the
// directory.
func (n *inode) crashNames(r *rand.Rand) {
	for _, op := range n.pending {
		if r.IntN(2) == 0 {
			op.apply(n.durableNames)
		}
	}
	n.names = maps.Clone(n.durableNames)
	n.pending = nil
}

// resize sets the length of a file in the cache.
func (n *inode) resize(size int64) {
	switch {
	case size < n.size:
		n.blank(size, n.size)
	case size > int64(len(n.buf)):
		n.growBuffer(size)
	}
	n.size, n.clean = size, false
}

// blank clears a range of the cache. Most of what is cut off was never written, and is not touched: that would cost pages.
func (n *inode) blank(from, to int64) {
	for at := from; at < to; at += int64(len(zeros)) {
		if b := n.buf[at:min(at+int64(len(zeros)), to)]; !bytes.Equal(b, zeros[:len(b)]) {
			clear(b)
		}
	}
}

// growBuffer makes room in the cache. Mappings alias the buffer, so that it cannot
// move while there is one; Map leaves slack for a batch that does not fit.
func (n *inode) growBuffer(size int64) {
	if n.mapped > 0 {
		panic(fmt.Sprintf("storetest: a mapped file outgrew its mapping: %d bytes, room for %d", size, len(n.buf)))
	}
	fresh := make([]byte, max(size, 2*n.size, SectorBytes))
	copy(fresh, n.buf[:n.size])
	n.buf = fresh
}

// checkMapped finds writes through a mapping beyond the file's end, which on a
// real machine are a bus error.
func (n *inode) checkMapped() {
	if n.dir || n.mapped == 0 {
		return
	}
	beyond := n.buf[n.size:min(n.size+int64(len(zeros)), int64(len(n.buf)))]
	if bytes.Equal(beyond, zeros[:len(beyond)]) {
		return
	}
	i := slices.IndexFunc(beyond, func(c byte) bool { return c != 0 })
	panic(fmt.Sprintf("storetest: SIGBUS: a byte %d beyond the end of a file of %d was written through its mapping", i, n.size))
}

// zeros are what is looked at beyond the end of a mapped file.
var zeros [64 << 10]byte

// sync makes the cache durable.
func (n *inode) sync() {
	n.checkMapped()
	if n.clean {
		return
	}
	if len(n.washed) == 0 {
		n.durable = append(n.durable[:0], n.buf[:n.size]...)
		n.clean = n.mapped == 0
		return
	}
	n.eachDirty(func(at int64) { n.writeBack(at) })
	n.durable = resized(n.durable, n.size)
}

// wash is what a failed sync does: the kernel marks the pages clean, although they
// are not on the platter, so that no later sync writes them.
func (n *inode) wash() {
	n.checkMapped()
	if n.washed == nil {
		n.washed = map[int64][SectorBytes]byte{}
	}
	n.eachDirty(func(at int64) { n.washed[at] = n.sector(n.buf[:n.size], at) })
}

// soil makes the sectors of a range dirty that a failed sync has left clean: they
// were written again, if only with the same bytes.
func (n *inode) soil(from, to int64) {
	for at := from / SectorBytes * SectorBytes; len(n.washed) > 0 && at < to; at += SectorBytes {
		delete(n.washed, at)
	}
}

// sector returns the sector of b that begins at byte at, padded with zeros.
func (n *inode) sector(b []byte, at int64) (s [SectorBytes]byte) {
	if at < int64(len(b)) {
		copy(s[:], b[at:])
	}
	return s
}

// eachDirty visits the sectors that a sync would write, ascending.
func (n *inode) eachDirty(visit func(at int64)) {
	if n.clean {
		return
	}
	for at := int64(0); at < n.size; at += SectorBytes {
		if at%(32*SectorBytes) == 0 {
			for n.same(at, at+32*SectorBytes) {
				at += 32 * SectorBytes
			}
			if at >= n.size {
				return
			}
		}
		end := min(at+SectorBytes, n.size)
		if n.same(at, end) {
			continue
		}
		if w, ok := n.washed[at]; ok && w == n.sector(n.buf[:n.size], at) {
			continue
		}
		visit(at)
	}
}

// same tells that a range is on the platter as it is in the cache.
func (n *inode) same(from, to int64) bool {
	return to <= min(n.size, int64(len(n.durable))) && bytes.Equal(n.buf[from:to], n.durable[from:to])
}

// writeBack puts one sector onto the platter.
func (n *inode) writeBack(at int64) {
	end := min(at+SectorBytes, n.size)
	if int64(len(n.durable)) < end {
		n.durable = slices.Grow(n.durable, int(n.size)-len(n.durable))
		n.durable = resized(n.durable, end)
	}
	copy(n.durable[at:end], n.buf[at:end])
	delete(n.washed, at)
}

// crashBytes keeps any subset of the sectors that were not synced. Whether the
// file's new length survives is drawn too; without it nothing beyond the old one
// does.
func (n *inode) crashBytes(r *rand.Rand) {
	size := int64(len(n.durable))
	if n.size != size && r.IntN(2) == 0 {
		size = n.size
	}
	image := resized(slices.Clone(n.durable), size)
	mode := r.IntN(4) // all, none, or half of the sectors
	n.eachDirty(func(at int64) {
		keep := mode == 0 || (mode > 1 && r.IntN(2) == 0)
		if keep && at < size {
			end := min(at+SectorBytes, size, n.size)
			copy(image[at:end], n.buf[at:end])
		}
	})
	n.durable, n.buf, n.size, n.washed, n.clean, n.lent = image, slices.Clone(image), size, nil, true, false
}

func resized(b []byte, size int64) []byte {
	if int64(len(b)) >= size {
		return b[:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}

// reserve counts bytes that a file is about to grow by.
func (d *Disk) reserve(n int64) error {
	if n > 0 && d.Capacity > 0 && d.used+n > d.Capacity {
		return syscall.ENOSPC
	}
	d.used += n
	return nil
}

// release frees a file's space when nothing leads to it any more. Its bytes stay: a
// power loss may take the removal of the name back.
func (d *Disk) release(n *inode) {
	if !n.dir && !n.freed && n.links == 0 && n.opens == 0 {
		d.used -= n.size
		n.freed = true
		if i, ok := slices.BinarySearchFunc(d.inodes, n, func(a, b *inode) int { return cmp.Compare(a.id, b.id) }); ok {
			d.inodes = slices.Delete(d.inodes, i, i+1)
		}
	}
}

// breathe lets the kernel write some dirty sectors back.
func (d *Disk) breathe() {
	if d.Writeback == 0 || d.rand.IntN(100) >= d.Writeback {
		return
	}
	for _, n := range d.inodes {
		if n.dir || n.links+n.opens == 0 || d.rand.IntN(4) != 0 {
			continue
		}
		n.eachDirty(func(at int64) {
			if d.rand.IntN(2) == 0 {
				n.writeBack(at)
			}
		})
	}
}
