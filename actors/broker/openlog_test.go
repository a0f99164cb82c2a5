package broker

import (
	"crypto/rand"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
)

// turnOnce runs a function in its first turn.
type turnOnce struct {
	run  func(t *runtime.Turn)
	done chan struct{}
}

// Turn implements runtime.Behaviour.
func (o *turnOnce) Turn(t *runtime.Turn, _ []runtime.Message) {
	defer close(o.done)
	o.run(t)
	t.Stop()
}

var turns atomic.Int64 // names of those actors

// inTurn runs a function in a turn, of an actor that does nothing else.
func inTurn(t *testing.T, sys *runtime.System, run func(*runtime.Turn)) {
	t.Helper()
	o := &turnOnce{run: run, done: make(chan struct{})}
	ref, err := sys.Spawn(nil, cast("partition", "once-"+strconv.FormatInt(turns.Add(1), 10), o))
	if err != nil {
		t.Fatal(err)
	}
	if err := ref.Post(signalOpen); err != nil {
		t.Fatal(err)
	}
	<-o.done
}

// The turn in which a partition begins to serve asked the directory for a mark, and waited for a checkpoint that was being written: the directory is locked
// while it is. Here there is no directory to ask.
func TestAPartitionBeginsToServeWithoutAskingItsDirectory(t *testing.T) {
	d, _, err := store.OpenDirectory(store.DirectoryOptions{
		FS: storetest.NewDisk(1).FS(), Path: "/data", Broker: 1, Rand: rand.Reader, Generations: &store.Generations{}, Parallel: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	tp, id := ident.TopicPartition{Topic: "orders"}, ident.TopicID{1}
	file, recovery, err := d.OpenLog(tp, id, store.DefaultLogConfig(), store.LogHooks{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	sys := runtime.NewSystem(runtime.Options{Clock: runtime.NewSimClock(1000), OnBug: func(b *runtime.Blame) { t.Errorf("a bug: %v\n%s", b, b.Stack) }})
	s := newShared(sys, zerolog.Nop())
	s.settings.Store(&config.BrokerValues{})
	p := &partitionActor{shared: s, replica: &replica{tp: tp, id: id, dir: &dataDir{}}, settings: topicSettings{log: store.DefaultLogConfig()}, log: zerolog.Nop()}
	inTurn(t, sys, func(turn *runtime.Turn) {
		p.serve(turn, &opened{file: file, recovery: recovery, producers: partition.NewProducers(8)})
	})
	if p.machine == nil {
		t.Error("it does not serve")
	}
}
