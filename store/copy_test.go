package store_test

import (
	"testing"

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
