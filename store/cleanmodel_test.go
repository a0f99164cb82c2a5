package store_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// cleanWorld is a disk, one compacted log on it, and its twin.
type cleanWorld struct {
	t         testing.TB
	r         *rand.Rand
	disk      *storetest.Disk
	dir       *store.Directory
	log       *store.Log
	sync      *store.Syncer
	cfg       store.LogConfig
	now       ident.Millis
	epoch     ident.LeaderEpoch
	twin      twin
	producers map[ident.ProducerID]record.ProducerEntry
	keys      int
	late      bool     // jobs of the background wait
	jobs      []func() // that wait
	run       *store.CleanRun
	swap      bool // the run wants SwapCleaned
	keyless   bool
	done      map[string]int // what the history met
	trace     []string
}

func newCleanWorld(t testing.TB, seed uint64) *cleanWorld {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	w := &cleanWorld{t: t, r: r, disk: storetest.NewDisk(seed), now: 1_000_000, producers: map[ident.ProducerID]record.ProducerEntry{}}
	w.done = map[string]int{}
	w.disk.Writeback = 20
	w.cfg = smallLog()
	w.cfg.Compact, w.cfg.DeleteRetained = true, false
	w.cfg.SegmentBytes = int32(1<<10 + r.IntN(6<<10))
	w.cfg.DeleteRetentionMs = int64(1000 + r.IntN(100_000))
	w.cfg.FileDeleteDelayMs = int64(r.IntN(2) * 1000)
	if r.IntN(2) == 0 {
		w.cfg.Append = store.AppendWritten
	}
	w.keys = []int{2, 5, 12, 60}[r.IntN(4)]
	w.late = r.IntN(2) == 0
	w.keyless = r.IntN(4) == 0
	w.twin.seen, w.twin.cutTo, w.twin.retention = map[ident.Offset]ident.Millis{}, -1, w.cfg.DeleteRetentionMs
	if err := w.disk.FS().MkdirAll("/", 0o755); err != nil {
		t.Fatal(err)
	}
	w.open()
	w.append() // what a crash leaves of a log that was never synced is another test's matter
	w.flush()
	return w
}

func (w *cleanWorld) background(job func()) {
	if w.late {
		w.jobs = append(w.jobs, job)
		return
	}
	job()
}

func (w *cleanWorld) work(n int) {
	for ; n > 0 && len(w.jobs) > 0; n-- {
		job := w.jobs[0]
		w.jobs = w.jobs[1:]
		job()
	}
}

func (w *cleanWorld) open() {
	w.t.Helper()
	w.run, w.swap, w.jobs = nil, false, nil
	d, _, err := store.OpenDirectory(store.DirectoryOptions{
		FS: w.disk.FS(), Path: "/data", Broker: 1, Rand: seeded(9), Generations: &store.Generations{}, Parallel: 1, BallastBytes: 4096, Background: w.background,
	})
	if err != nil {
		w.t.Fatalf("open the directory: %v\n%s", err, w.disk.Dump())
	}
	w.dir = d
	if w.sync, err = d.NewSyncer(); err != nil {
		w.t.Fatal(err)
	}
	w.producers = map[ident.ProducerID]record.ProducerEntry{}
	l, rec, err := d.OpenLog(testPartition, topicID("orders"), w.cfg, store.LogHooks{
		OnBatch: func(v record.View) { replay(w.producers, v) },
		OnSnapshot: func(_ ident.Offset, entries []record.ProducerEntry) {
			for _, e := range entries {
				w.producers[e.ProducerID] = e
			}
		},
		Producers: func(dst []record.ProducerEntry) []record.ProducerEntry {
			for _, id := range slices.Sorted(maps.Keys(w.producers)) {
				dst = append(dst, w.producers[id])
			}
			return dst
		},
	}, w.now)
	if err != nil {
		w.t.Fatalf("open the log: %v\n%s", err, w.disk.Dump())
	}
	if len(rec.Damage) > 0 || !rec.Whole {
		w.t.Fatalf("the log is damaged: %+v\n%s", rec, w.disk.Dump())
	}
	w.log = l
}

// reopened checks what a crash has left, and lets the twin follow.
func (w *cleanWorld) reopened(have ident.Offset) {
	w.t.Helper()
	g := &w.twin
	if g.cutTo >= 0 {
		have = min(have, g.cutTo)
	}
	if g.pending != nil {
		g.batches = append(g.batches, *g.pending)
	}
	end := w.log.End()
	if end < have {
		w.t.Fatalf("the log ends at %d, everything below %d was promised\n%s", end, have, w.disk.Dump())
	}
	g.batches = slices.DeleteFunc(g.batches, func(b twinBatch) bool { return b.view.LastOffset() >= end })
	if s := w.log.Start(); s < min(g.durable, end) || s > max(g.start, g.durable, g.startTo) {
		w.t.Fatalf("the log starts at %d; durable was %d, asked for %d", s, g.durable, g.startTo)
	}
	g.start, g.end, g.pending, g.cutTo, g.startTo = w.log.Start(), end, nil, -1, 0
	g.flushed, g.durable, g.high = w.log.Flushed(), g.start, min(g.high, end)
	w.epoch = max(w.log.LastEpoch(), 0) + 1
	w.checkProducers()
	w.producers = g.producersAt(end)
	w.flush()
	w.check()
}

func (w *cleanWorld) flush() {
	work, dirty := w.log.BeginSync()
	if !dirty {
		return
	}
	start := w.log.Start()
	for _, r := range w.sync.Sync(nil, []store.SyncWork{work}) {
		if _, _, err := w.log.Synced(r); err != nil {
			w.t.Fatal(err)
		}
	}
	w.twin.flushed, w.twin.durable = w.log.Flushed(), max(w.twin.durable, start)
}

// drawBatch makes a batch of a client, or a marker.
func (w *cleanWorld) drawBatch() record.View {
	b := record.NewBuilder()
	b.LeaderEpoch = w.epoch
	b.Codec = record.Codec(max(w.r.IntN(12)-7, 0))
	if id := ident.ProducerID(w.r.IntN(6)) - 2; id >= 0 {
		b.ProducerID, b.ProducerEpoch = id, ident.ProducerEpoch(w.epoch)
		b.BaseSequence = 0
		if p, ok := w.producers[id]; ok {
			b.BaseSequence = p.LastSequence.Add(1)
		}
	}
	n := 1 + w.r.IntN(8)
	switch w.r.IntN(40) {
	case 0:
		b.Control, b.Codec, b.ProducerID, b.BaseSequence, n = true, record.CodecNone, 1, ident.NoSequence, 1
	case 1:
		b.Transactional = true
	}
	for range n {
		key := fmt.Appendf(nil, "k%d", w.r.IntN(w.keys))
		value := make([]byte, w.r.IntN(1+w.r.IntN(300)))
		for i := range value {
			value[i] = byte(w.r.IntN(3))
		}
		if w.r.IntN(4) == 0 {
			value = nil
		}
		if w.keyless && w.r.IntN(20) == 0 {
			key = nil
		}
		b.Append(w.now-ident.Millis(w.r.IntN(50_000)), key, value)
	}
	out, err := b.Finish(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	v := record.View(out)
	v.SetBaseOffset(w.twin.end)
	v.SetLeaderEpoch(w.epoch)
	if w.r.IntN(8) == 0 && !v.Attributes().Control() {
		v.StampLogAppendTime(w.now)
	}
	return v
}

func (w *cleanWorld) append() {
	v := w.drawBatch()
	g := &w.twin
	g.pending = &twinBatch{v, recordsOf(w.t, v)}
	if err := w.log.Append(v, w.now); err != nil {
		w.t.Fatal(err)
	}
	g.batches = append(g.batches, *g.pending)
	g.end, g.pending = v.NextOffset(), nil
	replay(w.producers, v)
	w.now += 10
}

// clean does some steps of a run, and begins one if there is none.
func (w *cleanWorld) clean(steps int) {
	g := &w.twin
	if w.run == nil {
		c, err := w.log.Cleanable(w.now, g.high)
		if err != nil {
			w.t.Fatal(err)
		}
		if c.Dirty > 0 && c.To > min(g.high, g.flushed) {
			w.t.Fatalf("%+v: the high watermark is %d, %d is flushed", c, g.high, g.flushed)
		}
		o := store.CleanOptions{MapBytes: 1 << 20, LoadFactor: 0.9}
		if w.r.IntN(3) == 0 {
			o.MapBytes = int64(24 * (1 + w.r.IntN(40)))
		}
		run, err := w.log.BeginClean(w.now, g.high, o)
		if err != nil {
			w.t.Fatal(err)
		}
		if run == nil {
			return
		}
		w.run, g.touched = run, max(g.touched, c.To)
	}
	for ; steps > 0 && w.run != nil; steps-- {
		w.step()
	}
	w.check()
}

func (w *cleanWorld) step() {
	g := &w.twin
	if w.swap {
		w.swap = false
		if err := w.log.SwapCleaned(w.run, w.now); err != nil {
			if !errors.Is(err, store.ErrCleanAborted) {
				w.t.Fatal(err)
			}
			w.done["aborted"]++
			w.endRun()
			return
		}
		w.done["swapped"]++
		return
	}
	if end := w.run.MappedTo(); end > 0 {
		for i := range g.batches {
			for _, r := range g.batches[i].records {
				if at, ok := g.seen[r.offset]; r.value == nil && r.offset < end && (!ok || at > w.now) {
					g.seen[r.offset] = w.now
				}
			}
		}
	}
	next, err := w.run.Work(w.now)
	switch {
	case err != nil:
		if !errors.Is(err, store.ErrCleanAborted) {
			w.t.Fatal(err)
		}
		w.done["aborted"]++
		w.endRun()
	case next == store.CleanDone:
		w.endRun()
	case next == store.CleanSwap:
		w.swap = true
	}
}

func (w *cleanWorld) endRun() {
	s := w.log.EndClean(w.run)
	w.run, w.swap = nil, false
	w.done["ended"]++
	w.done["dropped"] += int(s.Dropped)
	if s.Full {
		w.done["full"]++
	}
	if w.cfg.Compact && s.To > s.From && w.log.FirstDirty() < s.To && w.log.FirstDirty() != w.log.Start() {
		w.t.Fatalf("a run to %d left the log dirty from %d on", s.To, w.log.FirstDirty())
	}
}

func (w *cleanWorld) moveStart() {
	g := &w.twin
	most := min(g.high, g.flushed)
	if most <= g.start {
		return
	}
	to := g.start + ident.Offset(w.r.Int64N(int64(most-g.start)/3+1))
	g.startTo = to
	if err := w.log.SetStart(to); err != nil {
		w.t.Fatal(err)
	}
	g.start = max(g.start, to)
}

func (w *cleanWorld) retain() {
	g := &w.twin
	c := w.cfg
	if w.r.IntN(3) == 0 {
		c.DeleteRetained, c.RetentionBytes = true, int64(4000+w.r.IntN(20_000)) // delete,compact
	}
	g.startTo = g.high
	w.log.Configure(c)
	trimmed, err := w.log.ApplyRetention(w.now, g.high)
	if err != nil {
		w.t.Fatal(err)
	}
	if trimmed.Start > max(g.high, g.start) || trimmed.Start < g.start {
		w.t.Fatalf("retention moved the start from %d to %d, the high watermark is %d", g.start, trimmed.Start, g.high)
	}
	g.start = trimmed.Start
	w.log.Configure(w.cfg)
}

func (w *cleanWorld) truncate() {
	g := &w.twin
	n := len(g.batches) - 1 - w.r.IntN(4)
	if n < 0 || g.batches[n].view.BaseOffset() < max(g.high, g.start) {
		return
	}
	to := g.batches[n].view.BaseOffset()
	g.cutTo, g.flushed = to, min(g.flushed, to)
	end, err := w.log.Truncate(to, w.now)
	if err != nil || end != to {
		w.t.Fatalf("truncate to %d gave %d, %v", to, end, err)
	}
	g.batches = slices.Clone(g.batches[:n])
	g.end, g.cutTo = to, -1
	w.producers = g.producersAt(to)
	w.epoch++
}

func (w *cleanWorld) configure() {
	w.cfg.Compact = w.r.IntN(6) > 0
	w.cfg.MinCompactionLagMs = int64(w.r.IntN(3) * w.r.IntN(60_000))
	w.cfg.MaxCompactionLagMs = []int64{math.MaxInt64, 20_000}[w.r.IntN(2)]
	if w.cfg.Append == store.AppendWritten { // a twin's mapping cannot grow
		w.cfg.SegmentBytes = int32(1<<10 + w.r.IntN(6<<10))
	}
	w.cfg.DeleteRetentionMs = int64(1000 + w.r.IntN(100_000))
	w.twin.retention = min(w.twin.retention, w.cfg.DeleteRetentionMs)
	w.log.Configure(w.cfg)
}

// restart ends the process in one of four ways and begins another.
func (w *cleanWorld) restart(how int) {
	w.disk.OnPoint = nil
	have := w.twin.end
	switch how {
	case 0:
		w.work(len(w.jobs))
		if err := errors.Join(w.log.Close(true), w.sync.Close(), w.dir.Close(true, 1)); err != nil {
			w.t.Fatal(err)
		}
		w.twin.durable = w.twin.start
	case 1:
		w.disk.Kill()
	default:
		have = w.twin.flushed
		w.disk.Crash(w.r.Uint64())
	}
	w.loseCaches()
	w.open()
	w.done["restarted"]++
	w.reopened(have)
}

// loseCaches removes what may be lost at any time.
func (w *cleanWorld) loseCaches() {
	fs := w.disk.FS()
	names, err := fs.ReadDir("/data/orders-3")
	if err != nil {
		return // it was not there yet
	}
	for _, e := range names {
		if len(e.Name) > 24 && (e.Name[20:] == ".snapshot" || e.Name[20:] == ".index" || e.Name[20:] == ".timeindex") && w.r.IntN(6) == 0 {
			if err := fs.Remove("/data/orders-3/" + e.Name); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	if w.r.IntN(8) == 0 {
		_ = fs.Remove("/data/cleaner-offset-checkpoint") // it may not be there
	}
}

// operate draws one operation.
func (w *cleanWorld) operate() string {
	g := &w.twin
	switch k := w.r.IntN(100); {
	case w.swap && k%4 == 0: // between the writing of a group and its swap
		if k < 50 {
			w.moveStart()
			w.retain()
			return "retain"
		}
		w.cfg.Compact = false
		w.log.Configure(w.cfg)
		return "compact no more"
	case k < 40:
		w.append()
		return "append"
	case k < 50:
		w.flush()
		return "flush"
	case k < 54:
		if err := w.log.Roll(w.now); err != nil {
			w.t.Fatal(err)
		}
		return "roll"
	case k < 62:
		g.high += ident.Offset(w.r.Int64N(int64(g.end-g.high) + 1))
		return "high"
	case k < 80:
		w.clean(1 + w.r.IntN(6))
		return "clean"
	case k < 84:
		w.now += ident.Millis(w.r.IntN(80_000))
		w.disk.SetNow(w.now)
		return "clock"
	case k < 86:
		w.moveStart()
		return "start"
	case k < 89:
		w.retain()
		return "retain"
	case k < 91:
		w.truncate()
		return "truncate"
	case k < 94:
		w.configure()
		return "configure"
	case k < 96:
		w.work(1 + w.r.IntN(4))
		return "work"
	case k < 98:
		if err := w.dir.Checkpoint(); err != nil {
			w.t.Fatal(err)
		}
		return "checkpoint"
	default:
		w.checkLookups(w.r.IntN(101))
		return "lookups"
	}
}

// playClean plays one history. The outcome is a message, or what it met.
func playClean(t *testing.T, seed uint64, length int) (met map[string]int, failure string) {
	t.Helper()
	rec := &recorder{TB: t}
	var w *cleanWorld
	defer func() {
		if p := recover(); p != nil {
			failure = rec.message
			if p != stop {
				panic(p)
			}
			failure += fmt.Sprintf("\nhistory: %v", w.trace)
		}
	}()
	defer store.ShrinkTables(24 + int(seed%4)*12)()
	w = newCleanWorld(rec, seed)
	for i := range length {
		rec.step = fmt.Sprintf("operation %d: ", i)
		if w.r.IntN(24) == 0 {
			w.crashAfter(1 + w.r.IntN(20))
		}
		name := "cut off"
		cut := w.interrupted(func() { name = w.operate() })
		w.trace = append(w.trace, name)
		if cut || w.r.IntN(80) == 0 {
			how := w.r.IntN(4)
			if cut && how == 0 {
				how = 1
			}
			w.done["cut"] += map[bool]int{true: 1}[cut]
			w.trace = append(w.trace, fmt.Sprintf("restart %d", how))
			rec.step = fmt.Sprintf("operation %d, %s, restart %d: ", i, name, how)
			w.restart(how)
		}
	}
	w.disk.OnPoint = nil
	rec.step = "the end: "
	w.work(len(w.jobs))
	w.cfg.Compact, w.cfg.MinCompactionLagMs = true, 0
	w.log.Configure(w.cfg)
	w.flush()
	w.twin.high = w.twin.end
	w.clean(1000)
	w.work(len(w.jobs))
	w.check()
	w.checkLookups(50)
	w.restart(0)
	w.checkFiles()
	return w.done, ""
}

// TestCompactionAgainstTwin plays random histories of a compacted log, crashes in the
// midst of operations included, beside a list of all that was appended. HISTORIES=10000
// plays so many, SEED picks one or a range.
func TestCompactionAgainstTwin(t *testing.T) {
	count := uint64(300)
	if text := os.Getenv("HISTORIES"); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		count = n
	}
	met := map[string]int{}
	for _, seed := range seeds(t, count) {
		got, failure := playClean(t, seed, 110)
		if failure != "" {
			t.Fatalf("SEED=%d: %s", seed, failure)
		}
		for k, n := range got {
			met[k] += n
		}
	}
	t.Log(met)
	if os.Getenv("SEED") != "" {
		return
	}
	for _, k := range []string{"swapped", "aborted", "ended", "dropped", "full", "restarted", "cut"} {
		if met[k] < 20 {
			t.Errorf("only %d times %q: the histories do not test it", met[k], k)
		}
	}
}
