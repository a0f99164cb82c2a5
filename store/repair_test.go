package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// healthy answers like a replica that has all batches: those from offset from on that lie wholly below upTo, a few at a time.
func healthy(all []record.View, from, upTo ident.Offset) (batches []byte, next ident.Offset) {
	next = upTo
	for _, b := range all {
		if b.LastOffset() < from || b.LastOffset() >= upTo {
			continue
		}
		if len(batches) > 3000 {
			return batches, b.BaseOffset()
		}
		batches = append(batches, b...)
	}
	return batches, next
}

// mend repairs all that is damaged, as a broker does.
func (w *world) mend() {
	w.t.Helper()
	for n := 0; len(w.log.Damage()) > 0; n++ {
		if n > 100 {
			w.t.Fatalf("a hundred repairs left %v", w.log.Damage())
		}
		r, err := w.log.BeginRepair(0, w.now)
		if err != nil || r == nil {
			w.t.Fatalf("no repair of %v begins: %v", w.log.Damage(), err)
		}
		if err := w.fill(r); err != nil {
			bad := r.Unsound()
			r.Abandon()
			if !errors.Is(err, store.ErrDamaged) || bad.From >= bad.To {
				w.t.Fatalf("repair of %v: %v", r.Range(), err)
			}
			bad.From = max(bad.From, w.log.Start())
			bad.To = min(bad.To, w.log.End())
			if err := w.log.Condemn(bad, w.now); err != nil {
				w.t.Fatal(err)
			}
			continue
		}
		if _, err := w.log.SwapRepaired(r, w.now); err != nil {
			w.t.Fatalf("swap of %v: %v", r.Range(), err)
		}
	}
}

func (w *world) fill(r *store.Repair) error {
	w.t.Helper()
	return fillFrom(w.t, r, w.ghost.batches)
}

// fillFrom does a repair up to its swap, with the batches of a healthy replica.
func fillFrom(t testing.TB, r *store.Repair, all []record.View) error {
	t.Helper()
	for {
		step, err := r.Work()
		switch {
		case err != nil:
			return err
		case step == store.RepairReady:
			return nil
		case step == store.RepairWants:
			want := r.Wants()
			batches, next := healthy(all, want.From, want.To)
			if err := r.Put(batches, next, 1); err != nil {
				return err
			}
		case step != store.RepairAgain:
			t.Fatalf("step %d", step)
		}
	}
}

// sameAsGhost checks that all that was appended is read, byte by byte.
func (w *world) sameAsGhost() {
	w.t.Helper()
	if d := w.log.Damage(); len(d) > 0 {
		w.t.Fatalf("%v is damaged", d)
	}
	if w.log.End() != w.ghost.end {
		w.t.Fatalf("the log ends at %d, not %d", w.log.End(), w.ghost.end)
	}
	got := readAll(w.t, w.log, w.log.Start(), w.log.End(), 3000)
	want := slices.DeleteFunc(slices.Clone(w.ghost.batches), func(b record.View) bool { return b.LastOffset() < w.log.Start() })
	if len(got) != len(want) {
		w.t.Fatalf("%d batches are read, not %d", len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			w.t.Fatalf("the batch at %d is not what was appended", want[i].BaseOffset())
		}
	}
}

// condemnAll reads everything with its checksums, and condemns what is unsound.
func (w *world) condemnAll() {
	w.t.Helper()
	for from := w.log.Start(); from < w.log.End(); {
		r, err := w.log.Read(from, w.log.End(), 1<<20, true)
		if errors.Is(err, store.ErrDamaged) {
			for _, d := range w.log.Damage() {
				if from >= d.From && from < d.To {
					from = d.To
				}
			}
			continue
		}
		if err != nil {
			w.t.Fatal(err)
		}
		sound, bad, err := r.Check(nil)
		next := r.Next()
		if err != nil {
			w.t.Fatal(err)
		}
		if sound < int64(r.Len()) {
			next = bad.To
			bad.From = max(bad.From, w.log.Start())
			bad.To = min(bad.To, w.log.End())
			if err := w.log.Condemn(bad, w.now); err != nil {
				w.t.Fatal(err)
			}
		}
		r.Release()
		from = max(next, from+1)
	}
	if _, err := w.log.NewDamage(w.now); err != nil {
		w.t.Fatal(err)
	}
}

// harm does something to a file of the log, from a seed.
func (w *world) harm(r *rand.Rand) string {
	files := filesOf(w.t, w.disk.FS(), ".log")
	name := files[r.IntN(len(files)-1)] // the last one is cut when its end is bad, which is another matter
	b := contents(w.t, w.disk.FS(), name)
	switch r.IntN(8) {
	case 0:
		if err := w.disk.FS().Remove(name); err != nil {
			w.t.Fatal(err)
		}
		return "removed " + name
	case 1:
		overwrite(w.t, w.disk.FS(), name, b[:r.IntN(len(b)+1)])
		return "cut " + name
	case 2:
		if len(b) == 0 {
			return "nothing"
		}
		at := r.IntN(len(b))
		clear(b[at:min(len(b), at+1+r.IntN(5000))])
		overwrite(w.t, w.disk.FS(), name, b)
		return "zeroed " + name
	}
	if len(b) == 0 {
		return "nothing"
	}
	at := r.IntN(len(b))
	w.disk.Flip(name, int64(at), uint(r.IntN(8)))
	return fmt.Sprintf("flipped byte %d of %s", at, name)
}

// Whatever happens to the files of closed segments: it is found, and with the batches of a healthy replica the log is what it was.
func TestDamageIsMendedFromAHealthyReplica(t *testing.T) {
	count := uint64(60)
	if testing.Short() {
		count = 15
	}
	for _, seed := range seeds(t, count) {
		t.Run(fmt.Sprintf("SEED=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 9))
			cfg := smallLog()
			cfg.SegmentBytes = int32(3<<10 + r.IntN(8<<10))
			w := newWorld(t, seed, cfg)
			for range 40 + r.IntN(40) {
				opAppend{1 + r.IntN(4), 200 + r.IntN(1500), 0}.run(w)
				if r.IntN(12) == 0 {
					opEpoch{}.run(w)
				}
			}
			w.flush()
			opRoll{}.run(w)
			opAppend{1, 90, 0}.run(w)
			w.flush()
			if r.IntN(3) == 0 {
				start := ident.Offset(r.IntN(int(w.log.End()) / 2))
				if err := w.log.SetStart(start); err != nil {
					t.Fatal(err)
				}
				w.ghost.start = start
				w.flush()
			}
			opCheckpoint{}.run(w)
			how := []string{"clean", "kill", "power loss"}[r.IntN(3)]
			w.end(how)
			for range 1 + r.IntN(3) {
				t.Log(how, w.harm(r))
			}
			w.open()
			w.condemnAll()
			t.Log(w.log.Damage())
			w.mend()
			w.sameAsGhost()
			w.log.Confessed() // what was found at the start has been told
			opAppend{2, 300, 0}.run(w)
			w.flush()
			for _, how := range []string{"kill", "clean", "power loss"} {
				w.end(how)
				if _, r := w.open(); len(r.Damage) > 0 || !r.Whole {
					t.Fatalf("after a repair and %s: %+v\n%s", how, r, w.disk.Dump())
				}
				w.condemnAll()
				w.sameAsGhost()
				if w.log.Start() == 0 {
					w.checkIndexes() // below the start an index may name what is not there
				}
			}
		})
	}
}

// A crash at any moment of a repair leaves the log mended, or as damaged as it was.
func TestACrashInARepairLosesNothing(t *testing.T) {
	for _, seed := range seeds(t, 6) {
		t.Run(fmt.Sprintf("SEED=%d", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 10))
			cfg := smallLog()
			cfg.SegmentBytes = 6 << 10
			w := newWorld(t, seed, cfg)
			for range 30 {
				opAppend{1 + r.IntN(4), 200 + r.IntN(900), 0}.run(w)
			}
			w.flush()
			opCheckpoint{}.run(w)
			w.end("power loss")
			t.Log(w.harm(r))
			w.open()
			w.condemnAll()
			before := w.log.Damage()
			crashes := 0
			w.disk.OnPoint = func(p storetest.Point) {
				for k := range uint64(3) {
					disk := w.disk.Clone()
					if k == 0 {
						disk.Kill()
					} else {
						disk.Crash(seed<<32 + uint64(p.N)<<2 + k)
					}
					again := &world{t: t, disk: disk, cfg: cfg, now: w.now, ghost: w.ghost}
					again.open()
					again.condemnAll()
					for _, d := range again.log.Damage() {
						if !slices.ContainsFunc(before, func(b store.OffsetRange) bool { return d.From >= b.From && d.To <= b.To }) {
							t.Fatalf("point %d %s %s, crash %d: %v is damaged, before %v was\n%s", p.N, p.Op, p.Name, k, d, before, disk.Dump())
						}
					}
					again.mend()
					again.sameAsGhost()
					crashes++
				}
			}
			w.mend()
			w.disk.OnPoint = nil
			w.sameAsGhost()
			if len(before) > 0 && crashes < 10 {
				t.Fatalf("%d crashes: the test does not test it", crashes)
			}
		})
	}
}

// What does not belong in a range is refused, and the log stays as it was.
func TestARepairRefusesWhatDoesNotBelongThere(t *testing.T) {
	w, second, third, _ := hurtLog(t, "kill", func(w *world, second ident.Offset) { w.remove(second, "log") })
	changed := func(change func(v record.View)) []byte {
		b, _ := healthy(w.ghost.batches, second, third)
		v, _, err := record.Split(bytes.Clone(b))
		if err != nil {
			t.Fatal(err)
		}
		change(v)
		return v
	}
	for what, batches := range map[string][]byte{
		"noise":          []byte("these are no batches, for sure, and this is longer than a header of one is"),
		"a flipped bit":  changed(func(v record.View) { v[len(v)-1] ^= 1 }),
		"another offset": changed(func(v record.View) { v.SetBaseOffset(second - 1) }),
		"beyond":         changed(func(v record.View) { v.SetBaseOffset(third) }),
		"another epoch":  changed(func(v record.View) { v.SetLeaderEpoch(v.LeaderEpoch() + 1) }),
		"cut":            changed(func(record.View) {})[:80],
	} {
		r, err := w.log.BeginRepair(0, w.now)
		if err != nil {
			t.Fatal(err)
		}
		if step, err := r.Work(); err != nil || step != store.RepairWants {
			t.Fatalf("step %d, %v", step, err)
		}
		if err := r.Put(batches, third, 1); !errors.Is(err, store.ErrFormat) {
			t.Errorf("%s: %v", what, err)
		}
		r.Abandon()
	}
	gapIsKept(t, w, store.OffsetRange{From: second, To: third})
	w.mend()
	w.sameAsGhost()
}

// A log that was cut while a repair was under way is not given what belonged to its past.
func TestARepairOfACutLogIsOver(t *testing.T) {
	w, second, _, _ := hurtLog(t, "kill", func(w *world, second ident.Offset) { w.remove(second, "log") })
	r, err := w.log.BeginRepair(0, w.now)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.fill(r); err != nil {
		t.Fatal(err)
	}
	if end, err := w.log.Truncate(second+1, w.now); err != nil || end > second+1 {
		t.Fatalf("cut to %d: %v", end, err)
	}
	if _, err := w.log.SwapRepaired(r, w.now); !errors.Is(err, store.ErrRepairOver) {
		t.Fatalf("the repair of a log that was cut: %v", err)
	}
	if len(w.log.Damage()) != 0 || w.log.End() != second {
		t.Fatalf("the log ends at %d with damage %v", w.log.End(), w.log.Damage())
	}
}

// Of a healthy replica that has compacted less comes back what was compacted here; the next run takes it away again.
func TestWhatARepairPutsBackIsCompactedAgain(t *testing.T) {
	s := newStory(t)
	s.put(nil, "a=1", "b=1")
	s.put(nil, "c=1")
	s.close()
	s.put(nil, "a=2")
	s.close()
	all := readAll(t, s.log, 0, s.log.End(), 3000)
	s.clean(store.CleanOptions{})
	if err := s.log.Condemn(store.OffsetRange{From: 0, To: 2}, s.now); err != nil {
		t.Fatal(err)
	}
	r, err := s.log.BeginRepair(0, s.now)
	if err != nil {
		t.Fatal(err)
	}
	if err := fillFrom(t, r, all); err != nil {
		t.Fatal(err)
	}
	if _, err := s.log.SwapRepaired(r, s.now); err != nil {
		t.Fatal(err)
	}
	s.want("0:a=1 1:b=1 2:c=1 3:a=2")
	s.clean(store.CleanOptions{})
	s.want("1:b=1 2:c=1 3:a=2")
}

// The index of aborted transactions, which Kafka wrote and nobody here can make anew, survives a crash at any moment of a repair.
func TestARepairKeepsTheIndexOfAbortedTransactions(t *testing.T) {
	w := newWorld(t, 1, smallLog())
	for w.log.Segments() < 3 {
		opAppend{3, 900, 0}.run(w)
	}
	w.flush()
	opCheckpoint{}.run(w)
	name, text := segmentFile(0, "txnindex"), []byte("what Kafka wrote")
	overwrite(t, w.disk.FS(), name, text)
	w.end("clean")
	w.disk.Flip(segmentFile(0, "log"), 300, 3)
	w.open()
	w.condemnAll()
	crashes := 0
	w.disk.OnPoint = func(p storetest.Point) {
		again := &world{t: t, disk: w.disk.Clone(), cfg: w.cfg, now: w.now, ghost: w.ghost}
		again.disk.Kill()
		again.open()
		if got := contents(t, again.disk.FS(), name); !bytes.Equal(got, text) {
			t.Fatalf("point %d %s %s: %q\n%s", p.N, p.Op, p.Name, got, again.disk.Dump())
		}
		crashes++
	}
	w.mend()
	w.disk.OnPoint = nil
	w.sameAsGhost()
	if got := contents(t, w.disk.FS(), name); crashes == 0 || !bytes.Equal(got, text) {
		t.Fatalf("after %d crashes: %q", crashes, got)
	}
}

// Whatever bit of a batch is turned, also one of its header that leads to where it ends: the repair puts it back, and nothing else is lost by it.
func TestAnyBitOfABatchIsMended(t *testing.T) {
	for at := range int64(record.HeaderSize + 3) {
		w := newWorld(t, 1, smallLog())
		for w.log.Segments() < 2 {
			opAppend{3, 500, 0}.run(w)
		}
		w.flush()
		opCheckpoint{}.run(w)
		w.end("clean")
		pos := int64(len(w.ghost.batches[0]))
		w.disk.Flip(segmentFile(0, "log"), pos+at, uint(at+2)%8)
		w.open()
		w.condemnAll()
		found := len(w.log.Damage()) > 0
		w.mend()
		w.condemnAll()
		if d := w.log.Damage(); len(d) > 0 {
			t.Errorf("byte %d: %v is damaged after the repair", at, d)
		}
		if epoch := at >= 12 && at < 16; !found && !epoch {
			t.Errorf("byte %d: nothing is damaged", at)
		} else if !epoch { // it is outside the checksum, and shows by the order only
			w.sameAsGhost()
		}
	}
}
