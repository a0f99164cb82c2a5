package cluster

import (
	"fmt"
	"testing"
	"testing/cryptotest"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// settled is a world whose voters are brokers as well, which a topic is spread over.
func settled(t *testing.T, voters int, seed uint64) (*world, *member) {
	t.Helper()
	w, _ := settledIn(t, voters, seed)
	cmd := &CreateTopics{Topics: []NewTopic{{Name: "t", ID: ident.TopicID{1}, Partitions: int32(voters), ReplicationFactor: 3}}}
	if r := w.ask(w.await(), &cmd.Ask, cmd); r.Err != nil {
		t.Fatal(r.Err)
	}
	w.ticks(3)
	return w, w.await()
}

// settledIn is the same without the topic.
func settledIn(t *testing.T, voters int, seed uint64) (*world, *member) {
	t.Helper()
	cryptotest.SetGlobalRandom(t, seed)
	w := newWorld(t, voters, Options{}, nil)
	for _, n := range w.nodes {
		n.start()
	}
	for b := 1; b <= voters; b++ {
		w.join(b, 1, "")
	}
	w.ticks(3)
	return w, w.await()
}

// bury tells everybody that is up that a broker's connections are closed and nobody listens.
func (w *world) bury(number int) {
	for _, n := range w.nodes {
		if n.c == nil {
			continue
		}
		b, _ := n.c.Image().Broker(ident.BrokerID(number))
		n.step(&LinkDown{Broker: b.ID, Epoch: b.Epoch, Refused: true})
	}
}

// TestADeadControllerIsFollowedAtOnce kills the controller's process: the others elect another without waiting for an election timeout, it fences the dead
// broker in its first batch, and nobody loads anything.
func TestADeadControllerIsFollowedAtOnce(t *testing.T) {
	for _, voters := range []int{3, 5} {
		for seed := range uint64(10) {
			t.Run(fmt.Sprintf("voters=%d/seed=%d", voters, seed), func(t *testing.T) {
				w, old := settled(t, voters, seed+1)
				images := map[int]*Image{}
				for _, n := range w.nodes {
					images[n.number] = n.c.Image()
				}
				old.stop(false)
				w.bury(old.number)
				w.settle()
				ticks := 0
				for ; w.controller() == nil; ticks++ {
					if ticks == 5 {
						t.Fatal("nobody is elected in 0.5 s; an election timeout is 1 s at least")
					}
					w.ticks(1)
				}
				w.settle()
				now := w.controller()
				if b, _ := now.c.Image().Broker(ident.BrokerID(old.number)); !b.Fenced {
					t.Fatal("the broker of the dead controller is not fenced with the first batch")
				}
				for i, p := range mustTopic(t, now.c.Image()).Partitions {
					if p.Leader == ident.NoBroker || p.Leader == ident.BrokerID(old.number) {
						t.Fatalf("partition %d is led by %d", i, p.Leader)
					}
				}
				for _, n := range w.nodes {
					if n.c != nil && n.c.Image().Index() < images[n.number].Index() {
						t.Fatalf("node %d began anew", n.number)
					}
				}
			})
		}
	}
}

func mustTopic(t *testing.T, m *Image) *Topic {
	t.Helper()
	topic, ok := m.Topic("t")
	if !ok {
		t.Fatal("the topic is gone")
	}
	return topic
}

// TestAControllerThatStopsHandsOver: its successor acts before a single tick has passed, and what was asked meanwhile is refused in words.
func TestAControllerThatStopsHandsOver(t *testing.T) {
	for _, voters := range []int{1, 3, 5} {
		w, old := settledIn(t, voters, 6)
		w.node(1 + old.number%voters).step(&Resign{}) // of any other voter: nothing
		w.settle()
		if !old.c.Leading() {
			t.Fatal("deposed by the resignation of another")
		}
		old.step(&Resign{})
		cmd := &CreateTopics{Topics: []NewTopic{{Name: "late", ID: ident.TopicID{9}, Partitions: 1, ReplicationFactor: 1}}}
		id := w.request(old, &cmd.Ask, cmd)
		w.settle()
		if r := w.replies[id]; voters > 1 && (r.Err == nil || r.Err.Code != wire.NotController) || voters == 1 && r.Err != nil {
			t.Fatalf("%d voters: %s", voters, describeReply(r))
		}
		if now := w.controller(); now == nil || (now == old) != (voters == 1) {
			t.Fatalf("%d voters: %v acts", voters, now)
		}
	}
}

// TestNobodyHandsOverToTheDead: a voter that has all of the log may be dead, and one that answers may be about to stop, too.
func TestNobodyHandsOverToTheDead(t *testing.T) {
	for place := 1; place <= 2; place++ {
		w, old := settledIn(t, 3, 6)
		dead, other := w.node(1+(old.number+place-1)%3), w.node(1+(old.number+2-place)%3)
		dead.stop(false)
		w.ticks(2 * old.c.options.ElectionTicks)
		old.step(&Resign{})
		w.settle()
		if now := w.controller(); now != other {
			t.Fatalf("voter %d is dead, and %v follows %d", dead.number, now, old.number)
		}

		w, old = settledIn(t, 3, 6)
		leaves, stays := w.node(dead.number), w.node(other.number)
		cmd := &Heartbeat{Broker: ident.BrokerID(leaves.number), WantShutdown: true}
		b, _ := old.c.Image().Broker(cmd.Broker)
		cmd.Epoch = b.Epoch
		if r := w.ask(old, &cmd.Ask, cmd); r.Err != nil {
			t.Fatal(r.Err)
		}
		old.step(&Resign{})
		w.settle()
		if now := w.controller(); now != stays {
			t.Fatalf("voter %d stops, and %v follows %d", leaves.number, now, old.number)
		}
	}
}

// TestAControllerThatOnlySomeCannotReachStays: a refused connect on one voter's side deposes nobody who is alive.
func TestAControllerThatOnlySomeCannotReachStays(t *testing.T) {
	w, leader := settled(t, 3, 3)
	other := w.node(1 + leader.number%3)
	b, _ := other.c.Image().Broker(ident.BrokerID(leader.number))
	for range 5 {
		other.step(&LinkDown{Broker: b.ID, Epoch: b.Epoch, Refused: true})
		w.settle()
		w.ticks(2)
	}
	if !leader.c.Leading() || len(w.leaders) != 1 {
		t.Fatalf("leading %t, %d terms with a controller", leader.c.Leading(), len(w.leaders))
	}
	other.step(&LinkDown{Broker: b.ID, Epoch: b.Epoch}) // closed, and a connect not refused: nothing is known
	if other.c.Leader() != b.ID {
		t.Fatal("it forgot a controller for closed connections alone")
	}
}

// TestAControllerOutOfTouchAnswersNoHeartbeat: whoever is cut off from the majority extends nobody's lease, before it knows that it is deposed.
func TestAControllerOutOfTouchAnswersNoHeartbeat(t *testing.T) {
	w, leader := settled(t, 3, 4)
	b, _ := leader.c.Image().Broker(1)
	beat := func() Reply {
		hb := &Heartbeat{Broker: 1, Epoch: b.Epoch, Applied: leader.c.Image().Index(), Arrived: w.now.Mono}
		return w.ask(leader, &hb.Ask, hb)
	}
	if r := beat(); r.Err != nil {
		t.Fatal(r.Err)
	}
	for _, o := range w.nodes {
		w.cut[[2]int{leader.number, o.number}], w.cut[[2]int{o.number, leader.number}] = true, true
	}
	silent := 0
	for range 30 {
		w.ticks(1)
		if !leader.c.Leading() {
			break
		}
		if r := beat(); r.Err != nil {
			if silent++; r.Err.Code != wire.NotController {
				t.Fatal(r.Err)
			}
		} else if silent > 0 {
			t.Fatal("it answers again without having heard of anybody")
		}
	}
	if silent == 0 || leader.c.Leading() {
		t.Fatalf("%d heartbeats refused, leading %t", silent, leader.c.Leading())
	}
	if r := beat(); r.Err == nil || r.Err.Code != wire.NotController {
		t.Fatalf("a deposed controller answers %s", describeReply(r))
	}
}

// TestAControllerAnswersItselfWhileItIsHeard: its own broker is told sooner than the others that the majority is silent, since whoever succeeds counts that
// broker's silence from the last letter.
func TestAControllerAnswersItselfWhileItIsHeard(t *testing.T) {
	w, leader := settled(t, 3, 4)
	other := 1
	if leader.number == other {
		other = 2
	}
	beat := func(broker int) *Error {
		b, _ := leader.c.Image().Broker(ident.BrokerID(broker))
		hb := &Heartbeat{Broker: b.ID, Epoch: b.Epoch, Applied: leader.c.Image().Index(), Arrived: w.now.Mono}
		return w.ask(leader, &hb.Ask, hb).Err
	}
	for range 20 {
		w.ticks(1)
		if err := beat(leader.number); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range w.nodes {
		w.cut[[2]int{leader.number, o.number}], w.cut[[2]int{o.number, leader.number}] = true, true
	}
	w.ticks(4)
	if err := beat(leader.number); err == nil || err.Code != wire.NotController {
		t.Errorf("its own heartbeat is answered %v", err)
	}
	if err := beat(other); err != nil {
		t.Errorf("that of another broker is answered %v", err)
	}
}

// TestANewControllerBeginsEverySessionAnew: nobody is fenced for heartbeats that went to its predecessor, except whoever is known to be dead.
func TestANewControllerBeginsEverySessionAnew(t *testing.T) {
	w, old := settled(t, 3, 5)
	w.ticks(40) // heartbeats of nobody: 4 s of 6 have passed
	old.stop(false)
	w.await()
	w.ticks(50)
	m := w.await().c.Image()
	for b := range m.Brokers() {
		if b.Fenced {
			t.Fatalf("broker %d is fenced for what its new controller cannot know", b.ID)
		}
	}
	w.ticks(15)
	for b := range w.await().c.Image().Brokers() {
		if !b.Fenced {
			t.Fatalf("broker %d is silent and not fenced", b.ID)
		}
	}
}
