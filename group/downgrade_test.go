package group_test

import (
	"testing"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// TestADowngradeKeepsAllProtocolsOfTheMembers: who shares any protocol with all members of a group that was of the newer type can join it, before they have
// joined again themselves.
func TestADowngradeKeepsAllProtocolsOfTheMembers(t *testing.T) {
	s := newScales()
	subscription := []byte{0, 1, 0, 0, 0, 1, 0, 1, 'a', 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}
	join := func(name string, protocols ...string) wire.ErrorCode {
		c := &coord.Join{Group: "g", NewMember: name, ProtocolType: "consumer", SessionTimeout: 60_000, RebalanceTimeout: 60_000}
		for _, p := range protocols {
			c.Protocols = append(c.Protocols, coord.Protocol{Name: p, Metadata: subscription})
		}
		return s.ask(c)
	}
	beat := func(epoch int32) wire.ErrorCode {
		return s.ask(&coord.ConsumerHeartbeat{Group: "g", Member: "new", MemberEpoch: epoch, RebalanceTimeout: 60_000, Topics: []string{"a"}, Owned: []coord.TopicPartitions{}})
	}
	for what, code := range map[string]wire.ErrorCode{"the newer protocol": beat(0), "the classic one": join("old", "range", "sticky")} {
		if code != wire.NoError {
			t.Fatalf("%s: %v", what, code)
		}
	}
	if code := beat(-1); code != wire.NoError {
		t.Fatalf("leave: %v", code)
	}
	if code := join("other", "roundrobin"); code != wire.InconsistentGroupProtocol {
		t.Errorf("who shares nothing: %v", code)
	}
	if code := join("late", "sticky"); code != wire.NoError {
		t.Errorf("who shares the second protocol: %v", code)
	}
}
