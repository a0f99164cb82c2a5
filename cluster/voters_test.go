package cluster

import (
	"testing"
	"testing/cryptotest"

	"github.com/troupe-broker/troupe/wire"
)

// grown is one voter and a number of brokers that follow it as observers.
func grown(t *testing.T, voters, observers int, o Options) *world {
	t.Helper()
	cryptotest.SetGlobalRandom(t, 11)
	w := newWorld(t, voters, o, nil)
	for range observers {
		w.hire(voterOf(len(w.nodes) + 1).Broker)
	}
	for _, n := range w.nodes {
		n.start()
	}
	for _, n := range w.nodes {
		n.enrol(1)
	}
	w.live(10)
	w.upgrade()
	return w
}

// TestOneVoterBecomesThreeAndOneAgain grows a quorum and lets it shrink while everybody lives; the one that is left is not the one that began.
func TestOneVoterBecomesThreeAndOneAgain(t *testing.T) {
	w := grown(t, 1, 2, Options{})
	a, b, c := w.node(1), w.node(2), w.node(3)
	granted(t, w.addVoter(b))
	w.votersAre(t, a, b)
	granted(t, w.addVoter(c))
	w.votersAre(t, a, b, c)
	w.create(t, "three")

	// The controller itself: it hands over, and its successor takes the vote.
	leader := w.await()
	if r := w.removeVoter(leader); r.Err == nil || r.Err.Code != wire.NotController {
		t.Fatalf("a controller removed itself: %v", r.Err)
	}
	w.live(3)
	if w.await() == leader {
		t.Fatal("it did not hand over")
	}
	granted(t, w.removeVoter(leader))
	rest := []*member{}
	for _, n := range w.nodes {
		if n != leader {
			rest = append(rest, n)
		}
	}
	w.votersAre(t, rest...)
	last := w.await()
	other := rest[0]
	if other == last {
		other = rest[1]
	}
	w.live(3)
	granted(t, w.removeVoter(other))
	w.votersAre(t, last)
	w.create(t, "one")
	for _, n := range w.nodes {
		n.stop(true)
	}
	last.start()
	if w.await() != last {
		t.Fatal("the voter that is left does not lead alone")
	}
}

// TestChangesOfTheVotersAreRefused has every refusal, in Kafka's words.
func TestChangesOfTheVotersAreRefused(t *testing.T) {
	w := grown(t, 3, 2, Options{})
	older := newWorld(t, 1, Options{}, nil)
	older.node(1).start()
	refused := func(why string, r Reply, code wire.ErrorCode) {
		t.Helper()
		if r.Err == nil || r.Err.Code != code {
			t.Errorf("%s: %v, want %v", why, r.Err, code)
		}
	}
	add := func(change func(*AddVoter)) Reply {
		cmd := &AddVoter{Cluster: "c1", Broker: 4, Directory: w.node(4).directory()}
		change(cmd)
		return w.ask(w.await(), &cmd.Ask, cmd)
	}
	refused("another cluster", add(func(c *AddVoter) { c.Cluster = "c2" }), wire.InconsistentClusterID)
	refused("a voter", add(func(c *AddVoter) { c.Broker, c.Directory = 2, w.node(2).directory() }), wire.DuplicateVoter)
	refused("a voter's broker with another directory", add(func(c *AddVoter) { c.Broker, c.Directory = 2, w.node(4).directory() }), wire.DuplicateVoter)
	refused("nobody", add(func(c *AddVoter) { c.Broker = 9 }), wire.RequestTimedOut)
	refused("another directory", add(func(c *AddVoter) { c.Directory = w.node(5).directory() }), wire.InvalidVoterKey)
	cmd := &RemoveVoter{Broker: 2, Directory: w.node(4).directory()}
	refused("no voter's directory", w.ask(w.await(), &cmd.Ask, cmd), wire.VoterNotFound)
	refused("an observer", w.removeVoter(w.node(4)), wire.VoterNotFound)
	w.node(5).stop(false)
	w.ticks(25)
	gone := &AddVoter{Broker: 5, Directory: w.node(5).directory()}
	refused("a silent observer", w.ask(w.await(), &gone.Ask, gone), wire.RequestTimedOut)
	w.live(5)

	// One change at a time.
	leader := w.await()
	first := &AddVoter{Broker: 4, Directory: w.node(4).directory()}
	id := w.request(leader, &first.Ask, first)
	second := &RemoveVoter{Broker: 2, Directory: w.node(2).directory()}
	other := w.request(leader, &second.Ask, second)
	w.settle()
	granted(t, w.replies[id])
	refused("a second change", w.replies[other], wire.RequestTimedOut)
	w.votersAre(t, w.node(1), w.node(2), w.node(3), w.node(4))

	// With the rest nothing could be decided.
	leader = w.await()
	down := 0
	var lives *member
	for _, n := range w.nodes[:4] {
		switch {
		case n == leader:
		case down < 1:
			n.stop(false)
			down++
		default:
			lives = n
		}
	}
	w.live(15)
	w.nodes[4].start() // an observer is nobody's majority
	w.live(15)
	granted(t, w.removeVoter(lives)) // 4 → 3, of which 2 answer
	w.live(15)
	refused("the last but one that answers", w.removeVoter(w.answering(leader)), wire.RequestTimedOut)

	refused("a cluster of an older level", older.removeVoter(older.node(1)), wire.UnsupportedVersion)
	alone := grown(t, 1, 0, Options{})
	refused("the only voter", alone.removeVoter(alone.node(1)), wire.InvalidRequest)
}

// answering is a voter that is up and not the controller.
func (w *world) answering(leader *member) *member {
	for _, n := range w.nodes {
		if n != leader && n.c != nil && isVoter(leader.c.Image(), n.options.Node) {
			return n
		}
	}
	w.t.Fatal("nobody answers")
	return nil
}
