package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/troupe-broker/troupe/wire/ident"
)

// The tuned settings: found by measuring real processes and simulated ones. A killed broker is dead for all others after 1.7 s in the middle and 2.2 s at
// most, one that is frozen for a second is not, nor one that loses a fifth of its packets.
const (
	probeInterval           = 300 * time.Millisecond
	probeTimeout            = 150 * time.Millisecond
	suspicionMult           = 4
	suspicionMaxTimeoutMult = 4
	gossipInterval          = 50 * time.Millisecond
	pushPullInterval        = 10 * time.Second
	streamTimeout           = 2 * time.Second
	packetBytes             = 1400

	announceWait = time.Second
	leaveWait    = time.Second
	labelMax     = 64
)

// How often the owner is to call Rejoin.
const (
	RejoinInterval      = 10 * time.Second
	RejoinIntervalAlone = time.Second // while gossip shows nobody and there is somebody to contact
)

var (
	// ErrAddress is what Start returns for an advertised address or a label that cannot be used.
	ErrAddress = errors.New("TRP-4203: gossip cannot use the address or the label")
	// ErrIdentity is what Announce returns for another broker's Member.
	ErrIdentity = errors.New("gossip: another broker or incarnation than at the start")
)

// Options is what Start needs. Everything but Seeds and Keys is required.
type Options struct {
	Self      Member         // what the broker tells; Address is ignored
	Advertise string         // host:port under which other brokers reach the peer port; a name is resolved once, at the start
	Seeds     []string       // host:port each: --join
	Keys      [][]byte       // the first seals, all open; none: nothing is sealed. 16, 24 or 32 bytes each
	Label     string         // 1 to 64 bytes, the same in all brokers that shall find each other
	Socket    net.PacketConn // of the same number as the peer port; Stop closes it

	// Dial opens a connection to another broker's peer port.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Resolve returns the addresses of a name. It is asked at each attempt to join.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Now reads the monotonic clock.
	Now func() ident.Instant
	// Wake is called when there is something to Take and was nothing before, from goroutines and under locks of the library: it must not wait and must not
	// call back.
	Wake func()
}

// Gossip is this broker's part in the gossip. Its methods may be called by several goroutines, Rejoin by one at a time.
type Gossip struct {
	roster    *roster
	transport *transport
	ring      *memberlist.Keyring
	list      *memberlist.Memberlist
	resolve   func(ctx context.Context, host string) ([]netip.Addr, error)
	stopDials context.CancelFunc
	seeds     []string
	round     int                 // of Rejoin
	failing   map[string]struct{} // addresses that a note was written of
}

// Start checks the options and starts to gossip, with nobody yet. It fails with ErrTooLong, ErrKeys or ErrAddress, or because a name cannot be resolved. On
// failure the socket stays open.
func Start(ctx context.Context, o Options) (*Gossip, error) {
	o.Self.Address = netip.AddrPort{}
	meta, err := o.Self.encode()
	if err != nil {
		return nil, err
	}
	ring, err := newKeyring(o.Keys)
	if err != nil {
		return nil, err
	}
	if o.Label == "" || len(o.Label) > labelMax {
		return nil, fmt.Errorf("%w: the label has %d bytes, 1 to %d are allowed", ErrAddress, len(o.Label), labelMax)
	}
	for _, seed := range o.Seeds {
		if _, _, err := splitAddress(seed); err != nil {
			return nil, err
		}
	}
	advertise, err := advertised(ctx, o)
	if err != nil {
		return nil, err
	}
	dialing, stopDials := context.WithCancel(context.Background())
	g := &Gossip{
		roster: newRoster(o.Self, meta, o.Wake), ring: ring, resolve: o.Resolve, stopDials: stopDials, seeds: o.Seeds, failing: map[string]struct{}{},
	}
	g.transport = &transport{
		roster: g.roster, label: o.Label, sealed: ring != nil, advertise: advertise, socket: o.Socket, now: o.Now,
		dial: func(address string, wait time.Duration) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(dialing, wait)
			defer cancel()
			return o.Dial(ctx, address)
		},
		packets: make(chan *memberlist.Packet, packetsWaitingMax), accepted: make(chan net.Conn, streamsMax), streams: map[*stream]struct{}{},
	}
	g.list, err = memberlist.Create(g.config(o))
	if err != nil {
		stopDials()
		return nil, fmt.Errorf("starting gossip: %w", err)
	}
	return g, nil
}

func (g *Gossip) config(o Options) *memberlist.Config {
	d := delegate{roster: g.roster}
	c := memberlist.DefaultLANConfig()
	c.Name = o.Self.Name()
	c.Transport = g.transport
	c.Label = o.Label
	c.Keyring = g.ring
	c.BindPort = int(g.transport.advertise.Port())
	c.AdvertisePort = c.BindPort
	c.TCPTimeout = streamTimeout
	c.ProbeInterval, c.ProbeTimeout = probeInterval, probeTimeout
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = suspicionMult, suspicionMaxTimeoutMult
	c.GossipInterval, c.PushPullInterval = gossipInterval, pushPullInterval
	c.EnableCompression = false
	c.UDPBufferSize = packetBytes
	c.Delegate, c.Events, c.Alive, c.Merge, c.Conflict = d, d, d, d, d
	c.LogOutput = libraryLog{roster: g.roster}
	return c
}

// advertised finds the one address that others are told.
func advertised(ctx context.Context, o Options) (netip.AddrPort, error) {
	host, port, err := splitAddress(o.Advertise)
	if err != nil {
		return netip.AddrPort{}, err
	}
	found, err := lookup(ctx, o.Resolve, host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("the advertised peer address %q: %w", o.Advertise, err)
	}
	address := found[0]
	if address.IsUnspecified() || address.IsMulticast() || port == 0 {
		return netip.AddrPort{}, fmt.Errorf("%w: %q stands for no single place that others could connect to; advertise an address of this machine", ErrAddress, o.Advertise)
	}
	return netip.AddrPortFrom(address, port), nil
}

// Receive reads packets until Stop, and then returns nil. It returns early with what the socket reports; the owner may call it again. It runs on a
// goroutine of the owner's, which the owner waits for.
func (g *Gossip) Receive() error { return g.transport.receive() }

// Offer hands over a stream that the peer listener has accepted and not read from, or whose first bytes Read gives back. The stream is gossip's from
// then on; it is closed at once if there are too many. Offer does not wait.
func (g *Gossip) Offer(conn net.Conn) { g.transport.offer(conn) }

// Take returns what is new. It does not wait.
func (g *Gossip) Take() News { return g.roster.take() }

// Self returns what this broker tells.
func (g *Gossip) Self() Member {
	own, _ := g.roster.self()
	return own
}

// Announce tells others something new about this broker. It waits until that has been passed on a few times, or a second; it gets about in any case.
// It fails with ErrTooLong or ErrIdentity, and then nothing has changed.
func (g *Gossip) Announce(self Member) error {
	self.Address = netip.AddrPort{}
	own, _ := g.roster.self()
	if self.Name() != own.Name() {
		return fmt.Errorf("%w: %s, not %s", ErrIdentity, self.Name(), own.Name())
	}
	meta, err := self.encode()
	if err != nil {
		return err
	}
	g.roster.announce(self, meta)
	_ = g.list.UpdateNode(announceWait) // its only error is that the second is over
	return nil
}

// Leave tells others that this broker stops on purpose, so that they hear of no death. It waits two seconds at most. Stop comes after it.
func (g *Gossip) Leave() {
	self := g.Self()
	self.Leaving = true
	if err := g.Announce(self); err != nil {
		panic(fmt.Sprintf("gossip: a flag made what fitted too long: %v", err))
	}
	_ = g.list.Leave(leaveWait) // its only error is that the second is over
}

// Stop ends the gossip. When it returns, the socket and all streams are closed, Wake is not called any more, and Receive returns. What had not been
// taken yet still can be. What the library has left, a probe under way and timers, ends by itself within a second and touches nothing.
func (g *Gossip) Stop() {
	g.roster.close()
	g.stopDials()
	_ = g.list.Shutdown() // it has no error to return
}
