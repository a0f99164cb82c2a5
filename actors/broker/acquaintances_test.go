package broker

import (
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/cluster/gossip"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestAWrongIDCutsNobodyOff: gossip shows a second process with the id of a member, and the link stays where it is.
func TestAWrongIDCutsNobodyOff(t *testing.T) {
	member := gossip.Member{Broker: 2, Node: 20, Incarnation: [16]byte{1}, Cluster: "c", Peer: "member"}
	stranger := gossip.Member{Broker: 2, Node: 21, Incarnation: [16]byte{2}, Peer: "stranger"}
	again := member
	again.Incarnation, again.Peer = [16]byte{3}, "again"
	a := &acquaintance{registered: "registered"}
	for i, step := range []struct {
		m    *gossip.Member
		up   bool
		want string
	}{
		{&stranger, true, "stranger"}, // the member may be a directory that was lost
		{&member, true, "member"},
		{&again, true, "again"},
		{&member, false, "again"},
		{&stranger, true, "again"},
		{&again, false, "stranger"},
		{&stranger, false, "registered"},
		{&stranger, false, "registered"},
	} {
		if a.show(step.m, step.up); a.address() != step.want {
			t.Errorf("step %d: the link goes to %q, want %q", i, a.address(), step.want)
		}
	}
}

// Who gossip shows in the cluster was remembered for ever, by everybody.
func TestOnlyMembersThatAreShownAreAskedForMetadata(t *testing.T) {
	k := &acquaintances{addresses: map[ident.BrokerID]*acquaintance{}}
	show := func(b ident.BrokerID, cluster ident.ClusterID, up bool) {
		if k.addresses[b] == nil {
			k.addresses[b] = &acquaintance{registered: "registered"}
		}
		k.addresses[b].show(&gossip.Member{Broker: b, Node: ident.NodeID(b), Incarnation: [16]byte{byte(b)}, Cluster: cluster}, up)
	}
	for b := ident.BrokerID(9); b > 0; b-- {
		show(b, "c", true)
	}
	show(4, "", true)
	show(5, "another", true)
	for b := ident.BrokerID(6); b < 10; b++ {
		show(b, "c", false)
	}
	if got := k.members("c"); !slices.Equal(got, []ident.BrokerID{1, 2, 3}) {
		t.Errorf("asked are %v", got)
	}
}
