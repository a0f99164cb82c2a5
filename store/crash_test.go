package store_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// candidates is every batch that a crash at this moment may leave in the log, in
// order: what was appended, and the append that had not returned. A crash leaves a
// prefix of it.
func (g *ghost) candidates() []record.View {
	list := g.batches
	if g.pending != nil {
		list = append(slices.Clip(list), g.pending)
	}
	return list
}

// mustHave is the offset below which a crash may not take anything. A process that
// is killed loses nothing that Append returned for.
func (g *ghost) mustHave(power bool) ident.Offset {
	have := g.end
	if power {
		have = g.flushed
	}
	if g.cutTo >= 0 {
		have = min(have, g.cutTo)
	}
	return have
}

// recovered opens a disk after a crash and checks the invariants RecoverySuperset,
// IndexAgree and DeleteBelowOnly against what the ghost was at the crash.
func recovered(t testing.TB, disk *storetest.Disk, g ghost, cfg store.LogConfig, power bool) *world {
	t.Helper()
	w := &world{t: t, disk: disk, cfg: cfg, now: g.now, epoch: 1000}
	w.ghost = ghost{cutTo: -1, batches: g.candidates()}
	_, r := w.open()
	have := g.mustHave(power)
	if w.log.End() < have {
		t.Fatalf("the log ends at %d, everything below %d was promised (%+v)\n%s", w.log.End(), have, r, disk.Dump())
	}
	if len(r.Damage) > 0 {
		t.Fatalf("a crash damaged %v (%+v)\n%s", r.Damage, r, disk.Dump())
	}
	if !r.Whole {
		t.Fatalf("the log is not whole: %+v", r)
	}
	if s := w.log.Start(); s < min(g.durable, w.log.End()) || s > max(g.start, g.durable) {
		t.Fatalf("the log starts at %d; durable was %d, asked for %d", s, g.durable, g.start)
	}
	got := readAll(t, w.log, w.log.Start(), w.log.End(), 1<<20)
	all := g.candidates()
	for len(all) > 0 && all[0].LastOffset() < w.log.Start() {
		all = all[1:]
	}
	if len(got) > len(all) {
		t.Fatalf("%d batches where at most %d had been appended\n%s", len(got), len(all), disk.Dump())
	}
	for i := range got {
		if !bytes.Equal(got[i], all[i]) {
			t.Fatalf("batch %d at offset %d is not what was appended (offset %d)", i, got[i].BaseOffset(), all[i].BaseOffset())
		}
		if e := w.log.EpochOf(max(got[i].BaseOffset(), w.log.Start())); e != got[i].LeaderEpoch() {
			t.Fatalf("the epoch file says %d of offset %d, the batch %d: %v", e, got[i].BaseOffset(), got[i].LeaderEpoch(), w.log.Epochs(nil))
		}
		if !w.seen[got[i].BaseOffset()] {
			t.Fatalf("the owner was not shown the batch at %d (%+v)", got[i].BaseOffset(), r)
		}
	}
	w.ghost.batches = got
	w.ghost.start, w.ghost.durable = w.log.Start(), w.log.Start()
	w.ghost.end, w.ghost.flushed = w.log.End(), w.log.Flushed()
	w.epoch = max(w.log.LastEpoch(), 0) + 1
	for part := 0; part <= 100; part += 10 {
		opFind{part}.run(w)
	}
	return w
}

// goOn appends to a recovered log, restarts it both ways and looks at its indexes:
// a log must not only be readable after a crash but usable.
func (w *world) goOn() {
	for range 4 {
		opAppend{2, 700, 0}.run(w)
	}
	w.flush()
	opAppend{1, 90, 0}.run(w)
	opRead{0, 4096}.run(w)
	opFind{50}.run(w)
	opRestart{clean: false}.run(w)
	opFind{99}.run(w)
	opRestart{clean: true}.run(w)
	opFind{98}.run(w)
	w.checkIndexes()
}

// checkIndexes reads the index files themselves: each entry must name a batch that
// is there, and both files must rise.
func (w *world) checkIndexes() {
	fs := w.disk.FS()
	names, err := fs.ReadDir("/data/orders-3")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range names {
		if len(e.Name) == 24 && e.Name[20:] == ".log" {
			if err := store.CheckIndexes(fs, "/data/orders-3", e.Name[:20]); err != nil {
				w.t.Fatalf("%v\n%s", err, w.disk.Dump())
			}
		}
	}
}

// remembered are histories, as short as they got, in which a crash once lost
// something.
var remembered = map[string][]operation{
	"an identity that was not synced, of a log whose maker was killed": {
		opAppend{3, 500, 0}, opRestart{clean: false}, opFlush{}, opCheckpoint{},
	},
	"a segment below a truncation that was not synced": {
		opAppend{5, 1400, 0}, opFlush{}, opRoll{}, opAppend{4, 900, 0}, opRoll{}, opAppend{2, 900, 0}, opTruncate{1}, opFlush{}, opAppend{1, 50, 0},
	},
	"a closed segment that was not cut on disk": {
		opAppend{1, 400, 0}, opFlush{}, opRoll{}, opRestart{clean: false}, opFlush{}, opAppend{3, 1200, 0}, opFlush{}, opAppend{3, 1200, 0}, opFlush{},
	},
	"a start that moved before it was durable": {
		opAppend{3, 1200, 0}, opAppend{4, 1000, 0}, opFlush{}, opTruncate{2}, opAppend{2, 1300, 0}, opRoll{}, opAppend{1, 100, 0}, opRoll{}, opFlush{},
	},
	"timestamps that fall, in a time index written after the offset index": falling,
	"timestamps that fall, in a time index that a power loss cut short": append(slices.Clone(falling),
		opFlush{}, opAppend{1, 900, 90_000}, opAppend{1, 900, 90_000}, opSnapshot{}, opFlush{}, opCheckpoint{}, opAppend{1, 900, 90_000}),
}

// falling is a log whose greatest timestamp lies in the middle: the time index has
// few entries, the offset index goes on.
var falling = []operation{
	opAppend{1, 900, 95_000},
	opAppend{1, 900, 80_000},
	opAppend{1, 900, 70_000},
	opAppend{1, 900, 60_000},
	opAppend{1, 900, 0},
	opAppend{1, 900, 90_000},
	opAppend{1, 900, 90_000},
	opAppend{1, 900, 90_000},
	opAppend{1, 900, 90_000},
	opSnapshot{},
	opAppend{1, 900, 90_000},
	opFlush{},
}

func TestNoCrashLosesWhatOneOnceLost(t *testing.T) {
	for story, history := range remembered {
		t.Run(story, func(t *testing.T) { crashEverywhere(t, 308, smallLog(), history) })
	}
}

// TestNoCrashLosesWhatWasPromised cuts power and process at every point of random
// histories: after each operation that changes, or could change, what is durable.
func TestNoCrashLosesWhatWasPromised(t *testing.T) {
	count, length := uint64(3), 60
	if testing.Short() {
		count = 1
	}
	crashes := 0
	for _, seed := range seeds(t, count) {
		r := rand.New(rand.NewPCG(seed, 1))
		cfg := smallLog()
		cfg.SegmentBytes = int32(3<<10 + r.IntN(8<<10))
		if r.IntN(2) == 0 {
			cfg.Append = store.AppendWritten
		}
		cfg.AppendWriteMin = int32(r.IntN(2000))
		crashes += crashEverywhere(t, seed, cfg, randomHistory(r, length))
	}
	if crashes < 100 {
		t.Fatalf("%d crashes: the test does not test it", crashes)
	}
	t.Logf("%d crashes", crashes)
}

// crashEverywhere plays a history and returns the number of crashes it survived.
func crashEverywhere(t *testing.T, seed uint64, cfg store.LogConfig, history []operation) (crashes int) {
	t.Helper()
	rec := &recorder{TB: t}
	var at string
	defer func() {
		if p := recover(); p != nil {
			if p != stop {
				t.Logf("SEED=%d %s %s", seed, rec.step, at)
				panic(p)
			}
			t.Fatalf("SEED=%d %s %s: %s\nhistory: %v", seed, rec.step, at, rec.message, history)
		}
	}()
	defer store.ShrinkTables(24 + int(seed%4)*12)()
	w := newWorld(rec, seed, cfg)
	w.disk.Writeback = 10
	w.disk.OnPoint = func(p storetest.Point) {
		if p.Op == "write" && p.N%3 != 0 {
			return // writes are many, and alike
		}
		for k := range uint64(3) {
			power := k < 2
			at = fmt.Sprintf("(point %d: %s %s, power loss %t %d)", p.N, p.Op, p.Name, power, k)
			disk := w.disk.Clone()
			if power {
				disk.Crash(seed<<32 + uint64(p.N)<<2 + k)
			} else {
				disk.Kill()
			}
			w.ghost.now = w.now
			again := recovered(rec, disk, w.ghost, cfg, power)
			if (p.N+int(k))%5 == 0 {
				again.goOn()
			}
			crashes++
		}
		at = ""
	}
	for i, o := range history {
		rec.step = fmt.Sprintf("operation %d, %s:", i, o)
		o.run(w)
	}
	return crashes
}
