package store_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Reading without waiting: the same answers as with it, or none.

func TestAHurriedReadAnswersOrSaysThatItWouldWait(t *testing.T) {
	for _, cold := range []int{0, 30, 100} {
		w := newWorld(t, 7, smallLog())
		for range 60 {
			opAppend{2, 700, 0}.run(w)
		}
		w.flush()
		w.disk.Cold = cold
		answered, refused := 0, 0
		for i := range 400 {
			from := ident.Offset(i*7) % w.log.End()
			now, err := w.log.ReadNow(from, w.log.End(), 2000, true)
			if errors.Is(err, store.ErrWouldWait) {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
			patient, perr := w.log.Read(from, w.log.End(), 2000, true)
			if perr != nil {
				t.Fatal(perr)
			}
			if err == nil {
				answered++
				sameRegion(t, now, patient)
			}
			now.Release()
			patient.Release()
		}
		switch {
		case cold == 0 && answered < 200:
			t.Errorf("nothing is cold, and %d of 400 reads would wait", refused)
		case cold == 100 && refused < 100:
			t.Errorf("everything is cold, and only %d of 400 reads would wait", refused)
		case cold == 30 && (answered == 0 || refused == 0):
			t.Errorf("%d answered, %d refused", answered, refused)
		}
	}
}

func sameRegion(t *testing.T, a, b store.Region) {
	t.Helper()
	x, y := make([]byte, a.Len()), make([]byte, b.Len())
	for _, r := range []struct {
		r   store.Region
		buf []byte
	}{{a, x}, {b, y}} {
		if n, err := r.r.ReadAt(r.buf, 0); n != len(r.buf) {
			t.Fatal(n, err)
		}
	}
	if a.Next() != b.Next() || !bytes.Equal(x, y) {
		t.Fatalf("%d bytes up to %d, by waiting %d up to %d", a.Len(), a.Next(), b.Len(), b.Next())
	}
}

func TestRetentionSaysThatItWouldWait(t *testing.T) {
	cfg := smallLog()
	cfg.DeleteRetained, cfg.RetentionMs = true, 1000
	w := newWorld(t, 3, cfg)
	for range 60 {
		opAppend{2, 700, 0}.run(w)
	}
	w.flush()
	w.disk.Kill()
	w.open() // what the greatest timestamps of closed segments are is not known now
	if !w.log.RetentionWaits(w.now, w.log.End()) {
		t.Fatal("a log that was just opened knows the timestamps of its closed segments")
	}
	if err := w.log.LookForRetention(w.now, w.log.End()); err != nil {
		t.Fatal(err)
	}
	if w.log.RetentionWaits(w.now, w.log.End()) {
		t.Fatal("what was looked up is not remembered")
	}
}

func TestCompactionSaysThatItWouldWait(t *testing.T) {
	for _, set := range []func(*store.LogConfig){
		func(c *store.LogConfig) { c.MinCompactionLagMs = 1 }, func(c *store.LogConfig) { c.MaxCompactionLagMs = 1000 },
	} {
		cfg := smallLog()
		cfg.Compact = true
		set(&cfg)
		w := newWorld(t, 3, cfg)
		for range 60 {
			opAppend{2, 700, 0}.run(w)
		}
		w.flush()
		w.disk.Kill()
		w.open() // the timestamps of closed segments are not known now
		w.now += 10_000
		if !w.log.CleanWaits(w.now, w.log.Flushed()) {
			t.Fatal("a log that was just opened knows the timestamps of its closed segments")
		}
		if c, err := w.log.Cleanable(w.now, w.log.Flushed()); err != nil || c.Dirty == 0 {
			t.Fatalf("%+v, %v", c, err)
		}
		if w.log.CleanWaits(w.now, w.log.Flushed()) {
			t.Fatal("what was looked up is not remembered")
		}
	}
}

func TestASearchThatMeetsDamageRemembersIt(t *testing.T) {
	for _, active := range []bool{false, true} {
		w := newWorld(t, 1, smallLog())
		for range 12 {
			opAppend{2, 700, 0}.run(w)
		}
		w.flush()
		if !active {
			if err := w.log.Roll(0); err != nil {
				t.Fatal(err)
			}
		}
		pos := int64(0)
		for _, b := range w.ghost.batches[:5] {
			pos += int64(len(b))
		}
		bad := w.ghost.batches[5]
		w.disk.Flip("/data/orders-3/00000000000000000000.log", pos+300, 0)
		segments := w.log.Segments()
		if _, _, err := w.log.OffsetForTimestamp(bad.MaxTimestamp(), w.log.End()); !errors.Is(err, store.ErrDamaged) {
			t.Fatalf("the search went over the damage: %v", err)
		}
		news, err := w.log.NewDamage(0)
		if want := (store.OffsetRange{From: bad.BaseOffset(), To: bad.NextOffset()}); err != nil || len(news) != 1 || news[0] != want {
			t.Fatalf("found %v, %v; expected %v", news, err, want)
		}
		if news, err := w.log.NewDamage(0); err != nil || len(news) != 0 {
			t.Fatalf("told again: %v, %v", news, err)
		}
		if closed := w.log.Segments() > segments; closed != active {
			t.Errorf("active %v, closed %v", active, closed)
		}
		serveAround(t, w, bad)
	}
}
