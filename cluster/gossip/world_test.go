package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
)

// network carries packets and streams between brokers in memory, in no time, and loses what cut says. Inside a synctest bubble all timers are fake.
type network struct {
	t *testing.T

	mu      sync.Mutex
	hosts   map[netip.AddrPort]*socket
	running []*broker // of the test's own goroutine
	names   map[string][]netip.Addr
	cut     func(from, to netip.AddrPort) bool
	dialled [][2]netip.AddrPort              // who dialled whom, in order
	deaf    bool                             // no packet arrives, streams do
	peek    func(packet []byte, stream bool) // called with mu held
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{t: t, hosts: map[netip.AddrPort]*socket{}, names: map[string][]netip.Addr{}, cut: func(netip.AddrPort, netip.AddrPort) bool { return false }}
	t.Cleanup(func() {
		for _, b := range n.running {
			b.kill()
		}
		// What the library leaves behind runs out: the bubble fails when a goroutine stays. A probe may be stretched by its opinion of its own health.
		time.Sleep(9 * probeInterval)
	})
	return n
}

func (n *network) setCut(cut func(from, to netip.AddrPort) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = cut
}

// heal lets everything through.
func (n *network) heal() { n.setCut(func(netip.AddrPort, netip.AddrPort) bool { return false }) }

// isolate cuts one broker off.
func (n *network) isolate(b *broker) {
	n.setCut(func(from, to netip.AddrPort) bool { return (from == b.address) != (to == b.address) })
}

func (n *network) find(from, to netip.AddrPort) *socket {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut(from, to) {
		return nil
	}
	return n.hosts[to]
}

func (n *network) resolve(_ context.Context, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if found := n.names[host]; len(found) > 0 {
		return found, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (n *network) name(host string, addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[host] = nil
	for _, a := range addresses {
		n.names[host] = append(n.names[host], netip.MustParseAddr(a))
	}
}

// socket is a broker's UDP socket; streams to the same address go to its accept function.
type socket struct {
	network *network
	address netip.AddrPort
	packets chan datagram
	closed  chan struct{}
	once    sync.Once
	accept  func(net.Conn)
	frozen  chan struct{} // nil, or closed by the thaw
}

type datagram struct {
	bytes []byte
	from  netip.AddrPort
}

func (n *network) bind(address netip.AddrPort) *socket {
	s := &socket{network: n, address: address, packets: make(chan datagram, 1024), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[address] = s
	return s
}

// freeze keeps what arrives, and sends nothing, until the function it returns is called.
func (s *socket) freeze() (thaw func()) {
	frozen := make(chan struct{})
	s.set(frozen)
	return func() {
		s.set(nil)
		close(frozen)
	}
}

func (s *socket) set(frozen chan struct{}) {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	s.frozen = frozen
}

func (s *socket) ice() chan struct{} {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	return s.frozen
}

func (s *socket) ReadFrom(p []byte) (int, net.Addr, error) {
	select {
	case d := <-s.packets:
		if frozen := s.ice(); frozen != nil {
			<-frozen
		}
		return copy(p, d.bytes), net.UDPAddrFromAddrPort(d.from), nil
	case <-s.closed:
		return 0, nil, net.ErrClosed
	}
}

func (s *socket) WriteTo(p []byte, to net.Addr) (int, error) {
	select {
	case <-s.closed:
		return 0, net.ErrClosed
	default:
	}
	udp, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, fmt.Errorf("a packet to %v", to)
	}
	if s.ice() != nil {
		return len(p), nil
	}
	s.network.look(p, false)
	s.network.mu.Lock()
	deaf := s.network.deaf
	s.network.mu.Unlock()
	if target := s.network.find(s.address, udp.AddrPort()); target != nil && !deaf {
		select {
		case target.packets <- datagram{bytes: slices.Clone(p), from: s.address}:
		default:
		}
	}
	return len(p), nil
}

// contacts returns whom the broker has dialled since the last call.
func (b *broker) contacts() []netip.AddrPort {
	b.network.mu.Lock()
	defer b.network.mu.Unlock()
	var whom []netip.AddrPort
	for _, d := range b.network.dialled {
		if d[0] == b.address {
			whom = append(whom, d[1])
		}
	}
	b.network.dialled = nil
	return whom
}

func (n *network) look(p []byte, stream bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.peek != nil {
		n.peek(p, stream)
	}
}

func (s *socket) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.network.mu.Lock()
		defer s.network.mu.Unlock()
		if s.network.hosts[s.address] == s {
			delete(s.network.hosts, s.address)
		}
	})
	return nil
}

func (s *socket) LocalAddr() net.Addr              { return net.UDPAddrFromAddrPort(s.address) }
func (s *socket) SetDeadline(time.Time) error      { return nil }
func (s *socket) SetReadDeadline(time.Time) error  { return nil }
func (s *socket) SetWriteDeadline(time.Time) error { return nil }

// dial connects two brokers, or waits for the end of ctx as a network does that swallows packets.
func (s *socket) dial(ctx context.Context, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	s.network.mu.Lock()
	there := s.network.hosts[to]
	s.network.dialled = append(s.network.dialled, [2]netip.AddrPort{s.address, to})
	silent := s.network.cut(s.address, to) || s.frozen != nil || (there != nil && there.frozen != nil)
	s.network.mu.Unlock()
	if silent {
		<-ctx.Done()
		return nil, os.ErrDeadlineExceeded
	}
	var accept func(net.Conn)
	if target := s.network.find(s.address, to); target != nil {
		s.network.mu.Lock()
		accept = target.accept
		s.network.mu.Unlock()
	}
	if accept == nil {
		return nil, errors.New("connection refused")
	}
	here, far := net.Pipe()
	accept(pipe{Conn: far, network: s.network, remote: s.address})
	return pipe{Conn: here, network: s.network, remote: to}, nil
}

// pipe is an end of net.Pipe with an address.
type pipe struct {
	net.Conn
	network *network
	remote  netip.AddrPort
}

func (p pipe) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(p.remote) }

func (p pipe) Write(b []byte) (int, error) {
	p.network.look(b, true)
	return p.Conn.Write(b)
}

// broker is one Gossip with the owner that it needs: a goroutine that receives, and one that takes and rejoins.
type broker struct {
	t       *testing.T
	network *network
	address netip.AddrPort
	self    Member
	g       *Gossip
	socket  *socket
	wake    chan struct{}
	quit    chan struct{}
	ends    sync.WaitGroup

	mu         sync.Mutex
	facts      []heard
	notes      []Note
	registered []Peer
}

// heard is a fact, and when it was taken.
type heard struct {
	Fact
	at time.Time
}

// member makes what broker id tells, in its first run.
func member(id ident.BrokerID, cluster ident.ClusterID) Member {
	return Member{
		Broker: id, Incarnation: [16]byte{0: 1, 1: byte(id), 2: byte(id >> 8)}, Cluster: cluster, Node: ident.NodeID(1000 + id), Directory: ident.DirectoryID{15: byte(id)},
		Clients: []string{fmt.Sprintf("PLAINTEXT://b%d:9092", id)}, Peer: fmt.Sprintf("10.0.0.%d:9094", id), Rack: fmt.Sprintf("rack-%d", id%3),
	}
}

func (n *network) options(self Member, seeds ...string) Options {
	return Options{Self: self, Advertise: self.Peer, Seeds: seeds, Label: "test"}
}

// start runs a broker until the test's end, or until stop.
func (n *network) start(o Options) *broker {
	n.t.Helper()
	return n.startAt(o, o.Advertise)
}

// startAt starts a broker whose socket is at another address than the advertised text says.
func (n *network) startAt(o Options, at string) *broker {
	n.t.Helper()
	b, err := n.open(o, netip.MustParseAddrPort(at))
	if err != nil {
		n.t.Fatalf("starting %s: %v", o.Self.Name(), err)
	}
	return b
}

// tryStart is for brokers that do not start.
func (n *network) tryStart(o Options) (*broker, error) {
	return n.open(o, netip.AddrPortFrom(netip.IPv4Unspecified(), 1))
}

func (n *network) open(o Options, at netip.AddrPort) (*broker, error) {
	began := time.Now()
	b := &broker{t: n.t, network: n, self: o.Self, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	o.Resolve = n.resolve
	o.Now = func() ident.Instant { return ident.Instant(time.Since(began)) + 1 }
	o.Wake = func() {
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
	b.address = at
	b.socket = n.bind(at)
	o.Socket, o.Dial = b.socket, b.socket.dial
	g, err := Start(n.t.Context(), o)
	if err != nil {
		return nil, errors.Join(err, b.socket.Close())
	}
	b.g = g
	n.mu.Lock()
	b.socket.accept = g.Offer
	n.mu.Unlock()
	b.ends.Go(func() {
		if err := g.Receive(); err != nil {
			n.t.Errorf("%s: %v", o.Self.Name(), err)
		}
	})
	b.ends.Go(b.own)
	n.running = append(n.running, b)
	return b, nil
}

func (b *broker) own() {
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-b.wake:
			b.take()
		case <-tick.C:
			b.g.Rejoin(context.Background(), b.peers())
			tick.Reset(b.g.RejoinAfter())
		case <-b.quit:
			b.take()
			return
		}
	}
}

func (b *broker) peers() []Peer {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.registered
}

func (b *broker) register(peers ...Peer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.registered = peers
}

func (b *broker) take() {
	news := b.g.Take()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range news.Facts {
		b.facts = append(b.facts, heard{Fact: f, at: time.Now()})
	}
	b.notes = append(b.notes, news.Notes...)
}

// kill ends the broker without a word, like the end of its process.
func (b *broker) kill() {
	b.network.running = slices.DeleteFunc(slices.Clone(b.network.running), func(o *broker) bool { return o == b })
	close(b.quit)
	b.g.Stop()
	b.ends.Wait()
}

// leave ends it in order.
func (b *broker) leave() {
	b.g.Leave()
	b.kill()
}

// heard returns all facts so far, oldest first.
func (b *broker) heard() []heard {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.facts)
}

// noted returns all notes so far.
func (b *broker) noted() []Note {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.notes)
}

// states returns the newest fact of each incarnation.
func (b *broker) states() map[string]heard {
	b.mu.Lock()
	defer b.mu.Unlock()
	states := map[string]heard{}
	for _, f := range b.facts {
		states[f.Member.Name()] = f
	}
	return states
}

// sees says whether the member is shown as alive.
func (b *broker) sees(other *broker) bool {
	f, known := b.states()[other.self.Name()]
	return known && (f.State == Joined || f.State == Updated)
}

// is says whether the newest fact of the other is the given one.
func (b *broker) is(other *broker, s State) bool { return b.states()[other.self.Name()].State == s }

// said returns the texts of a code.
func (b *broker) said(code string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var texts []string
	for _, n := range b.notes {
		if n.Code == code {
			texts = append(texts, n.Text)
		}
	}
	return texts
}

// allSee says whether each of the brokers sees each other one.
func allSee(brokers ...*broker) bool {
	for _, b := range brokers {
		for _, o := range brokers {
			if b != o && !b.sees(o) {
				return false
			}
		}
	}
	return true
}

// within moves the fake clock until cond holds, and fails the test when it does not before d is over.
func within(t *testing.T, d time.Duration, what string, cond func() bool) {
	t.Helper()
	for waited := time.Duration(0); ; waited += step {
		if cond() {
			return
		}
		if waited >= d {
			t.Fatalf("not within %v: %s", d, what)
		}
		time.Sleep(step) // the bubble's clock, which jumps
	}
}

const step = 10 * time.Millisecond

// pass moves the fake clock.
func pass(d time.Duration) { time.Sleep(d) }
