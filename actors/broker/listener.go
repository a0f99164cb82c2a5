package broker

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
)

const (
	// sweepEvery is how often stalled reservations are looked for while somebody waits for memory.
	sweepEvery = 250 * time.Millisecond
	// acceptBackOff is the pause after an error of accept, and between looks for a free place.
	acceptBackOff = 100 * time.Millisecond
	// idleSweepLeast and idleSweepMost bound the interval at which idle connections are looked for.
	idleSweepLeast = 100 * time.Millisecond
	idleSweepMost  = 10 * time.Second
)

// listenerActor accepts connections on one address and is the parent of their sessions.
type listenerActor struct {
	shared   *shared
	log      zerolog.Logger
	name     string           // of the listener
	listener *net.TCPListener // nil: connections come by Broker.Connect only
	places   *places
	opened   chan struct{} // closed when connections may be accepted

	self     *runtime.Ref
	group    sync.WaitGroup // the accepting goroutine, the readers, the waits for writability
	idle     *runtime.Timer
	sweep    *runtime.Timer
	sweeping bool
	stop     chan struct{}
	draining []func() // told when the last session is gone

	mu    sync.Mutex
	next  uint64 // names sessions
	lines map[*line]struct{}
}

// drainListener asks for a stop: accept nothing more, finish what was begun. done is told, once, when the last session is gone.
type drainListener struct{ done func() }

// Bytes implements runtime.Message.
func (*drainListener) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (d *drainListener) Reject(error) { d.done() }

// Started implements runtime.Starter.
func (l *listenerActor) Started(t *runtime.Turn) {
	l.mu.Lock()
	l.self, l.lines, l.stop = t.Self(), make(map[*line]struct{}), make(chan struct{})
	l.mu.Unlock()
	l.idle, l.sweep = t.NewTimer(signalTick), t.NewTimer(signalSweep)
	l.idle.Reset(l.idleInterval())
	if l.listener != nil {
		l.group.Go(l.accept)
	}
}

// Turn implements runtime.Behaviour.
func (l *listenerActor) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case *drainListener:
			l.draining = append(l.draining, m.done)
			l.close()
			l.each(func(c *line) { _ = t.Send(c.session, signalDrain) }) // one that has stopped is drained
		case signal:
			l.signalled(t, m)
		default:
			panic("broker: a listener got a message that it does not know")
		}
	}
	l.tellDrained()
}

func (l *listenerActor) signalled(t *runtime.Turn, m signal) {
	switch m {
	case signalTick:
		l.closeIdle(t)
		l.hurryGone(t)
		l.idle.Reset(l.idleInterval())
	case signalShort:
		if !l.sweeping {
			l.sweeping = true
			l.sweep.Reset(sweepEvery)
		}
	case signalSweep:
		mono, _ := t.Now()
		if l.sweeping = l.shared.credit.sweep(mono); l.sweeping {
			l.sweep.Reset(sweepEvery)
		}
	default:
		panic("broker: a listener got a signal that it does not know")
	}
}

// Terminated implements runtime.Watcher: a session is gone.
func (l *listenerActor) Terminated(*runtime.Turn, *runtime.Ref) { l.tellDrained() }

func (l *listenerActor) tellDrained() {
	if len(l.draining) == 0 {
		return
	}
	l.mu.Lock()
	left := len(l.lines)
	l.mu.Unlock()
	if left > 0 {
		return
	}
	for _, done := range l.draining {
		done()
	}
	l.draining = nil
}

// close stops accepting.
func (l *listenerActor) close() {
	select {
	case <-l.stop:
		return
	default:
	}
	close(l.stop)
	l.places.wake()
	if l.listener == nil {
		return
	}
	if err := l.listener.Close(); err != nil {
		l.log.Debug().Err(err).Msg("closing the listener")
	}
}

// Stopping implements runtime.Stopper.
func (l *listenerActor) Stopping(*runtime.Turn) {
	l.close()
	l.each(func(c *line) { c.transport.Close() })
}

// Stopped implements runtime.Stopper: the sessions have stopped, so that their goroutines end. It waits for them on a goroutine of its own: on one that reads a
// connection, and happened to run this turn, it would wait for itself.
func (l *listenerActor) Stopped(*runtime.Turn) {
	l.group.Wait()
	l.tellDrained()
}

// each visits the lines, the oldest first.
func (l *listenerActor) each(f func(*line)) {
	l.mu.Lock()
	lines := make([]*line, 0, len(l.lines))
	for c := range l.lines {
		lines = append(lines, c)
	}
	l.mu.Unlock()
	slices.SortFunc(lines, func(a, b *line) int { return cmp.Compare(a.number, b.number) })
	for _, c := range lines {
		f(c)
	}
}

func (l *listenerActor) idleInterval() time.Duration {
	ms := l.shared.settings.Load().ConnectionIdleMs
	if ms < 0 {
		return idleSweepMost
	}
	return min(max(millis(ms)/10, idleSweepLeast), idleSweepMost)
}

// closeIdle asks the sessions of quiet connections to end, if they have nothing to do either.
func (l *listenerActor) closeIdle(t *runtime.Turn) {
	ms := l.shared.settings.Load().ConnectionIdleMs
	if ms < 0 {
		return
	}
	mono, _ := t.Now()
	quiet := mono - ident.Instant(millis(ms))
	l.each(func(c *line) {
		if ident.Instant(c.active.Load()) < quiet {
			_ = t.Send(c.session, signalIdle) // one that has stopped is not idle
		}
	})
}

// hurryGone looks for connections that are not read because their session has enough to do, and whose peer has gone: a fetch would wait its whole time for
// nobody, weeks if the peer wished so, and keep the descriptor.
func (l *listenerActor) hurryGone(t *runtime.Turn) {
	l.each(func(c *line) {
		if s, ok := c.transport.(*socket); ok && c.gate.closed.Load() && s.peerGone() {
			_ = t.Send(c.session, signalHurry) // one that has stopped waits for nothing
		}
	})
}

// accept is the goroutine that accepts.
func (l *listenerActor) accept() {
	select {
	case <-l.opened:
	case <-l.stop:
		return
	}
	for l.places.await(l.stop, func() int32 { return l.shared.settings.Load().ConnectionsMax }) {
		c, err := l.listener.AcceptTCP()
		if err != nil {
			l.places.leave()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if skipped, ok := l.shared.sampled.due(codeDescriptors); ok {
				l.log.Error().Err(err).Int("skipped", skipped).Msg(codeDescriptors + ": a connection could not be accepted; trying again")
			}
			l.pause()
			continue
		}
		if err := l.admit(c); err != nil {
			l.shared.metrics.refused.Add(1)
			l.shared.sampled.closed(&handler.Client{Address: addressOf(c)}, err)
			_ = c.Close() // it was never used
			l.places.leave()
		}
	}
}

// pause waits a moment.
func (l *listenerActor) pause() {
	over := make(chan struct{})
	alarm := l.shared.system.Clock().NewAlarm(func() { close(over) })
	alarm.Set(acceptBackOff)
	select {
	case <-over:
	case <-l.stop:
		alarm.Cancel()
	}
}

func addressOf(c *net.TCPConn) netip.AddrPort {
	a, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := a.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// enter counts a connection of an address, or says why it may not have one more.
func (l *listenerActor) enter(address netip.AddrPort) error {
	most := l.shared.settings.Load().ConnectionsPerIPMax
	if !l.places.enter(address.Addr(), most) {
		return &limitError{codeTooManyPerIP, fmt.Sprintf("max.connections.per.ip allows %d connections of one address", most)}
	}
	return nil
}

// admit starts the session and the reader of a connection.
func (l *listenerActor) admit(tcp *net.TCPConn) error {
	address := addressOf(tcp)
	if err := l.enter(address); err != nil {
		return err
	}
	c, err := l.start(tcp, address)
	if err != nil {
		l.places.exit(address.Addr())
		return err
	}
	l.shared.metrics.accepted.Add(1)
	l.shared.metrics.open.Add(1)
	l.group.Go(c.read)
	return nil
}

func (l *listenerActor) start(tcp *net.TCPConn, address netip.AddrPort) (*conn, error) {
	settings := l.shared.settings.Load()
	if n := int(settings.SendBufferBytes); n >= 0 {
		if err := tcp.SetWriteBuffer(n); err != nil {
			return nil, err
		}
	}
	if n := int(settings.ReceiveBufferBytes); n >= 0 {
		if err := tcp.SetReadBuffer(n); err != nil {
			return nil, err
		}
	}
	sock, err := newSocket(tcp, l.shared.system.Clock(), func(f func()) { l.group.Go(f) })
	if err != nil {
		return nil, err
	}
	c := &conn{socket: sock, credit: make(chan struct{}, 1)}
	if err := l.open(&c.line, c, sock, address); err != nil {
		return nil, err
	}
	sock.self = c.session
	return c, nil
}
