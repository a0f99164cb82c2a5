package sim

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/cluster/gossip"
	"github.com/troupe-broker/troupe/wire/ident"
)

// dialMax is how long connecting to another broker may take.
const dialMax = 3 * time.Second

// errUnreachable is what dialling says when nobody answers, not even a kernel.
var errUnreachable = errors.New("connection timed out")

// among gives one life of a broker its neighbours.
func (h *host) among(w *broker.World) { w.Neighbours = &neighbours{host: h, life: h.lives} }

// settings are those of the broker on this machine.
func (h *host) settings() config.Set {
	s := h.run.plan.Settings
	if h.id == 0 {
		return s
	}
	name := h.node.Name + ".example"
	s = s.With("node.id", h.id.String()).With("listeners", "PLAINTEXT://"+name+":9092").With("peer.listen", h.peerAddress()).With("peer.insecure", "true")
	if _, near := s.Get("replica.selector.class"); near {
		s = s.With("broker.rack", h.rack())
	}
	if p := h.run.plan; int(h.id) <= p.Voters {
		s = s.With("bootstrap.expect", fmt.Sprint(p.Voters))
	} else {
		s = s.With("join", h.run.host.peerAddress())
	}
	return s
}

func (h *host) peerAddress() string { return h.node.Name + ".example:9094" }

// neighbours are the other brokers as one life of a broker reaches them. It implements broker.Neighbours.
type neighbours struct {
	host *host
	life int
}

// over tells that the process is gone.
func (n *neighbours) over() bool { return n.host.lives != n.life || n.host.node.Running() == nil }

// Dial implements broker.PeerNetwork.
func (n *neighbours) Dial(address string, to *broker.PeerWire) {
	r := n.host.run
	r.world.after(2*time.Duration(r.world.Net.delay()), func() { n.dial(address, to) })
}

func (n *neighbours) dial(address string, to *broker.PeerWire) {
	if n.over() {
		return
	}
	h, r := n.host, n.host.run
	var far *host
	for _, o := range r.hosts {
		if o.peerAddress() == address {
			far = o
		}
	}
	switch {
	case far == nil || !far.off && far.broker == nil && r.world.Net.Open(h.node.Name, far.node.Name):
		to.Failed(syscall.ECONNREFUSED)
		return
	case far.off || !r.world.Net.Open(h.node.Name, far.node.Name):
		r.world.after(dialMax, func() {
			if !n.over() {
				to.Failed(errUnreachable)
			}
		})
		return
	}
	near, there := &port{host: h, link: to}, &port{host: far}
	near.end, there.end = r.world.Net.Connect(h.node.Name, near, far.node.Name, there)
	wire, err := far.broker.Meet(there, far.source(byte(h.id)))
	if err != nil {
		near.end.Abort()
		to.Failed(syscall.ECONNREFUSED)
		return
	}
	there.link = wire
	h.ports, far.ports = append(h.ports, near), append(far.ports, there)
	h.touched, far.touched = true, true
	to.Connected(near)
}

// Close implements broker.PeerNetwork: the links have ended their connections by then.
func (n *neighbours) Close() {}

// Tell implements broker.Neighbours.
func (n *neighbours) Tell(self gossip.Member) {
	n.host.run.world.after(0, func() {
		if !n.over() {
			n.host.run.ensemble.rumours.tell(n.host, self)
		}
	})
}

// Leave implements broker.Neighbours.
func (n *neighbours) Leave() {
	n.host.run.world.after(0, func() { n.host.run.ensemble.rumours.gone(n.host, gossip.Left) })
}

// isolated tells that a machine reaches none of the others.
func (h *host) isolated() bool {
	for _, o := range h.run.hosts {
		if o != h && h.run.world.Net.Open(h.node.Name, o.node.Name) {
			return false
		}
	}
	return true
}

// called finds the machine of a broker.
func (r *run) called(id ident.BrokerID) *host {
	if id < 1 || int(id) > len(r.hosts) {
		return nil
	}
	return r.hosts[id-1]
}
