package cluster

import (
	"fmt"
	"math/rand"
	"testing"
	"testing/cryptotest"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// storm runs a quorum through random faults and commands, heals it, and returns a hash over everything that happened.
func storm(t *testing.T, voters int, seed int64) uint64 {
	t.Helper()
	rng := rand.New(rand.NewSource(seed))
	w := newWorld(t, voters, Options{SnapshotBytes: 2000, KeepBytes: 500}, rng)
	w.lossPct = rng.Intn(10)
	for _, n := range w.nodes {
		n.start()
	}
	acked := map[string]bool{} // topics somebody was told exist, and nobody asked to delete
	pending := map[ident.RequestID]string{}
	id := byte(0)
	for range 300 {
		w.fault(rng)
		if n := w.nodes[rng.Intn(voters)]; n.c != nil {
			w.randomCommand(rng, n, &id, acked, pending)
		}
		for range rng.Intn(20) {
			if !w.turn() {
				break
			}
		}
		if rng.Intn(2) == 0 {
			w.now.Mono += 100 * millisecond
			w.now.Wall += 100
			for _, n := range w.nodes {
				if n.c != nil {
					n.tick()
				}
			}
		}
		w.collect(acked, pending)
	}
	w.heal()
	leader := w.await()
	w.ticks(5)
	w.collect(acked, pending)
	w.join(4, 1, "") // it serves: a broker that no storm touched can still be registered
	for name := range acked {
		if _, ok := w.await().c.Image().Topic(name); !ok {
			t.Fatalf("seed %d: topic %s was acknowledged and is gone", seed, name)
		}
	}
	w.ticks(3)
	for _, n := range w.nodes {
		if !n.c.Image().Equal(leader.c.Image()) {
			t.Fatalf("seed %d: node %d is at index %d, the controller at %d", seed, n.number, n.c.Image().Index(), leader.c.Image().Index())
		}
	}
	if len(acked) > 0 {
		reached["topics acknowledged"]++
	}
	if len(w.leaders) > 1 {
		reached["several controllers"]++
	}
	return w.events
}

// reached counts what the storms came by; a storm that meets nothing tests nothing.
var reached = map[string]int{}

// fault breaks or mends something, now and then.
func (w *world) fault(rng *rand.Rand) {
	n := w.nodes[rng.Intn(len(w.nodes))]
	switch rng.Intn(40) {
	case 0, 1:
		if n.c != nil {
			n.stop(rng.Intn(2) == 0)
			reached["stops"]++
		}
	case 2, 3, 4, 5:
		if n.c == nil {
			n.start()
			reached["restarts"]++
		}
	case 6:
		for _, o := range w.nodes {
			w.cut[[2]int{n.number, o.number}] = true
			w.cut[[2]int{o.number, n.number}] = rng.Intn(3) > 0
		}
		reached["cuts"]++
	case 7, 8:
		clear(w.cut)
	}
}

// heal ends all faults.
func (w *world) heal() {
	clear(w.cut)
	w.lossPct = 0
	for _, n := range w.nodes {
		if n.c == nil {
			n.start()
		}
	}
}

func (w *world) randomCommand(rng *rand.Rand, n *member, id *byte, acked map[string]bool, pending map[ident.RequestID]string) {
	name := fmt.Sprintf("t%d", rng.Intn(20))
	switch rng.Intn(9) {
	case 8:
		w.rumour(rng)
	case 0, 1, 2:
		*id++
		cmd := &CreateTopics{Topics: []NewTopic{{Name: name, ID: ident.TopicID{0: *id, 1: byte(rng.Intn(256))}, Partitions: int32(1 + rng.Intn(4)), ReplicationFactor: 1}}}
		pending[w.request(n, &cmd.Ask, cmd)] = name
	case 3:
		cmd := &DeleteTopics{Topics: []TopicRef{{Name: name}}}
		delete(acked, name)
		for r, p := range pending {
			if p == name {
				delete(pending, r) // whether it is there in the end is open now
			}
		}
		w.request(n, &cmd.Ask, cmd)
	case 4:
		cmd := registration(1+rng.Intn(3), byte(rng.Intn(50)), "")
		w.request(n, &cmd.Ask, cmd)
	case 5, 6:
		b := ident.BrokerID(1 + rng.Intn(3))
		if broker, ok := n.c.Image().Broker(b); ok {
			cmd := &Heartbeat{Broker: b, Epoch: broker.Epoch, Applied: n.c.Image().Index(), Arrived: w.now.Mono, WantFence: rng.Intn(10) == 0}
			w.request(n, &cmd.Ask, cmd)
		}
	case 7:
		text := fmt.Sprint(1 + rng.Intn(100))
		cmd := &IncrementalAlterConfigs{Resources: []ConfigChange{{Resource: topicResource(name), Ops: []ConfigOp{{Name: "flush.ms", Op: OpSet, Value: &text}}}}}
		w.request(n, &cmd.Ask, cmd)
	}
}

// rumour tells some voters that a controller is dead, which may be so or not, or lets one resign.
func (w *world) rumour(rng *rand.Rand) {
	if rng.Intn(3) == 0 {
		if n := w.nodes[rng.Intn(len(w.nodes))]; n.c != nil {
			n.step(&Resign{})
		}
		return
	}
	reached["rumours"]++
	dead := ident.BrokerID(1 + rng.Intn(len(w.nodes)))
	for _, n := range w.nodes {
		if n.c == nil || rng.Intn(4) == 0 {
			continue
		}
		epoch := ident.BrokerEpoch(0)
		if b, ok := n.c.Image().Broker(dead); ok {
			epoch = b.Epoch
		}
		n.step(&LinkDown{Broker: dead, Epoch: epoch, Refused: true})
	}
}

// collect notes which topics have been acknowledged.
func (w *world) collect(acked map[string]bool, pending map[ident.RequestID]string) {
	for id, name := range pending {
		r, ok := w.replies[id]
		if !ok {
			continue
		}
		delete(pending, id)
		if r.Err != nil {
			continue
		}
		if created := r.Body.(*CreateTopicsReply).Topics[0]; created.Err == nil {
			acked[name] = true
		}
	}
}

// TestQuorumsSurviveStorms lets quorums of 1, 3 and 5 live through crashes, cuts and lost letters. Every seed runs twice and must be the same both
// times; what carryOut and commit check holds after every step.
func TestQuorumsSurviveStorms(t *testing.T) {
	clear(reached)
	for _, voters := range []int{1, 3, 5} {
		for seed := range int64(16) {
			t.Run(fmt.Sprintf("voters=%d/seed=%d", voters, seed), func(t *testing.T) {
				var hashes [2]uint64
				for i := range hashes {
					t.Run(fmt.Sprint(i), func(t *testing.T) {
						cryptotest.SetGlobalRandom(t, uint64(seed)+1)
						hashes[i] = storm(t, voters, seed)
					})
				}
				if hashes[0] != hashes[1] {
					t.Errorf("two runs of one seed differ: %x and %x", hashes[0], hashes[1])
				}
			})
		}
	}
	for _, what := range []string{"topics acknowledged", "several controllers", "stops", "restarts", "cuts", "rumours"} {
		if reached[what] == 0 {
			t.Errorf("no storm came by: %s", what)
		}
	}
}

func TestAFollowerTooFarBehindTakesASnapshot(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 5)
	w := newWorld(t, 3, Options{SnapshotBytes: 1000, KeepBytes: 200}, nil)
	for _, n := range w.nodes {
		n.start()
	}
	w.join(1, 1, "")
	leader := w.await()
	behind := w.node(1 + leader.number%3)
	behind.stop(true)
	for i := range 20 {
		cmd := &CreateTopics{Topics: []NewTopic{{Name: fmt.Sprintf("t%d", i), ID: ident.TopicID{0: byte(i + 1)}, Partitions: 3, ReplicationFactor: 1}}}
		if r := w.ask(leader, &cmd.Ask, cmd); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	var notes []string
	w.trace = func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	behind.start()
	w.ticks(5)
	if !behind.c.Image().Equal(leader.c.Image()) {
		t.Fatalf("the follower is at %d, the controller at %d", behind.c.Image().Index(), leader.c.Image().Index())
	}
	restored := false
	for _, n := range notes {
		restored = restored || n == fmt.Sprintf("%d: restored index=%d\n", behind.number, leader.c.Image().Index())
	}
	if !restored {
		t.Fatalf("it caught up without a snapshot: %v", notes)
	}
	// What it was sent is on its disk: it can start from it.
	behind.stop(true)
	behind.start()
	w.ticks(3)
	if !behind.c.Image().Equal(leader.c.Image()) {
		t.Fatal("it is elsewhere after a restart")
	}
}

func TestVotersDoNotListenToStrangers(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 5)
	w := newWorld(t, 3, Options{}, nil)
	for _, n := range w.nodes {
		n.start()
	}
	leader := w.await()
	before := leader.c.Image().Index()
	var notes int
	w.trace = func(string, ...any) { notes++ }
	for _, forged := range forgeries(leader) {
		leader.step(&Receive{Data: forged})
	}
	w.settle()
	if leader.c.Image().Index() != before || !leader.c.Leading() || notes != len(forgeries(leader)) {
		t.Fatalf("index %d after %d, leading %t, %d notes", leader.c.Image().Index(), before, leader.c.Leading(), notes)
	}
}

func TestOnlyTheControllerAnswers(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 5)
	w := newWorld(t, 3, Options{}, nil)
	for _, n := range w.nodes {
		n.start()
	}
	leader := w.await()
	w.ticks(2)
	for _, n := range w.nodes {
		if n == leader {
			continue
		}
		cmd := &DescribeQuorum{}
		r := w.ask(n, &cmd.Ask, cmd)
		if r.Err == nil || r.Err.Code != wire.NotController || r.Err.Message != fmt.Sprintf("broker %d is the controller", leader.number) {
			t.Fatalf("node %d answers %s", n.number, describeReply(r))
		}
	}
	cmd := &DescribeQuorum{}
	r := w.ask(leader, &cmd.Ask, cmd).Body.(*DescribeQuorumReply)
	if len(r.Voters) != 3 || r.Leader != ident.BrokerID(leader.number) {
		t.Fatalf("%+v", r)
	}
	for _, v := range r.Voters {
		if v.LogEnd != leader.c.last || v.LastFetch < 0 || v.LastCaughtUp < 0 {
			t.Errorf("%+v", v)
		}
	}
}

func TestAFollowerALittleBehindTakesEntriesThatWereKept(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 5)
	w := newWorld(t, 3, Options{SnapshotBytes: 300, KeepBytes: 1 << 20}, nil)
	for _, n := range w.nodes {
		n.start()
	}
	w.join(1, 1, "")
	leader := w.await()
	behind := w.node(1 + leader.number%3)
	behind.stop(true)
	for i := range 10 {
		cmd := &CreateTopics{Topics: []NewTopic{{Name: fmt.Sprintf("t%d", i), ID: ident.TopicID{0: byte(i + 1)}, Partitions: 3, ReplicationFactor: 1}}}
		w.ask(leader, &cmd.Ask, cmd)
	}
	if leader.c.snapshot <= 10 {
		t.Fatalf("the newest snapshot is at %d", leader.c.snapshot)
	}
	w.trace = func(format string, args ...any) {
		if s := fmt.Sprintf(format, args...); s == fmt.Sprintf("%d: restored index=%d\n", behind.number, leader.c.Image().Index()) {
			t.Error("a follower that lacks a few kept entries was sent everything")
		}
	}
	behind.start()
	w.ticks(5)
	if !behind.c.Image().Equal(leader.c.Image()) {
		t.Fatalf("the follower is at %d, the controller at %d", behind.c.Image().Index(), leader.c.Image().Index())
	}
	// The controller itself starts from snapshot and kept entries.
	leader.stop(true)
	leader.start()
	w.await()
	w.ticks(3)
	if !leader.c.Image().Equal(behind.c.Image()) {
		t.Fatal("they differ after the controller's restart")
	}
}
