package broker

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

const (
	// redialFirst and redialLast bound the pause before a connection is dialled again; it doubles with each failure. The first time there is none.
	redialFirst = 50 * time.Millisecond
	redialLast  = time.Second
	// linkStable is how long a link must have been open for its end to count as no failure.
	linkStable = ident.Instant(time.Second)
	// linksMax bounds the connections from other brokers.
	linksMax = 512
)

// PeerNetwork is how brokers reach each other: TCP, or a simulated network.
type PeerNetwork interface {
	// Dial begins to connect to a peer address, "host:port", and returns at once. It tells the outcome by Connected or Failed of the wire, once, later.
	Dial(address string, to *PeerWire)
	// Close ends what is being dialled, and what was, and waits for it.
	Close()
}

// linkOptions say what links to have.
type linkOptions struct {
	self    peer.Identity
	handler linkHandler
	network PeerNetwork
	port    *peerPort // nil: connections of others come by accept only
	pace    linkPace
	// versions are those that this broker speaks.
	versions peer.Versions
	// answerBytesMax bounds a frame of a data connection.
	answerBytesMax int
	// creditBytes is the memory for records that are on their way in.
	creditBytes int64
}

// links is what the rest of the broker knows of the links: who is reached, and how to send. It may be used from anywhere.
type links struct {
	linkOptions
	shared  *shared
	table   *linkTable
	credit  *creditPool
	buffers *buffers
	ref     *runtime.Ref

	accepted atomic.Int32 // links of others that have not stopped
	pieces   atomic.Int64 // bytes of letters and requests that have not come as a whole
}

// startLinks starts the actor of all links below parent.
func startLinks(s *shared, parent *runtime.Ref, o linkOptions) (*links, error) {
	ls := &links{linkOptions: o, shared: s, table: newLinkTable(o.self)}
	ls.credit = newCreditPool(o.creditBytes, nil)
	ls.buffers = newBuffers(o.creditBytes / buffersKept)
	a := &linksActor{links: ls, log: s.log}
	ref, err := s.system.Spawn(parent, blocking(cast("links", "links", a)))
	if err != nil {
		return nil, err
	}
	ls.ref = ref
	if o.port != nil {
		o.port.links = ls
	}
	if err := ref.Post(signalOpen); err != nil {
		return nil, err
	}
	return ls, nil
}

// send sends something over the link of a purpose that this side has dialled; false: there is none. What was sent may be lost with the link.
func (ls *links) send(from runtime.Sender, to ident.BrokerID, purpose peer.Purpose, m outgoing) bool {
	l := ls.table.find(to, purpose, true)
	if l == nil {
		m.Reject(errLinkSkips)
		return false
	}
	return from.Send(l.ref, m) == nil // Reject was called
}

// know tells the address of a broker, to which a control connection is held from then on. An empty address forgets it.
func (ls *links) know(b ident.BrokerID, address string) {
	_ = ls.ref.Post(&knowPeer{broker: b, address: address}) // gone only when the broker stops
}

// follow says whether a data connection to a broker is wanted.
func (ls *links) follow(b ident.BrokerID, on bool) {
	_ = ls.ref.Post(&followPeer{broker: b, on: on}) // gone only when the broker stops
}

// become changes who this broker is: it has registered, or has a cluster. All connections are opened again.
func (ls *links) become(self peer.Identity) {
	for _, l := range ls.table.become(self) {
		_ = l.ref.Post(&linkVoid{reason: errLinkStops}) // one that has stopped is gone already
	}
}

// accept takes a connection of another broker, over a Transport of the caller's.
func (ls *links) accept(to Transport, from netip.AddrPort) (*PeerWire, error) {
	if ls.accepted.Add(1) > linksMax {
		ls.accepted.Add(-1)
		return nil, &limitError{codeLinkMany, fmt.Sprintf("other brokers have opened %d connections", linksMax)}
	}
	w := ls.newWire(peer.ControlMax, false)
	l := &linkActor{links: ls, log: ls.shared.log, wire: w, info: &linkInfo{}, expect: ident.NoBroker, address: from.String(), transport: &linkMeter{Transport: to}, state: linkGreeting}
	if err := ls.spawn(l); err != nil {
		ls.accepted.Add(-1)
		return nil, err
	}
	return w, nil
}

// dial starts a link to a broker.
func (ls *links) dial(b ident.BrokerID, address string, purpose peer.Purpose) (*linkActor, error) {
	limit := peer.ControlMax
	if purpose == peer.Data {
		limit = ls.answerBytesMax + peer.AnswerHeadMax
	}
	l := &linkActor{
		links: ls, log: ls.shared.log, wire: ls.newWire(limit, purpose == peer.Data), info: &linkInfo{purpose: purpose, dialled: true}, expect: b, address: address,
	}
	if err := ls.spawn(l); err != nil {
		return nil, err
	}
	ls.network.Dial(address, l.wire)
	return l, nil
}

func (ls *links) newWire(limit int, paid bool) *PeerWire {
	w := &PeerWire{runner: runtime.NewRunner(ls.shared.system), room: make(chan struct{}, 1), credit: make(chan struct{}, 1)}
	w.in = linkIntake{pool: ls.credit, store: ls.buffers, owner: w, limit: limit, paid: paid}
	return w
}

func (ls *links) spawn(l *linkActor) error {
	spec := cast("link", "link-"+strconv.FormatUint(ls.shared.places.number(), 10), l)
	ref, err := ls.shared.system.Spawn(ls.ref, spec)
	if err != nil {
		return err
	}
	l.wire.link = ref
	return nil
}

// linksActor keeps connections to the brokers that it is told of, and is the parent of all links.
type linksActor struct {
	links *links
	log   zerolog.Logger
	peers map[ident.BrokerID]*linkTarget
	group sync.WaitGroup
}

// linkTarget is a broker that is to be reached.
type linkTarget struct {
	broker  ident.BrokerID
	address string
	trouble complaint   // no connection can be made, or kept
	met     bool        // a link of it has been open
	refused bool        // nobody listened when it was dialled last; no link has opened since
	lines   [2]linkLine // control, data
}

// linkLine is one connection that is wanted, or not.
type linkLine struct {
	wanted   bool
	link     *linkActor   // dialling or open
	ref      *runtime.Ref // of it
	failures int
	timer    *runtime.Timer // for the next attempt; nil: none is to come
}

// rest calls off the next attempt.
func (l *linkLine) rest() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// Messages of the links actor.
type (
	knowPeer struct {
		broker  ident.BrokerID
		address string
	}
	followPeer struct {
		broker ident.BrokerID
		on     bool
	}
	// redial is a timer's.
	redial struct {
		broker  ident.BrokerID
		purpose peer.Purpose
	}
	// linkOpened tells that a link is open.
	linkOpened struct {
		link   *linkActor
		broker ident.BrokerID
	}
	// linkGone tells that a link has stopped.
	linkGone struct{ link *linkActor }
)

// Bytes implements runtime.Message.
func (*knowPeer) Bytes() int   { return 0 }
func (*followPeer) Bytes() int { return 0 }
func (*redial) Bytes() int     { return 0 }
func (*linkOpened) Bytes() int { return 0 }
func (*linkGone) Bytes() int   { return 0 }

// Started implements runtime.Starter.
func (a *linksActor) Started(*runtime.Turn) { a.peers = make(map[ident.BrokerID]*linkTarget) }

// Turn implements runtime.Behaviour.
func (a *linksActor) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case *knowPeer:
			a.know(t, m)
		case *followPeer:
			a.follow(t, m)
		case *redial:
			a.dial(m.broker, m.purpose)
		case *linkOpened:
			a.opened(m)
		case *linkGone:
			a.gone(t, m.link)
		case signal:
			if m != signalOpen {
				panic("broker: the links got a signal that they do not know")
			}
			if p := a.links.port; p != nil {
				a.group.Go(p.accept)
			}
		default:
			panic("broker: the links got a message that they do not know")
		}
	}
}

func (a *linksActor) target(b ident.BrokerID) *linkTarget {
	p := a.peers[b]
	if p == nil {
		p = &linkTarget{broker: b}
		a.peers[b] = p
	}
	return p
}

func (p *linkTarget) line(purpose peer.Purpose) *linkLine { return &p.lines[purpose-peer.Control] }

// know begins, moves or ends the control connection to a broker.
func (a *linksActor) know(t *runtime.Turn, m *knowPeer) {
	p := a.target(m.broker)
	moved := p.address != m.address
	p.address = m.address
	p.line(peer.Control).wanted = m.address != ""
	for i := range p.lines {
		l := &p.lines[i]
		if moved {
			l.failures = 0
			if l.link != nil {
				_ = t.Send(l.ref, &linkVoid{reason: errLinkStops}) // gone already
			}
		}
		a.dial(m.broker, peer.Purpose(i+1))
	}
	a.forget(m.broker)
}

// forget forgets a broker to which no connection is wanted, or there, so that memory follows the brokers of the cluster and not those that there ever were.
func (a *linksActor) forget(b ident.BrokerID) {
	if p := a.peers[b]; p != nil {
		if p.address != "" || p.line(peer.Data).wanted || p.line(peer.Control).link != nil || p.line(peer.Data).link != nil {
			return
		}
		delete(a.peers, b) // no attempt is to come where none is wanted
	}
	a.links.table.forget(b)
}

// follow begins or ends the data connection to a broker.
func (a *linksActor) follow(t *runtime.Turn, m *followPeer) {
	l := a.target(m.broker).line(peer.Data)
	l.wanted = m.on
	if !m.on && l.link != nil {
		_ = t.Send(l.ref, &linkVoid{reason: errLinkStops}) // gone already
	}
	a.dial(m.broker, peer.Data)
	a.forget(m.broker)
}

// dial dials if that is wanted and not done.
func (a *linksActor) dial(b ident.BrokerID, purpose peer.Purpose) {
	p := a.peers[b]
	if p == nil {
		return // forgotten, when the time of its next attempt had come already
	}
	l := p.line(purpose)
	if !l.wanted || p.address == "" {
		l.rest()
		return
	}
	if l.link != nil {
		return
	}
	l.rest()
	link, err := a.links.dial(b, p.address, purpose)
	if err != nil {
		return // the system stops
	}
	l.link, l.ref = link, link.wire.link
}

func (a *linksActor) opened(m *linkOpened) {
	if p := a.peers[m.broker]; p != nil {
		p.refused, p.met = false, true
		if m.link.info.dialled {
			p.trouble.over()
		}
	}
	if m.link.info.dialled {
		a.log.Info().Int32("peer", int32(m.broker)).Str("address", m.link.address).Stringer("purpose", m.link.info.purpose).Msg("connected to another broker")
	}
}

// gone dials again, and tells when nobody is there any more.
func (a *linksActor) gone(t *runtime.Turn, l *linkActor) {
	broker := l.expect
	if !l.info.dialled {
		a.links.accepted.Add(-1)
		broker = l.info.peer.Broker
	}
	p := a.peers[broker]
	a.tell(t, p, l)
	defer a.forget(broker)
	if p == nil || !l.info.dialled && l.openedAt == 0 {
		return
	}
	if line := p.line(l.info.purpose); line.link == l {
		line.link, line.ref = nil, nil
		a.again(t, p, line, l)
	}
	a.down(t, p, l)
}

// again dials again, after a while if it failed before.
func (a *linksActor) again(t *runtime.Turn, p *linkTarget, line *linkLine, l *linkActor) {
	if !line.wanted || p.address == "" {
		return
	}
	now, _ := t.Now()
	if l.openedAt != 0 && (now-l.openedAt >= linkStable || errors.Is(l.reason, errLinkStops) || errors.Is(l.reason, errLinkVoid)) {
		line.failures = 0
		a.dial(p.broker, l.info.purpose)
		return
	}
	if line.failures == 0 && l.openedAt != 0 {
		line.failures = 1
		a.dial(p.broker, l.info.purpose)
		return
	}
	pause := min(redialFirst<<min(line.failures, 10), redialLast)
	line.failures++
	pause += pause * time.Duration(a.links.shared.random.uint32()%256) / 1024 // brokers that lost the same one do not come back together
	line.rest()
	line.timer = t.After(pause, &redial{broker: p.broker, purpose: l.info.purpose})
}

// down tells that a broker is gone: its connections have ended and its kernel says that nobody listens.
func (a *linksActor) down(t *runtime.Turn, p *linkTarget, l *linkActor) {
	p.refused = p.refused || l.refused
	if !p.refused || a.links.table.open(p.broker) > 0 {
		return
	}
	if who, ok := a.links.table.last(p.broker); ok {
		a.links.handler.down(t, who)
	}
}

// againsMax is how often in a row a connection may be refused because the other broker has just registered, until that is worth a line.
const againsMax = 3

// tell writes the line that is worth writing. That a connection ends, and another is opened at once, is usual: each registration does that. A broker that
// cannot be reached is dialled every second, and needs no line each time.
func (a *linksActor) tell(t *runtime.Turn, p *linkTarget, l *linkActor) {
	usual := errors.Is(l.reason, errLinkVoid) || errors.Is(l.reason, errLinkStops) || saidBy(l.reason) == codeLinkAgain && (p == nil || p.line(l.info.purpose).failures < againsMax)
	switch {
	case usual || quiet(l.reason) && (!l.info.dialled || l.openedAt != 0):
		a.log.Debug().Str("address", l.address).Err(l.reason).Msg("a connection between brokers has ended")
	case !l.info.dialled || p == nil:
		a.links.shared.sampled.link(l)
	default:
		now, _ := t.Now()
		if !p.trouble.due(now, l.reason.Error()) {
			return
		}
		level := zerolog.WarnLevel
		if isRefused(l.reason) && (a.hasLeft(p.broker) || !p.met && !p.trouble.lasts(now)) {
			level = zerolog.InfoLevel // it has stopped in order, or starts later than this one
		}
		a.log.WithLevel(level).Int32("peer", int32(p.broker)).Str("address", l.address).Stringer("purpose", l.info.purpose).Err(l.reason).
			Msg("a connection to another broker could not be made, or was lost; trying again")
	}
}

// hasLeft tells whether a broker has stopped in order, and the cluster knows.
func (a *linksActor) hasLeft(id ident.BrokerID) bool {
	image := a.links.shared.image.Load()
	if image == nil {
		return false
	}
	b, ok := image.Broker(id)
	return ok && b.Fenced && b.ShuttingDown
}

// saidBy is the code of what ended a link, whichever side has said it.
func saidBy(reason error) string {
	if theirs, ok := errors.AsType[*refusedError](reason); ok {
		return theirs.code
	}
	return codeOf(reason)
}

// isRefused says whether nobody listens where a connection was dialled.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// Stopping implements runtime.Stopper.
func (a *linksActor) Stopping(*runtime.Turn) {
	if p := a.links.port; p != nil {
		p.close()
	}
}

// Stopped implements runtime.Stopper: all links have stopped, so that their goroutines end. It waits for them on a goroutine of its own: on one that reads a
// link, and happened to run this turn, it would wait for itself.
func (a *linksActor) Stopped(*runtime.Turn) {
	a.links.network.Close()
	a.group.Wait()
}

// link tells why a connection to another broker ended, now and then.
func (s *sampledLog) link(l *linkActor) {
	code := codeOf(l.reason)
	if theirs, ok := errors.AsType[*refusedError](l.reason); ok {
		code = "refused " + theirs.code[:min(len(theirs.code), len(codeLinkTLS))]
	}
	if skipped, ok := s.seldom("link " + code); ok {
		s.log.Warn().Str("address", l.address).Int32("peer", int32(l.info.peer.Broker)).Int("skipped", skipped).Err(l.reason).Msg("a connection between brokers has ended")
	}
}
