package broker

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// carried is a small world in which links run: one goroutine, one clock, connections of memory.
type carried struct {
	t     *testing.T
	clock *runtime.SimClock
	seed  *runtime.Seeded
	rand  *rand.Rand
	sides map[string]*carriedSide
	ends  []*carriedEnd
	mute  bool // nothing moves
}

// carriedSide is one broker's links.
type carriedSide struct {
	*links
	name string
	sys  *runtime.System
	told []string
	down bool // gone
}

type carriedHandler struct{ *carriedSide }

func (h carriedHandler) admit(*peer.Identity) error { return nil }
func (h carriedHandler) opened(_ *runtime.Turn, l *linkInfo) {
	h.told = append(h.told, fmt.Sprintf("opened %v of %d, dialled %v", l.purpose, l.peer.Broker, l.dialled))
}

func (h carriedHandler) closed(_ *runtime.Turn, l *linkInfo, reason error) {
	h.told = append(h.told, fmt.Sprintf("closed %v of %d: %s", l.purpose, l.peer.Broker, codeOf(reason)))
}

func (h carriedHandler) down(_ *runtime.Turn, who peer.Identity) {
	h.told = append(h.told, fmt.Sprintf("down %d", who.Broker))
}

func (h carriedHandler) heard(_ *runtime.Turn, _ *linkInfo, m peer.Message) {
	h.told = append(h.told, m.Code().String())
}

func (h carriedHandler) letter(_ *runtime.Turn, _ *linkInfo, _, _ ident.NodeID, data []byte) {
	h.told = append(h.told, fmt.Sprintf("letter of %d", len(data)))
}

func (h carriedHandler) answered(_ *runtime.Turn, _ *linkInfo, a *peer.Answer, _ *chunk) {
	h.told = append(h.told, fmt.Sprintf("answer of %d", len(a.Payload)))
}

// carriedEnd is one end of a connection: a Transport that hands bytes to the other.
type carriedEnd struct {
	world   *carried
	wire    *PeerWire
	far     *carriedEnd
	in      []byte
	blocked bool
	over    bool
}

func (e *carriedEnd) Write(vec [][]byte, _ bool) (int, error) {
	if e.over || e.far.over {
		return 0, syscall.EPIPE
	}
	n := 0
	for _, b := range vec {
		k := min(len(b), 64<<10-len(e.far.in))
		e.far.in = append(e.far.in, b[:k]...)
		n += k
	}
	return n, nil
}

func (e *carriedEnd) SendFile(uintptr, int64, int) (int, error) { return 0, errors.ErrUnsupported }
func (e *carriedEnd) ZeroCopy() bool                            { return false }
func (e *carriedEnd) WhenWritable()                             { e.blocked = true }
func (e *carriedEnd) Close()                                    { e.over = true }

// Dial implements PeerNetwork.
func (s *carriedSide) dialIn(w *carried, address string, to *PeerWire) {
	w.clock.NewAlarm(func() {
		far := w.sides[address]
		if far == nil || far.down || s.down { // who is gone dials nobody
			to.Failed(syscall.ECONNREFUSED)
			return
		}
		near, there := &carriedEnd{world: w, wire: to}, &carriedEnd{world: w}
		near.far, there.far = there, near
		var err error
		if there.wire, err = far.accept(there, netip.AddrPort{}); err != nil {
			to.Failed(err)
			return
		}
		w.ends = append(w.ends, near, there)
		to.Connected(near)
	}).Set(time.Millisecond)
}

type carriedNetwork struct {
	side  *carriedSide
	world *carried
}

func (n carriedNetwork) Dial(address string, to *PeerWire) { n.side.dialIn(n.world, address, to) }
func (carriedNetwork) Close()                              {}

func newCarried(t *testing.T, seed uint64) *carried {
	t.Helper()
	clock := runtime.NewSimClock(1_700_000_000_000)
	return &carried{t: t, clock: clock, seed: runtime.NewSeeded(seed, clock), rand: rand.New(rand.NewPCG(seed, 1)), sides: make(map[string]*carriedSide)}
}

func (w *carried) side(id ident.BrokerID) *carriedSide {
	w.t.Helper()
	s := &carriedSide{name: fmt.Sprintf("broker-%d", id)}
	s.sys = runtime.NewSystem(runtime.Options{Log: zerolog.Nop(), Clock: w.clock, Dispatcher: w.seed})
	sh := newShared(s.sys, zerolog.Nop())
	sh.random = &entropy{src: rand.NewChaCha8([32]byte{byte(id)})}
	var err error
	s.links, err = startLinks(sh, nil, linkOptions{
		self: identityOf(id, 10), handler: carriedHandler{s}, network: carriedNetwork{s, w}, pace: usualPace, versions: peer.Spoken, answerBytesMax: 1 << 20, creditBytes: 1 << 20,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.sides[s.name] = s
	return s
}

// run lets so much time pass.
func (w *carried) run(d time.Duration) {
	w.t.Helper()
	began, _ := w.clock.Now()
	over := false
	w.clock.NewAlarm(func() { over = true }).Set(d)
	for !over {
		for n := 0; n < 64 && w.move(); n++ {
		}
		w.seed.Step()
		if err := w.seed.Err(); err != nil {
			w.t.Fatal(err)
		}
		if now, _ := w.clock.Now(); time.Duration(now-began) > 2*d {
			w.t.Fatal("the end of the run was passed by")
		}
	}
}

// move carries some bytes, and says whether there were any.
func (w *carried) move() (moved bool) {
	if w.mute {
		return false
	}
	for _, e := range w.ends {
		if e.over {
			e.wire.End(nil)
			continue
		}
		if e.wire.Takes() && len(e.in) > 0 {
			n, err := e.wire.Receive(e.in[:1+w.rand.IntN(len(e.in))])
			if err != nil {
				e.over = true
				continue
			}
			e.in = e.in[n:]
			moved = moved || n > 0
		}
		if e.far.over && len(e.in) == 0 {
			e.over = true
		}
		if e.blocked && len(e.far.in) < 64<<10 {
			e.blocked = false
			e.wire.Writable()
		}
	}
	return moved
}

// story is what happens in a run of a seed, and the hash of its turns.
func linkStory(t *testing.T, seed uint64) (told map[string][]string, hash uint64) {
	t.Helper()
	w := newCarried(t, seed)
	a, b := w.side(1), w.side(2)
	for _, x := range [][2]*carriedSide{{a, b}, {b, a}} {
		x[0].know(x[1].table.identity().Broker, x[1].name)
		x[0].follow(x[1].table.identity().Broker, true)
	}
	w.run(time.Second)
	a.send(post{}, 2, peer.Control, &letter{from: 1, to: 2, data: make([]byte, 3<<20)})
	a.send(post{}, 2, peer.Data, newLinkEntry(peer.Ask{Topic: ident.TopicID{1}}))
	w.run(5 * time.Second)
	w.mute = true // the network holds everything: silence, and no refusal
	w.run(5 * time.Second)
	w.mute = false
	w.run(5 * time.Second)
	if slices.Contains(a.told, "down 2") || slices.Contains(b.told, "down 1") {
		t.Errorf("seed %d: a broker that only was silent is said to be down", seed)
	}
	b.down = true
	for _, e := range w.ends {
		e.over = true
	}
	w.run(3 * time.Second)
	h := fnv.New64a()
	for _, s := range []*carriedSide{a, b} {
		for _, line := range s.told {
			_, _ = h.Write([]byte(line)) // a hash does not fail
		}
	}
	return map[string][]string{"a": a.told, "b": b.told}, w.seed.Hash() ^ h.Sum64()
}

func TestLinksRunInASimulatedWorld(t *testing.T) {
	for seed := range uint64(20) {
		told, hash := linkStory(t, seed)
		for who, lines := range map[string][]string{
			"a": {"opened control of 2, dialled true", "opened control of 2, dialled false", "opened data of 2, dialled true", "closed control of 2: " + codeLinkSilent, "down 2"},
			"b": {"opened control of 1, dialled true", "opened data of 1, dialled false", "letter of 3145728", "Asks", "closed data of 1: " + codeLinkSilent},
		} {
			for _, line := range lines {
				if !slices.Contains(told[who], line) {
					t.Fatalf("seed %d: %s was not told %q, but %q", seed, who, line, told[who])
				}
			}
		}
		if again, same := linkStory(t, seed); same != hash {
			t.Fatalf("seed %d: two runs differ:\n%q\n%q", seed, told, again)
		}
	}
}
