package main

import (
	"net/netip"
	"slices"

	"github.com/troupe-broker/troupe/actors/relay"
	"github.com/troupe-broker/troupe/actors/runtime"
)

// devNetwork is what lies between the brokers of `troupe dev`. Clients go straight to them.
type devNetwork struct {
	*relay.Net
	ports []relay.Ports // of broker i+1
	side  []int         // of broker i+1; nothing passes between two sides
	cut   *relay.Fault  // that does it; nil: all are on one side
}

// newDevNetwork joins as many brokers as there are fronts, and backs.
func newDevNetwork(fronts, backs []netip.AddrPort) *devNetwork {
	n := &devNetwork{side: make([]int, len(fronts))}
	for i := range fronts {
		n.ports = append(n.ports, relay.Ports{PeerFront: fronts[i], PeerBack: backs[i]})
	}
	n.Net = relay.New(runtime.NewRealClock(), n.ports)
	return n
}

// front is the peer address that a broker is to advertise, and back the one that it is to listen at.
func (n *devNetwork) front(broker int) string { return n.ports[broker-1].PeerFront.String() }

func (n *devNetwork) back(broker int) string { return n.ports[broker-1].PeerBack.String() }

// split puts brokers on a side of their own, together.
func (n *devNetwork) split(brokers ...int) {
	own := slices.Max(n.side) + 1
	for _, b := range brokers {
		n.side[b-1] = own
	}
	last := n.cut
	n.cut = &relay.Fault{Kinds: relay.Peers, Cut: true}
	for b := range n.side {
		n.cut.Ways = append(n.cut.Ways, relay.From(b+1, n.cutOff(b+1)...)...)
	}
	n.Add(n.cut)
	n.Remove(last) // after that, so that nothing slips through between the two
}

// heal puts all on one side.
func (n *devNetwork) heal() {
	clear(n.side)
	n.Remove(n.cut)
	n.cut = nil
}

// cutOff lists the brokers that a broker cannot reach.
func (n *devNetwork) cutOff(broker int) []int {
	var out []int
	for i, side := range n.side {
		if side != n.side[broker-1] {
			out = append(out, i+1)
		}
	}
	return out
}
