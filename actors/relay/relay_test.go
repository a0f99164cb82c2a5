package relay

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// patience is how long a test waits for what has to come, and short for what must not.
const (
	patience = 20 * time.Second
	short    = 150 * time.Millisecond
)

// echo answers each line with itself, at both backs of a broker, until the test ends. It keeps what it accepted.
type echo struct {
	t  *testing.T
	mu sync.Mutex
	// heard is the lines that came, of all connections; ended how connections ended.
	heard []string
	ended []error
}

func (e *echo) listen(at netip.AddrPort) {
	l, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(at))
	if err != nil {
		e.t.Fatal(err)
	}
	var work sync.WaitGroup
	e.t.Cleanup(func() { _ = l.Close(); work.Wait() })
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { e.answer(c) })
		}
	})
}

func (e *echo) answer(c net.Conn) {
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		e.mu.Lock()
		if line != "" {
			e.heard = append(e.heard, line)
		}
		if err != nil {
			e.ended = append(e.ended, err)
		}
		e.mu.Unlock()
		if err != nil {
			return
		}
		if _, err := io.WriteString(c, line); err != nil {
			return
		}
	}
}

func (e *echo) has(line string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.heard {
		if strings.HasSuffix(h, line) {
			return true
		}
	}
	return false
}

// over says whether a connection has ended.
func (e *echo) over() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.ended) > 0
}

func (e *echo) reset() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, err := range e.ended {
		if errors.Is(err, syscall.ECONNRESET) {
			return true
		}
	}
	return false
}

type world struct {
	*Net
	ports   []Ports
	brokers []*echo
}

// newWorld is two brokers that only echo. Their process is this one.
func newWorld(t *testing.T) *world {
	t.Helper()
	free, err := Free(8)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{}
	for i := range 2 {
		p := Ports{free[4*i], free[4*i+1], free[4*i+2], free[4*i+3]}
		e := &echo{t: t}
		e.listen(p.ClientBack)
		e.listen(p.PeerBack)
		w.ports, w.brokers = append(w.ports, p), append(w.brokers, e)
	}
	w.Net = New(runtime.NewRealClock(), w.ports)
	t.Cleanup(w.Close)
	for i := range w.ports {
		if err := w.Up(i+1, os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

type line struct {
	t *testing.T
	*net.TCPConn
	r *bufio.Reader
}

func dial(t *testing.T, at netip.AddrPort) *line {
	t.Helper()
	c, err := net.DialTCP("tcp4", nil, net.TCPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &line{t, c, bufio.NewReader(c)}
}

// link is a connection that broker from opens to another one.
func (w *world) link(t *testing.T, from, to int, p peer.Purpose) *line {
	t.Helper()
	l := dial(t, w.ports[to-1].PeerFront)
	hello := peer.Hello{VersionMin: 1, VersionMax: 1, Purpose: p, Identity: peer.Identity{Broker: ident.BrokerID(from)}}
	l.say(string(hello.AppendTo([]byte(peer.Preface))) + "\n")
	l.hear("\n")
	return l
}

func (l *line) say(s string) {
	l.t.Helper()
	if _, err := io.WriteString(l, s); err != nil {
		l.t.Fatal(err)
	}
}

func (l *line) read(d time.Duration) (string, error) {
	if err := l.SetReadDeadline(time.Now().Add(d)); err != nil {
		return "", err
	}
	return l.r.ReadString('\n')
}

func (l *line) hear(want string) {
	l.t.Helper()
	if got, err := l.read(patience); err != nil || !strings.HasSuffix(got, want) {
		l.t.Fatalf("heard %q (%v), want %q", got, err, want)
	}
}

func (l *line) hearNothing() {
	l.t.Helper()
	if got, err := l.read(short); !errors.Is(err, os.ErrDeadlineExceeded) {
		l.t.Fatalf("heard %q (%v), want nothing", got, err)
	}
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal(what)
		}
	}
}

func TestEverythingPassesWithoutAFault(t *testing.T) {
	w := newWorld(t)
	c := dial(t, w.ports[1].ClientFront)
	c.say("hello\n")
	c.hear("hello\n")
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.read(patience); !errors.Is(err, io.EOF) {
		t.Errorf("the end is not passed on: %v", err)
	}
	await(t, "the connection is still counted", func() bool { return w.Open() == 0 })
}

func TestACutHoldsOnlyItsKindAndItsWay(t *testing.T) {
	w := newWorld(t)
	client, control, data := dial(t, w.ports[1].ClientFront), w.link(t, 1, 2, peer.Control), w.link(t, 1, 2, peer.Data)
	back := w.link(t, 2, 1, peer.Data)
	w.Add(&Fault{Kinds: Data, Ways: From(1, 2), Cut: true})
	for _, l := range []*line{client, control, back, data} {
		l.say("now\n")
	}
	client.hear("now\n")
	control.hear("now\n")
	back.hearNothing() // its answers go from 1 to 2
	data.hearNothing()
	if w.brokers[1].has("now\n") && !w.brokers[0].has("now\n") {
		t.Error("broker 1 did not hear what broker 2 said")
	}
	w.Heal()
	back.hear("now\n")
	data.hear("now\n")
}

func TestANewConnectionIsHeldToo(t *testing.T) {
	w := newWorld(t)
	w.Add(&Fault{Kinds: All, Ways: Between(2, 0, 1), Cut: true})
	c := dial(t, w.ports[1].ClientFront)
	c.say("early\n")
	c.hearNothing()
	gone := dial(t, w.ports[1].ClientFront)
	gone.say("never mind\n")
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	much := dial(t, w.ports[1].ClientFront) // more than is read of whom nobody hears yet
	text := strings.Repeat("x", 10_000) + "\n"
	much.say(text)
	link := dial(t, w.ports[1].PeerFront)
	link.say("push and pull\n")
	link.hearNothing()
	await(t, "who has given up is still held", func() bool { return w.Open() == 3 })
	w.Heal()
	c.hear("early\n")
	much.hear(text)
	link.hear("push and pull\n")
	c.say("late\n")
	c.hear("late\n")
	if w.brokers[1].has("never mind\n") {
		t.Error("the broker hears of somebody who gave up before it could be reached")
	}
}

func TestACutHoldsTheEndOfAConnection(t *testing.T) {
	w := newWorld(t)
	l := w.link(t, 1, 2, peer.Data)
	w.Add(&Fault{Kinds: Peers, Ways: Between(2, 1), Cut: true})
	l.say("last words\n")
	if err := l.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	l.hearNothing() // an end of the other side would be heard
	if w.brokers[1].has("last words\n") || w.brokers[1].over() {
		t.Error("the end passes")
	}
	w.Heal()
	l.hear("last words\n")
	if _, err := l.read(patience); !errors.Is(err, io.EOF) {
		t.Errorf("after the last words: %v", err)
	}
}

func TestALostAnswerIsOneOfARequestThatArrived(t *testing.T) {
	w := newWorld(t)
	lose := &Fault{Kinds: Client, Ways: From(2, 0), Drop: true}
	w.Add(lose)
	c, other := dial(t, w.ports[1].ClientFront), dial(t, w.ports[0].ClientFront)
	c.say("apply\n")
	other.say("also\n")
	await(t, "the request did not arrive", func() bool { return w.brokers[1].has("apply\n") })
	c.hearNothing()
	w.Remove(lose)
	if got, err := c.read(patience); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("heard %q (%v), want a reset", got, err)
	}
	await(t, "the broker hears of no reset", w.brokers[1].reset)
	other.hear("also\n")
	again := dial(t, w.ports[1].ClientFront)
	again.say("again\n")
	again.hear("again\n")
}

func TestOneEndForgets(t *testing.T) {
	w := newWorld(t)
	l, bystander := w.link(t, 1, 2, peer.Data), w.link(t, 1, 2, peer.Control)
	if n := w.Forget(Data, 2, 1); n != 1 {
		t.Errorf("%d connections were forgotten, want 1", n)
	}
	await(t, "who forgets hears of no reset", w.brokers[1].reset)
	for range 3 {
		l.say("is anybody there\n")
	}
	l.hearNothing()
	if w.brokers[1].has("there\n") {
		t.Error("who has forgotten still hears")
	}
	bystander.say("here\n")
	bystander.hear("here\n")
	fresh := w.link(t, 1, 2, peer.Data)
	fresh.say("here\n")
	fresh.hear("here\n")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "the connection is still counted", func() bool { return w.Open() == 2 })
}

func TestResetIsHeardAtBothEnds(t *testing.T) {
	w := newWorld(t)
	l, bystander := w.link(t, 1, 2, peer.Control), w.link(t, 1, 2, peer.Data)
	if n := w.Reset(Control, From(2, 1)); n != 1 {
		t.Errorf("%d connections were reset, want 1", n)
	}
	if _, err := l.read(patience); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("who dialled hears %v", err)
	}
	await(t, "who was dialled hears of no reset", w.brokers[1].reset)
	bystander.say("here\n")
	bystander.hear("here\n")
}

func TestDelayKeepsOrder(t *testing.T) {
	w := newWorld(t)
	slow := &Fault{Kinds: Client, Ways: Between(0, 1), Delay: short, Jitter: short}
	w.Add(slow)
	c := dial(t, w.ports[0].ClientFront)
	began := time.Now()
	c.say("one\n")
	c.say("two\n")
	c.hear("one\n")
	if took := time.Since(began); took < 2*short {
		t.Errorf("there and back took %v, less than two delays of %v", took, short)
	}
	c.hear("two\n")
}

func TestRateBoundsBytes(t *testing.T) {
	w := newWorld(t)
	w.Add(&Fault{Kinds: Client, Ways: To(1, 0), Rate: 10_000})
	c := dial(t, w.ports[0].ClientFront)
	began := time.Now()
	c.say(strings.Repeat("x", 2_999) + "\n")
	c.hear("x\n")
	if took := time.Since(began); took < 290*time.Millisecond {
		t.Errorf("3,000 bytes at 10,000/s took %v", took)
	}
}

func TestABrokerThatIsDownRefuses(t *testing.T) {
	w := newWorld(t)
	w.Down(1)
	if c, err := net.DialTCP("tcp4", nil, net.TCPAddrFromAddrPort(w.ports[0].ClientFront)); err == nil {
		t.Error("a front of a broker that is down is open", c.Close())
	}
	if err := w.Up(1, os.Getpid()); err != nil {
		t.Fatal(err)
	}
	c := dial(t, w.ports[0].ClientFront)
	c.say("back\n")
	c.hear("back\n")
}

func TestAStrangerIsClosed(t *testing.T) {
	w := newWorld(t)
	for broker := range w.ports { // nobody has this process any more
		w.Down(broker + 1)
		if err := w.Up(broker+1, 0); err != nil {
			t.Fatal(err)
		}
	}
	l := dial(t, w.ports[1].PeerFront)
	l.say("push and pull\n")
	if got, err := l.read(patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("somebody who is no broker hears %q (%v)", got, err)
	}
	if w.brokers[1].has("push and pull\n") {
		t.Error("the broker hears of a stranger")
	}
}

// TestOnlyFrontsThatAreNamedOpen: brokers whose clients go straight to them, and one that is alone.
func TestOnlyFrontsThatAreNamedOpen(t *testing.T) {
	free, err := Free(4)
	if err != nil {
		t.Fatal(err)
	}
	n := New(runtime.NewRealClock(), []Ports{{PeerFront: free[0], PeerBack: free[1]}, {ClientFront: free[2], ClientBack: free[3]}})
	defer n.Close()
	e := &echo{t: t}
	e.listen(free[1])
	e.listen(free[3])
	if err := errors.Join(n.Up(1, os.Getpid()), n.Up(2, os.Getpid())); err != nil {
		t.Fatal(err)
	}
	client := dial(t, free[2])
	client.say("to the one alone\n")
	client.hear("to the one alone\n")
	link := dial(t, free[0])
	link.say("push and pull\n")
	link.hear("push and pull\n")
}

func TestGossipIsCarriedFromItsSenderOnly(t *testing.T) {
	w := newWorld(t)
	udp := func(i int) *net.UDPConn {
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(w.ports[i].PeerBack))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	one, two := udp(0), udp(1)
	stranger, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Close() }()
	send := func(from *net.UDPConn, text string) {
		if _, err := from.WriteToUDPAddrPort([]byte(text), w.ports[1].PeerFront); err != nil {
			t.Fatal(err)
		}
	}
	hear := func() string {
		buf := make([]byte, 100)
		if err := two.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		n, err := two.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	cut := &Fault{Kinds: Gossip, Ways: From(1, 2), Cut: true}
	send(stranger, "noise")
	send(one, "alive")
	if got := hear(); got != "alive" {
		t.Errorf("heard %q", got)
	}
	w.Add(cut)
	send(one, "lost")
	w.Remove(cut)
	w.Add(&Fault{Kinds: Gossip, Ways: From(1, 2), Delay: 10 * time.Millisecond})
	send(one, "late")
	if got := hear(); got != "late" && got != "lost" { // the Net may read it after the cut
		t.Errorf("heard %q", got)
	}
	// A stream of gossip: whose it is, the kernel says.
	l := dial(t, w.ports[1].PeerFront)
	l.say("push and pull\n")
	l.hear("push and pull\n")
	if n := w.Reset(Gossip, Between(1, 2)); n != 1 {
		t.Errorf("%d streams of gossip are known, want 1", n)
	}
}

func TestFaultsAddUp(t *testing.T) {
	faults := []*Fault{
		{Kinds: Data, Ways: Between(1, 2), Delay: 1, Rate: 10}, {Kinds: Links, Ways: From(1, 2), Delay: 2, Jitter: 4, Rate: 5}, {Kinds: Gossip, Ways: To(1, 2, 3), Drop: true}, {Kinds: Client, Ways: []Way{{0, 1}}, Cut: true},
	}
	for _, c := range []struct {
		k    Kind
		w    Way
		want effect
	}{
		{Data, Way{1, 2}, effect{delay: 3, most: 4, rate: 5}},
		{Data, Way{2, 1}, effect{delay: 1, rate: 10}},
		{Control, Way{2, 1}, effect{}},
		{Gossip, Way{3, 1}, effect{drop: faults[2]}},
		{Client, Way{0, 1}, effect{cut: true}},
		{Client, Way{1, 0}, effect{}},
	} {
		if got := effectOf(faults, c.k, c.w); got != c.want {
			t.Errorf("%v on %v: %+v, want %+v", c.k, c.w, got, c.want)
		}
	}
	if got, want := faults[1].String(), "delay 2ns to 6ns, 5 bytes/s of control+data on [{1 2}]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
