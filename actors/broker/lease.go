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
		s.heard.Store(0)
		return
	}
	s.heard.Store(int64(sent))
	session := ident.Instant(s.settings.Load().SessionMs) * millisecond
	s.lease.Store(int64(sent + session*leasePercent/100))
}

// leased tells whether the lease holds. A broker without others needs none.
func (s *shared) leased(now ident.Instant) bool { return s.links == nil || int64(now) < s.lease.Load() }

// leasedNow is leased at the time of the call. Whoever answers asks when the answer leaves: what was begun under a lease may end without one.
func (s *shared) leasedNow() bool {
	if s.links == nil {
		return true
	}
	now, _ := s.system.Now()
	return s.leased(now)
}

// certainMs is how long a broker may be sure that nobody has taken its place: less than the silence after which gossip's word suffices to fence it.
const certainMs = 1200

// certain tells whether a heartbeat that was sent a moment ago has been answered. Some answers are final for a client and rest on this broker's log being the
// partition's: that a sequence is out of order (an idempotent producer begins anew, and sends again what another leader has taken), that an offset is out of
// range, or the logs diverge (a consumer begins elsewhere). A leader that was paused does not know that it is none any more, and a lease is too long for it.
//
// A leadership also moves while its broker is heard: to the preferred replica, to one that is sound or has room, or away with the replica, by a reassignment. An answer to a heartbeat counts when this
// broker's image is as new as the controller's was, so one that lags behind by more is not certain. What is left is a move of the last certainMs that this broker
// has not heard of: to be told something wrong, a client has to have gone to the new leader, written there, and come back within that time.
func (s *shared) certain() bool {
	if s.links == nil {
		return true
	}
	now, _ := s.system.Now()
	heard := ident.Instant(s.heard.Load())
	return heard > 0 && now < heard+certainMs*millisecond
}

// acksAll is what a Produce asks that waits for all in-sync replicas.
const acksAll = -1

// noLease is what a client is told of a broker without a lease.
const noLease = "the controller has not answered this broker for too long; another may have taken its place"
