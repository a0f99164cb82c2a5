package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/troupe-broker/troupe/wire/ident"
)

// socketBroker is a broker on real sockets, with the accept loop of a peer listener.
type socketBroker struct {
	g        *Gossip
	self     Member
	listener net.Listener
	wake     chan struct{}
	ends     sync.WaitGroup
	shown    map[string]State
}

func startOnSockets(t *testing.T, id ident.BrokerID, seeds ...string) *socketBroker {
	t.Helper()
	listener, socket, err := Bind(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &socketBroker{self: member(id, "a"), listener: listener, wake: make(chan struct{}, 1), shown: map[string]State{}}
	var dialer net.Dialer
	b.g, err = Start(t.Context(), Options{
		Self: b.self, Advertise: listener.Addr().String(), Seeds: seeds, Keys: [][]byte{key(1)}, Label: "test", Socket: socket,
		Dial: func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		},
		Resolve: func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no names here") },
		Now:     func() ident.Instant { return 1 },
		Wake: func() {
			select {
			case b.wake <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.ends.Go(func() {
		if err := b.g.Receive(); err != nil {
			t.Errorf("receiving: %v", err)
		}
	})
	b.ends.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			b.g.Offer(conn)
		}
	})
	return b
}

// until takes news until the other is in the given state. The test's own time limit is the only one.
func (b *socketBroker) until(t *testing.T, other *socketBroker, states ...State) {
	t.Helper()
	for {
		for _, s := range states {
			if b.shown[other.self.Name()] == s {
				return
			}
		}
		select {
		case <-b.wake:
		case <-t.Context().Done():
			t.Fatalf("%s never hears that %s is %v", b.self.Name(), other.self.Name(), states)
		}
		news := b.g.Take()
		for _, f := range news.Facts {
			b.shown[f.Member.Name()] = f.State
		}
		for _, n := range news.Notes {
			t.Logf("%s: %s %s", b.self.Name(), n.Code, n.Text)
		}
	}
}

func (b *socketBroker) stop(t *testing.T) {
	t.Helper()
	if err := b.listener.Close(); err != nil {
		t.Error(err)
	}
	b.g.Stop()
	b.ends.Wait()
}

func TestBrokersOnRealSockets(t *testing.T) {
	defer goleak.VerifyNone(t)
	first := startOnSockets(t, 1)
	defer first.stop(t)
	seed := first.listener.Addr().String()
	second, third := startOnSockets(t, 2, seed), startOnSockets(t, 3, seed)
	defer second.stop(t)
	for _, b := range []*socketBroker{second, third} {
		if got := b.g.Rejoin(t.Context(), nil); got != 1 {
			t.Fatalf("%s has reached %d seeds", b.self.Name(), got)
		}
	}
	// second learns of third by gossip or by the next exchange; a Rejoin with those who are registered does not leave that to luck.
	second.g.Rejoin(t.Context(), []Peer{{Broker: 3, Address: third.listener.Addr().String()}})
	for _, pair := range [][2]*socketBroker{{first, second}, {first, third}, {second, first}, {second, third}, {third, first}, {third, second}} {
		pair[0].until(t, pair[1], Joined, Updated)
	}
	third.g.Leave()
	third.stop(t)
	first.until(t, third, Left, Dead) // the word that it leaves may be lost with its packet
	second.until(t, third, Left, Dead)
}

func TestBindTakesOneNumberForBoth(t *testing.T) {
	for range 20 {
		listener, socket, err := Bind(t.Context(), "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		tcp, udp := listener.Addr().(*net.TCPAddr), socket.LocalAddr().(*net.UDPAddr)
		if tcp.Port != udp.Port || tcp.Port == 0 {
			t.Errorf("TCP %d, UDP %d", tcp.Port, udp.Port)
		}
		if _, _, err := Bind(t.Context(), fmt.Sprintf("127.0.0.1:%d", tcp.Port)); err == nil {
			t.Error("bound twice")
		}
		if err := errors.Join(listener.Close(), socket.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Bind(t.Context(), "127.0.0.1"); err == nil {
		t.Error("an address without a port")
	}
	// The number is taken for UDP alone: nothing of the TCP side stays behind.
	taken, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	address := taken.LocalAddr().String()
	if _, _, err := Bind(t.Context(), address); err == nil {
		t.Error("bound where UDP is taken")
	}
	again, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("the listener stayed behind: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
