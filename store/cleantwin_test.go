package store_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// The twin of a compacted log: everything that was ever appended, as plain slices, and
// what of it may be missing.

// twinRecord is one record that was appended.
type twinRecord struct {
	offset    ident.Offset
	key       string
	keyed     bool
	value     []byte // nil: a tombstone
	timestamp ident.Millis
	fixed     bool // of a marker or a transaction, which compaction leaves alone
}

func (r *twinRecord) same(o *twinRecord) bool {
	return r.offset == o.offset && r.key == o.key && r.keyed == o.keyed && r.timestamp == o.timestamp &&
		bytes.Equal(r.value, o.value) && (r.value == nil) == (o.value == nil)
}

// twinBatch is one batch that was appended.
type twinBatch struct {
	view    record.View
	records []twinRecord
}

// twin is what the log should hold.
type twin struct {
	batches []twinBatch
	start   ident.Offset
	end     ident.Offset
	flushed ident.Offset
	durable ident.Offset // start that survives anything
	high    ident.Offset

	// touched is above everything that a run was ever allowed to look at.
	touched ident.Offset
	// seen is when a run first knew of a tombstone, and could begin to count.
	seen      map[ident.Offset]ident.Millis
	retention int64 // the least delete.retention.ms that was ever configured

	pending *twinBatch   // an append that has not returned
	cutTo   ident.Offset // a truncation that has not returned; -1: none
	startTo ident.Offset // where the start may be
}

// recordsOf reads the records of a batch.
func recordsOf(t testing.TB, v record.View) []twinRecord {
	t.Helper()
	var it record.Iterator
	defer it.Close()
	if err := it.Reset(v, record.Bound{}); err != nil {
		t.Fatal(err)
	}
	var out []twinRecord
	for it.Next() {
		r := it.Record()
		out = append(out, twinRecord{
			offset: r.Offset, key: string(r.Key), keyed: r.Key != nil, value: bytes.Clone(r.Value), timestamp: r.Timestamp,
			fixed: v.Attributes().Control() || v.Attributes().Transactional(),
		})
		if r.Value != nil && len(r.Value) == 0 {
			out[len(out)-1].value = []byte{}
		}
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// producersAt is what a partition knows of its producers when its log ends at end.
func (g *twin) producersAt(end ident.Offset) map[ident.ProducerID]record.ProducerEntry {
	out := map[ident.ProducerID]record.ProducerEntry{}
	for _, b := range g.batches {
		if b.view.LastOffset() < end {
			replay(out, b.view)
		}
	}
	return out
}

// replay adds a batch to what is known of producers.
func replay(to map[ident.ProducerID]record.ProducerEntry, v record.View) {
	h := v.Header()
	if h.ProducerID < 0 || h.BaseSequence == ident.NoSequence {
		return
	}
	to[h.ProducerID] = record.ProducerEntry{
		ProducerID: h.ProducerID, ProducerEpoch: h.ProducerEpoch, LastSequence: h.LastSequence(), LastOffset: h.LastOffset(),
		OffsetDelta: h.LastOffsetDelta, Timestamp: h.MaxTimestamp, CoordinatorEpoch: -1, CurrentTxnFirstOffset: ident.NoOffset,
	}
}

// check compares the log with its twin.
func (w *cleanWorld) check() {
	w.t.Helper()
	g, l := &w.twin, w.log
	if l.End() != g.end || l.Start() != g.start {
		w.t.Fatalf("the log is [%d, %d), expected [%d, %d)", l.Start(), l.End(), g.start, g.end)
	}
	got := readAll(w.t, l, g.start, g.end, 1<<20)
	present := map[ident.Offset]*twinRecord{}
	last := ident.Offset(-1)
	original := map[ident.Offset]*twinBatch{}
	for i := range g.batches {
		original[g.batches[i].view.BaseOffset()] = &g.batches[i]
	}
	for _, v := range got {
		if v.BaseOffset() <= last {
			w.t.Fatalf("the batch at %d follows offset %d", v.BaseOffset(), last)
		}
		o := original[v.BaseOffset()]
		if o == nil || o.view.LastOffset() != v.LastOffset() {
			w.t.Fatalf("nobody appended a batch [%d, %d]", v.BaseOffset(), v.LastOffset())
		}
		w.sameHeader(o.view, v)
		before := last
		for _, r := range recordsOf(w.t, v) {
			if r.offset <= before || r.offset < v.BaseOffset() || r.offset > v.LastOffset() {
				w.t.Fatalf("a record at %d follows %d in the batch [%d, %d]", r.offset, before, v.BaseOffset(), v.LastOffset())
			}
			before = r.offset
			present[r.offset] = &r
		}
		last = v.LastOffset()
		if v.BaseOffset() >= g.touched && !bytes.Equal(v, o.view) {
			w.t.Fatalf("the batch at %d was changed, compaction might touch what is below %d", v.BaseOffset(), g.touched)
		}
	}
	w.checkRecords(present)
}

// sameHeader looks at what compaction must leave.
func (w *cleanWorld) sameHeader(want, got record.View) {
	a, b := want.Header(), got.Header()
	if a.LeaderEpoch != b.LeaderEpoch || a.ProducerID != b.ProducerID || a.ProducerEpoch != b.ProducerEpoch || a.BaseSequence != b.BaseSequence {
		w.t.Fatalf("the header %+v became %+v", a, b)
	}
	if b.Count > 0 && a.Attributes != b.Attributes && (a.Attributes|0x40) != b.Attributes {
		w.t.Fatalf("the attributes %x became %x", a.Attributes, b.Attributes)
	}
}

// checkRecords decides whether what is missing may be.
func (w *cleanWorld) checkRecords(present map[ident.Offset]*twinRecord) {
	w.t.Helper()
	g := &w.twin
	known := 0
	byKey := map[string][]*twinRecord{}
	for i := range g.batches {
		for j := range g.batches[i].records {
			r := &g.batches[i].records[j]
			p := present[r.offset]
			if p != nil {
				known++
				if !p.same(r) {
					w.t.Fatalf("the record %+v became %+v", r, p)
				}
			}
			switch {
			case r.offset < g.start:
			case r.fixed || r.offset >= g.touched:
				if p == nil {
					w.t.Fatalf("the record %+v is missing, and may not be", r)
				}
			case r.keyed:
				byKey[r.key] = append(byKey[r.key], r)
			case p != nil && r.offset < w.log.FirstDirty():
				w.t.Fatalf("the record %+v has no key, and stayed below %d", r, w.log.FirstDirty())
			}
		}
	}
	if known != len(present) {
		w.t.Fatalf("%d records are there, %d of them were appended", len(present), known)
	}
	for key, list := range byKey {
		w.checkKey(key, list, present)
	}
}

func (w *cleanWorld) checkKey(key string, list []*twinRecord, present map[ident.Offset]*twinRecord) {
	w.t.Helper()
	g := &w.twin
	newest := list[len(list)-1]
	gone := present[newest.offset] == nil
	if gone {
		at, seen := g.seen[newest.offset]
		switch {
		case newest.value != nil:
			w.t.Fatalf("the last value of %q below %d is lost: %+v", key, g.touched, newest)
		case !seen || int64(w.now-at) < g.retention:
			w.t.Fatalf("the tombstone %+v is gone at %d; first seen %d (%t), to be kept for %d", newest, w.now, at, seen, g.retention)
		}
	}
	below := 0
	for _, r := range list {
		if present[r.offset] == nil {
			continue
		}
		if gone {
			w.t.Fatalf("the record %+v is back: its tombstone at %d is gone", r, newest.offset)
		}
		if r.offset < w.log.FirstDirty() {
			below++
		}
	}
	if below > 1 {
		w.t.Fatalf("%d records of %q below %d, where the log is clean", below, key, w.log.FirstDirty())
	}
}

// checkLookups asks for offsets in gaps, and for times.
func (w *cleanWorld) checkLookups(part int) {
	w.t.Helper()
	g := &w.twin
	all := readAll(w.t, w.log, g.start, g.end, 1<<20)
	from := g.start + (g.end-g.start)*ident.Offset(part)/100
	want := all
	for len(want) > 0 && want[0].LastOffset() < from {
		want = want[1:]
	}
	got := readAll(w.t, w.log, from, g.end, 1+part*40)
	if !slices.EqualFunc(got, want, func(a, b record.View) bool { return bytes.Equal(a, b) }) {
		w.t.Fatalf("%d batches from %d on, %d expected", len(got), from, len(want))
	}
	stamp := ident.Millis(1_000_000) + (w.now-1_000_000)*ident.Millis(part)/100
	var found, top *twinRecord
	for _, v := range all {
		for _, r := range recordsOf(w.t, v) {
			if top == nil || r.timestamp > top.timestamp {
				top = &r // its batch counts as a whole, also when the log starts in it
			}
			if found == nil && r.timestamp >= stamp && r.offset >= g.start {
				found = &r
			}
		}
	}
	at, ok, err := w.log.OffsetForTimestamp(stamp, g.end)
	if err != nil || ok != (found != nil) || (ok && at.Offset != found.offset) {
		w.t.Fatalf("timestamp %d is at %+v (%t, %v), expected %+v", stamp, at, ok, err, found)
	}
	at, ok, err = w.log.MaxTimestamp(g.end)
	if err != nil || ok != (top != nil) || (ok && at.Timestamp != top.timestamp) {
		w.t.Fatalf("the greatest timestamp is at %+v (%t, %v), expected %+v", at, ok, err, top)
	}
}

// checkProducers compares what a restart knows of producers with what was known.
func (w *cleanWorld) checkProducers() {
	w.t.Helper()
	for id, want := range w.twin.producersAt(w.twin.end) {
		if want.LastOffset < w.twin.start {
			continue // retention took it
		}
		if got := w.producers[id]; got.LastSequence != want.LastSequence || got.LastOffset != want.LastOffset || got.ProducerEpoch != want.ProducerEpoch {
			w.t.Fatalf("after a restart producer %d is %+v, expected %+v", id, got, want)
		}
	}
}

// checkFiles reads the index files, and looks for files that nobody tidies away.
func (w *cleanWorld) checkFiles() {
	w.t.Helper()
	fs := w.disk.FS()
	names, err := fs.ReadDir("/data/orders-3")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range names {
		if len(e.Name) == 24 && e.Name[20:] == ".log" {
			if err := store.CheckIndexes(fs, "/data/orders-3", e.Name[:20]); err != nil {
				w.t.Fatalf("%v\n%s", err, w.disk.Dump())
			}
		}
	}
}

// crashSignal ends an operation in the middle.
type crashSignal struct{}

// interrupted runs an operation and tells whether the disk's hook cut it off.
func (w *cleanWorld) interrupted(run func()) (cut bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(crashSignal); !ok {
				panic(p)
			}
			cut = true
		}
	}()
	run()
	return false
}

// crashAfter cuts the process off after n more points.
func (w *cleanWorld) crashAfter(n int) {
	w.disk.OnPoint = func(storetest.Point) {
		if n--; n == 0 {
			panic(crashSignal{})
		}
	}
}
