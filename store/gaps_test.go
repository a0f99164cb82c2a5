package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// hurtLog makes a log of several segments, ends it in some way, and has change do something to the files of the second segment.
func hurtLog(t *testing.T, how string, change func(w *world, second ident.Offset)) (w *world, second, third ident.Offset, r store.Recovery) {
	t.Helper()
	w = newWorld(t, 1, smallLog())
	for w.log.Segments() < 4 {
		opAppend{3, 900, 0}.run(w)
	}
	bases := segmentBases(t, w)
	w.flush()
	opCheckpoint{}.run(w)
	w.end(how)
	change(w, bases[1])
	_, r = w.open()
	return w, bases[1], bases[2], r
}

// end ends the process that has the log.
func (w *world) end(how string) {
	w.t.Helper()
	switch how {
	case "clean":
		if err := errors.Join(w.log.Close(true), w.sync.Close(), w.dir.Close(true, 1)); err != nil {
			w.t.Fatal(err)
		}
	case "kill":
		w.disk.Kill()
	case "power loss":
		w.disk.Crash(1)
	default:
		w.t.Fatalf("a log does not end by %s", how)
	}
}

func segmentBases(t *testing.T, w *world) []ident.Offset {
	t.Helper()
	var list []ident.Offset
	for _, name := range filesOf(t, w.disk.FS(), ".log") {
		var base ident.Offset
		if _, err := fmt.Sscanf(name[len(name)-len("00000000000000000000.log"):], "%020d.log", &base); err != nil {
			t.Fatal(err)
		}
		list = append(list, base)
	}
	return list
}

// A closed segment that somebody took away, or cut, is found missing by any start, and is found again by the next.
func TestAMissingClosedSegmentIsDamage(t *testing.T) {
	for _, how := range []string{"clean", "kill", "power loss"} {
		for what, change := range map[string]func(w *world, second ident.Offset){
			"log removed": func(w *world, second ident.Offset) { w.remove(second, "log") },
			"segment removed": func(w *world, second ident.Offset) {
				w.remove(second, "log")
				w.remove(second, "index")
				w.remove(second, "timeindex")
			},
			"emptied": func(w *world, second ident.Offset) {
				overwrite(w.t, w.disk.FS(), segmentFile(second, "log"), nil)
			},
		} {
			t.Run(how+"/"+what, func(t *testing.T) {
				w, second, third, r := hurtLog(t, how, change)
				want := store.OffsetRange{From: second, To: third}
				if r.Whole || len(r.Damage) != 1 || r.Damage[0] != want {
					t.Fatalf("recovered %+v, %v is missing", r, want)
				}
				gapIsKept(t, w, want)
				for _, again := range []string{"kill", "clean", "power loss"} {
					w.end(again)
					w.open()
					gapIsKept(t, w, want)
				}
			})
		}
	}
}

// gapIsKept checks that everything but the range is read, and the range is refused.
func gapIsKept(t *testing.T, w *world, gap store.OffsetRange) {
	t.Helper()
	if d := w.log.Damage(); len(d) != 1 || d[0] != gap {
		t.Fatalf("damage %v, want %v", d, gap)
	}
	if w.log.End() != w.ghost.end {
		t.Fatalf("the log ends at %d, not %d", w.log.End(), w.ghost.end)
	}
	for _, at := range []ident.Offset{gap.From, (gap.From + gap.To) / 2, gap.To - 1} {
		if _, err := w.log.Read(at, w.log.End(), 1000, true); !errors.Is(err, store.ErrDamaged) {
			t.Fatalf("a read at %d: %v", at, err)
		}
	}
	got := len(readAll(t, w.log, 0, gap.From, 3000)) + len(readAll(t, w.log, gap.To, w.log.End(), 3000))
	want := 0
	for _, b := range w.ghost.batches {
		if b.LastOffset() < gap.From || b.BaseOffset() >= gap.To {
			want++
		}
	}
	if got != want {
		t.Fatalf("%d batches are read around the gap, not %d", got, want)
	}
}

// A segment that ends early has lost what is behind it, and nothing else.
func TestAClosedSegmentThatWasCutIsDamageFromThere(t *testing.T) {
	for _, how := range []string{"clean", "kill", "power loss"} {
		t.Run(how, func(t *testing.T) {
			cut := 0
			w, second, third, r := hurtLog(t, how, func(w *world, second ident.Offset) {
				b := contents(t, w.disk.FS(), segmentFile(second, "log"))
				cut = len(b) / 2
				overwrite(t, w.disk.FS(), segmentFile(second, "log"), b[:cut])
			})
			// The batch that was cut in two is gone as well.
			from := second
			for _, b := range w.ghost.batches {
				if b.BaseOffset() < second || len(b) > cut {
					continue
				}
				cut -= len(b)
				from = b.NextOffset()
				if cut < len(b) {
					break
				}
			}
			want := store.OffsetRange{From: from, To: third}
			if r.Whole || len(r.Damage) != 1 || r.Damage[0] != want {
				t.Fatalf("recovered %+v, %v is missing", r, want)
			}
			gapIsKept(t, w, want)
		})
	}
}

// A log that is compacted may have gaps between its segments, which another broker left, and one that was.
func TestGapsOfCompactionAreNoDamage(t *testing.T) {
	w := newFilled(t, 60, opAppend{3, 900, 0})
	w.disk.Kill()
	w.remove(segmentBases(t, w)[1], "log")
	w.cfg.Compact = true
	if _, r := w.open(); !r.Whole || len(r.Damage) != 0 {
		t.Fatalf("recovered %+v", r)
	}
}

// What a follower gets with gaps is closed without: the next segment begins where the last one ends, so that gaps do not look like files that are missing.
func TestAFollowersGapBeginsASegment(t *testing.T) {
	w := newWorld(t, 1, smallLog())
	next := ident.Offset(0)
	for range 60 {
		mustAppend(t, w.log, batch(t, next+7, 0, 0, 2, 900))
		next += 9
	}
	flush(t, w.dir, w.log)
	w.disk.Kill()
	if _, r := w.open(); !r.Whole || len(r.Damage) != 0 || w.log.Segments() < 3 || w.log.End() != next {
		t.Fatalf("recovered %+v with %d segments", r, w.log.Segments())
	}
	if got := readAll(t, w.log, 0, next, 5000); len(got) != 60 {
		t.Fatalf("%d batches were read", len(got))
	}
}

func segmentFile(base ident.Offset, suffix string) string {
	return fmt.Sprintf("/data/orders-3/%020d.%s", base, suffix)
}

func (w *world) remove(base ident.Offset, suffix string) {
	w.t.Helper()
	if err := w.disk.FS().Remove(segmentFile(base, suffix)); err != nil {
		w.t.Fatal(err)
	}
}
