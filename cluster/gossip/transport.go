package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/troupe-broker/troupe/wire/ident"
)

const (
	packetsWaitingMax = 256
	indirectPerSecond = 256 // pings that are passed on for others, in gossip that is not sealed
)

var errStopped = errors.New("gossip has stopped")

// transport is memberlist's way to the network: packets of one socket, streams that the peer listener hands in, streams that it dials.
type transport struct {
	roster    *roster
	label     string
	sealed    bool
	advertise netip.AddrPort
	socket    net.PacketConn
	dial      func(address string, wait time.Duration) (net.Conn, error)
	now       func() ident.Instant
	packets   chan *memberlist.Packet
	accepted  chan net.Conn

	mu       sync.Mutex
	stopped  bool
	streams  map[*stream]struct{}
	inbound  int
	done     sync.WaitGroup // one for each stream that the library has not closed
	second   ident.Instant  // when the indirect pings were counted from
	indirect int
}

var _ memberlist.Transport = (*transport)(nil)

// FinalAdvertiseAddr returns where others shall send to.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.advertise.Addr().AsSlice(), int(t.advertise.Port()), nil
}

// WriteTo sends one packet. The library uses the instant for round trip times, which nobody asks for.
func (t *transport) WriteTo(b []byte, address string) (time.Time, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return time.Time{}, fmt.Errorf("gossip packet: %w", err)
	}
	_, err = t.socket.WriteTo(b, net.UDPAddrFromAddrPort(to))
	return time.Time{}, err
}

// PacketCh is where Receive puts packets.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh is where Offer puts streams.
func (t *transport) StreamCh() <-chan net.Conn { return t.accepted }

// DialTimeout opens a stream to another broker's peer port.
func (t *transport) DialTimeout(address string, wait time.Duration) (net.Conn, error) {
	conn, err := t.dial(address, wait)
	if err != nil {
		return nil, err
	}
	s, err := t.track(conn, false)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

// Shutdown closes the socket and all streams, and waits until the library has let go of the streams.
func (t *transport) Shutdown() error {
	t.mu.Lock()
	t.stopped = true
	var open []*stream
	for s := range t.streams {
		open = append(open, s)
	}
	t.mu.Unlock()
	err := t.socket.Close()
	for _, s := range open {
		_ = s.Conn.Close() // its user here gets an error, and closes the stream
	}
	t.done.Wait()
	return err
}

// receive reads packets until the socket is closed.
func (t *transport) receive() error {
	buf := make([]byte, packetBytesMax+1)
	for {
		n, from, err := t.socket.ReadFrom(buf)
		if err != nil {
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.stopped {
				return nil
			}
			return fmt.Errorf("reading gossip packets: %w", err)
		}
		if err := t.check(buf[:n]); err != nil {
			t.refusePacket(from, err)
			continue
		}
		packet := &memberlist.Packet{Buf: append([]byte(nil), buf[:n]...), From: from}
		select {
		case t.packets <- packet:
		default: // as if the network had lost it
		}
	}
}

func (t *transport) check(packet []byte) error {
	if len(packet) > packetBytesMax {
		return fmt.Errorf("%w: more than %d bytes", errPacket, packetBytesMax)
	}
	rest, err := openLabel(packet, t.label)
	if err != nil || t.sealed {
		return err
	}
	return inspectPacket(rest, t.passOn)
}

// passOn counts one ping that is passed on for others.
func (t *transport) passOn() bool {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if now-t.second >= ident.Instant(time.Second) {
		t.second, t.indirect = now, 0
	}
	t.indirect++
	return t.indirect <= indirectPerSecond
}

func (t *transport) refusePacket(from net.Addr, err error) {
	host := hostOf(from.String())
	if errors.Is(err, errLabel) {
		t.roster.note(codeSeal, host, "gossip from "+host+" has another label than this broker's: the two do not hear each other")
		return
	}
	t.roster.note(codeRefused, host, fmt.Sprintf("a gossip packet from %s is refused: %v", host, err))
}

// offer takes a stream that somebody else opened, or closes it.
func (t *transport) offer(conn net.Conn) {
	s, err := t.track(conn, true)
	if err != nil {
		_ = conn.Close() // the other side tries again
		return
	}
	t.accepted <- s // has room for all that track lets in
}

// track makes a stream of a connection and counts it.
func (t *transport) track(conn net.Conn, inbound bool) (*stream, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return nil, errStopped
	}
	s := &stream{Conn: conn, gate: gate{sealed: t.sealed}}
	host := hostOf(conn.RemoteAddr().String())
	if inbound {
		if t.inbound >= streamsMax {
			return nil, fmt.Errorf("more than %d gossip streams", streamsMax)
		}
		t.inbound++
		s.gate.label = t.label
	}
	s.refuse = func(err error) { t.refuseStream(host, err) }
	s.closed = func() { t.forget(s, inbound) }
	t.streams[s] = struct{}{}
	t.done.Add(1)
	return s, nil
}

func (t *transport) forget(s *stream, inbound bool) {
	t.mu.Lock()
	delete(t.streams, s)
	if inbound {
		t.inbound--
	}
	t.mu.Unlock()
	t.done.Done()
}

func (t *transport) refuseStream(host string, err error) {
	switch {
	case errors.Is(err, errLabel):
		t.roster.note(codeSeal, host, "gossip from "+host+" has another label than this broker's: the two do not hear each other")
	case errors.Is(err, errSealed), errors.Is(err, errUnsealed):
		t.roster.note(codeSeal, host, fmt.Sprintf("gossip from %s is refused: %v. All brokers of a cluster have the same keys", host, err))
	default:
		t.roster.note(codeRefused, host, fmt.Sprintf("a gossip stream from %s is refused: %v", host, err))
	}
}

// Bind opens a TCP listener and a UDP socket of the same number, which peers need to find. With port 0 the system chooses, and chooses again while the
// number is taken for UDP.
func Bind(ctx context.Context, address string) (net.Listener, net.PacketConn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, fmt.Errorf("peer address %q: %w", address, err)
	}
	tries := 1
	if port == "0" {
		tries = bindTries
	}
	var config net.ListenConfig
	for {
		listener, err := config.Listen(ctx, "tcp", address)
		if err != nil {
			return nil, nil, fmt.Errorf("listening for peers on TCP: %w", err)
		}
		socket, err := config.ListenPacket(ctx, "udp", listener.Addr().String())
		if err == nil {
			return listener, socket, nil
		}
		if tries--; tries == 0 {
			return nil, nil, errors.Join(fmt.Errorf("listening for gossip on UDP: %w", err), listener.Close())
		}
		if err := listener.Close(); err != nil {
			return nil, nil, fmt.Errorf("listening for peers on TCP: %w", err)
		}
	}
}

const bindTries = 16
