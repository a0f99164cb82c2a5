package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/cluster/gossip"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// peering is a broker's door to others: the peer port, and gossip on it. Nil: this broker is alone and stays so.
type peering struct {
	listener *net.TCPListener
	address  string      // as others are told it
	tls      *tls.Config // nil: links are not encrypted
	gossip   *gossip.Gossip
	kick     chan struct{} // holds a token when gossip has news
	self     gossip.Member // in a simulation, which has no gossip

	mu     sync.Mutex
	enough bool   // nobody is to be contacted any more
	cancel func() // of the contacts under way
}

// startMax bounds what a start looks up by name.
const startMax = 10 * time.Second

// openPeers opens the peer port and begins to gossip, with nobody yet.
func (b *Broker) openPeers(v *config.PeerValues, self gossip.Member) (*peering, error) {
	if v.Listen != "" && b.world.Neighbours != nil {
		self.Peer = v.AdvertisePeer(0)
		return &peering{address: self.Peer, self: self}, nil
	}
	if v.Listen == "" || b.world.ListenPeers == nil {
		return nil, nil
	}
	p := &peering{kick: make(chan struct{}, 1)}
	if v.Certificate != "" {
		var err error
		if p.tls, err = LoadPeerTLS(v.Certificate, v.Key, v.CA); err != nil {
			return nil, err
		}
	}
	listener, socket, err := b.world.ListenPeers(v.Listen)
	if err != nil {
		return nil, err
	}
	p.listener, p.address = listener, v.AdvertisePeer(uint16(listener.Addr().(*net.TCPAddr).Port))
	self.Peer = p.address
	ctx, cancel := context.WithTimeout(context.Background(), startMax)
	defer cancel()
	p.gossip, err = gossip.Start(ctx, gossip.Options{
		Self: self, Advertise: p.address, Seeds: v.Join, Keys: v.GossipKeys, Label: v.GossipLabel, Socket: socket, Dial: p.dial,
		Resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
		Now: func() ident.Instant {
			mono, _ := b.world.System.Now()
			return mono
		},
		Wake: p.wake,
	})
	if err != nil {
		return nil, errors.Join(err, socket.Close(), listener.Close())
	}
	return p, nil
}

// rejoin contacts brokers whom gossip does not show, until noContacts.
func (p *peering) rejoin(registered []gossip.Peer) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.mu.Lock()
	if p.cancel = cancel; p.enough {
		cancel()
	}
	p.mu.Unlock()
	p.gossip.Rejoin(ctx, registered)
}

// noContacts ends what waits for others: the broker stops.
func (p *peering) noContacts() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.enough = true; p.cancel != nil {
		p.cancel()
	}
}

// wake is told by gossip that there is news.
func (p *peering) wake() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// dial opens a gossip stream to another broker's peer port.
func (p *peering) dial(ctx context.Context, address string) (net.Conn, error) {
	if p.tls == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	return (&tls.Dialer{Config: p.tls}).DialContext(ctx, "tcp", address)
}

// close takes back what openPeers did, when the start has failed.
func (p *peering) close() error {
	if p == nil || p.gossip == nil {
		return nil
	}
	p.gossip.Stop()
	return p.listener.Close()
}

// member is what this broker tells by gossip at its start.
func (b *Broker) member(v *config.BrokerValues, s *seat, endpoints []cluster.Endpoint) gossip.Member {
	id := &b.shared.identity
	m := gossip.Member{
		Broker: id.Broker, Incarnation: id.Incarnation, Cluster: b.shared.clusterID(), Node: id.Node, Directory: id.Directory, Rack: v.Rack,
	}
	if s.founding != nil {
		m.Expect = int32(v.Peer.Expect)
	}
	for _, e := range endpoints {
		m.Clients = append(m.Clients, e.Name+"://"+hostPort(e.Host, e.Port))
	}
	return m
}

// startLinks starts the links on the peer port, and what hears of others.
func (b *Broker) startLinks(v *config.BrokerValues, p *peering) error {
	s := b.shared
	o := linkOptions{
		self: s.self(), handler: &peerHandler{shared: s}, pace: usualPace, versions: peer.Spoken, answerBytesMax: max(int(v.RequestBytesMax), answerBytesMin), creditBytes: creditSize(v),
		network: b.world.Neighbours,
	}
	s.replicas = &replicaRouter{shared: s}
	if o.network != nil {
		return b.startNeighbours(o, p)
	}
	o.network = newTCPPeers(b.world.System.Clock(), p.tls)
	o.port = newPeerPort(p.listener, p.tls, func(c net.Conn, _ bool) { p.gossip.Offer(c) })
	var err error
	s.links, err = startLinks(s, b.root, o)
	if err != nil {
		return err
	}
	s.gossip, err = b.world.System.Spawn(b.root, blocking(cast("gossip", "gossip", &gossipActor{shared: s, peering: p, log: s.log})))
	return err
}

// answerBytesMin is the least bound of an answer with records between brokers: a batch that was accepted under a greater limit must pass.
const answerBytesMin = 16 << 20

// self is who this broker is for others now.
func (s *shared) self() peer.Identity {
	return peer.Identity{
		Cluster: s.clusterID(), Broker: s.identity.Broker, Epoch: ident.BrokerEpoch(s.epoch.Load()), Directory: s.identity.Directory, Node: s.identity.Node,
		Incarnation: s.identity.Incarnation,
	}
}

// clusterID names the cluster; empty while this broker belongs to none.
func (s *shared) clusterID() ident.ClusterID {
	if id := s.cluster.Load(); id != nil {
		return *id
	}
	return ""
}

// endpoint is the peer port as the broker's registration has it.
func (p *peering) endpoint() cluster.Endpoint {
	host, port, err := net.SplitHostPort(p.address)
	if err != nil {
		panic("broker: the advertised peer address was checked: " + err.Error())
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		panic("broker: the advertised peer address was checked: " + err.Error())
	}
	e := cluster.Endpoint{Name: config.PeerListener, Host: host, Port: uint16(number)}
	if p.tls != nil {
		e.Protocol = protocolSSL
	}
	return e
}

// protocolSSL is Kafka's number of the security protocol SSL.
const protocolSSL = 1

// PeerAddress is where other brokers reach this one, as they are told; empty without a peer port.
func (b *Broker) PeerAddress() string {
	if b.peering == nil {
		return ""
	}
	return b.peering.address
}
