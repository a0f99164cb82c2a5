package cluster

import (
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestAnEmptyDiskUnderAVotersBrokerDoesNotVote is what KIP-853 has directory ids for: a broker whose disk was replaced has forgotten what it promised as a
// voter. It must not help to elect anybody until its former self is no voter any more.
func TestAnEmptyDiskUnderAVotersBrokerDoesNotVote(t *testing.T) {
	w := grown(t, 3, 0, Options{})
	leader := w.await()
	var others []*member
	for _, n := range w.nodes {
		if n != leader {
			others = append(others, n)
		}
	}
	w.create(t, "before")
	empty := w.hire(others[0].options.Broker)
	empty.start()
	others[1].stop(true)
	leader.stop(true)
	leader.start()
	for range 100 {
		w.live(1)
		if w.controller() != nil || empty.c != nil {
			t.Fatalf("one voter and an empty disk are a majority:%s", w.state())
		}
	}
	others[1].start()
	w.live(10)
	if r := w.addVoter(empty); r.Err == nil || r.Err.Code != wire.DuplicateVoter {
		t.Fatalf("two voters of one broker: %v", r.Err)
	}
	granted(t, w.removeVoter(others[0]))
	if r := w.addVoter(empty); r.Err == nil || r.Err.Code != wire.InvalidVoterKey {
		t.Fatalf("its new directory is not registered yet: %v", r.Err)
	}
	empty.enrol(2)
	w.live(80) // while nobody led it has turned to brokers of which there are none
	granted(t, w.addVoter(empty))
	w.votersAre(t, leader, others[1], empty)
}

// promises is the term and the vote on a member's disk.
func (n *member) promises() (term, vote uint64) {
	hard, err := decodeHardState(n.disk.now.HardState)
	if err != nil {
		n.w.t.Fatal(err)
	}
	return hard.GetTerm(), hard.GetVote()
}

// TestAVoteThatWasGivenOutlivesItsVoter removes a voter in the term it has voted in and adds it again in the same: a second vote in that term would elect two
// controllers.
func TestAVoteThatWasGivenOutlivesItsVoter(t *testing.T) {
	w := grown(t, 3, 0, Options{})
	leader := w.await()
	i := slices.IndexFunc(w.nodes, func(n *member) bool {
		_, vote := n.promises()
		return n != leader && vote != 0
	})
	if i < 0 {
		t.Fatal("nobody voted for another one")
	}
	n := w.nodes[i]
	term, vote := n.promises()
	granted(t, w.removeVoter(n))
	w.live(30)
	keeps := func(when string) {
		t.Helper()
		if has, for_ := n.promises(); has != term || for_ != vote {
			t.Errorf("%s: it voted for %d in term %d, and knows of %d in term %d", when, vote, term, for_, has)
		}
	}
	if n.c != nil {
		t.Fatal("it votes on")
	}
	keeps("as an observer")
	w.create(t, "since")
	w.live(5)
	keeps("with what it pulled")
	n.stop(true)
	n.start()
	w.live(5)
	w.create(t, "again")
	w.live(5)
	keeps("after a restart")
	granted(t, w.addVoter(n))
	w.votersAre(t, w.nodes...)
	keeps("as a voter again")
	if st := n.c.rn.BasicStatus(); st.GetTerm() != term || st.GetVote() != vote {
		t.Errorf("its Raft knows of %d in term %d", st.GetVote(), st.GetTerm())
	}
}

// TestAVoterGoesOnUntilTheOthersKnowForGood removes one of two voters, and the other one loses its power before its disk knows that this is committed. After
// the restart it asks for both votes, and the one that was removed must be there.
func TestAVoterGoesOnUntilTheOthersKnowForGood(t *testing.T) {
	w := grown(t, 1, 1, Options{})
	a, b := w.node(1), w.node(2)
	granted(t, w.addVoter(b))
	w.votersAre(t, a, b)
	stays := w.await()
	goes := a
	if goes == stays {
		goes = b
	}
	cmd := &RemoveVoter{Broker: goes.options.Broker, Directory: goes.directory()}
	id := w.request(stays, &cmd.Ask, cmd)
	for stays.c.unsafe.index == 0 {
		if !w.turn() {
			t.Fatal("the change is never committed")
		}
	}
	stays.held = true
	w.live(100)
	if _, told := w.replies[id]; told || goes.c == nil {
		t.Fatalf("it is told as done while a power cut can forget it:%s", w.state())
	}
	stays.stop(true)
	stays.held = false
	stays.start()
	w.votersAre(t, stays)
	if r, told := w.replies[id]; told && r.Err == nil {
		t.Fatal("the one that was stopped answered")
	}
	stays.stop(true)
	stays.start()
	w.votersAre(t, stays)
}

// TestASnapshotThatCannotBeToldYetIsWaitedFor asks for one while the disk of the voter does not know yet that a change of the voters is committed. The answer was
// an empty one, and an observer that is told nothing asks again at once.
func TestASnapshotThatCannotBeToldYetIsWaitedFor(t *testing.T) {
	w := grown(t, 1, 1, Options{SnapshotBytes: 1, KeepBytes: 1})
	a, b := w.node(1), w.node(2)
	w.create(t, "compacts")
	w.live(5)
	if a.c.log.base.GetIndex() == 0 {
		t.Fatal("the log still begins at its beginning")
	}
	cmd := &AddVoter{Broker: b.options.Broker, Directory: b.directory()}
	w.request(a, &cmd.Ask, cmd)
	for a.c.unsafe.index == 0 {
		if !w.turn() {
			t.Fatal("the change is never committed")
		}
	}
	a.c.serving = served{}
	a.held = true
	first, second := &Pull{Broker: 8, From: 1}, &Pull{Broker: 9, From: 1}
	ids := []ident.RequestID{w.request(a, &first.Ask, first), w.request(a, &second.Ask, second)}
	w.live(2)
	for _, id := range ids {
		if r, told := w.replies[id]; told {
			t.Fatalf("it is answered %s", describeReply(r))
		}
	}
	a.held = false
	w.live(2)
	for _, id := range ids {
		r, told := w.replies[id]
		if !told || r.Err != nil || r.Body.(*PullReply).Snapshot == nil {
			t.Fatalf("then it is answered %t %s", told, describeReply(r))
		}
	}
}

// TestWhatIsSaidOfAnEarlierVoteDoesNotCount lets a word of an observer arrive after it was a voter, and was removed: it is not known to have noticed.
func TestWhatIsSaidOfAnEarlierVoteDoesNotCount(t *testing.T) {
	w := grown(t, 3, 1, Options{})
	n := w.node(4)
	b, _ := w.await().c.Image().Broker(n.options.Broker)
	old := &Heartbeat{Broker: b.ID, Epoch: b.Epoch, Applied: n.newest().Index(), Node: n.options.Node}
	granted(t, w.addVoter(n))
	w.votersAre(t, w.nodes...)
	leader := w.await()
	if leader == n {
		leader.step(&Resign{})
		w.live(5)
		leader = w.await()
	}
	n.stop(false)
	w.live(1)
	granted(t, w.removeVoter(n))
	n.start() // as the voter that it was
	old.Arrived = w.now.Mono
	w.ask(leader, &old.Ask, old)
	if r := w.addVoter(n); r.Err == nil || r.Err.Code != wire.RequestTimedOut {
		t.Fatalf("it was added without having become an observer: %v", r.Err)
	}
	w.live(60)
	granted(t, w.addVoter(n))
	w.votersAre(t, w.nodes...)
}

// TestAnObserverBelievesNoMoreThanWasCommitted starts one from the raft log of a voter that was stopped while it lost its vote: its log is longer than what is
// committed.
func TestAnObserverBelievesNoMoreThanWasCommitted(t *testing.T) {
	m, _, err := NewImage().Apply(5, 2, []Record{&ClusterRecord{ClusterID: "c1"}, &VotersRecord{Voters: []Voter{voterOf(1)}}})
	if err != nil {
		t.Fatal(err)
	}
	d := Durable{HardState: encodeHardState(3, 103, 6), Snapshot: &Snapshot{Index: 5, Term: 2, Data: EncodeSnapshot(m)}}
	for i := range uint64(3) {
		d.Entries = append(d.Entries, Entry{Index: 6 + i, Term: 2, Data: []byte{0}})
	}
	o, err := NewObserver(ObserverOptions{Broker: 2, Node: 102, Durable: d})
	if err != nil {
		t.Fatal(err)
	}
	if o.Image().Index() != 6 {
		t.Errorf("it has applied up to %d, committed is 6", o.Image().Index())
	}
	if o.term != 3 || o.vote != 103 {
		t.Errorf("it forgot its vote for 103 in term 3: %d in term %d", o.vote, o.term)
	}
}

// TestAVoterThatWasAwayFollowsALeaderItDoesNotKnow lets a voter be added, and lead, while another one is down: that one must take its word when it comes back.
func TestAVoterThatWasAwayFollowsALeaderItDoesNotKnow(t *testing.T) {
	w := grown(t, 3, 1, Options{})
	away := w.answering(w.await())
	away.stop(false)
	added := w.node(4)
	granted(t, w.addVoter(added))
	w.live(5)
	w.await().c.rn.TransferLeader(uint64(added.options.Node))
	w.live(10)
	if w.await() != added {
		t.Fatal("the new voter never leads")
	}
	away.start()
	w.votersAre(t, w.nodes...)
	if w.await() != added {
		t.Fatalf("it took another leader for that:%s", w.state())
	}
}
