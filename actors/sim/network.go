package sim

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
)

// ErrReset is how a connection ends that was cut, or whose far side is gone.
var ErrReset = errors.New("connection reset by peer")

// Weather is how the network behaves. It may be changed at any time.
type Weather struct {
	// DelayMin and DelayMax bound the time that a segment takes.
	DelayMin, DelayMax time.Duration
	// SegmentMax bounds a segment, which is what arrives at once.
	SegmentMax int
	// BufferMax bounds what one side has written and the other has not read: the
	// buffers of both sockets together.
	BufferMax int
	// NoticeMax bounds the time until a side hears that its connection was cut.
	NoticeMax time.Duration
}

// FairWeather is a good local network.
var FairWeather = Weather{
	DelayMin: 20 * time.Microsecond, DelayMax: 200 * time.Microsecond, SegmentMax: 16 << 10, BufferMax: 256 << 10,
	NoticeMax: 2 * time.Second,
}

// Network carries streams of bytes. A stream keeps its order, as TCP; streams do not
// keep theirs among each other, so that what one client sends on two connections
// overtakes itself.
type Network struct {
	Weather Weather

	world *World
	rand  *rand.Rand
	conns []*conn
	next  uint64
	held  map[way]bool // on which nothing moves
}

// way is a direction between two sides.
type way struct{ from, to string }

func newNetwork(w *World) *Network {
	return &Network{Weather: FairWeather, world: w, rand: w.Rand("network"), held: make(map[way]bool)}
}

// Handler is what one side of a connection does about what comes. It is called in
// events of the world, never inside a method of its End.
type Handler interface {
	// Receive offers bytes that have arrived and returns how many are taken. The rest
	// is offered again with what comes next, or after End.Resume. b is valid for the
	// call only.
	Receive(b []byte) int
	// Writable tells that there is room, after a Write that was short.
	Writable()
	// Closed tells, once, that nothing more comes: io.EOF after all bytes of a far side
	// that closed, ErrReset when the connection broke.
	Closed(err error)
}

// conn is one connection.
type conn struct {
	id     uint64
	ends   [2]End
	broken bool // cut or aborted: nothing arrives any more
}

// End is one side of a connection.
type End struct {
	net     *Network
	conn    *conn
	far     *End
	owner   string
	arrives string // the event of bytes that come here
	handler Handler

	out       []segment     // under way to the far side, oldest first
	arrival   ident.Instant // of the youngest segment
	in        []byte        // arrived and not taken
	unread    int           // bytes in out and in the far side's in
	short     bool          // a Write was short: tell when there is room
	closed    bool          // by this side: it writes nothing and hears nothing
	finished  bool          // the far side's end has arrived
	told      bool          // of the end: by Closed, or by its own doing
	offering  bool          // an event will offer what is in
	scheduled bool          // an event will deliver what is out
}

type segment struct {
	bytes []byte
	at    ident.Instant
	fin   bool
}

// Connect joins two sides, named by whose they are, and returns their ends. Handlers
// are called from the next event on.
func (n *Network) Connect(a string, ah Handler, b string, bh Handler) (*End, *End) {
	n.next++
	c := &conn{id: n.next}
	for i := range c.ends {
		c.ends[i] = End{net: n, conn: c, far: &c.ends[1-i], owner: a, handler: ah}
	}
	c.ends[1].owner, c.ends[1].handler = b, bh
	for i := range c.ends {
		c.ends[i].arrives = "bytes for " + c.ends[i].owner
	}
	n.conns = append(n.conns, c)
	n.world.Note(fmt.Sprintf("connection %d: %s to %s", c.id, a, b))
	return &c.ends[0], &c.ends[1]
}

// Connections lists the ends that the named side has, oldest first.
func (n *Network) Connections(owner string) []*End {
	var ends []*End
	for _, c := range n.conns {
		for i := range c.ends {
			if c.ends[i].owner == owner && !c.ends[i].closed {
				ends = append(ends, &c.ends[i])
			}
		}
	}
	return ends
}

// Hold stops all bytes between two sides, or lets them go on: a cable that is pulled
// and put back before a timeout. Nothing is lost.
func (n *Network) Hold(a, b string, on bool) {
	n.world.Note(fmt.Sprintf("hold %s %s %v", a, b, on))
	n.hold(on, way{a, b}, way{b, a})
}

// HoldOneWay does so for the bytes of one side to the other only.
func (n *Network) HoldOneWay(from, to string, on bool) {
	n.world.Note(fmt.Sprintf("hold %s to %s %v", from, to, on))
	n.hold(on, way{from, to})
}

func (n *Network) hold(on bool, ways ...way) {
	for _, w := range ways {
		n.held[w] = on
	}
	for _, c := range n.conns {
		for i := range c.ends {
			if e := &c.ends[i]; slices.Contains(ways, way{e.owner, e.far.owner}) {
				e.schedule()
			}
		}
	}
}

// Open tells whether a connection could be made between two sides: bytes move both ways.
func (n *Network) Open(a, b string) bool { return !n.held[way{a, b}] && !n.held[way{b, a}] }

// abortAll breaks all connections of a side that is gone.
func (n *Network) abortAll(owner string) {
	for _, e := range n.Connections(owner) {
		e.Abort()
	}
}

// forget drops a connection that has ended.
func (n *Network) forget(c *conn) {
	n.conns = slices.DeleteFunc(n.conns, func(o *conn) bool { return o == c })
}

// delay draws the time that a segment takes.
func (n *Network) delay() ident.Instant {
	spread := n.Weather.DelayMax - n.Weather.DelayMin
	return ident.Instant(n.Weather.DelayMin) + ident.Instant(n.rand.Int64N(int64(spread)+1))
}

// Owner is the name of this side.
func (e *End) Owner() string { return e.owner }

// String names the connection and the side.
func (e *End) String() string { return fmt.Sprintf("connection %d of %s", e.conn.id, e.owner) }

// Write takes as much of b as there is room for and returns how much; it copies. After
// a short one, Writable is called when there is room again. Like a socket, it takes
// bytes for a connection that is broken until this side has heard of it; then the
// error is ErrReset, or io.ErrClosedPipe after this side's own Close or Abort.
func (e *End) Write(b []byte) (int, error) {
	switch {
	case e.closed:
		return 0, io.ErrClosedPipe
	case e.told && e.conn.broken:
		return 0, ErrReset
	}
	room := max(0, e.net.Weather.BufferMax-e.unread)
	e.short = room < len(b)
	b = b[:min(room, len(b))]
	e.unread += len(b)
	if e.conn.broken {
		return len(b), nil
	}
	for rest := b; len(rest) > 0; {
		k := min(len(rest), 1+e.net.rand.IntN(e.net.Weather.SegmentMax))
		e.send(segment{bytes: slices.Clone(rest[:k])})
		rest = rest[k:]
	}
	return len(b), nil
}

// Resume has bytes that were not taken offered again, in an event of its own.
func (e *End) Resume() {
	if len(e.in) == 0 || e.offering {
		return
	}
	e.offering = true
	e.net.world.after(0, func() {
		e.offering = false
		e.offer()
	})
}

// Close ends the connection: what was written arrives, then the far side hears io.EOF.
// This side hears nothing more; bytes that still come for it break the connection.
func (e *End) Close() {
	if e.closed || e.told && e.conn.broken {
		e.closed = true
		return
	}
	e.closed, e.told, e.in = true, true, nil
	if !e.conn.broken {
		e.send(segment{fin: true})
	}
}

// Abort ends the connection at once: what is under way is lost, the far side hears
// ErrReset, this side nothing.
func (e *End) Abort() {
	e.closed, e.told = true, true
	e.conn.cut(e.net.delay())
}

// Cut breaks the connection between the sides: what is under way is lost. Each side
// hears ErrReset in its own time, up to Weather.NoticeMax.
func (e *End) Cut() {
	e.conn.cut(ident.Instant(e.net.Weather.NoticeMax))
}

func (c *conn) cut(noticeMax ident.Instant) {
	if c.broken {
		return
	}
	c.broken = true
	net := c.ends[0].net
	net.world.event("connection cut", c.id)
	net.forget(c)
	for i := range c.ends {
		e := &c.ends[i]
		e.out, e.in = nil, nil
		notice := time.Duration(net.rand.Int64N(int64(noticeMax) + 1))
		switch {
		case !e.told:
			net.world.after(notice, func() { e.tell(ErrReset) })
		case e.short && !e.closed:
			// It has heard the end of what it reads, and waits to write: its next Write says it.
			e.short = false
			net.world.after(notice, e.handler.Writable)
		}
	}
}

func (e *End) send(s segment) {
	e.arrival = max(e.arrival, e.net.world.Now()+e.net.delay())
	s.at = e.arrival
	e.out = append(e.out, s)
	e.schedule()
}

// schedule has the oldest segment arrive in its time.
func (e *End) schedule() {
	if e.scheduled || len(e.out) == 0 || e.net.held[way{e.owner, e.far.owner}] {
		return
	}
	e.scheduled = true
	e.net.world.after(time.Duration(e.out[0].at-e.net.world.Now()), func() {
		e.scheduled = false
		e.arrive()
	})
}

// arrive moves the oldest segment to the far side.
func (e *End) arrive() {
	if len(e.out) == 0 || e.net.held[way{e.owner, e.far.owner}] {
		return
	}
	s, far := e.out[0], e.far
	e.out = e.out[1:]
	e.net.world.event(far.arrives, e.conn.id, uint64(len(s.bytes)), fnv1a(s.bytes))
	switch {
	case s.fin:
		far.finished = true
		if far.closed && len(far.out) == 0 {
			e.net.forget(e.conn)
		}
	case far.closed:
		e.conn.cut(e.net.delay())
		return
	case len(far.in) == 0:
		far.in = s.bytes
	default:
		far.in = append(far.in, s.bytes...)
	}
	e.schedule()
	far.offer()
}

// fnv1a is the hash of hash/fnv, without the garbage that its interface makes: it is asked for each segment.
func fnv1a(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// offer gives the handler what has arrived.
func (e *End) offer() {
	if e.closed || e.told {
		return
	}
	if all := len(e.in); all > 0 {
		n := e.handler.Receive(e.in)
		if n < 0 || n > all {
			panic(fmt.Sprintf("sim: %s took %d of %d bytes", e, n, all))
		}
		if e.closed || e.conn.broken {
			return
		}
		if e.in = e.in[n:]; len(e.in) == 0 {
			e.in = nil
		}
		e.far.read(n)
	}
	if e.finished && len(e.in) == 0 {
		e.tell(io.EOF)
	}
}

// read makes room for what the far side has taken.
func (e *End) read(n int) {
	e.unread -= n
	if n == 0 || !e.short {
		return
	}
	e.short = false
	e.net.world.after(time.Duration(e.net.delay()), func() {
		if !e.closed && !e.conn.broken {
			e.handler.Writable()
		}
	})
}

func (e *End) tell(err error) {
	if !e.told {
		e.told = true
		e.net.world.event("end for "+e.owner+": "+err.Error(), e.conn.id)
		e.handler.Closed(err)
	}
}
