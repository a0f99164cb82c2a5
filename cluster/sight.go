package cluster

import (
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// sight is what a broker without a cluster knows of another: what it announced on a link, what gossip shows, or both.
type sight struct {
	Announcement // newest; only Broker and Node, while nothing was told
	run          Incarnation
	told         bool
	seen         *Seen // nil: gossip shows nothing
}

// sightsMax bounds what strangers can make this broker remember.
const sightsMax = 256

// find returns the place of a broker's directory among the sights.
func (f *Founding) find(b ident.BrokerID, n ident.NodeID) (int, bool) {
	return slices.BinarySearchFunc(f.sights, sight{Announcement: Announcement{Broker: b, Node: n}}, func(x, y sight) int {
		if x.Broker != y.Broker {
			return int(x.Broker) - int(y.Broker)
		}
		return compareUint(uint64(x.Node), uint64(y.Node))
	})
}

// sight returns what is known of a broker's directory; nil: no room for one more.
func (f *Founding) sight(b ident.BrokerID, n ident.NodeID) *sight {
	i, found := f.find(b, n)
	if !found {
		if len(f.sights) >= sightsMax {
			return nil
		}
		f.sights = slices.Insert(f.sights, i, sight{Announcement: Announcement{Broker: b, Node: n}})
	}
	return &f.sights[i]
}

// hear keeps the newest word of each broker.
func (f *Founding) hear(a *Announced) {
	if a.Node == f.options.Self.Node {
		return // our own, come back
	}
	f.words = slices.DeleteFunc(f.words, func(w Announced) bool { return w.Broker == a.Broker && w.Node == a.Node })
	if s := f.sight(a.Broker, a.Node); s != nil {
		s.Announcement, s.run, s.told = a.Announcement, a.Run, true
	}
}

// see keeps what gossip shows, and recalls what that run told before gossip took it for dead: its link may have stayed open, and then it tells nothing again.
func (f *Founding) see(m *Seen) {
	s := f.sight(m.Broker, m.Node)
	if s == nil {
		return
	}
	s.seen = m
	i := slices.IndexFunc(f.words, func(w Announced) bool { return w.Broker == m.Broker && w.Node == m.Node && w.Run == m.Run })
	if i >= 0 && !s.told {
		s.Announcement, s.run, s.told = f.words[i].Announcement, m.Run, true
		f.words = slices.Delete(f.words, i, i+1)
	}
}

// lose takes a run out of sight, and remembers its word in case that gossip was wrong. A newer run of the same broker stays.
func (f *Founding) lose(m *Gone) {
	i, found := f.find(m.Broker, m.Node)
	if !found {
		return
	}
	s := &f.sights[i]
	if s.seen != nil && s.seen.Run == m.Run {
		s.seen = nil
	}
	if s.told && s.run == m.Run {
		if len(f.words) >= sightsMax {
			f.words = slices.Delete(f.words, 0, 1)
		}
		f.words = append(f.words, Announced{s.Announcement, s.run})
		s.Announcement, s.told = Announcement{Broker: m.Broker, Node: m.Node}, false
	}
	if s.seen == nil && !s.told {
		f.sights = slices.Delete(f.sights, i, i+1)
	}
}

// heard tells whether the broker's word counts. That of another run than the one that gossip shows does not: a promise may have been forgotten in between.
func (s *sight) heard() bool { return s.told && (s.seen == nil || s.seen.Run == s.run) }

// cluster is what the broker belongs to, by its own word or by gossip.
func (s *sight) cluster() ident.ClusterID {
	switch {
	case s.Cluster != "":
		return s.Cluster
	case s.seen != nil:
		return s.seen.Cluster
	}
	return ""
}

// expect is how many founders the broker expects.
func (s *sight) expect() int {
	if !s.heard() && s.seen != nil {
		return s.seen.Expect
	}
	return s.Expect
}

// String names the broker, and where it is.
func (s *sight) String() string {
	address := ""
	if s.seen != nil {
		address = s.seen.Address
	}
	return fmt.Sprintf("broker %d%s", s.Broker, at(address))
}

// at tells an address, if it is known.
func at(address string) string {
	if address == "" {
		return ""
	}
	return " at " + address
}

// members are the brokers in sight that belong to a cluster.
func (f *Founding) members() []*sight {
	var out []*sight
	for i := range f.sights {
		if s := &f.sights[i]; s.cluster() != "" {
			out = append(out, s)
		}
	}
	return out
}
