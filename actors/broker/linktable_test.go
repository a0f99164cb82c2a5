package broker

import (
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// Two processes that were started with one id, and have no cluster yet, took each other's place at a third broker, once a second and for ever.
func TestProcessesWithOneIDLeaveEachOtherTheirLinks(t *testing.T) {
	table := newLinkTable(identityOf(1, 10))
	enter := func(run byte, epoch ident.BrokerEpoch) (*linkInfo, []*linkInfo) {
		who := identityOf(2, epoch)
		who.Incarnation = [16]byte{run}
		l := &linkInfo{peer: who, purpose: peer.Control}
		void, err := table.enter(l)
		if err != nil {
			t.Fatal(err)
		}
		return l, void
	}
	_, void := enter(1, ident.NoBrokerEpoch)
	second, more := enter(2, ident.NoBrokerEpoch)
	if len(void) != 0 || len(more) != 0 {
		t.Fatal("one process ends the connection of another")
	}
	again, void := enter(2, ident.NoBrokerEpoch)
	if len(void) != 1 || void[0] != second || !second.voided.Load() {
		t.Fatalf("%d connections have ended, and not its own earlier one", len(void))
	}
	if table.find(2, peer.Control, false) != again {
		t.Error("the newest is not used")
	}
	if _, void = enter(1, 20); len(void) != 2 || table.open(2) != 1 {
		t.Errorf("one has registered: %d connections have ended and %d are left", len(void), table.open(2))
	}
	if _, void = enter(2, ident.NoBrokerEpoch); len(void) != 0 {
		t.Error("who has not registered takes the place of who has")
	}
}

// TestARedialOfAForgottenBrokerIsNothing: the time of the next attempt had come, and was in the mailbox, when the broker was forgotten.
func TestARedialOfAForgottenBrokerIsNothing(t *testing.T) {
	a := &linksActor{links: &links{table: newLinkTable(peer.Identity{})}, peers: map[ident.BrokerID]*linkTarget{7: {broker: 7}}}
	a.forget(7)
	for _, purpose := range []peer.Purpose{peer.Control, peer.Data} {
		a.dial(7, purpose)
	}
	if len(a.peers) != 0 {
		t.Errorf("it is remembered again: %v", a.peers)
	}
}
