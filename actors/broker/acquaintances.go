package broker

import (
	"net"
	"slices"
	"strconv"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/cluster/gossip"
	"github.com/troupe-broker/troupe/wire/ident"
)

// acquaintances are the brokers that links are held to: those that are registered, dead or alive, and those that gossip shows. Gossip knows the newer
// address.
type acquaintances struct {
	shared    *shared
	addresses map[ident.BrokerID]acquaintance
}

// acquaintance is where a broker's peer port is; empty where nobody says so.
type acquaintance struct {
	registered, gossiped string
	run                  cluster.Incarnation // that gossip shows
}

func (a acquaintance) address() string {
	if a.gossiped != "" {
		return a.gossiped
	}
	return a.registered
}

func (k *acquaintances) start(s *shared) {
	k.shared, k.addresses = s, make(map[ident.BrokerID]acquaintance)
}

// learn takes in what has changed in the metadata.
func (k *acquaintances) learn(d *cluster.Delta) {
	if k.shared.links == nil {
		return
	}
	for _, b := range d.Brokers {
		k.change(b.ID, func(a *acquaintance) { a.registered = peerAddress(b.To) })
	}
}

// peerAddress is where a registered broker's peer port is.
func peerAddress(b *cluster.Broker) string {
	if b == nil {
		return ""
	}
	e, ok := b.Endpoint(config.PeerListener)
	if !ok {
		return ""
	}
	return hostPort(e.Host, e.Port)
}

func hostPort(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// change tells the links when an address is another one.
func (k *acquaintances) change(b ident.BrokerID, how func(*acquaintance)) {
	if b == k.shared.identity.Broker {
		return
	}
	a := k.addresses[b]
	before := a.address()
	if how(&a); a == (acquaintance{}) {
		delete(k.addresses, b)
	} else {
		k.addresses[b] = a
	}
	if now := a.address(); now != before {
		k.shared.links.know(b, now)
	}
}

// gossiped is a fact of gossip.
type gossiped struct{ fact gossip.Fact }

// Bytes implements runtime.Message.
func (*gossiped) Bytes() int { return 0 }

// gossiped takes in what gossip says of a run of a broker. It discovers, and suspects; it decides nothing.
func (c *controllerActor) gossiped(t *runtime.Turn, m *gossiped) {
	b := &m.fact.Member
	up := m.fact.State == gossip.Joined || m.fact.State == gossip.Updated
	newest := up || c.known.addresses[b.Broker].run == b.Incarnation
	if newest {
		c.known.change(b.Broker, func(a *acquaintance) {
			if a.gossiped, a.run = b.Peer, b.Incarnation; !up {
				a.gossiped, a.run = "", cluster.Incarnation{}
			}
		})
	}
	if id := c.shared.clusterID(); up && b.Cluster != "" && (id == "" || b.Cluster == id) && !slices.Contains(c.seeds, b.Broker) {
		c.seeds = append(c.seeds, b.Broker)
	}
	switch {
	case c.voter != nil:
		c.step(t, &cluster.GossipHint{Broker: b.Broker, Incarnation: b.Incarnation, Up: up})
	case c.observer != nil && up:
		c.observe(t, &cluster.Seeds{Voters: slices.Clone(c.seeds)})
	case c.founding != nil && !up && newest:
		c.found(t, &cluster.Gone{Broker: b.Broker, Node: b.Node})
	}
}
