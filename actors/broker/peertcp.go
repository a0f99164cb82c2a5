package broker

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// dialMax is how long connecting may take, TLS included.
const dialMax = 3 * time.Second

// tcpPeers is the PeerNetwork of this machine.
type tcpPeers struct {
	clock runtime.Clock
	tls   *tls.Config // nil: links are not encrypted
	group sync.WaitGroup

	mu     sync.Mutex
	ends   map[*PeerWire]func() // how each connection, or attempt, is ended
	closed bool
}

func newTCPPeers(clock runtime.Clock, c *tls.Config) *tcpPeers {
	return &tcpPeers{clock: clock, tls: c, ends: make(map[*PeerWire]func())}
}

// Dial implements PeerNetwork. The goroutine that connects reads the connection afterwards.
func (n *tcpPeers) Dial(address string, to *PeerWire) {
	ctx, cancel := context.WithTimeout(context.Background(), dialMax)
	n.end(to, cancel)
	n.group.Go(func() {
		defer n.forget(to)
		s, err := n.connect(ctx, address, to)
		cancel()
		if err != nil {
			to.Failed(err)
			return
		}
		s.adopt(to.link)
		to.Connected(s)
		to.read(s)
	})
}

// end notes how a connection is ended when the network is closed; at once when it is closed already.
func (n *tcpPeers) end(w *PeerWire, end func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		end()
		return
	}
	n.ends[w] = end
}

func (n *tcpPeers) forget(w *PeerWire) {
	n.mu.Lock()
	delete(n.ends, w)
	n.mu.Unlock()
}

func (n *tcpPeers) connect(ctx context.Context, address string, w *PeerWire) (linkReader, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	n.end(w, func() { _ = c.Close() }) // whoever reads it hears of it
	wait := func(f func()) { n.group.Go(f) }
	if n.tls == nil {
		s, err := newSocket(c.(*net.TCPConn), n.clock, wait)
		if err != nil {
			_ = c.Close() // it was never used
			return nil, err
		}
		return s, nil
	}
	t := tls.Client(c, n.tls)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = c.Close() // it was never used
		return nil, tlsError(err)
	}
	return newTLSSocket(t, n.clock, wait), nil
}

// Close implements PeerNetwork.
func (n *tcpPeers) Close() {
	n.mu.Lock()
	n.closed = true
	for _, end := range n.ends {
		end()
	}
	n.mu.Unlock()
	n.group.Wait()
}
