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
// address. Where it shows several processes under one id, the one that belongs to a cluster keeps its link: somebody who is started with a wrong id cuts
// nobody off.
type acquaintances struct {
	shared    *shared
	told      bool // that the vote is lost
	addresses map[ident.BrokerID]*acquaintance
}

// acquaintance is where a broker's peer port is; empty where nobody says so.
type acquaintance struct {
	registered string
	shown      []gossip.Member // runs that gossip shows alive, oldest first
}

func (a *acquaintance) address() string {
	if len(a.shown) == 0 {
		return a.registered
	}
	best := &a.shown[0]
	for i := range a.shown[1:] {
		switch m := &a.shown[1+i]; {
		case m.Node == best.Node: // it was started again
			best = m
		case best.Cluster == "" && m.Cluster != "":
			best = m
		}
	}
	return best.Peer
}

// show takes in what gossip says of a run.
func (a *acquaintance) show(m *gossip.Member, up bool) {
	i := slices.IndexFunc(a.shown, func(o gossip.Member) bool { return o.Incarnation == m.Incarnation })
	switch {
	case up && i < 0:
		a.shown = append(a.shown, *m)
	case up:
		a.shown[i] = *m
	case i >= 0:
		a.shown = slices.Delete(a.shown, i, i+1)
	}
}

func (k *acquaintances) start(s *shared) {
	k.shared, k.addresses = s, make(map[ident.BrokerID]*acquaintance)
}

// learn takes in what has changed in the metadata.
func (k *acquaintances) learn(d *cluster.Delta) {
	if k.shared.links == nil {
		return
	}
	for _, b := range d.Brokers {
		if b.To != nil && b.ID == k.shared.identity.Broker {
			k.seated()
		}
		k.change(b.ID, func(a *acquaintance) { a.registered = peerAddress(b.To) })
	}
}

// members are the brokers that gossip shows in a cluster, by id: voters and others.
func (k *acquaintances) members(id ident.ClusterID) []ident.BrokerID {
	var out []ident.BrokerID
	for b, a := range k.addresses {
		if slices.ContainsFunc(a.shown, func(m gossip.Member) bool { return m.Cluster == id }) {
			out = append(out, b)
		}
	}
	slices.Sort(out)
	return out
}

// seated tells, when this broker has registered, that the cluster counts on a vote that it does not have: the voter was another directory.
func (k *acquaintances) seated() {
	id := &k.shared.identity
	for _, v := range k.shared.image.Load().Voters() {
		if v.Broker == id.Broker && v.Directory != id.Directory && !k.told {
			k.told = true
			k.shared.log.Warn().Stringer("voter", v.Directory).Stringer("directory", id.Directory).
				Msg("this broker has lost its vote with its earlier data directory: the quorum has one voter less; `troupe cluster voters remove` and `add` replace it")
		}
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
	if a == nil {
		a = &acquaintance{}
		k.addresses[b] = a
	}
	before := a.address()
	if how(a); a.registered == "" && len(a.shown) == 0 {
		delete(k.addresses, b)
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
	c.known.change(b.Broker, func(a *acquaintance) { a.show(b, up) })
	switch {
	case c.voter != nil:
		c.step(t, &cluster.GossipHint{Broker: b.Broker, Incarnation: b.Incarnation, Up: up})
		c.step(t, &cluster.Seeds{Voters: c.known.members(c.shared.clusterID())})
	case c.observer != nil && up:
		c.observe(t, &cluster.Seeds{Voters: c.known.members(c.shared.clusterID())})
	case c.founding != nil && up:
		c.found(t, &cluster.Seen{Broker: b.Broker, Node: b.Node, Run: b.Incarnation, Address: b.Peer, Expect: int(b.Expect), Cluster: b.Cluster})
	case c.founding != nil:
		c.found(t, &cluster.Gone{Broker: b.Broker, Node: b.Node, Run: b.Incarnation})
	}
}
