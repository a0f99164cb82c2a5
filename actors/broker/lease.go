package broker

import (
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire/ident"
)

// The lease of a broker lasts for leasePercent of the session from the sending of the last heartbeat that was answered. Without it a broker must not speak as
// if it were a member: another may have taken its place. It only shortens staleness; what must be unique waits for a committed record.
const leasePercent = 80

// extendLease takes in the answer to a heartbeat that was sent then. A broker that is told that it is fenced has none from then on.
func (s *shared) extendLease(sent ident.Instant, r *cluster.HeartbeatReply) {
	if r.Fenced {
		s.lease.Store(0)
		return
	}
	session := ident.Instant(s.settings.Load().SessionMs) * millisecond
	s.lease.Store(int64(sent + session*leasePercent/100))
}

// leased tells whether the lease holds. A broker without others needs none.
func (s *shared) leased(now ident.Instant) bool { return s.links == nil || int64(now) < s.lease.Load() }

// acksAll is what a Produce asks that waits for all in-sync replicas.
const acksAll = -1

// noLease is what a client is told of a broker without a lease.
const noLease = "the controller has not answered this broker for too long; another may have taken its place"
