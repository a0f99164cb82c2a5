package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// repairHistory is a random history of two replicas of one compacted log, which compact each for itself; one of them is damaged and mended by the other, again and
// again, and dies in the midst of it.
type repairHistory struct {
	*two
	r   *rand.Rand
	all []twinRecord // every record that was appended
	// epoch is that of the next append, start where both logs begin.
	epoch ident.LeaderEpoch
	start ident.Offset
	// hidden: something is damaged that no reader has found.
	hidden bool
	met    map[string]int
}

func (h *repairHistory) append() {
	words := make([]string, 1+h.r.IntN(4))
	for i := range words {
		words[i] = fmt.Sprintf("k%d", h.r.IntN(6))
		if h.r.IntN(3) > 0 {
			words[i] += fmt.Sprintf("=%0*d", 1+h.r.IntN(900), h.r.IntN(1000))
		}
	}
	if h.r.IntN(6) == 0 {
		h.epoch++
	}
	for _, s := range []*story{h.a, h.b} {
		base := s.put(func(b *record.Builder) { b.LeaderEpoch = h.epoch }, words...)
		if s == h.a {
			continue
		}
		v := s.batches()
		for _, rec := range recordsOf(h.t, v[len(v)-1]) {
			if rec.offset < base {
				h.t.Fatalf("offset %d below %d", rec.offset, base)
			}
			h.all = append(h.all, rec)
		}
	}
}

// damage does something to a closed file of a that a reader would find, and has it found.
func (h *repairHistory) damage() {
	s := h.a
	names := s.names(".log")
	name := names[h.r.IntN(len(names))]
	b := contents(h.t, s.fs, "/data/orders-3/"+name)
	if name == names[len(names)-1] || len(b) == 0 {
		return
	}
	at, bit := h.r.Int64N(int64(len(b))), uint(h.r.IntN(8))
	if movesInGap(b, at, bit, ident.Offset(mustAtoi(h.t, name[:20])), ident.Offset(mustAtoi(h.t, names[slices.Index(names, name)+1][:20]))) {
		return
	}
	s.disk.Flip("/data/orders-3/"+name, at, bit)
	was := len(s.log.Damage())
	s.look()
	h.hidden = h.hidden || len(s.log.Damage()) == was
	if _, err := s.log.NewDamage(s.now); err != nil {
		h.t.Fatal(err)
	}
}

// movesInGap tells that a bit of a segment's file moves a batch to where it may be as well, in a gap that compaction has left. Nothing that one replica has says so.
func movesInGap(b []byte, at int64, bit uint, base, next ident.Offset) bool {
	floor := base
	for rest := b; len(rest) > 0; {
		v, behind, err := record.Split(rest)
		if err != nil {
			return false // it is damaged already
		}
		if at >= int64(len(v)) {
			at, rest, floor = at-int64(len(v)), behind, v.NextOffset()
			continue
		}
		if at >= 8 {
			return false
		}
		if w, _, err := record.Split(behind); err == nil && len(behind) > 0 {
			next = w.BaseOffset()
		}
		v = slices.Clone(v)
		v[at] ^= 1 << bit
		return v.BaseOffset() >= floor && v.NextOffset() <= next
	}
	return false
}

// look reads all that is there, and has condemned what is unsound.
func (s *story) look() {
	s.t.Helper()
	for from := s.log.Start(); from < s.log.End(); {
		region, err := s.log.Read(from, s.log.End(), 1<<20, true)
		if errors.Is(err, store.ErrDamaged) {
			for _, d := range s.log.Damage() {
				if d.From <= from && from < d.To {
					from = d.To
				}
			}
			continue
		}
		if err != nil {
			s.t.Fatal(err)
		}
		sound, bad, err := region.Check(nil)
		if err != nil {
			s.t.Fatal(err)
		}
		next := region.Next()
		if sound < int64(region.Len()) {
			next = bad.To
			if err := s.log.Condemn(store.OffsetRange{From: max(bad.From, s.log.Start()), To: min(bad.To, s.log.End())}, s.now); err != nil {
				s.t.Fatal(err)
			}
		}
		region.Release()
		from = max(next, from+1)
	}
}

// restart ends the process of a, or its machine, and begins another.
func (h *repairHistory) restart() {
	s := h.a
	s.disk.OnPoint = nil
	if h.r.IntN(2) == 0 {
		s.disk.Kill()
	} else {
		s.disk.Crash(h.r.Uint64())
	}
	s.fs = s.disk.FS()
	s.open()
	flush(h.t, s.dir, s.log)
	h.met["restarted"]++
}

// forget lets the process of a, which has no damage, begin again without an epoch file.
func (h *repairHistory) forget() {
	s := h.a
	if h.settle(); len(s.log.Damage()) > 0 || h.hidden {
		return // behind damage nothing tells of the epochs but their file
	}
	s.stop("kill")
	if err := s.fs.Remove("/data/orders-3/leader-epoch-checkpoint"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.t.Fatal(err)
	}
	s.open()
	h.met["epochs lost"]++
}

// moveStart deletes records, of both.
func (h *repairHistory) moveStart() {
	h.start += ident.Offset(h.r.Int64N(int64(h.b.log.End()-h.start)/4 + 1))
	for _, s := range []*story{h.a, h.b} {
		if err := s.log.SetStart(h.start); err != nil {
			h.t.Fatal(err)
		}
		flush(h.t, s.dir, s.log)
		if _, err := s.log.ApplyRetention(s.now, s.log.End()); err != nil {
			h.t.Fatal(err)
		}
		flush(h.t, s.dir, s.log) // until then no repair begins
	}
	h.met["start moved"]++
}

// repair tries once.
func (h *repairHistory) repair() {
	s := h.a
	r, err := s.log.BeginRepair(0, s.now)
	if err != nil {
		h.t.Fatal(err)
	}
	if r == nil {
		return
	}
	err = h.fill(r, func(int) {
		if h.r.IntN(3) == 0 {
			h.wait(ident.Millis(h.r.IntN(3000)))
			h.step(h.b)
		}
		if h.r.IntN(40) == 0 && s.disk.OnPoint == nil {
			h.moveStart()
		}
	})
	if bad := r.Unsound(); bad.From < bad.To {
		r.Abandon()
		if err := s.log.Condemn(store.OffsetRange{From: max(bad.From, s.log.Start()), To: min(bad.To, s.log.End())}, s.now); err != nil {
			h.t.Fatal(err)
		}
		return
	}
	if err != nil {
		r.Abandon()
		if !errors.Is(err, store.ErrRepairOver) {
			h.t.Fatalf("repair of %v: %v", r.Range(), err)
		}
		h.met["over"]++
		return
	}
	renews := r.Renews()
	if _, err := s.log.SwapRepaired(r, s.now); err != nil {
		if !errors.Is(err, store.ErrRepairOver) {
			h.t.Fatal(err)
		}
		h.met["over"]++
		return
	}
	h.met[map[bool]string{true: "renewed", false: "range"}[renews]]++
}

// step lets one replica compact, as far as nothing is damaged.
func (h *repairHistory) step(s *story) {
	if len(s.log.Damage()) > 0 {
		return
	}
	s.close()
	if h.met["cleaned"]++; h.r.IntN(3) > 0 {
		h.run(s, 1000, store.CleanOptions{MapBytes: 1 << 16, LoadFactor: 0.9})
		return
	}
	h.run(s, 1+h.r.IntN(4), store.CleanOptions{MapBytes: 24 * 8, LoadFactor: 0.9})
}

// run does at most so many steps of a compaction. What it finds unsound, which no checksum has shown, is condemned.
func (h *repairHistory) run(s *story, steps int, o store.CleanOptions) {
	run, err := s.log.BeginClean(s.now, s.log.End(), o)
	if err != nil {
		h.t.Fatal(err)
	}
	if run == nil {
		return
	}
	for range steps {
		step, err := run.Work(s.now)
		if err == nil && step == store.CleanSwap {
			err = s.log.SwapCleaned(run, s.now)
		}
		if bad := run.Unsound(); err != nil && bad.From >= bad.To {
			h.t.Fatal(err)
		}
		if err != nil || step == store.CleanDone {
			break
		}
	}
	s.log.EndClean(run)
	if bad := run.Unsound(); bad.From < bad.To {
		if err := s.log.Condemn(store.OffsetRange{From: max(bad.From, s.log.Start()), To: min(bad.To, s.log.End())}, s.now); err != nil {
			h.t.Fatal(err)
		}
	}
}

// check reads a replica that has no damage: nothing came back, nothing is missing.
func (h *repairHistory) check(s *story, who string) {
	h.t.Helper()
	if len(s.log.Damage()) > 0 {
		return
	}
	if end := ident.Offset(len(h.all)); s.log.End() != end {
		h.t.Fatalf("%s ends at %d, not %d", who, s.log.End(), end)
	}
	last, present := map[string]*twinRecord{}, map[string][]ident.Offset{}
	for i := range h.all[h.start:] {
		rec := &h.all[int(h.start)+i]
		last[rec.key] = rec
	}
	next := ident.Offset(0)
	for _, v := range s.batches() {
		if v.BaseOffset() < next {
			h.t.Fatalf("%s: a batch at %d behind %d", who, v.BaseOffset(), next)
		}
		next = v.NextOffset()
		for _, rec := range recordsOf(h.t, v) {
			if !rec.same(&h.all[rec.offset]) {
				h.t.Fatalf("%s: %+v, was %+v", who, rec, h.all[rec.offset])
			}
			if rec.offset >= h.start {
				present[rec.key] = append(present[rec.key], rec.offset)
			}
		}
	}
	for key, rec := range last {
		there := slices.Contains(present[key], rec.offset)
		switch {
		case rec.value != nil && !there:
			h.t.Fatalf("%s: the last value of %s, at %d, is missing", who, key, rec.offset)
		case rec.value == nil && !there && len(present[key]) > 0:
			h.t.Fatalf("%s: %s is back at %v, its tombstone at %d is not", who, key, present[key], rec.offset)
		}
	}
}

// interrupted runs something that the disk of a may cut off.
func (h *repairHistory) interrupted(run func()) (cut bool) {
	defer func() {
		h.a.disk.OnPoint = nil
		if p := recover(); p != nil {
			if _, ok := p.(crashSignal); !ok {
				panic(p)
			}
			cut = true
		}
	}()
	run()
	return false
}

// TestRepairsOfReplicasThatCompactEachForItself plays random histories. SEED picks one or a range.
func TestRepairsOfReplicasThatCompactEachForItself(t *testing.T) {
	met := map[string]int{}
	count := uint64(150)
	if testing.Short() {
		count = 40
	}
	for _, seed := range seeds(t, count) {
		t.Run(fmt.Sprintf("SEED=%d", seed), func(t *testing.T) {
			h := &repairHistory{two: newTwo(t), r: rand.New(rand.NewPCG(seed, 17)), met: met}
			cfg := h.a.cfg
			cfg.SegmentBytes, cfg.DeleteRetentionMs = int32(1<<10+h.r.IntN(6<<10)), int64(h.r.IntN(3)*2000)
			for _, s := range []*story{h.a, h.b} {
				s.cfg = cfg
				s.log.Configure(cfg)
			}
			h.put("k0=first")
			h.all = append(h.all, recordsOf(t, h.b.batches()[0])...)
			for range 60 {
				h.operate()
				h.check(h.a, "the replica")
				h.check(h.b, "its leader")
			}
			for tries := 0; len(h.a.log.Damage()) > 0; tries++ {
				if tries > 20 {
					t.Fatalf("%v is not mended", h.a.log.Damage())
				}
				h.repair()
			}
			h.check(h.a, "the replica, at the end")
		})
	}
	t.Log(met)
	for _, k := range []string{"renewed", "range", "restarted", "cut", "cleaned", "epochs lost", "start moved"} {
		if met[k] < 5 && len(seeds(t, count)) > 20 {
			t.Errorf("only %d times %q: the histories do not test it", met[k], k)
		}
	}
}

// settle lets all that was appended be on disk, and promised: what is unsound above a durable mark is the torn end of a log after a power loss.
func (h *repairHistory) settle() {
	h.a.close()
	if err := h.a.dir.Checkpoint(); err != nil {
		h.t.Fatal(err)
	}
}

// operate draws one operation.
func (h *repairHistory) operate() {
	switch k := h.r.IntN(22); {
	case k == 20:
		h.forget()
	case k == 21:
		h.moveStart()
	case k < 7:
		h.append()
	case k < 9:
		h.wait(ident.Millis(h.r.IntN(5000)))
	case k < 12:
		h.step(h.b)
	case k < 15:
		h.step(h.a)
	case k < 17:
		h.settle()
		h.damage()
	default:
		h.settle()
		if h.r.IntN(2) == 0 {
			n := 1 + h.r.IntN(30)
			h.a.disk.OnPoint = func(storetest.Point) {
				if n--; n == 0 {
					panic(crashSignal{})
				}
			}
		}
		if h.interrupted(h.repair) {
			h.met["cut"]++
			h.restart()
		}
	}
}
