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

// A history is a list of operations on one log, each a small value that runs,
// prints itself and can be left out, so that a failing history can be shortened.
// Beside the log runs a ghost: the batches as a plain slice.
type operation interface {
	run(w *world)
	String() string
}

// ghost is what the log should hold.
type ghost struct {
	batches []record.View // ascending, all that was appended and not truncated
	start   ident.Offset
	end     ident.Offset
	flushed ident.Offset // promised durable
	durable ident.Offset // start that is promised durable

	now ident.Millis // the world's clock at a crash

	// While an operation is under way either of two states may be found.
	pending record.View  // an append that has not returned
	cutTo   ident.Offset // a truncation that has not returned; -1: none
}

// world is a disk, a broker's directory on it, one log, and its ghost.
type world struct {
	t     testing.TB
	disk  *storetest.Disk
	dir   *store.Directory
	log   *store.Log
	sync  *store.Syncer
	ghost ghost
	cfg   store.LogConfig
	now   ident.Millis
	epoch ident.LeaderEpoch
	seen  map[ident.Offset]bool // by OnBatch, at the last opening
}

func newWorld(t testing.TB, seed uint64, cfg store.LogConfig) *world {
	t.Helper()
	w := &world{t: t, disk: storetest.NewDisk(seed), cfg: cfg, now: 1_000_000}
	w.ghost.cutTo = -1
	if err := w.disk.FS().MkdirAll("/", 0o755); err != nil {
		t.Fatal(err)
	}
	w.open()
	return w
}

// newFilled makes a world with some batches that are durable, and checkpoints that say so.
func newFilled(t testing.TB, batches int, op opAppend) *world {
	t.Helper()
	w := newWorld(t, 1, smallLog())
	for range batches {
		op.run(w)
	}
	w.flush()
	opCheckpoint{}.run(w)
	return w
}

// open opens directory and log, and syncs what was found, as a broker does before
// it serves.
func (w *world) open() (store.Opened, store.Recovery) {
	w.t.Helper()
	d, o, err := store.OpenDirectory(store.DirectoryOptions{
		FS: w.disk.FS(), Path: "/data", Broker: 1, Rand: seeded(9), Generations: &store.Generations{}, Parallel: 1, BallastBytes: 4096,
	})
	if err != nil {
		w.t.Fatalf("open the directory: %v\n%s", err, w.disk.Dump())
	}
	w.dir = d
	if w.sync, err = d.NewSyncer(); err != nil {
		w.t.Fatal(err)
	}
	w.seen = map[ident.Offset]bool{}
	l, r, err := d.OpenLog(testPartition, topicID("orders"), w.cfg, store.LogHooks{
		OnBatch:   func(v record.View) { w.seen[v.BaseOffset()] = true },
		Producers: func(dst []record.ProducerEntry) []record.ProducerEntry { return dst },
		OnSnapshot: func(at ident.Offset, _ []record.ProducerEntry) {
			for _, b := range w.ghost.batches {
				if b.LastOffset() < at {
					w.seen[b.BaseOffset()] = true
				}
			}
		},
	}, w.now)
	if err != nil {
		w.t.Fatalf("open the log: %v\n%s", err, w.disk.Dump())
	}
	w.log = l
	w.flush()
	return o, r
}

func (w *world) flush() {
	w.t.Helper()
	work, dirty := w.log.BeginSync()
	if !dirty {
		return
	}
	start := w.log.Start()
	for _, r := range w.sync.Sync(nil, []store.SyncWork{work}) {
		flushed, _, err := w.log.Synced(r)
		if err != nil {
			w.t.Fatal(err)
		}
		w.ghost.flushed = max(w.ghost.flushed, flushed)
		w.ghost.durable = max(w.ghost.durable, start)
	}
}

// The operations.

type opAppend struct {
	records, size int
	back          ident.Millis // how far behind the clock the timestamps are
}
type (
	opFlush      struct{}
	opRoll       struct{}
	opStart      struct{ part int } // of the flushed range, in percent
	opRetain     struct{ bytes int64 }
	opTruncate   struct{ back int } // batches
	opEpoch      struct{}
	opCheckpoint struct{}
	opSnapshot   struct{}
	opRestart    struct{ clean bool }
	opClock      struct{ ms ident.Millis }
	opRead       struct{ part, size int }
	opFind       struct{ part int }
)

func (o opAppend) String() string {
	return fmt.Sprintf("append{%d, %d, %d}", o.records, o.size, o.back)
}
func (o opFlush) String() string      { return "flush" }
func (o opRoll) String() string       { return "roll" }
func (o opStart) String() string      { return fmt.Sprintf("start{%d}", o.part) }
func (o opRetain) String() string     { return fmt.Sprintf("retain{%d}", o.bytes) }
func (o opTruncate) String() string   { return fmt.Sprintf("truncate{%d}", o.back) }
func (o opEpoch) String() string      { return "epoch" }
func (o opCheckpoint) String() string { return "checkpoint" }
func (o opSnapshot) String() string   { return "snapshot" }
func (o opRestart) String() string    { return fmt.Sprintf("restart{clean %t}", o.clean) }
func (o opClock) String() string      { return fmt.Sprintf("clock{%d}", o.ms) }
func (o opRead) String() string       { return fmt.Sprintf("read{%d, %d}", o.part, o.size) }
func (o opFind) String() string       { return fmt.Sprintf("find{%d}", o.part) }

func (o opAppend) run(w *world) {
	v := batch(w.t, w.ghost.end, w.epoch, w.now-o.back, o.records, o.size)
	w.ghost.pending = v
	if err := w.log.Append(v, w.now); err != nil {
		w.t.Fatalf("append at %d: %v", w.ghost.end, err)
	}
	w.ghost.batches = append(w.ghost.batches, v)
	w.ghost.end, w.ghost.pending = v.NextOffset(), nil
	w.now += 10
}

func (opFlush) run(w *world) { w.flush() }

func (opRoll) run(w *world) {
	if err := w.log.Roll(w.now); err != nil {
		w.t.Fatal(err)
	}
}

func (o opStart) run(w *world) {
	to := w.ghost.start + (w.ghost.flushed-w.ghost.start)*ident.Offset(o.part)/100
	if err := w.log.SetStart(to); err != nil {
		w.t.Fatal(err)
	}
	w.ghost.start = max(w.ghost.start, to)
}

func (o opRetain) run(w *world) {
	c := w.cfg
	c.RetentionBytes = o.bytes
	w.log.Configure(c)
	hw := w.ghost.flushed
	before := w.log.Size()
	// Whatever goes is a prefix of what lies below hw; the ghost follows.
	w.ghost.start = max(w.ghost.start, w.log.Start())
	atMost := w.ghost.start
	for _, b := range w.ghost.batches {
		if b.LastOffset() < hw {
			atMost = max(atMost, b.NextOffset())
		}
	}
	w.ghost.start, atMost = atMost, w.ghost.start // a crash may find any of the two
	t, err := w.log.ApplyRetention(w.now, hw)
	if err != nil {
		w.t.Fatal(err)
	}
	if t.Start > hw || t.Start > w.ghost.start || t.Start < atMost {
		w.t.Fatalf("retention moved the start from %d to %d, the high watermark is %d", atMost, t.Start, hw)
	}
	if w.log.Size() != before-t.Bytes {
		w.t.Fatalf("retention of %d bytes led from %d to %d", t.Bytes, before, w.log.Size())
	}
	w.ghost.start = t.Start
	w.log.Configure(w.cfg)
}

func (o opTruncate) run(w *world) {
	n := len(w.ghost.batches) - o.back
	if n < 0 || o.back == 0 {
		return
	}
	to := w.ghost.batches[n].BaseOffset()
	if to < w.ghost.start {
		return
	}
	w.ghost.cutTo = to
	w.ghost.flushed = min(w.ghost.flushed, to)
	// A few records into the batch: the whole batch goes.
	into := w.ghost.batches[n].LastOffset() - to
	generation := w.log.Generation()
	end, err := w.log.Truncate(to+into/2, w.now)
	if err != nil || end != to || w.log.End() != to {
		w.t.Fatalf("truncate to %d gave %d, %v", to, end, err)
	}
	if w.log.Generation() <= generation {
		w.t.Fatal("truncation kept the generation")
	}
	w.ghost.batches = slices.Clone(w.ghost.batches[:n])
	w.ghost.end, w.ghost.cutTo = to, -1
	w.epoch++ // another leader's batches follow
}

func (opEpoch) run(w *world) {
	w.epoch++
	w.log.AssignEpoch(w.epoch, w.ghost.end)
}

func (opCheckpoint) run(w *world) {
	if err := w.dir.Checkpoint(); err != nil {
		w.t.Fatal(err)
	}
}

func (opSnapshot) run(w *world) {
	if err := w.log.SaveProducerSnapshot(nil); err != nil {
		w.t.Fatal(err)
	}
}

func (o opRestart) run(w *world) {
	if o.clean {
		if err := errors.Join(w.log.Close(true), w.sync.Close(), w.dir.Close(true, 1)); err != nil {
			w.t.Fatal(err)
		}
		w.ghost.flushed = w.ghost.end
		w.ghost.durable = w.ghost.start
	} else {
		w.disk.Kill()
	}
	w.open()
	if start := w.log.Start(); start >= w.ghost.durable && start <= w.ghost.start {
		w.ghost.start = start // a start that was not synced may be forgotten
	}
	w.check(w.ghost.end)
}

func (o opClock) run(w *world) {
	w.now += o.ms
	w.disk.SetNow(w.now)
}

func (o opRead) run(w *world) {
	from := w.ghost.start + (w.ghost.end-w.ghost.start)*ident.Offset(o.part)/100
	got := readAll(w.t, w.log, from, w.ghost.end, o.size)
	want := w.ghost.from(from)
	if len(got) != len(want) {
		w.t.Fatalf("%d batches from %d on, %d expected", len(got), from, len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			w.t.Fatalf("the batch at %d differs", want[i].BaseOffset())
		}
	}
}

func (o opFind) run(w *world) {
	ts := ident.Millis(1_000_000) + (w.now-1_000_000)*ident.Millis(o.part)/100
	got, found, err := w.log.OffsetForTimestamp(ts, w.ghost.end)
	if err != nil {
		w.t.Fatal(err)
	}
	want, ok := w.ghost.find(ts)
	if found != ok || (found && got.Offset != want) {
		w.t.Fatalf("timestamp %d is at %v %t, expected %d %t", ts, got, found, want, ok)
	}
	top, found, err := w.log.MaxTimestamp(w.ghost.end)
	if err != nil {
		w.t.Fatal(err)
	}
	if want, ok := w.ghost.top(); found != ok || (found && top.Offset != want) {
		w.t.Fatalf("the greatest timestamp is at %v %t, expected %d %t", top, found, want, ok)
	}
}

// from lists the batches that end at or above o.
func (g *ghost) from(o ident.Offset) []record.View {
	i := 0
	for i < len(g.batches) && g.batches[i].LastOffset() < o {
		i++
	}
	return g.batches[i:]
}

func (g *ghost) find(ts ident.Millis) (ident.Offset, bool) {
	for _, b := range g.from(g.start) {
		for i := range ident.Offset(b.Count()) {
			if o := b.BaseOffset() + i; o >= g.start && b.BaseTimestamp()+ident.Millis(i) >= ts {
				return o, true
			}
		}
	}
	return 0, false
}

func (g *ghost) top() (ident.Offset, bool) {
	best, at, ok := ident.Millis(-1), ident.Offset(0), false
	for _, b := range g.from(g.start) {
		if b.MaxTimestamp() > best {
			best, at, ok = b.MaxTimestamp(), b.LastOffset(), true
		}
	}
	return at, ok
}

// randomHistory draws n operations.
func randomHistory(r *rand.Rand, n int) []operation {
	var list []operation
	for range n {
		var o operation
		switch k := r.IntN(100); {
		case k < 45:
			o = opAppend{1 + r.IntN(5), 50 + r.IntN(1500), ident.Millis(max(r.IntN(150_000)-100_000, 0))}
		case k < 60:
			o = opFlush{}
		case k < 64:
			o = opRoll{}
		case k < 68:
			o = opStart{r.IntN(101)}
		case k < 72:
			o = opRetain{int64(r.IntN(40000))}
		case k < 76:
			o = opTruncate{1 + r.IntN(6)}
		case k < 79:
			o = opEpoch{}
		case k < 82:
			if o = operation(opCheckpoint{}); r.IntN(2) == 0 {
				o = opSnapshot{}
			}
		case k < 85:
			o = opRestart{r.IntN(2) == 0}
		case k < 88:
			o = opClock{ident.Millis(r.IntN(100000))}
		case k < 95:
			o = opRead{r.IntN(100), 1 << r.IntN(16)}
		default:
			o = opFind{r.IntN(110)}
		}
		list = append(list, o)
	}
	return list
}
