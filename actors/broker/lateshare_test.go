package broker

import (
	"context"
	"crypto/rand"
	"io"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// lender is a partition whose log comes back from loans. What it is told to do, it does in one turn.
type lender struct {
	p      *partitionActor // not embedded: it would be started
	do     chan func(*runtime.Turn)
	heard  []ident.Offset // the ends of the results
	wanted int            // of them
	all    chan struct{}  // there are
}

// Turn implements runtime.Behaviour.
func (l *lender) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case *filling:
			(<-l.do)(t)
		case *beginShare:
			l.p.beginSync(t, m)
		case *synced:
			l.heard = append(l.heard, m.result.End)
			l.p.syncedLog(t, m)
			if len(l.heard) == l.wanted {
				close(l.all)
			}
		}
	}
}

// TestSharesThatComeLateDoNotTakeEachOthersPlace: a log comes back from two loans while its flusher is in a sync, so that two late shares wait for it, and after
// that two results for the partition. The second share took the place of the first: what that one was to sync never was, and counted as durable.
func TestSharesThatComeLateDoNotTakeEachOthersPlace(t *testing.T) {
	disk := storetest.NewDisk(1)
	var gated atomic.Bool
	syncing, gate := make(chan struct{}), make(chan struct{})
	slow := storetest.Slow(disk.FS(), func(op, name string) {
		if op == "sync" && filepath.Ext(name) == ".log" && gated.CompareAndSwap(true, false) {
			close(syncing)
			<-gate
		}
	})
	open := func(fs store.FS) (*store.Directory, *store.Log, store.Recovery) {
		d, _, err := store.OpenDirectory(store.DirectoryOptions{FS: fs, Path: "/data", Broker: 1, Rand: rand.Reader, Generations: &store.Generations{}, Parallel: 1})
		if err != nil {
			t.Fatal(err)
		}
		c := store.DefaultLogConfig()
		c.SegmentBytes = 4 << 10
		l, r, err := d.OpenLog(ident.TopicPartition{Topic: "orders"}, ident.TopicID{1}, c, store.LogHooks{}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		return d, l, r
	}
	d, file, _ := open(slow)
	syncer, err := d.NewSyncer()
	if err != nil {
		t.Fatal(err)
	}
	sys := runtime.NewSystem(runtime.Options{Log: zerolog.New(io.Discard), OnBug: func(b *runtime.Blame) { t.Errorf("a bug: %v\n%s", b, b.Stack) }})
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := sys.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	}()
	spawn := func(member, name string, b runtime.Behaviour) *runtime.Ref {
		t.Helper()
		ref, err := sys.Spawn(nil, blocking(cast(member, name, b)))
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	s := newShared(sys, zerolog.Nop())
	dir := &dataDir{store: d}
	flushing := spawn("flusher", "flusher", &flusher{dir: dir, shared: s, syncer: syncer})
	r := &replica{tp: file.Partition(), id: file.Topic(), dir: dir, lane: flushing}
	l := &lender{p: &partitionActor{shared: s, replica: r, file: file}, do: make(chan func(*runtime.Turn)), wanted: 3, all: make(chan struct{})}
	r.ref = spawn("partition", "orders-0", l)
	next := &sharer{asked: make(chan struct{})}
	other := &replica{ref: spawn("partition", "other-0", next)}
	other.flush.dirty.replica = other

	turn := func(run func(*runtime.Turn)) {
		if err := r.ref.Post(&filling{}); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		l.do <- func(t *runtime.Turn) { run(t); close(done) }
		<-done
	}
	appendOne := func(size int) {
		if err := file.Append(batchOf(t, file.End(), size), 1000); err != nil {
			t.Error(err)
		}
	}
	appendOne(10)
	work, _ := file.BeginSync()
	if _, _, err := file.Synced(syncer.Sync(nil, []store.SyncWork{work})[0]); err != nil {
		t.Fatal(err)
	}
	gated.Store(true) // what follows is a sync of the segment alone, not of its directory
	turn(func(tt *runtime.Turn) {
		appendOne(3000)
		l.p.askFlush(tt)
	})
	<-syncing
	turn(func(tt *runtime.Turn) {
		for _, size := range []int{3000, 10} { // the first begins another segment
			appendOne(size)
			l.p.passed = true // by a round that came while the log was on loan
			l.p.shareLate(tt)
		}
		if err := flushing.Post(&other.flush.dirty); err != nil {
			t.Error(err)
		}
		close(gate)
		<-next.asked // by the round after the one of the late shares, whose results are all sent
	})
	<-l.all
	if want := []ident.Offset{2, 3, 4}; !slices.Equal(l.heard, want) || file.Flushed() != 4 {
		t.Errorf("results up to %v, expected %v; flushed up to %d", l.heard, want, file.Flushed())
	}
	for seed := range uint64(8) {
		cut := disk.Clone()
		cut.Crash(seed)
		if _, _, r := open(cut.FS()); r.End != 4 {
			t.Errorf("cut %d: what counted as durable up to 4 is there up to %d", seed, r.End)
		}
	}
}

// batchOf is a batch of one record whose value is so long.
func batchOf(t *testing.T, base ident.Offset, size int) record.View {
	t.Helper()
	b := record.NewBuilder()
	b.BaseOffset, b.LeaderEpoch = base, 1
	b.Append(1000, nil, make([]byte, size))
	out, err := b.Finish(nil)
	if err != nil {
		t.Error(err)
	}
	v := record.View(out)
	v.SetBaseOffset(base)
	v.SetLeaderEpoch(1)
	return v
}
