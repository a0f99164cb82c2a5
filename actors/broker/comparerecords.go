package broker

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// digestOf sums up the batches that have offsets of [from, to): of each its base offset, last offset delta, leader epoch, size and checksum, which stands for the
// rest of it. The checksums are right: whoever calls has looked at them.
func digestOf(batches []byte, from, to ident.Offset) (digest [16]byte) {
	sum := sha256.New()
	var b [24]byte
	eachBatch(batches, func(v record.View) {
		if v.NextOffset() <= from || v.BaseOffset() >= to {
			return
		}
		binary.BigEndian.PutUint64(b[0:], uint64(v.BaseOffset()))
		binary.BigEndian.PutUint32(b[8:], uint32(v.LastOffsetDelta()))
		binary.BigEndian.PutUint32(b[12:], uint32(v.LeaderEpoch()))
		binary.BigEndian.PutUint32(b[16:], uint32(len(v)))
		binary.BigEndian.PutUint32(b[20:], v.CRC())
		sum.Write(b[:])
	})
	copy(digest[:], sum.Sum(nil))
	return digest
}

// eachBatch visits batches, up to the first that is none.
func eachBatch(batches []byte, visit func(v record.View)) {
	for len(batches) > 0 {
		v, rest, err := record.Split(batches)
		if err != nil || len(v) < record.HeaderSize {
			return
		}
		visit(v)
		batches = rest
	}
}

// rising tells whether each batch begins where the one before it ends, or later.
func rising(batches []byte) bool {
	end, ok := ident.Offset(0), true
	eachBatch(batches, func(v record.View) {
		ok = ok && v.BaseOffset() >= end && v.NextOffset() > v.BaseOffset()
		end = v.NextOffset()
	})
	return ok
}

// batchesFrom leaves out the batches that end at or below an offset.
func batchesFrom(batches []byte, from ident.Offset) []byte {
	for len(batches) > 0 {
		v, rest, err := record.Split(batches)
		if err != nil || len(v) < record.HeaderSize || v.NextOffset() > from {
			return batches
		}
		batches = rest
	}
	return nil
}

// Kinds of difference.
const (
	differsRecord  = "another record"   // both have one at the offset, and they are not the same
	differsMissing = "missing here"     // only the leader has one
	differsExtra   = "only here"        // only this replica has one
	differsOpaque  = "cannot be parsed" // of one of the two the records do not parse, though the checksum is right
)

// difference is a range of offsets at which this replica and its leader have not the same, though the checksums of both are right.
type difference struct {
	store.OffsetRange
	kind string
}

// differences is what was found, at most differencesMax ranges of it.
type differences struct {
	list []difference
	more int // ranges that are not in the list
}

const differencesMax = 100

func (d *differences) count() int64 { return int64(len(d.list) + d.more) }

// note adds a range behind those that are there. What touches the last one is one with it.
func (d *differences) note(from, to ident.Offset, kind string) {
	if n := len(d.list); n > 0 && d.list[n-1].To >= from && d.list[n-1].kind == kind && d.more == 0 {
		d.list[n-1].To = max(d.list[n-1].To, to)
		return
	}
	if len(d.list) == differencesMax {
		d.more++
		return
	}
	d.list = append(d.list, difference{store.OffsetRange{From: from, To: to}, kind})
}

// add takes over what was found in the next piece.
func (d *differences) add(found differences) {
	for _, f := range found.list {
		d.note(f.From, f.To, f.kind)
	}
	d.more += found.more
}

// compareRecords compares what two replicas have at the offsets [from, to): a record that both have must be the same, with what its batch says of its producer and
// epoch. One that only one of them has is a difference from whole on: below, compaction may have taken it. Batches that are the same bytes are not looked into.
func compareRecords(mine, theirs []byte, from, to, whole ident.Offset) (found differences) {
	a, b := newWalk(mine, from, to), newWalk(theirs, from, to)
	defer a.close()
	defer b.close()
	for a.skipEqual(b); a.ok || b.ok; {
		switch {
		case a.opaque && (!b.ok || a.offset <= b.offset):
			found.note(a.offset, to, differsOpaque)
			return found
		case b.opaque && (!a.ok || b.offset <= a.offset):
			found.note(b.offset, to, differsOpaque)
			return found
		case a.ok && b.ok && a.offset == b.offset:
			if a.digest() != b.digest() {
				found.note(a.offset, a.offset+1, differsRecord)
			}
			a.next()
			b.next()
		case !b.ok || a.ok && a.offset < b.offset:
			if a.offset >= whole {
				found.note(a.offset, a.offset+1, differsExtra)
			}
			a.next()
		default:
			if b.offset >= whole {
				found.note(b.offset, b.offset+1, differsMissing)
			}
			b.next()
		}
		a.skipEqual(b)
	}
	return found
}

// recordWalk goes from record to record of some batches.
type recordWalk struct {
	rest     []byte // batches that were not begun
	from, to ident.Offset
	batch    record.View // nil: none was begun
	it       record.Iterator
	first    bool // the record is the first one of its batch in the range
	ok       bool // there is a record
	opaque   bool // it does not parse, and where it begins is a guess
	offset   ident.Offset
	sum      hash.Hash
}

func newWalk(batches []byte, from, to ident.Offset) *recordWalk {
	w := &recordWalk{rest: batches, from: from, to: to, sum: sha256.New()}
	w.next()
	return w
}

func (w *recordWalk) close() { w.it.Close() }

// next goes to the next record that is in the range.
func (w *recordWalk) next() {
	w.first = false
	for w.batch != nil || w.enter() {
		for w.it.Next() {
			if w.offset = w.it.Record().Offset; w.offset >= w.from {
				w.ok = w.offset < w.to
				return
			}
		}
		if w.it.Err() != nil {
			w.unparsed(w.batch.BaseOffset())
			return
		}
		w.batch = nil
	}
}

// enter goes into the next batch.
func (w *recordWalk) enter() bool {
	w.ok, w.opaque, w.first = false, false, false
	if len(w.rest) == 0 {
		return false
	}
	v, rest, err := record.Split(w.rest)
	if err != nil || len(v) < record.HeaderSize {
		w.unparsed(w.from)
		return false
	}
	if v.BaseOffset() >= w.to {
		return false
	}
	w.batch, w.rest, w.first = v, rest, true
	if w.it.Reset(v, record.Bound{}) != nil {
		w.unparsed(v.BaseOffset())
		return false
	}
	return true
}

func (w *recordWalk) unparsed(at ident.Offset) {
	w.ok, w.opaque, w.offset = true, true, max(at, w.from)
}

// skipEqual leaves out batches that both have, from the beginning, whether they parse or not: one may have more in it than is unpacked.
func (w *recordWalk) skipEqual(o *recordWalk) {
	for w.ok && o.ok && w.first && o.first && bytes.Equal(w.batch, o.batch) {
		for _, x := range []*recordWalk{w, o} {
			x.batch = nil
			x.next()
		}
	}
}

// digest sums up the record.
func (w *recordWalk) digest() (digest [sha256.Size]byte) {
	r, v := w.it.Record(), w.batch
	w.sum.Reset()
	var b []byte
	part := func(p []byte) {
		length := int64(len(p))
		if p == nil {
			length = -1
		}
		b = binary.BigEndian.AppendUint64(b, uint64(length))
		b = append(b, p...)
		w.sum.Write(b)
		b = b[:0]
	}
	b = binary.BigEndian.AppendUint64(b, uint64(v.LeaderEpoch()))
	b = binary.BigEndian.AppendUint64(b, uint64(v.ProducerID()))
	b = binary.BigEndian.AppendUint64(b, uint64(v.ProducerEpoch()))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Timestamp))
	b = append(b, truth(v.Attributes().Control()), truth(v.Attributes().Transactional()))
	part(r.Key)
	part(r.Value)
	for h := r.Headers(); h.Next(); {
		part(h.Key())
		part(h.Value())
	}
	copy(digest[:], w.sum.Sum(nil))
	return digest
}

func truth(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// overlaps tells whether some of the ranges has to do with another one.
func overlaps(list []difference, r store.OffsetRange) bool {
	return slices.ContainsFunc(list, func(d difference) bool { return d.From < r.To && r.From < d.To })
}
