package store_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// check compares the log with its ghost, whose end must be at least atLeast.
func (w *world) check(atLeast ident.Offset) {
	w.t.Helper()
	l, g := w.log, &w.ghost
	if l.End() != g.end || l.End() < atLeast {
		w.t.Fatalf("the log ends at %d, expected %d\n%s", l.End(), g.end, w.disk.Dump())
	}
	if l.Start() != g.start {
		w.t.Fatalf("the log starts at %d, expected %d", l.Start(), g.start)
	}
	got := readAll(w.t, l, l.Start(), l.End(), 1<<20)
	want := g.from(l.Start())
	if len(got) != len(want) {
		w.t.Fatalf("%d batches, expected %d\n%s", len(got), len(want), w.disk.Dump())
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			w.t.Fatalf("the batch at %d differs", want[i].BaseOffset())
		}
		if e := l.EpochOf(max(want[i].BaseOffset(), l.Start())); e != want[i].LeaderEpoch() {
			w.t.Fatalf("the epoch file says %d of offset %d, the batch %d: %v", e, want[i].BaseOffset(), want[i].LeaderEpoch(), l.Epochs(nil))
		}
		if len(w.seen) > 0 && !w.seen[want[i].BaseOffset()] {
			w.t.Fatalf("the owner was not shown the batch at %d", want[i].BaseOffset())
		}
	}
	w.seen = nil
}

// play runs a history and returns what it failed with.
func play(t *testing.T, seed uint64, cfg store.LogConfig, history []operation) (failure string) {
	t.Helper()
	r := &recorder{TB: t}
	defer func() {
		if p := recover(); p != nil {
			if p != stop {
				failure = fmt.Sprintf("panic: %v", p)
				return
			}
			failure = r.message
		}
	}()
	defer store.ShrinkTables(24 + int(seed%4)*12)()
	w := newWorld(r, seed, cfg)
	w.disk.Writeback = 20
	for i, o := range history {
		r.step = fmt.Sprintf("operation %d, %s: ", i, o)
		o.run(w)
	}
	w.check(w.ghost.end)
	return ""
}

// recorder turns Fatal into a panic that play can catch, so that a failing history
// can be run again.
type recorder struct {
	testing.TB
	step    string
	message string
}

var stop = new(int)

func (r *recorder) Helper() {}
func (r *recorder) Fatal(args ...any) {
	r.message = r.step + fmt.Sprint(args...)
	panic(stop)
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.message = r.step + fmt.Sprintf(format, args...)
	panic(stop)
}

// shrink leaves out operations while the history still fails.
func shrink(t *testing.T, seed uint64, cfg store.LogConfig, history []operation) []operation {
	t.Helper()
	for size := len(history) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(history); {
			shorter := append(append([]operation(nil), history[:at]...), history[at+size:]...)
			if play(t, seed, cfg, shorter) != "" {
				history = shorter
			} else {
				at += size
			}
		}
	}
	return history
}

// seeds returns n seeds. The environment variable SEED=7 picks one, SEED=100-200 a
// range.
func seeds(t testing.TB, n uint64) []uint64 {
	t.Helper()
	from, to := uint64(1), n
	if text := os.Getenv("SEED"); text != "" {
		a, b, isRange := strings.Cut(text, "-")
		if !isRange {
			b = a
		}
		var err1, err2 error
		from, err1 = strconv.ParseUint(a, 10, 64)
		to, err2 = strconv.ParseUint(b, 10, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("SEED=%q is neither a number nor a range", text)
		}
	}
	var list []uint64
	for seed := from; seed <= to; seed++ {
		list = append(list, seed)
	}
	return list
}

func TestRandomHistoriesAgreeWithASlice(t *testing.T) {
	count, length := uint64(60), 120
	if testing.Short() {
		count = 10
	}
	for _, seed := range seeds(t, count) {
		r := rand.New(rand.NewPCG(seed, 0))
		cfg := smallLog()
		cfg.SegmentBytes = int32(2<<10 + r.IntN(16<<10))
		if r.IntN(2) == 0 {
			cfg.Append = store.AppendWritten
		}
		cfg.AppendWriteMin = int32(r.IntN(2000))
		cfg.SegmentMs = int64(1000 + r.IntN(1_000_000))
		history := randomHistory(r, length)
		if failure := play(t, seed, cfg, history); failure != "" {
			history = shrink(t, seed, cfg, history)
			t.Fatalf("SEED=%d: %s\nshortened to %v,\nwhich fails with %s", seed, failure, history, play(t, seed, cfg, history))
		}
	}
}
