package store_test

import (
	"errors"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// TestRoomIsFoundWhereABatchFits asks for room on a full disk, and again when something was deleted: what was promised can be appended, in the active segment
// or in a new one, and being refused changes nothing.
func TestRoomIsFoundWhereABatchFits(t *testing.T) {
	for _, mode := range []store.AppendMode{store.AppendMapped, store.AppendWritten} {
		disk := storetest.NewDisk(1)
		cfg := smallLog()
		cfg.Append = mode
		d, l, _, _ := openOn(t, disk.FS(), cfg)
		appendSome(t, l, 10)
		disk.Capacity = disk.Used() + 20000
		v := batch(t, l.End(), 0, 5000, 2, 600)
		for {
			if err := l.Room(len(v), 0); err != nil {
				if !errors.Is(err, store.ErrNoSpace) {
					t.Fatal(err)
				}
				break
			}
			v.SetBaseOffset(l.End())
			if err := l.Append(v, 0); err != nil {
				t.Fatalf("there was room at %d: %v", l.End(), err)
			}
		}
		if l.Segments() < 2 {
			t.Fatalf("%d segments: none was begun", l.Segments())
		}
		end, size, segments := l.End(), l.Size(), l.Segments()
		v.SetBaseOffset(end)
		if err := l.Append(v, 0); !errors.Is(err, store.ErrNoSpace) {
			t.Fatalf("there was no room: %v", err)
		}
		if err := l.Room(len(v), 0); !errors.Is(err, store.ErrNoSpace) || l.End() != end || l.Size() != size || l.Segments() != segments {
			t.Fatalf("%v; from %d, %d, %d to %d, %d, %d", err, end, size, segments, l.End(), l.Size(), l.Segments())
		}
		disk.Capacity += 100_000
		if err := l.Room(len(v), 0); err != nil {
			t.Fatal(err)
		}
		disk.Capacity = disk.Used() // somebody else has taken the rest
		if err := l.Append(v, 0); err != nil {
			t.Fatalf("what was promised: %v", err)
		}
		if got := readAll(t, l, 0, l.End(), 1<<20); len(got) != int(l.End())/2 {
			t.Fatalf("%d batches are read, the log ends at %d", len(got), l.End())
		}
		drop(t, d, l)
	}
}
