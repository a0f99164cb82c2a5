package broker

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// side is the links of one broker, on a free port of the loopback, and all they have told.
type side struct {
	*links
	t       testing.TB
	self    peer.Identity
	address string
	told    chan told
	held    chan *chunk   // answers that the test lets go of; nil: none
	refuse  error         // what admit says
	streams chan net.Conn // of gossip
	stopped bool
}

// told is one call of the handler.
type told struct {
	what   string // opened, closed, down, letter, answer, or the name of a message
	link   *linkInfo
	frame  []byte // of the message
	data   []byte // of a letter, payload of an answer
	reason error
	who    peer.Identity
}

type sideHandler struct{ *side }

func (h sideHandler) admit(*peer.Identity) error { return h.refuse }

func (h sideHandler) opened(_ *runtime.Turn, l *linkInfo) {
	h.told <- told{what: "opened", link: l, who: l.peer}
}

func (h sideHandler) closed(_ *runtime.Turn, l *linkInfo, reason error) {
	h.told <- told{what: "closed", link: l, reason: reason, who: l.peer}
}

func (h sideHandler) down(_ *runtime.Turn, who peer.Identity) { h.told <- told{what: "down", who: who} }

func (h sideHandler) heard(_ *runtime.Turn, l *linkInfo, m peer.Message) {
	h.told <- told{what: m.Code().String(), link: l, frame: m.AppendTo(nil)}
}

func (h sideHandler) letter(_ *runtime.Turn, l *linkInfo, from, to ident.NodeID, data []byte) {
	h.told <- told{what: fmt.Sprintf("letter from %d to %d", from, to), link: l, data: data}
}

func (h sideHandler) answered(_ *runtime.Turn, l *linkInfo, a *peer.Answer, hold *chunk) {
	if h.held != nil {
		hold.retain()
		h.held <- hold
		h.told <- told{what: "answer", link: l}
		return
	}
	h.told <- told{what: "answer", link: l, data: bytes.Clone(a.Payload), frame: (&peer.Answer{Topic: a.Topic, From: a.From}).AppendTo(nil)}
}

// identityOf is who a broker of the tests is.
func identityOf(broker ident.BrokerID, epoch ident.BrokerEpoch) peer.Identity {
	return peer.Identity{
		Cluster: "cluster", Broker: broker, Epoch: epoch, Directory: ident.DirectoryID{0: byte(broker), 1: 1}, Node: ident.NodeID(broker), Incarnation: [16]byte{byte(broker), byte(epoch)},
	}
}

// quickPace is for tests that wait for silence.
var quickPace = linkPace{
	greeting: 300 * time.Millisecond, farewell: 200 * time.Millisecond, tick: 50 * time.Millisecond, echo: 100 * time.Millisecond, stuck: 300 * time.Millisecond,
	silence: time.Second,
}

// shortFarewell is for tests that are refused often.
var shortFarewell = func() linkPace {
	p := usualPace
	p.farewell = 30 * time.Millisecond
	return p
}()

// sideOptions are what tests vary.
type sideOptions struct {
	self    peer.Identity
	address string // to listen on
	tls     *tls.Config
	pace    linkPace
	credit  int64
	answer  int
	log     io.Writer // nil: nobody reads it

	versions peer.Versions // zero: those of this build
}

func noLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// newShared is what links need of a broker.
func newShared(sys *runtime.System, log zerolog.Logger) *shared {
	s := &shared{system: sys, log: log, places: newPlaces(), random: &entropy{src: rand.Reader}, metrics: &metrics{}, buffers: newBuffers(1 << 20)}
	s.sampled = newSampledLog(log, sys.Clock())
	return s
}

func newSide(t testing.TB, o sideOptions) *side {
	t.Helper()
	sd := &side{t: t, self: o.self, told: make(chan told, 1<<16), streams: make(chan net.Conn, 16)}
	log := zerolog.Nop()
	if os.Getenv("TROUPE_TEST_LOG") != "" {
		log = zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.DebugLevel)
	}
	if o.log != nil {
		log = zerolog.New(o.log).Level(zerolog.DebugLevel)
	}
	sys := runtime.NewSystem(runtime.Options{Log: log, OnBug: func(b *runtime.Blame) { t.Errorf("a bug: %v\n%s", b, b.Stack) }})
	s := newShared(sys, log)
	if o.address == "" {
		o.address = "127.0.0.1:0"
	}
	if o.pace == (linkPace{}) {
		o.pace = usualPace
	}
	if o.versions == (peer.Versions{}) {
		o.versions = peer.Spoken
	}
	if o.credit == 0 {
		o.credit = 64 << 20
	}
	if o.answer == 0 {
		o.answer = 16 << 20
	}
	l, err := net.Listen("tcp", o.address)
	if err != nil {
		t.Fatal(err)
	}
	if s.pool, err = spawnPool(sys, nil, "io", 1); err != nil {
		t.Fatal(err)
	}
	sd.address = l.Addr().String()
	port := newPeerPort(l.(*net.TCPListener), o.tls, func(c net.Conn, _ bool) { sd.streams <- c })
	sd.links, err = startLinks(s, nil, linkOptions{
		self: o.self, handler: sideHandler{sd}, network: newTCPPeers(sys.Clock(), o.tls), port: port, pace: o.pace, versions: o.versions, answerBytesMax: o.answer, creditBytes: o.credit,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sd.stop)
	return sd
}

func (s *side) stop() {
	if s.stopped {
		return
	}
	s.stopped = true
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.shared.system.Shutdown(ctx); err != nil {
		s.t.Errorf("shutdown: %v", err)
	}
	for {
		select {
		case c := <-s.streams:
			_ = c.Close()
		default:
			for len(s.held) > 0 {
				(<-s.held).release()
			}
			if u := s.credit.use(); u.UsedBytes != 0 || u.SlotBusy {
				s.t.Errorf("%d bytes of credit are lost, slot busy: %v", u.UsedBytes, u.SlotBusy)
			}
			return
		}
	}
}

// await reads what is told until something is what is wanted.
func (s *side) await(what string, is func(told) bool) told {
	s.t.Helper()
	var seen []string
	for over := time.After(15 * time.Second); ; {
		select {
		case x := <-s.told:
			if (what == "" || x.what == what) && (is == nil || is(x)) {
				return x
			}
			seen = append(seen, fmt.Sprintf("%s %v", x.what, x.reason))
		case <-over:
			s.t.Fatalf("broker %d was not told %q; it was told %s", s.self.Broker, what, strings.Join(seen, ", "))
		}
	}
}

func on(p peer.Purpose, dialled bool) func(told) bool {
	return func(x told) bool { return x.link.purpose == p && x.link.dialled == dialled }
}

// post is a Sender of tests.
type post struct{}

func (post) Send(to *runtime.Ref, m runtime.Message) error { return to.Post(m) }

// meet connects two sides both ways and waits until that is done.
func meet(a, b *side) {
	a.t.Helper()
	for _, x := range [][2]*side{{a, b}, {b, a}} {
		x[0].know(x[1].self.Broker, x[1].address)
		x[0].follow(x[1].self.Broker, true)
	}
	for _, x := range []*side{a, b} {
		for range 4 {
			x.await("opened", nil)
		}
	}
}

// guest is a plain connection to a side's port, on which tests say what they want.
type guest struct {
	net.Conn
	t testing.TB
}

func (s *side) guest() *guest {
	s.t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return &guest{c, s.t}
}

func (g *guest) write(b []byte) {
	g.t.Helper()
	if _, err := g.Write(b); err != nil {
		g.t.Fatal(err)
	}
}

func helloOf(self peer.Identity, p peer.Purpose, expect ident.BrokerID) *peer.Hello {
	return &peer.Hello{VersionMin: 1, VersionMax: 1, Purpose: p, Expect: expect, Identity: self}
}

func greeting(m *peer.Hello) []byte { return m.AppendTo([]byte(peer.Preface)) }

// frame reads the next frame; an error when the connection ends.
func (g *guest) frame() (peer.Message, error) {
	g.t.Helper()
	if err := g.SetReadDeadline(time.Now().Add(15 * time.Second)); err != nil {
		g.t.Fatal(err)
	}
	var head [peer.LengthSize]byte
	if _, err := io.ReadFull(g, head[:]); err != nil {
		return nil, err
	}
	size, _, err := peer.Scan(head[:], 64<<20)
	if err != nil {
		return nil, err
	}
	f := make([]byte, size)
	copy(f, head[:])
	if _, err := io.ReadFull(g, f[len(head):]); err != nil {
		return nil, err
	}
	b, err := peer.Open(f)
	if err != nil {
		return nil, err
	}
	m := peer.New(b.Code())
	return m, m.Decode(b)
}

// preface reads the first bytes of the other side.
func (g *guest) preface() {
	g.t.Helper()
	var b [len(peer.Preface)]byte
	if err := g.SetReadDeadline(time.Now().Add(15 * time.Second)); err != nil {
		g.t.Fatal(err)
	}
	if _, err := io.ReadFull(g, b[:]); err != nil || string(b[:]) != peer.Preface {
		g.t.Fatalf("the other side begins with %q, %v", b, err)
	}
}

// welcomed greets and is welcomed.
func (g *guest) welcomed(self peer.Identity, p peer.Purpose) *guest {
	g.t.Helper()
	g.write(greeting(helloOf(self, p, ident.NoBroker)))
	g.preface()
	m, err := g.frame()
	if w, ok := m.(*peer.Welcome); err != nil || !ok {
		g.t.Fatalf("a greeting was answered with %+v, %v, %v", m, err, w)
	}
	return g
}

// refusedWith reads until the other side refuses, and then closes.
func (g *guest) refusedWith(what, code string) {
	g.t.Helper()
	for {
		m, err := g.frame()
		if err != nil {
			g.t.Errorf("%s: the connection ends without words: %v", what, err)
			return
		}
		r, ok := m.(*peer.Refuse)
		if !ok {
			continue
		}
		if r.Reason != code || r.Text == "" {
			g.t.Errorf("%s: refused with %+v, want %s", what, r, code)
		}
		break
	}
	g.closed(what)
}

// closed reads until the other side closes.
func (g *guest) closed(what string) {
	g.t.Helper()
	for {
		if _, err := g.frame(); err != nil {
			if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
				g.t.Errorf("%s: the connection stays open", what)
			}
			return
		}
	}
}
