package store_test

import (
	"errors"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// TestTheSegmentThatEndsAtTheMarkIsCopiedToo closes a segment right after a sync. The
// sync that would have made its new length durable fails, so that the platter has it
// with its reserved tail, and no later sync cuts that: read there after a power loss,
// the tail would be served.
func TestTheSegmentThatEndsAtTheMarkIsCopiedToo(t *testing.T) {
	for seed := range uint64(6) {
		disk := storetest.NewDisk(seed)
		faults := storetest.Faults(disk.FS())
		d, l, _, _ := openOn(t, faults, smallLog())
		appendSome(t, l, 5)
		if err := tryFlush(t, d, l); err != nil {
			t.Fatal(err)
		}
		if err := l.Roll(0); err != nil {
			t.Fatal(err)
		}
		appendSome(t, l, 1)
		faults.Add("sync *.log: EIO")
		wantOffline(t, "the failed sync", tryFlush(t, d, l))

		disk.Kill()
		d, l, _, _ = openOn(t, disk.FS(), smallLog())
		appendSome(t, l, 60)
		if err := tryFlush(t, d, l); err != nil {
			t.Fatal(err)
		}
		if err := d.Checkpoint(); err != nil {
			t.Fatal(err)
		}
		end := l.End()

		disk.Crash(seed)
		_, l, _, r := openOn(t, disk.FS(), smallLog())
		if l.End() != end || len(r.Damage) > 0 {
			t.Fatalf("%+v, expected all up to %d", r, end)
		}
		if got := len(readAll(t, l, 0, end, 1<<20)); got != int(end)/2 {
			t.Fatalf("cut %d: %d batches are read, %d were written", seed, got, end/2)
		}
	}
}

// TestANameGivenUpDoesNotComeBack refuses the space for a new segment, so that its
// file is removed again, and appends to the old segment in its place. The removal has
// to be durable with the append: after a power loss the empty file would end the
// segment before it.
func TestANameGivenUpDoesNotComeBack(t *testing.T) {
	cfg := smallLog()
	cfg.SegmentMs = 1000
	for seed := range uint64(20) {
		disk := storetest.NewDisk(seed)
		faults := storetest.Faults(disk.FS())
		d, l, _, _ := openOn(t, faults, cfg)
		mustAppend(t, l, batch(t, l.End(), 0, 5000, 2, 600))
		if err := tryFlush(t, d, l); err != nil {
			t.Fatal(err)
		}
		faults.Add("allocate *.log: ENOSPC")
		if err := l.Append(batch(t, l.End(), 0, 9000, 2, 600), 0); !errors.Is(err, store.ErrNoSpace) {
			t.Fatal(err)
		}
		faults.Clear()
		mustAppend(t, l, batch(t, l.End(), 0, 5001, 2, 600)) // not late enough for a new segment
		if err := tryFlush(t, d, l); err != nil {
			t.Fatal(err)
		}
		end := l.Flushed()
		disk.Crash(seed)
		if _, l, _, r := openOn(t, disk.FS(), cfg); l.End() != end {
			t.Fatalf("cut %d: %+v, expected all up to %d", seed, r, end)
		}
	}
}
