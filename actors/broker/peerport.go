package broker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/peer"
)

const (
	// greetersMax bounds the connections of which not even the first byte has come, or whose TLS is being agreed on.
	greetersMax = 64
	// tlsRecord is the first byte of a TLS connection.
	tlsRecord = 0x16
)

// peerPort accepts what comes to the TCP port of the brokers: links, and streams of gossip. The first byte tells: 'T' is a link, 0x16 is TLS, in which
// the first byte tells again, and everything else is gossip.
type peerPort struct {
	listener *net.TCPListener
	tls      *tls.Config // nil: links are not encrypted
	// gossip takes a stream over, with its first byte unread, and closes it. Nil: streams are closed. encrypted tells that it came by TLS.
	gossip func(c net.Conn, encrypted bool)

	links    *links
	greeters chan struct{} // holds a token for each
	group    sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{} // all but those of gossip
	closed bool
}

func newPeerPort(l *net.TCPListener, c *tls.Config, gossip func(net.Conn, bool)) *peerPort {
	return &peerPort{listener: l, tls: c, gossip: gossip, greeters: make(chan struct{}, greetersMax), conns: make(map[net.Conn]struct{})}
}

// accept is the goroutine that accepts, until the listener is closed; it waits for those of the connections.
func (p *peerPort) accept() {
	defer p.group.Wait()
	for {
		c, err := p.listener.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			if !p.failed(err) {
				return
			}
			continue
		}
		select {
		case p.greeters <- struct{}{}:
			p.group.Go(func() { p.greet(c) })
		default:
			p.turnedAway(c, &limitError{codeLinkMany, fmt.Sprintf("%d connections to the peer port have not said yet what they are", greetersMax)})
		}
	}
}

// failed tells of an error of accept and pauses; false: the port is being closed.
func (p *peerPort) failed(err error) bool {
	s := p.links.shared
	if skipped, ok := s.sampled.due(codeDescriptors); ok {
		s.log.Error().Err(err).Int("skipped", skipped).Msg(codeDescriptors + ": a connection to the peer port could not be accepted; trying again")
	}
	over := make(chan struct{})
	s.system.Clock().NewAlarm(func() { close(over) }).Set(acceptBackOff)
	<-over
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.closed
}

// close stops accepting and ends the connections.
func (p *peerPort) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	_ = p.listener.Close() // twice does no harm
	for c := range p.conns {
		_ = c.Close() // whoever reads it hears of it
	}
}

// hold makes a connection one that close ends; false: the port is closed already.
func (p *peerPort) hold(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.conns[c] = struct{}{}
	}
	return !p.closed
}

func (p *peerPort) release(c net.Conn) {
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

// turnedAway closes a connection that was never used and says why, now and then.
func (p *peerPort) turnedAway(c net.Conn, reason error) {
	_ = c.Close() // nothing was written
	if quiet(reason) {
		return
	}
	s := p.links.shared
	if skipped, ok := s.sampled.seldom("port " + codeOf(reason)); ok {
		s.log.Warn().Stringer("address", c.RemoteAddr()).Int("skipped", skipped).Err(reason).Msg("a connection to the peer port was closed")
	}
}

// greet is the goroutine of a connection: it finds out what it is, and reads it if it is a link.
func (p *peerPort) greet(tcp *net.TCPConn) {
	settle := sync.OnceFunc(func() { <-p.greeters })
	defer settle()
	if !p.hold(tcp) {
		_ = tcp.Close() // it was never used
		return
	}
	defer p.release(tcp)
	first, err := p.first(tcp)
	switch {
	case err != nil:
		p.turnedAway(tcp, err)
	case first == tlsRecord && p.tls != nil:
		p.greetTLS(tcp, first, settle)
	case first == peer.Preface[0] && p.tls != nil:
		p.refuseMode(tcp, "this broker demands TLS of other brokers; give them peer.tls.certificate, peer.tls.key and peer.tls.ca")
	case first == tlsRecord:
		p.refuseMode(tcp, "another broker speaks TLS, and this one has no certificate; give it peer.tls.certificate, peer.tls.key and peer.tls.ca, or give none to the others")
	case first == peer.Preface[0]:
		if err := p.greetPlain(tcp, first, settle); err != nil {
			p.turnedAway(tcp, err)
		}
	default:
		p.stream(&peeked{Conn: tcp, first: first}, false, tcp)
	}
}

func (p *peerPort) greetPlain(tcp *net.TCPConn, first byte, settle func()) error {
	if err := tcp.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	s, err := newSocket(tcp, p.links.shared.system.Clock(), func(f func()) { p.group.Go(f) })
	if err != nil {
		return err
	}
	settle()
	return p.carry(s, addressOf(tcp), first)
}

// first reads the first byte within the time of a greeting.
func (p *peerPort) first(c net.Conn) (byte, error) {
	_, wall := p.links.shared.system.Now()
	if err := c.SetReadDeadline(time.UnixMilli(int64(wall)).Add(p.links.pace.greeting)); err != nil {
		return 0, err
	}
	var b [1]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			return 0, &limitError{codeLinkGreeting, fmt.Sprintf("a connection to the peer port said nothing for %v", p.links.pace.greeting)}
		}
		return 0, err
	}
	return b[0], nil
}

// greetTLS agrees on TLS and looks at the first byte in it.
func (p *peerPort) greetTLS(tcp *net.TCPConn, first byte, settle func()) {
	c := tls.Server(&peeked{Conn: tcp, first: first}, p.tls)
	b, err := p.first(c) // the handshake is done by the first read, within its deadline
	if err == nil {
		err = tcp.SetReadDeadline(time.Time{})
	}
	if err == nil && b == peer.Preface[0] {
		settle()
		err = p.carry(newTLSSocket(c, p.links.shared.system.Clock(), func(f func()) { p.group.Go(f) }), addressOf(tcp), b)
	} else if err == nil {
		p.stream(&peeked{Conn: c, first: b}, true, tcp)
	}
	if err != nil {
		p.turnedAway(tcp, tlsError(err))
	}
}

// carry makes a link of a connection and reads it until it ends.
func (p *peerPort) carry(s linkReader, address netip.AddrPort, first byte) error {
	w, err := p.links.accept(s, address)
	if err != nil {
		s.Close()
		return err
	}
	s.adopt(w.link)
	w.space()[0] = first
	w.took(1)
	w.read(s)
	return nil
}

// refuseMode tells a broker that one of the two uses TLS and the other does not. The words are never encrypted: a client of TLS finds that in their first byte.
func (p *peerPort) refuseMode(tcp *net.TCPConn, text string) {
	reason := &limitError{codeLinkTLS, text}
	words := (&peer.Refuse{Reason: reason.code, Text: reason.reason}).AppendTo([]byte(peer.Preface))
	if _, err := tcp.Write(words); err == nil {
		_ = tcp.CloseWrite()                                           // the words are all there is
		_, _ = io.Copy(io.Discard, io.LimitReader(tcp, peer.HelloMax)) // so that a reset does not overtake them
	}
	p.turnedAway(tcp, reason)
}

// stream gives a stream of gossip to whom it belongs.
func (p *peerPort) stream(c net.Conn, encrypted bool, tcp *net.TCPConn) {
	if p.gossip == nil {
		p.turnedAway(tcp, &wire.ProtocolError{Code: peer.CodeNotAPeer, Reason: "a connection to the peer port is none of a broker"})
		return
	}
	if err := tcp.SetReadDeadline(time.Time{}); err != nil {
		p.turnedAway(tcp, err)
		return
	}
	p.release(tcp)
	p.gossip(c, encrypted)
}

// peeked is a connection whose first byte was read.
type peeked struct {
	net.Conn
	first byte
	whole bool // it was given again
}

// Read implements net.Conn.
func (c *peeked) Read(b []byte) (int, error) {
	if c.whole || len(b) == 0 {
		return c.Conn.Read(b)
	}
	c.whole = true
	b[0] = c.first
	return 1, nil
}
