package broker

import (
	"net/netip"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster/gossip"
)

// Neighbours are the other brokers of a simulation: the network that reaches them, and who is told what gossip would tell. What gossip would show comes back
// by Broker.Heard, late, wrong, or never, as the simulation wants.
type Neighbours interface {
	PeerNetwork
	// Tell says who this broker is from now on. It is called in a turn and may only enqueue; the slices in self stay as they are.
	Tell(self gossip.Member)
	// Leave says that this broker stops on purpose. It may only enqueue, too.
	Leave()
}

// Heard takes in what gossip shows of another broker.
func (b *Broker) Heard(f gossip.Fact) { _ = b.shared.controller.Post(&gossiped{fact: f}) } // gone only when the broker stops

// LookedAround tells that every broker that can be reached at the start has been asked, and that what Heard was told since counts.
func (b *Broker) LookedAround() { _ = b.shared.controller.Post(&lookedAround{}) } // gone only when the broker stops

// Meet takes a connection of another broker over a Transport of the caller's, to whom the bytes that arrive are to be given.
func (b *Broker) Meet(to Transport, from netip.AddrPort) (*PeerWire, error) {
	return b.shared.links.accept(to, from)
}

// startNeighbours starts the links of a simulated broker, and what stands for gossip.
func (b *Broker) startNeighbours(o linkOptions, p *peering) error {
	s := b.shared
	var err error
	if s.links, err = startLinks(s, b.root, o); err != nil {
		return err
	}
	s.gossip, err = b.world.System.Spawn(b.root, cast("neighbour", "gossip", &neighbourActor{shared: s, peering: p, neighbours: b.world.Neighbours}))
	return err
}

// neighbourActor stands for gossip in a simulation: it waits for nobody.
type neighbourActor struct {
	shared     *shared
	peering    *peering
	neighbours Neighbours
}

// Started implements runtime.Starter.
func (g *neighbourActor) Started(*runtime.Turn) { g.neighbours.Tell(g.peering.self) }

// Turn implements runtime.Behaviour.
func (g *neighbourActor) Turn(_ *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case *tellOthers:
			g.neighbours.Tell(inCluster(g.peering.self, g.shared.clusterID()))
		case *leaveGossip:
			g.neighbours.Leave()
			m.done()
		default:
			panic("broker: what stands for gossip got a message that it does not know")
		}
	}
}
