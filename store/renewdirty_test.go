package store_test

import (
	"path/filepath"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// The process died behind a renewal, before a checkpoint. What the leader gave need not be compacted: if it counted as clean, its tombstones would go before the
// records that they delete.
func TestWhatWasRenewedIsNotCleanAfterTheProcessDied(t *testing.T) {
	w := newTwo(t)
	w.forgetTombstone(w.a)
	if err := w.a.dir.Checkpoint(); err != nil || w.a.log.FirstDirty() == 0 {
		t.Fatal(w.a.log.FirstDirty(), err)
	}
	w.harm(1)
	s := w.a
	s.disk.OnPoint = func(p storetest.Point) {
		if p.Op == "remove" && filepath.Base(p.Name) == "renewed-segments" {
			panic(crashSignal{})
		}
	}
	if !(&repairHistory{two: w}).interrupted(func() { w.mend(nil) }) {
		t.Fatal("nothing was renewed")
	}
	s.stop("kill")
	s.open()
	w.b.want(s.text())
	if o := s.log.FirstDirty(); o != s.log.Start() {
		t.Errorf("what lies below %d counts as clean", o)
	}
}

// The same of a range that comes back alone, since compaction had nothing to take there.
func TestWhatWasRepairedIsNotCleanAfterTheProcessDied(t *testing.T) {
	for _, op := range []string{"rename", "syncdir"} {
		w := newTwo(t)
		w.put("a=1", "x=1")
		w.put("b=1", "y=1")
		w.put("c=1")
		w.a.clean(store.CleanOptions{})
		if err := w.a.dir.Checkpoint(); err != nil || w.a.log.FirstDirty() == 0 {
			t.Fatal(w.a.log.FirstDirty(), err)
		}
		w.harm(1)
		s := w.a
		swapped := false
		s.disk.OnPoint = func(p storetest.Point) {
			swapped = swapped || filepath.Ext(p.Name) == ".swap"
			if swapped && p.Op == op {
				panic(crashSignal{})
			}
		}
		renewed := false
		if !(&repairHistory{two: w}).interrupted(func() { renewed = w.mend(nil) }) || renewed {
			t.Fatal("nothing was repaired alone")
		}
		s.stop("kill")
		s.open()
		if o := s.log.FirstDirty(); o > 1 {
			t.Errorf("%s: what was repaired at offset 1 counts as clean up to %d", op, o)
		}
	}
}
