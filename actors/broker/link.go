package broker

import (
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// Codes of what ends or refuses a connection between brokers; docs/errors.md explains each.
const (
	codeLinkGreeting = "TRP-3301" // no greeting in time
	codeLinkSilent   = "TRP-3302" // the other broker is silent, or takes nothing
	codeLinkQueue    = "TRP-3303" // more waits for the other broker than may
	codeLinkMany     = "TRP-3304" // too many connections to the peer port
	codeLinkCluster  = "TRP-4301" // of another cluster
	codeLinkBroker   = "TRP-4302" // of another broker than was expected, or of this one's id
	codeLinkVersion  = "TRP-4303" // of a version without common words
	codeLinkRun      = "TRP-4304" // of a run that is over
	codeLinkTLS      = "TRP-4305" // without TLS where it is demanded, or a certificate is refused
	codeLinkAgain    = "TRP-4306" // of a run that has registered while it was made
)

// linkQueueMax is how many encoded bytes may wait for the peer.
const linkQueueMax = 8 << 20

// linkHandler is who hears what comes by links. Its methods are called on turns of links and may only send.
type linkHandler interface {
	// admit looks at who wants a link, or was reached, before it is open; an error refuses it in words.
	admit(who *peer.Identity) error
	// opened tells of a link that can be used from now on. What was sent by an earlier one of its kind may have been lost.
	opened(t *runtime.Turn, l *linkInfo)
	// closed tells that it cannot be used any more.
	closed(t *runtime.Turn, l *linkInfo, reason error)
	// down tells that all links of a broker have ended and nobody listens at its address: this run of it is over.
	down(t *runtime.Turn, who peer.Identity)
	// heard tells of a message. It is valid during the call, with all it refers to.
	heard(t *runtime.Turn, l *linkInfo, m peer.Message)
	// letter tells of a whole letter, whose data is the callee's.
	letter(t *runtime.Turn, l *linkInfo, from, to ident.NodeID, data []byte)
	// answered tells of records. They are valid while the callee has a reference to hold, and are the callee's to write to.
	answered(t *runtime.Turn, l *linkInfo, a *peer.Answer, hold *chunk)
}

// linkActor is the actor of one connection to another broker.
//
//	dialling ── connected ──> greeting ── Hello and Welcome ──> open ── refused, or refuses ──> ending ──> stopped
//	    └─────── fails ──────────┴──────── hangs up ───────────────┴───────────────────────────────────────────┘
//
// Who is ending has said why and waits, a second at most, for the peer to read it.
type linkActor struct {
	links   *links
	log     zerolog.Logger
	wire    *PeerWire
	info    *linkInfo
	expect  ident.BrokerID // whom it dials
	address string
	me      peer.Identity // as stated in the greeting

	transport *linkMeter // nil while dialling
	state     linkState
	reason    error
	refused   bool // nobody listens there
	openedAt  ident.Instant
	now       ident.Instant  // of what is being said
	timer     *runtime.Timer // the greeting's, the probe's, the end's
	out       output
	decoded   [64]peer.Message // by code; used again

	probe    linkProbe
	requests linkRequests
	letters  linkLetters
	reports  linkReports
}

type linkState uint8

const (
	linkDialling linkState = iota
	linkGreeting
	linkOpen
	linkEnding
)

// linkVoid tells a link that another has taken its place.
type linkVoid struct{ reason error }

// Bytes implements runtime.Message.
func (*linkVoid) Bytes() int { return 0 }

var (
	errLinkVoid  = errors.New("another connection, or another run of the broker, has taken its place")
	errLinkStops = errors.New("the broker does not want this connection any more")
	errLinkSkips = errors.New("the connection to the other broker has ended")
)

// Started implements runtime.Starter.
func (l *linkActor) Started(t *runtime.Turn) {
	l.info.ref = t.Self()
	l.out.store = l.links.buffers
	l.timer = t.NewTimer(signalTick)
	l.timer.Reset(l.links.pace.greeting)
	l.letters.in = linkPieces{what: "letter", max: peer.LetterMax, held: &l.links.pieces}
	l.requests.start(t, &l.links.pieces)
	l.reports.start(t)
}

// Turn implements runtime.Behaviour.
func (l *linkActor) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		l.take(t, m)
	}
	l.advance(t)
}

func (l *linkActor) take(t *runtime.Turn, m runtime.Message) {
	switch m := m.(type) {
	case *linkFrames:
		l.arrived(t, m)
	case *linkConnected:
		l.connected(m.transport)
	case *linkFailed:
		l.failed(t, m.reason)
	case *linkBroken:
		l.end(t, m.reason)
	case *linkVoid:
		l.drop(t, m.reason)
	case *hangup:
		l.hungUp(t, m)
	case signal:
		l.signalled(t, m)
	case outgoing:
		l.say(t, m)
	default:
		panic("broker: a link got a message that it does not know")
	}
}

func (l *linkActor) signalled(t *runtime.Turn, m signal) {
	switch m {
	case signalWritable, signalProceed, signalWarm:
		l.out.resume()
	case signalTick:
		l.tick(t)
	case signalDue:
		l.requests.expire(t)
	case signalMarks:
		l.reports.due = true
	default:
		panic("broker: a link got a signal that it does not know")
	}
}

// tick is the end of a greeting or a farewell that took too long, or the time of a probe.
func (l *linkActor) tick(t *runtime.Turn) {
	switch l.state {
	case linkDialling, linkGreeting:
		l.end(t, &limitError{codeLinkGreeting, fmt.Sprintf("no greeting of the other broker within %v", l.links.pace.greeting)})
	case linkOpen:
		l.look(t)
	case linkEnding:
		t.Stop()
	}
}

// connected begins the greeting of a link that was dialled.
func (l *linkActor) connected(to Transport) {
	l.transport = &linkMeter{Transport: to}
	l.state = linkGreeting
	l.me = l.links.table.identity()
	l.preface()
	l.append(&peer.Hello{VersionMin: l.links.versions.Min, VersionMax: l.links.versions.Max, Purpose: l.info.purpose, Expect: l.expect, Identity: l.me})
}

func (l *linkActor) preface() { l.out.end(append(l.out.begin(len(peer.Preface)), peer.Preface...)) }

// append puts a message behind what waits to be written. One that came with a version that is not spoken is left out: whoever sends it asks speaks what else
// to say.
func (l *linkActor) append(m peer.Message) {
	if since := m.Code().Since(); since > l.links.versions.Min && since > l.speaks() {
		return
	}
	l.out.end(m.AppendTo(l.out.begin(frameSize(m))))
}

// speaks is the version whose messages may be sent: that of the handshake, but none that the cluster has not finalised. This broker's image may lag, and then
// it speaks an older one for a moment longer.
func (l *linkActor) speaks() uint8 {
	level := int16(0)
	if image := l.links.shared.image.Load(); image != nil {
		level = image.FeatureLevel(cluster.PeerVersion)
	}
	return min(l.info.version, uint8(max(level, int16(l.links.versions.Min))))
}

func (l *linkActor) failed(t *runtime.Turn, reason error) {
	l.refused = isRefused(reason)
	l.drop(t, reason)
}

func (l *linkActor) hungUp(t *runtime.Turn, h *hangup) {
	if l.state != linkEnding {
		l.reason = h.reason
	}
	l.drop(t, l.reason)
}

// arrived goes through the frames that came.
func (l *linkActor) arrived(t *runtime.Turn, f *linkFrames) {
	l.probe.heard, _ = t.Now()
	for i := range f.frames {
		if l.state == linkEnding || l.info.voided.Load() {
			break
		}
		if err := l.frame(t, &f.frames[i]); err != nil {
			l.end(t, err)
		}
	}
	f.done()
}

// frame decodes one.
func (l *linkActor) frame(t *runtime.Turn, f *linkFrame) error {
	b, err := peer.Open(f.bytes)
	if err != nil {
		return err
	}
	code := b.Code()
	switch {
	case !code.Known() && code.MustKnow():
		return &wire.ProtocolError{Code: peer.CodeUnknown, Reason: fmt.Sprintf("the other broker sent %v, which this version must know and does not", code)}
	case !code.Known():
		return nil
	}
	m := l.decoded[code]
	if m == nil {
		m = peer.New(code)
		l.decoded[code] = m
	}
	if err := m.Decode(b); err != nil {
		return err
	}
	if l.state == linkGreeting {
		return l.greeted(t, m)
	}
	if !code.On(l.info.purpose) || l.info.purpose == peer.Data && !code.FromDialler() && !l.info.dialled || l.info.purpose == peer.Data && l.info.dialled &&
		(code == peer.CodeAsks || code == peer.CodeWithdraw || code == peer.CodeRangeAsk || code == peer.CodeDigestAsk) || l.info.founding && !code.Founding() {
		return misplaced(m)
	}
	return l.heard(t, m, f)
}

func misplaced(m peer.Message) error {
	return &wire.ProtocolError{Code: peer.CodeMisplaced, Reason: fmt.Sprintf("a %v of the other broker has no place on this connection, or not now", m.Code())}
}

// heard does what a message asks for, or tells it.
func (l *linkActor) heard(t *runtime.Turn, m peer.Message, f *linkFrame) error {
	handler, epoch := l.links.handler, l.info.peer.Epoch
	switch m := m.(type) {
	case *peer.Ping:
		l.append(&peer.Pong{Number: m.Number})
		return nil
	case *peer.Pong:
		return nil // that it came is all that counts
	case *peer.Refuse:
		return &refusedError{code: m.Reason, text: m.Text}
	case *peer.Letter:
		data, err := l.letters.in.arrived(m.Seq, m.Offset, m.Total, m.Data)
		if data != nil {
			handler.letter(t, l.info, m.From, m.To, data)
		}
		return err
	case *peer.Request:
		whole, err := l.requests.in.arrived(m.ID, m.Offset, max(m.Total, uint64(len(m.Body))), m.Body)
		if whole == nil {
			return err
		}
		m.Body, m.Offset = whole, 0
	case *peer.Response:
		l.requests.answered(m)
		return nil
	case *peer.Answer:
		handler.answered(t, l.info, m, f.chunk)
		return nil
	case *peer.Asks:
		if m.Epoch != epoch {
			return nil
		}
	case *peer.Withdraw:
		if m.Epoch != epoch {
			return nil
		}
	case *peer.Progress:
		if m.Epoch != epoch {
			return nil
		}
	case *peer.Watermarks:
		if m.Epoch != epoch {
			return nil
		}
	default:
		// Requests and announcements are for others altogether.
	}
	handler.heard(t, l.info, m)
	return nil
}

// refusedError is what the other broker said when it ended the connection.
type refusedError struct{ code, text string }

// Error gives the words of the other broker.
func (e *refusedError) Error() string { return "the other broker refuses: " + e.code + ": " + e.text }

// end says why the connection ends, and leaves the peer some time to read it.
func (l *linkActor) end(t *runtime.Turn, reason error) {
	var theirs *refusedError
	switch {
	case l.state == linkEnding:
		return
	case l.state == linkDialling, errors.As(reason, &theirs):
		l.drop(t, reason)
		return
	}
	if l.state == linkGreeting && !l.info.dialled {
		l.preface()
	}
	l.leave(t, reason)
	l.state = linkEnding
	l.append(&peer.Refuse{Reason: codeOf(reason), Text: withoutCode(reason)})
	l.timer.Reset(l.links.pace.farewell)
}

// withoutCode is what an error says without its code.
func withoutCode(err error) string {
	var protocol *wire.ProtocolError
	var limit *limitError
	switch {
	case errors.As(err, &protocol):
		return protocol.Reason
	case errors.As(err, &limit):
		return limit.reason
	}
	return err.Error()
}

// drop ends the link at once.
func (l *linkActor) drop(t *runtime.Turn, reason error) {
	l.leave(t, reason)
	l.state = linkEnding
	l.out.drop()
	if l.transport != nil {
		l.transport.Close()
	}
	t.Stop()
}

// leave makes a link that was open one that is not.
func (l *linkActor) leave(t *runtime.Turn, reason error) {
	if l.reason == nil {
		l.reason = reason
	}
	if l.state != linkOpen {
		return
	}
	l.state = linkEnding
	l.links.table.leave(l.info)
	l.requests.fail(errLinkSkips)
	l.letters.fail()
	l.links.handler.closed(t, l.info, l.reason)
}

// advance writes what the messages of a turn have left to be written.
func (l *linkActor) advance(t *runtime.Turn) {
	if l.transport == nil {
		return
	}
	if l.state == linkOpen {
		l.reports.flush(t, l)
	}
	for more := true; more; {
		if !l.write(t) {
			return
		}
		more = l.state == linkOpen && l.out.waiting() == 0 && (l.letters.piece(l) || l.requests.piece(l))
	}
	if n := l.out.waiting(); n > linkQueueMax {
		l.drop(t, &limitError{codeLinkQueue, fmt.Sprintf("%d bytes wait for the other broker, which takes too little", n)})
	}
	l.out.compact()
}

// write sends what can be sent, and says whether the link goes on.
func (l *linkActor) write(t *runtime.Turn) bool {
	if l.out.empty() {
		return true
	}
	before := l.out.state
	written := l.transport.written
	if err := l.out.write(l.transport); err != nil {
		if l.state != linkEnding {
			l.reason = err
		}
		l.drop(t, l.reason)
		return false
	}
	if l.transport.written != written {
		l.probe.said, _ = t.Now()
	}
	switch l.out.state {
	case outputBlocked:
		if before != outputBlocked {
			l.transport.WhenWritable()
		}
	case outputMore:
		if before != outputMore {
			_ = t.Send(l.info.ref, signalProceed) // refused only when the link stops
		}
	case outputCold:
		if before != outputCold {
			l.links.warm(t, l.info.ref, l.out.cold)
		}
	case outputReady: // all of it is out
	}
	return true
}

// Stopping implements runtime.Stopper.
func (l *linkActor) Stopping(t *runtime.Turn) {
	if l.reason == nil {
		l.reason = errLinkStops
	}
	l.leave(t, l.reason)
	l.out.drop()
	l.requests.fail(errLinkSkips)
	l.letters.in.drop()
	l.requests.in.drop()
	if l.transport != nil {
		l.transport.Close()
	}
}

// Stopped implements runtime.Stopper.
func (l *linkActor) Stopped(t *runtime.Turn) {
	_ = t.Send(l.links.ref, &linkGone{link: l}) // the actor of all links is gone only when the broker stops
}

// quiet tells whether the end of a link is nothing to write home about.
func quiet(reason error) bool {
	return errors.Is(reason, io.EOF) || errors.Is(reason, net.ErrClosed) || isReset(reason) || isRefused(reason) ||
		errors.Is(reason, errLinkVoid) || errors.Is(reason, errLinkStops)
}

// waiting is how many encoded bytes have not been written.
func (o *output) waiting() int { return len(o.buf) - o.sent }

// compactMin is how many bytes must be out before the rest is moved to the front.
const compactMin = 64 << 10

// compact forgets what is out while something is not: a link may never be idle.
func (o *output) compact() {
	if o.sent < compactMin || o.sent < len(o.buf)/2 {
		return
	}
	gone := o.sent
	o.buf = o.buf[:copy(o.buf, o.buf[gone:])]
	o.sent = 0
	n := copy(o.regions, o.regions[o.first:])
	clear(o.regions[n:])
	o.regions, o.first = o.regions[:n], 0
	for i := range o.regions {
		o.regions[i].at -= gone
	}
	if o.state == outputCold {
		o.cold = &o.regions[0].region
	}
}

// warm has a cold region read into the page cache.
func (s *links) warm(t *runtime.Turn, to *runtime.Ref, r *store.Region) { s.shared.warm(t, to, r) }
