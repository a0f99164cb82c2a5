package broker

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/actors/runtime"
)

// line is a connection as its listener knows it, whatever carries the bytes.
type line struct {
	*feed
	shared    *shared
	transport Transport
	peer      netip.Addr
	number    uint64       // of the session: the order in which lines are told something
	active    atomic.Int64 // ident.Instant of the last bytes
	revoked   atomic.Bool
}

// creditRevoked is half of claimant: closing the transport makes the reader let go.
func (l *line) creditRevoked() {
	l.revoked.Store(true)
	l.transport.Close()
}

// parking is called when no more bytes are there: a buffer into which nothing was read is given back, a request that has begun is on the clock.
func (l *line) parking() {
	l.in.unused()
	if l.in.partial() {
		l.in.stall(l.now())
	}
}

// ended lets go of what was not complete and tells the session.
func (l *line) ended(reason error, to runtime.Sender) {
	if l.revoked.Load() {
		reason = errRevoked
	}
	l.in.close()
	// A peer that only stopped sending may still read; if it does not, the next write says so. A session that has stopped knows.
	_ = to.Send(l.session, &hangup{reason: reason})
}

// open starts the session of a line. owner hears of its credit.
func (l *listenerActor) open(ln *line, owner claimant, to Transport, address netip.AddrPort) error {
	ln.shared, ln.transport, ln.peer, ln.number = l.shared, to, address.Addr(), l.places.number()
	ln.feed = newFeed(l.shared, owner)
	ln.active.Store(int64(ln.now()))
	s := &session{transport: to, gate: ln.gate, left: func() { l.gone(ln) }}
	s.client = handler.Client{Address: address, Listener: l.name, Principal: "User:ANONYMOUS"}
	// Whoever goes through the lines finds only those that have a session.
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines == nil {
		return net.ErrClosed // the broker serves, and its listener has not had its first turn
	}
	l.next++
	session, err := spawnSession(l.shared, l.self, ln.number, l.next, s)
	if err != nil {
		return err
	}
	ln.session = session
	l.lines[ln] = struct{}{}
	return nil
}

// gone forgets a line whose session has stopped.
func (l *listenerActor) gone(ln *line) {
	l.mu.Lock()
	delete(l.lines, ln)
	l.mu.Unlock()
	l.places.exit(ln.peer)
	l.places.leave()
	l.shared.metrics.open.Add(-1)
}

// Link is a connection that somebody carries who is no kernel: a simulated network, or a test. The carrier offers the bytes that arrive by Receive, tells
// by Writable and Stalled what its Transport promises to tell, and ends the connection by End. All methods are called by one goroutine at a time; none
// waits.
type Link struct {
	line
	runner *runtime.Runner
	waits  bool // for credit
	over   bool
}

var errNoPlace = errors.New("max.connections are open")

// Connect opens a connection to the first listener, over a Transport of the caller's. The broker must serve.
func (b *Broker) Connect(to Transport, peer netip.AddrPort) (*Link, error) {
	if !b.Ready() {
		return nil, net.ErrClosed
	}
	l, settings := b.doors[0], b.shared.settings.Load()
	if !l.places.try(settings.ConnectionsMax) {
		return nil, errNoPlace
	}
	if err := l.enter(peer); err != nil {
		l.places.leave()
		return nil, err
	}
	k := &Link{runner: runtime.NewRunner(b.shared.system)}
	if err := l.open(&k.line, k, to, peer); err != nil {
		l.places.exit(peer.Addr())
		l.places.leave()
		return nil, err
	}
	l.shared.metrics.accepted.Add(1)
	l.shared.metrics.open.Add(1)
	return k, nil
}

// creditGranted implements claimant. The next Receive goes on.
func (k *Link) creditGranted() {}

// Receive takes in the first bytes of b and returns how many. It takes fewer than all when the session has enough to do, or memory is short: the carrier
// offers the rest again later, and asks with nothing to offer as long as Waits. An error is the broker's end of the connection.
func (k *Link) Receive(b []byte) (n int, err error) {
	if k.over {
		return 0, net.ErrClosed
	}
	for err == nil && !k.gate.closed.Load() {
		if k.waits {
			granted := false
			if granted, err = k.granted(k.runner); !granted || err != nil {
				break
			}
			k.waits = false
			continue
		}
		if n == len(b) {
			k.parking()
			break
		}
		got := copy(k.in.space(), b[n:])
		if got == 0 {
			k.waits = true
			continue
		}
		n += got
		k.active.Store(int64(k.now()))
		err = k.took(got, k.runner)
	}
	if k.in.waiting {
		k.waits = true
	}
	k.runner.Run()
	if err != nil {
		k.End(err)
	}
	return n, err
}

// Waits tells that the broker holds back what it has received until memory is free.
func (k *Link) Waits() bool { return k.waits && !k.over }

// Takes tells that Receive would take bytes now.
func (k *Link) Takes() bool { return !k.over && !k.waits && !k.gate.closed.Load() }

// Writable tells the session that more can be written.
func (k *Link) Writable() { _ = k.session.Post(signalWritable) } // one that has stopped does not write

// Stalled tells the session that the peer took nothing for too long.
func (k *Link) Stalled() { _ = k.session.Post(&hangup{reason: errStalled, broken: true}) } // one that has stopped knows

// End ends the input, once. What was received is finished.
func (k *Link) End(reason error) {
	if k.over {
		return
	}
	k.over, k.waits = true, false
	if reason == nil {
		reason = io.EOF
	}
	k.ended(ending(reason), k.runner)
	k.runner.Run()
}
