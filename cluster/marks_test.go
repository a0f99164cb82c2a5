package cluster

import (
	"slices"
	"testing"
	"testing/cryptotest"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestAMarkThatArrivesAfterANewerOneIsNotHeeded: a command that was given up may still be on its way when the next one is heard. The replica would have been out of
// service for the controller from then on, and its broker believes that it was told otherwise.
func TestAMarkThatArrivesAfterANewerOneIsNotHeeded(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 3)
	w := newWorld(t, 1, Options{}, nil)
	w.node(1).start()
	epoch := w.join(1, 1, "")
	w.create(t, "t")
	tell := func(number uint64, mark Mark) Reply {
		cmd := &MarkReplicas{Broker: 1, Epoch: epoch, Number: number, Replicas: []ReplicaMark{{ReplicaRef{ident.TopicID{0: w.nextTopic}, 0}, mark, false}}}
		return w.ask(w.await(), &cmd.Ask, cmd)
	}
	offline := func(want bool) {
		t.Helper()
		topic, _ := w.await().c.Image().Topic("t")
		if p := topic.Partitions[0]; slices.Contains(p.Offline, 1) != want {
			t.Errorf("offline %t is not what was said last: %s", !want, describePartition(p))
		}
	}
	granted(t, tell(1, MarkOffline))
	offline(true)
	granted(t, tell(3, MarkSound))
	offline(false)
	if r := tell(2, MarkOffline); r.Err == nil || r.Err.Code != wire.InvalidUpdateVersion {
		t.Errorf("an older word: %v", r.Err)
	}
	offline(false)
	granted(t, tell(3, MarkSound)) // the same once more does no harm
	granted(t, tell(0, MarkOffline))
	offline(true)
	epoch = w.join(1, 2, "") // another run counts from the beginning
	granted(t, tell(1, MarkDamaged))
}
