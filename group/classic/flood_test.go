package classic_test

import (
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/group/classic"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// TestAFloodOfPendingMembers asks for many more ids than are remembered, some of which are used meanwhile: the latest are remembered, and no request has to
// look at all of them.
func TestAFloodOfPendingMembers(t *testing.T) {
	w := newWorld()
	const asked = 10 * classic.PendingMax
	id := func(i int) string { return fmt.Sprintf("m-%d", i) }
	join := func(member, fresh string) wire.ErrorCode {
		w.out.Reset()
		w.g.Join(w.now, &w.cfg, w.request(), &coord.Join{
			Group: "g", Member: member, NewMember: fresh, ProtocolType: "consumer", Protocols: []coord.Protocol{{Name: "range"}},
			SessionTimeout: 60_000, RebalanceTimeout: 60_000, RequireKnownMember: true,
		}, &w.out)
		if len(w.out.Replies) == 0 {
			return wire.NoError // parked
		}
		return w.out.Replies[0].Answer.(*coord.JoinReply).Code
	}
	members := 0
	for i := range asked {
		if code := join("", id(i)); code != wire.MemberIDRequired {
			t.Fatalf("join %d: %v", i, code)
		}
		if i%1000 == 999 {
			if code := join(id(i-500), ""); code != wire.NoError {
				t.Fatalf("member %d, which was given an id a moment ago: %v", i-500, code)
			}
			members++
		}
	}
	oldest := asked - classic.PendingMax - 1
	if code := join(id(oldest-1000), ""); code != wire.UnknownMemberID {
		t.Errorf("one that has been forgotten: %v", code)
	}
	if code := join(id(oldest+1000), ""); code != wire.NoError {
		t.Errorf("one that is remembered: %v", code)
	}
	if w.g.Len() != members+1 || w.out.Timers.Len() > classic.PendingMax+members+10 {
		t.Errorf("%d members, %d timers", w.g.Len(), w.out.Timers.Len())
	}
}

// TestAMemberWithManyProtocols joins with as many protocols as a request can hold, one of them twice.
func TestAMemberWithManyProtocols(t *testing.T) {
	w := newWorld()
	c := &coord.Join{Group: "g", NewMember: "m", Instance: "i", ProtocolType: "consumer", SessionTimeout: 60_000, RebalanceTimeout: 60_000}
	for i := range 150_000 {
		c.Protocols = append(c.Protocols, coord.Protocol{Name: fmt.Sprint(i % 149_999)})
	}
	w.g.Join(w.now, &w.cfg, w.request(), c, &w.out)
	w.pass(10_000 * millisecond)
	if a := w.out.Replies[0].Answer.(*coord.JoinReply); a.Code != wire.NoError || a.Protocol != "0" {
		t.Errorf("%+v", a)
	}
}
