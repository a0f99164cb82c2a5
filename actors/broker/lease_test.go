package broker

import (
	"testing"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
)

// A broker that is told that it is fenced kept the lease of the heartbeat before, and spoke as if it were a member until that had run out.
func TestABrokerThatIsToldThatItIsFencedHasNoLease(t *testing.T) {
	s := &shared{links: &links{}}
	s.settings.Store(&config.BrokerValues{SessionMs: 6000})
	s.extendLease(1*millisecond, &cluster.HeartbeatReply{})
	if !s.leased(4800*millisecond) || s.leased(4801*millisecond) {
		t.Error("a lease lasts for 4.8 s of a session of 6 s, from the sending of the heartbeat")
	}
	s.extendLease(2*millisecond, &cluster.HeartbeatReply{Fenced: true})
	if s.leased(3 * millisecond) {
		t.Error("a fenced broker has a lease")
	}
}
