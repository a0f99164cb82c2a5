package store_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
)

// TestALogWithoutItsFilesIsNotWhole: its directory and its identity are there, its segments are gone, however the last run ended. What the durable mark promised
// is damaged then, and not as if it had never been.
func TestALogWithoutItsFilesIsNotWhole(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"power":  func(w *world) { w.disk.Crash(1) },
		"killed": func(w *world) { w.disk.Kill() },
		"stopped": func(w *world) {
			if err := errors.Join(w.log.Close(true), w.dir.Close(true, 5)); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFilled(t, 12, opAppend{2, 700, 0})
			end(w)
			names, err := w.disk.FS().ReadDir("/data/orders-3")
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range names {
				if strings.HasSuffix(e.Name, ".log") {
					if err := w.disk.FS().Remove(filepath.Join("/data/orders-3", e.Name)); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.disk.Kill()
			_, r := w.open()
			if want := (store.OffsetRange{From: 0, To: w.ghost.end}); r.Whole || w.log.End() != w.ghost.end || len(r.Damage) != 1 || r.Damage[0] != want {
				t.Fatalf("recovered %+v, everything below %d was promised", r, w.ghost.end)
			}
			if _, err := w.log.Read(0, w.ghost.end, 100, true); !errors.Is(err, store.ErrDamaged) {
				t.Fatalf("a read of what is gone: %v", err)
			}
			mustAppend(t, w.log, batch(t, w.log.End(), 0, 0, 1, 10))
			if got := readAll(t, w.log, w.ghost.end, w.log.End(), 1000); len(got) != 1 {
				t.Fatal("the log does not go on")
			}
		})
	}
}

// TestALogThatIsShorterThanItWasInThisBootIsNotWhole: the process was killed with records in the page cache, which it may have told a leader of, and they are
// not there any more. Nothing below the durable mark is missing.
func TestALogThatIsShorterThanItWasInThisBootIsNotWhole(t *testing.T) {
	w := newWorld(t, 1, smallLog())
	opAppend{2, 700, 0}.run(w)
	w.flush()
	opCheckpoint{}.run(w)
	size := len(w.ghost.batches[0])
	opAppend{2, 700, 0}.run(w)
	w.disk.Kill()
	const file = "/data/orders-3/00000000000000000000.log"
	w.disk.Overwrite(file, contents(t, w.disk.FS(), file)[:size])
	o, r := w.open()
	if o.Mode != store.RecoverSameBoot || r.Whole || len(r.Damage) > 0 || w.log.End() != w.ghost.flushed {
		t.Fatalf("opened %v, recovered %+v of %d, flushed %d", o.Mode, r, w.ghost.end, w.ghost.flushed)
	}
}

// TestALossThatWasFoundIsNotForgotten: a log that lost what its mark had promised goes on behind the hole. The next start has a sound file before and behind it,
// and must not take that for all there ever was.
func TestALossThatWasFoundIsNotForgotten(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"power":  func(w *world) { w.disk.Crash(1) },
		"killed": func(w *world) { w.disk.Kill() },
		"stopped": func(w *world) {
			if err := errors.Join(w.log.Close(true), w.dir.Close(true, 5)); err != nil {
				w.t.Fatal(err)
			}
			w.disk.Kill()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFilled(t, 12, opAppend{2, 700, 0})
			w.disk.Crash(1)
			const file = "/data/orders-3/00000000000000000000.log"
			w.disk.Overwrite(file, contents(t, w.disk.FS(), file)[:3000])
			w.disk.Kill()
			_, r := w.open()
			if r.Whole || len(r.Damage) != 1 {
				t.Fatalf("recovered %+v, everything below %d was promised", r, w.ghost.end)
			}
			lost := r.Damage[0]
			mustAppend(t, w.log, batch(t, w.log.End(), 0, 0, 1, 10))
			flush(t, w.dir, w.log)
			if err := w.dir.Checkpoint(); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				end(w)
				if _, r = w.open(); r.Whole || len(r.Damage) != 1 || r.Damage[0] != lost {
					t.Fatalf("recovered %+v, %v was lost", r, lost)
				}
				if _, err := w.log.Read(lost.From, w.ghost.end, 100, true); !errors.Is(err, store.ErrDamaged) {
					t.Fatalf("a read of what is gone: %v", err)
				}
			}
		})
	}
}

// TestASegmentLeavesWhenItsEndIsBelowTheDurableStart: a sync made a start durable that lies within a segment, and retention took that segment while the sync
// was under way. Its file has to wait for the next one, or a power cut leaves a log that begins above its start.
func TestASegmentLeavesWhenItsEndIsBelowTheDurableStart(t *testing.T) {
	for seed := range uint64(8) {
		w := newWorld(t, 1, smallLog())
		for range 3 {
			for range 2 {
				opAppend{2, 700, 0}.run(w)
			}
			if err := w.log.Roll(0); err != nil {
				t.Fatal(err)
			}
		}
		w.flush()
		opCheckpoint{}.run(w)
		if err := w.log.SetStart(2); err != nil {
			t.Fatal(err)
		}
		syncer, err := w.dir.NewSyncer()
		if err != nil {
			t.Fatal(err)
		}
		work, _ := w.log.BeginSync()
		results := syncer.Sync(nil, []store.SyncWork{work})
		if err := w.log.SetStart(w.log.End()); err != nil {
			t.Fatal(err)
		}
		if trimmed, err := w.log.ApplyRetention(0, w.log.End()); err != nil || trimmed.Segments != 3 {
			t.Fatal(trimmed, err)
		}
		for _, r := range results {
			if _, _, err := w.log.Synced(r); err != nil {
				t.Fatal(err)
			}
		}
		w.disk.Crash(seed)
		if _, r := w.open(); !r.Whole || len(r.Damage) > 0 {
			t.Fatalf("seed %d: recovered %+v", seed, r)
		}
	}
}
