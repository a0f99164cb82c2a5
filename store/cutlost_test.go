package store_test

import (
	"testing"

	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
)

// A log whose first segments are lost is cut below what is left, and what is appended then is there after any end.
func TestALogIsCutInWhatItHasLostOfItsBeginning(t *testing.T) {
	for _, how := range []string{"kill", "clean", "power loss"} {
		for what, count := range map[string]int{"the first": 1, "all": 100} {
			t.Run(how+"/"+what, func(t *testing.T) {
				w := newWorld(t, 1, smallLog())
				for w.log.Segments() < 4 {
					opAppend{3, 900, 0}.run(w)
				}
				bases := segmentBases(t, w)
				w.flush()
				opCheckpoint{}.run(w)
				w.end("power loss")
				for _, base := range bases[:min(count, len(bases))] {
					w.remove(base, "log")
				}
				_, r := w.open()
				if r.Whole || len(r.Damage) == 0 || w.log.Start() != 0 {
					t.Fatalf("recovered %+v", r)
				}
				before := w.log.End()
				w.disk.OnPoint = func(p storetest.Point) {
					if how != "kill" {
						return // the same as there
					}
					for k := range uint64(3) {
						again := &world{t: t, disk: w.disk.Clone(), cfg: w.cfg, now: w.now, ghost: w.ghost}
						if k == 0 {
							again.disk.Kill()
						} else {
							again.disk.Crash(uint64(p.N)<<2 + k)
						}
						again.open()
						if end := again.log.End(); end != 0 && end != before {
							t.Fatalf("point %d %s %s, crash %d: the log ends at %d\n%s", p.N, p.Op, p.Name, k, end, again.disk.Dump())
						}
						mustAppend(t, again.log, batch(t, again.log.End(), 9, 1, 1, 100))
					}
				}
				end, err := w.log.Truncate(3, w.now)
				w.disk.OnPoint = nil
				if err != nil || end != 0 {
					t.Fatalf("cut to %d: %v", end, err)
				}
				w.ghost.batches, w.ghost.end = nil, 0
				for w.ghost.end < bases[1]+10 {
					opAppend{3, 900, 0}.run(w)
				}
				w.flush()
				opCheckpoint{}.run(w)
				w.sameAsGhost()
				w.end(how)
				if _, r := w.open(); !r.Whole && how != "kill" {
					t.Fatalf("recovered %+v", r)
				}
				w.sameAsGhost()
			})
		}
	}
}

// What a log has lost of its beginning comes back from a healthy replica, also when nothing is left of it.
func TestALogThatHasLostItsBeginningIsMended(t *testing.T) {
	for _, how := range []string{"kill", "clean", "power loss"} {
		for what, count := range map[string]int{"the first": 1, "all": 100, "the first, above the mark": 1} {
			t.Run(how+"/"+what, func(t *testing.T) {
				w := newWorld(t, 1, smallLog())
				opAppend{3, 900, 0}.run(w)
				if what != "the first, above the mark" {
					w.grow()
				}
				w.flush()
				opCheckpoint{}.run(w)
				mark := w.log.End()
				w.grow()
				if how == "clean" {
					mark = w.log.End()
				} else if what != "the first, above the mark" {
					w.flush()
					opCheckpoint{}.run(w)
					mark = w.log.End()
				}
				w.end(how)
				bases := segmentBases(t, w)
				for _, base := range bases[:min(count, len(bases))] {
					w.remove(base, "log")
				}
				_, r := w.open()
				if r.Whole || len(r.Damage) != 1 || w.log.End() != mark {
					t.Fatalf("recovered %+v, the mark was %d", r, mark)
				}
				for n, b := range w.ghost.batches {
					if b.LastOffset() >= mark {
						w.ghost.batches = w.ghost.batches[:n]
						break
					}
				}
				w.ghost.end = mark
				w.mend()
				w.sameAsGhost()
				w.log.Confessed()
				opAppend{3, 900, 0}.run(w)
				w.flush()
				w.end(how)
				if _, r := w.open(); !r.Whole {
					t.Fatalf("after the repair: %+v", r)
				}
				w.sameAsGhost()
			})
		}
	}
}

// grow appends batches of three epochs, in several segments.
func (w *world) grow() {
	for n := range 30 {
		opAppend{3, 900, 0}.run(w)
		if n%10 == 5 {
			opEpoch{}.run(w)
		}
	}
}

// What is found in a region of a log that was cut since is told apart from what the log has now.
func TestARegionHasTheGenerationOfItsLog(t *testing.T) {
	w := newWorld(t, 1, smallLog())
	for range 4 {
		opAppend{3, 900, 0}.run(w)
	}
	generation := func() ident.Generation {
		r, err := w.log.Read(0, w.log.End(), 1<<20, true)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release()
		part := r.Slice(0, 100)
		if part.Generation() != r.Generation() || r.Generation() != w.log.Generation() {
			t.Fatalf("generation %d and %d, the log's is %d", r.Generation(), part.Generation(), w.log.Generation())
		}
		return r.Generation()
	}
	before := generation()
	if _, err := w.log.Truncate(6, w.now); err != nil {
		t.Fatal(err)
	}
	if after := generation(); after == before {
		t.Fatalf("generation %d, before and after the cut", after)
	}
}
