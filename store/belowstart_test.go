package store_test

import (
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/store"
)

// uncovered is how many bytes at the beginning of a batch no checksum covers and its reader goes by: base offset, length, leader epoch.
const uncovered = 16

// flips yields every bit of the bytes that no checksum covers.
func flips(yield func(at int64, bit uint) bool) {
	for at := range int64(uncovered) {
		for bit := range uint(8) {
			if !yield(at, bit) {
				return
			}
		}
	}
}

// Below the log start nobody can be asked for anything, and nobody reads it: a bit that turned there, in a segment that has records above it too, neither keeps a
// repair from ending nor gives cause for another one.
func TestWhatLiesBelowTheLogStartKeepsNoLogDamaged(t *testing.T) {
	for nth := range 4 { // the last one has the log start in it
		for _, other := range []int{-1, 5} {
			t.Run(fmt.Sprintf("batch %d, damaged %d", nth, other), func(t *testing.T) {
				for at, bit := range flips {
					belowStart(t, nth, other, at, bit)
				}
			})
		}
	}
}

func belowStart(t *testing.T, nth, other int, at int64, bit uint) {
	t.Helper()
	cfg := smallLog()
	cfg.SegmentBytes = 3 << 10
	w := newWorld(t, 1, cfg)
	for n := 0; w.log.Segments() < 3; n++ {
		opAppend{3, 200, 0}.run(w)
		if n == 0 {
			opEpoch{}.run(w)
		}
	}
	w.flush()
	start := w.ghost.batches[3].BaseOffset() + 1
	if err := w.log.SetStart(start); err != nil {
		t.Fatal(err)
	}
	w.ghost.start = start
	w.flush()
	opCheckpoint{}.run(w)
	w.end("clean")
	pos := int64(0)
	for i, v := range w.ghost.batches[:6] {
		if i == nth {
			w.disk.Flip(segmentFile(0, "log"), pos+at, bit)
		}
		if pos += int64(len(v)); i == other {
			w.disk.Flip(segmentFile(0, "log"), pos-1, 3)
		}
	}
	w.open()
	w.condemnAll()
	found := len(w.log.Damage()) > 0
	if found != (other >= 0) && nth < 3 {
		t.Errorf("bit %d of byte %d: %v is damaged", bit, at, w.log.Damage())
	}
	w.mend()
	w.condemnAll()
	if d := w.log.Damage(); len(d) > 0 {
		t.Errorf("bit %d of byte %d: %v is damaged after the repair", bit, at, d)
	}
	if nth < 3 {
		w.sameAsGhost()
	}
	w.end("clean")
	if _, r := w.open(); len(r.Damage) > 0 || !r.Whole {
		t.Errorf("bit %d of byte %d: after the repair and a restart %+v", bit, at, r)
	}
}

// The same in a log that is compacted: a run reads a segment from its beginning.
func TestARunPassesWhatIsWrongBelowTheLogStart(t *testing.T) {
	for at, bit := range flips {
		for _, other := range []bool{false, true} {
			w := newTwo(t)
			for _, s := range []*story{w.a, w.b} {
				s.put(nil, "z=1")
				s.put(nil, "a=1", "b=1", "c=1", "d=1")
				s.put(nil, "e=1")
				s.put(nil, "a=2")
				s.put(nil, "b=2")
				s.close()
				if err := s.log.SetStart(3); err != nil {
					t.Fatal(err)
				}
				s.close()
			}
			first := w.b.batches()[0]
			if first.BaseOffset() != 1 {
				t.Fatalf("the first batch is at %d", first.BaseOffset())
			}
			name := "/data/orders-3/" + w.a.segmentOf(0)
			if other {
				w.a.disk.Flip(name, int64(len(contents(t, w.a.fs, name)))-1, 2)
				if err := w.a.log.Condemn(store.OffsetRange{From: 7, To: 8}, w.a.now); err != nil {
					t.Fatal(err)
				}
			}
			w.a.disk.Flip(name, at, bit)
			for tries := 0; ; tries++ {
				w.mend(nil)
				run, err := w.a.log.BeginClean(w.a.now, w.a.log.End(), store.CleanOptions{MapBytes: 1 << 16, LoadFactor: 0.9})
				if err != nil {
					t.Fatal(err)
				}
				if run == nil {
					break
				}
				for err == nil {
					var step store.CleanStep
					if step, err = run.Work(w.a.now); err != nil || step == store.CleanDone {
						break
					}
					if step == store.CleanSwap {
						err = w.a.log.SwapCleaned(run, w.a.now)
					}
				}
				w.a.log.EndClean(run)
				if err == nil {
					break
				}
				if bad := run.Unsound(); tries > 0 || bad.From >= bad.To {
					t.Fatalf("bit %d of byte %d: after %d repairs: %v", bit, at, tries, err)
				} else if err := w.a.log.Condemn(store.OffsetRange{From: max(bad.From, w.a.log.Start()), To: min(bad.To, w.a.log.End())}, w.a.now); err != nil {
					t.Fatal(err)
				}
			}
			w.a.want("3:c=1 4:d=1 5:e=1 6:a=2 7:b=2")
		}
	}
}
