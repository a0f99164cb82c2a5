package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/troupe-broker/troupe/cluster/config"
)

// planNear draws brokers in racks of their own, and consumers that read from the one in theirs, be it a leader or a follower (KIP-392).
func (p *Plan) planNear(r *rand.Rand) {
	if !chance(r, 25) {
		return
	}
	p.Settings = p.Settings.With("replica.selector.class", config.RackAwareSelector)
	for range 1 + r.IntN(2) {
		p.Clients = append(p.Clients, ClientPlan{
			Number: 120 + r.IntN(p.Brokers) + p.Brokers*len(p.Clients), Kind: Consumer, Acks: -1, Near: true, Pause: one(r, 10*time.Millisecond, 50*time.Millisecond),
			Sessions: chance(r, 50), Patience: between(r, 500*time.Millisecond, 4*time.Second),
		})
	}
}

// rack is where a machine stands.
func (h *host) rack() string { return "rack-" + h.node.Name }

// rack is where a consumer stands; "": nowhere.
func (s *consumer) rack() string {
	if !s.plan.Near {
		return ""
	}
	return s.to.rack()
}

// near reads on at its broker. Where that begins it does not ask, for only a leader says so: it knows.
func (s *consumer) near() {
	s.readers = slices.DeleteFunc(s.readers, func(d *reader) bool {
		m := s.run.ensemble.mirror(s.to, d)
		if m != nil && !d.begun {
			d.begin(m.start)
		}
		return m == nil
	})
	if len(s.readers) > 0 {
		s.fetch()
	}
}

// nearer begins a reading anew: the log of a follower begins elsewhere by now, or ends before, which only a leader may not say of what it has told.
func (s *consumer) nearer(d *reader) {
	s.run.counted("a follower had less")
	s.readers, s.looked = slices.DeleteFunc(slices.Clone(s.readers), func(o *reader) bool { return o == d }), false
	s.forget()
}

// mirror is what is known of the replica of a broker that a reader reads; nil: it has none.
func (e *ensemble) mirror(h *host, d *reader) *mirror {
	g := e.parts[replica{d.topic.id, d.partition}]
	if g == nil || g.mirrors[h] == nil || g.mirrors[h].gone || g.mirrors[h].life != h.lives {
		return nil
	}
	return g.mirrors[h]
}
