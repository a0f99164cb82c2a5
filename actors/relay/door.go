package relay

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// door is one front of a broker and what passes through it.
type door struct {
	net         *Net
	broker      int
	client      bool
	front, back netip.AddrPort

	mu  sync.Mutex
	tcp *net.TCPListener // nil: shut
	udp *net.UDPConn     // nil: of clients, or shut
}

// open binds the front, if it is shut.
func (d *door) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tcp != nil {
		return nil
	}
	tcp, udp, err := bind(d.front, !d.client)
	if err != nil {
		return err
	}
	d.tcp, d.udp = tcp, udp
	d.net.work.Go(func() { d.accept(tcp) })
	if udp != nil {
		d.net.work.Go(func() { d.packets(udp) })
	}
	return nil
}

// shut closes the front. Connections through it end as their ends do.
func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tcp == nil {
		return
	}
	_ = d.tcp.Close() // their goroutines end by it
	d.tcp = nil
	if d.udp != nil {
		_ = d.udp.Close()
		d.udp = nil
	}
}

// accept is the goroutine that takes connections.
func (d *door) accept(tcp *net.TCPListener) {
	for {
		c, err := tcp.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return // shut
		case err != nil:
			continue // somebody was gone before
		}
		d.net.work.Go(func() { d.lead(c) })
	}
}

// lead connects somebody with the broker and carries what both say.
func (d *door) lead(c *net.TCPConn) {
	s := &stream{net: d.net, kind: Client, way: Way{0, d.broker}, near: c}
	defer s.end()
	if !d.net.keep(s) {
		return
	}
	var first []byte
	if !d.client {
		var err error
		if first, err = d.greet(s); err != nil {
			return // nobody, or not one of us
		}
	}
	first, ok := d.hold(s, first)
	if !ok {
		return
	}
	far, err := net.DialTCP("tcp4", nil, net.TCPAddrFromAddrPort(d.back))
	if err != nil {
		s.reset() // the broker is not there yet, or any more
		return
	}
	if !s.join(far) {
		return
	}
	s.carry(first)
}

// greet finds out who dialled, and for what; it returns the bytes that told it.
func (d *door) greet(s *stream) ([]byte, error) {
	first := make([]byte, len(peer.Preface)+peer.LengthSize)
	if _, err := io.ReadFull(s.near, first[:1]); err != nil {
		return nil, err
	}
	if first[0] != peer.Preface[0] {
		const tlsRecord = 0x16
		kind := Gossip
		if first[0] == tlsRecord { // gossip between brokers with keys is sealed, and not in TLS of its own
			kind = Links
		}
		from, err := d.net.whose(addressOf(s.near.RemoteAddr()), d.front)
		s.name(kind, from)
		return first[:1], err
	}
	if _, err := io.ReadFull(s.near, first[1:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(first[len(peer.Preface):])
	if size > peer.HelloMax {
		return nil, errors.New("a greeting that is too long")
	}
	first = append(first, make([]byte, size)...)
	if _, err := io.ReadFull(s.near, first[len(peer.Preface)+peer.LengthSize:]); err != nil {
		return nil, err
	}
	body, err := peer.Open(first[len(peer.Preface):])
	if err != nil {
		return nil, err
	}
	var hello peer.Hello
	if err := hello.Decode(body); err != nil {
		return nil, err
	}
	kind := Control
	if hello.Purpose == peer.Data {
		kind = Data
	}
	from := int(hello.Identity.Broker)
	if hello.Identity.Broker == ident.NoBroker {
		if from, err = d.net.whose(addressOf(s.near.RemoteAddr()), d.front); err != nil {
			return nil, err
		}
	}
	s.name(kind, from)
	return first, nil
}

// hold waits until who dialled can reach the broker, and returns first with what came meanwhile; false: it has given up, and the broker never hears of it.
func (d *door) hold(s *stream, first []byte) ([]byte, bool) {
	if !d.net.effect(s.kind, s.way).cut {
		return first, true
	}
	var free bool
	over := make(chan struct{})
	d.net.work.Go(func() {
		_, free = d.net.await(s.kind, s.way, &s.over)
		_ = s.near.SetReadDeadline(time.Unix(1, 0)) // long ago: the read below ends; one of a socket that was closed has
		close(over)
	})
	const more = 4 << 10 // a greeting fits
	buf := make([]byte, more)
	var err error
	for n := 0; err == nil && len(buf) > 0; buf = buf[n:] {
		n, err = s.near.Read(buf)
		first = append(first, buf[:n]...)
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		s.reset()
	}
	<-over
	return first, free && s.near.SetReadDeadline(time.Time{}) == nil
}

// packets is the goroutine that carries gossip's packets.
func (d *door) packets(udp *net.UDPConn) {
	const packetMax = 64 << 10
	buf := make([]byte, packetMax)
	for {
		n, addr, err := udp.ReadFromUDPAddrPort(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return // shut
		case err != nil:
			continue // the kernel tells that an earlier packet was not wanted
		}
		from := d.net.sender(addr)
		e := d.net.effect(Gossip, Way{from, d.broker})
		if from == 0 || e.cut || e.drop != nil {
			continue
		}
		late := e.late(n)
		if late == 0 {
			_, _ = udp.WriteToUDPAddrPort(buf[:n], d.back) // packets may be lost
			continue
		}
		packet := append([]byte(nil), buf[:n]...)
		d.net.work.Go(func() {
			if d.net.pause(late) {
				_, _ = udp.WriteToUDPAddrPort(packet, d.back)
			}
		})
	}
}

// bind opens a number for TCP, and for UDP when it is to.
func bind(at netip.AddrPort, packets bool) (*net.TCPListener, *net.UDPConn, error) {
	tcp, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(at))
	if err != nil || !packets {
		return tcp, nil, err
	}
	udp, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, nil, errors.Join(err, tcp.Close())
	}
	return tcp, udp, nil
}

func addressOf(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		at := t.AddrPort()
		return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	}
	return netip.AddrPort{}
}
