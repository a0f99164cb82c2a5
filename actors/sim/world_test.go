package sim_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors/sim"
	"github.com/troupe-broker/troupe/wire/ident"
)

var trace = flag.Bool("trace", false, "print every event of the worlds that run")

func newWorld(t *testing.T, seed uint64) *sim.World {
	t.Helper()
	w := sim.NewWorld(seed)
	if *trace {
		w.Trace = func(event string) { t.Log(event) }
	}
	return w
}

// toyRun is a whole run: clients add, the server crashes and comes back, connections
// are cut and held. It returns the hash.
func toyRun(t *testing.T, seed uint64) uint64 {
	t.Helper()
	w := newWorld(t, seed)
	w.Net.Weather.SegmentMax = 5 // numbers come in pieces
	s := &toyServer{world: w, node: w.NewNode("server")}
	if err := s.boot(); err != nil {
		t.Fatal(err)
	}
	var clients []*toyClient
	for i := range 4 {
		clients = append(clients, newToyClient(w, s, fmt.Sprint("client", i), 100))
	}
	w.Check("the disk holds what was acknowledged and nothing that was not sent", func() error {
		acked, sent := uint64(0), uint64(0)
		for _, c := range clients {
			if c.wrong != nil {
				return c.wrong
			}
			acked, sent = acked+c.acked, sent+c.sent
		}
		if s.disk < acked || s.disk > sent {
			return fmt.Errorf("disk %d, acknowledged %d, sent %d", s.disk, acked, sent)
		}
		return nil
	})
	faults := w.Rand("faults")
	for range 6 {
		w.After(time.Duration(faults.Int64N(int64(60*time.Millisecond))), "fault", func() {
			switch faults.IntN(3) {
			case 0:
				if s.node.Running() != nil {
					s.node.Crash()
					w.After(5*time.Millisecond, "boot", func() {
						if err := s.boot(); err != nil {
							t.Error(err)
						}
					})
				}
			case 1:
				if ends := w.Net.Connections("server"); len(ends) > 0 {
					ends[faults.IntN(len(ends))].Cut()
				}
			case 2:
				c := clients[faults.IntN(len(clients))].name
				w.Net.Hold(c, "server", true)
				w.After(20*time.Millisecond, "let go", func() { w.Net.Hold(c, "server", false) })
			}
		})
	}
	done := func() bool { return !slices.ContainsFunc(clients, func(c *toyClient) bool { return c.left > 0 }) }
	if err := w.RunUntil(time.Minute, done); err != nil {
		t.Fatal(err)
	}
	return w.Hash()
}

func TestAWholeRunIsItsSeed(t *testing.T) {
	hashes := map[uint64]uint64{}
	const seeds = 40
	for seed := range uint64(seeds) {
		one, two := toyRun(t, seed), toyRun(t, seed)
		if one != two {
			t.Errorf("seed %d: %x and %x", seed, one, two)
		}
		hashes[one] = seed
	}
	if len(hashes) != seeds {
		t.Errorf("%d seeds gave %d different runs", seeds, len(hashes))
	}
}

func TestABugEndsTheRunWithItsBlame(t *testing.T) {
	w := newWorld(t, 3)
	s := &toyServer{world: w, node: w.NewNode("server"), bug: 7}
	if err := s.boot(); err != nil {
		t.Fatal(err)
	}
	c := newToyClient(w, s, "client", 100_000)
	err := w.RunUntil(time.Hour, func() bool { return c.left == 0 })
	if err == nil || !strings.Contains(err.Error(), "bug in actor adder (toy.adder)") || !strings.Contains(err.Error(), "cannot add 7") {
		t.Errorf("the run ended with %v", err)
	}
}

func TestAnInvariantThatBreaksEndsTheRun(t *testing.T) {
	w := newWorld(t, 1)
	at := w.Now()
	w.Check("time is short", func() error {
		if w.Now() > at+ident.Instant(time.Second) {
			return errors.New("it is late")
		}
		return nil
	})
	w.After(2*time.Second, "late", func() {})
	if err := w.RunFor(time.Minute); err == nil || !strings.Contains(err.Error(), "time is short does not hold: it is late") {
		t.Errorf("the run ended with %v", err)
	}
}

// pipe is a Handler that keeps what comes; it takes at most take bytes at a time.
type pipe struct {
	got      bytes.Buffer
	take     int
	stalled  bool
	writable int
	closed   error
	when     ident.Instant
	world    *sim.World
}

func (p *pipe) Receive(b []byte) int {
	if p.stalled {
		return 0
	}
	n := len(b)
	if p.take > 0 {
		n = min(n, p.take)
	}
	p.got.Write(b[:n])
	return n
}

func (p *pipe) Writable() { p.writable++ }

func (p *pipe) Closed(err error) { p.closed, p.when = err, p.world.Now() }

func TestAStreamKeepsItsOrderAndStreamsDoNot(t *testing.T) {
	overtaken := false
	for seed := range uint64(20) {
		w := newWorld(t, seed)
		w.Net.Weather.SegmentMax = 3
		var order []string
		for i := range 2 {
			p := &pipe{world: w}
			e, _ := w.Net.Connect("a", &pipe{world: w}, "b", p)
			want := fmt.Sprintf("this is stream %d, in its order", i)
			if n, err := e.Write([]byte(want)); n != len(want) || err != nil {
				t.Fatal(n, err)
			}
			e.Close()
			defer func() {
				if p.got.String() != want || !errors.Is(p.closed, io.EOF) {
					t.Errorf("seed %d: got %q, then %v", seed, p.got.String(), p.closed)
				}
			}()
			w.Check("watch", func() error {
				if p.closed != nil && !slices.Contains(order, want) {
					order = append(order, want)
				}
				return nil
			})
		}
		if err := w.RunFor(time.Second); err != nil {
			t.Fatal(err)
		}
		overtaken = overtaken || strings.Contains(order[0], "1")
	}
	if !overtaken {
		t.Error("no stream ever overtook another")
	}
}

func TestBuffersAreBoundedAndTellWhenThereIsRoom(t *testing.T) {
	w := newWorld(t, 1)
	w.Net.Weather.BufferMax = 100
	writer, reader := &pipe{world: w}, &pipe{world: w, stalled: true, take: 30}
	e, far := w.Net.Connect("a", writer, "b", reader)
	n, err := e.Write(make([]byte, 150))
	if n != 100 || err != nil {
		t.Fatalf("took %d, %v", n, err)
	}
	if err := w.RunFor(time.Second); err != nil {
		t.Fatal(err)
	}
	if n, err := e.Write(make([]byte, 50)); n != 0 || err != nil || writer.writable != 0 {
		t.Fatalf("took %d of what nobody reads, %v, told %d times of room", n, err, writer.writable)
	}
	reader.stalled = false
	far.Resume()
	far.Resume()
	if err := w.RunFor(time.Second); err != nil {
		t.Fatal(err)
	}
	if writer.writable != 1 || reader.got.Len() != 30 {
		t.Fatalf("told %d times of room, %d bytes read", writer.writable, reader.got.Len())
	}
	if n, err := e.Write(make([]byte, 50)); n != 30 || err != nil {
		t.Fatalf("took %d, %v", n, err)
	}
}

func TestACutIsHeardLateAndApart(t *testing.T) {
	apart := false
	for seed := range uint64(20) {
		w := newWorld(t, seed)
		a, b := &pipe{world: w}, &pipe{world: w}
		e, far := w.Net.Connect("a", a, "b", b)
		if _, err := e.Write([]byte("lost")); err != nil {
			t.Fatal(err)
		}
		e.Cut()
		if n, err := e.Write([]byte("void")); n != 4 || err != nil {
			t.Fatalf("who has not heard writes on: %d, %v", n, err)
		}
		if err := w.RunFor(3 * time.Second); err != nil {
			t.Fatal(err)
		}
		if b.got.Len() > 0 || !errors.Is(a.closed, sim.ErrReset) || !errors.Is(b.closed, sim.ErrReset) {
			t.Fatalf("seed %d: got %q, ends %v and %v", seed, b.got.String(), a.closed, b.closed)
		}
		if _, err := far.Write([]byte("x")); !errors.Is(err, sim.ErrReset) {
			t.Fatalf("write after the end: %v", err)
		}
		apart = apart || a.when != b.when
	}
	if !apart {
		t.Error("both sides always heard at once")
	}
}

func TestAbortAndCloseAreSeenByTheFarSide(t *testing.T) {
	w := newWorld(t, 1)
	a, b := &pipe{world: w}, &pipe{world: w}
	e, _ := w.Net.Connect("a", a, "b", b)
	e.Abort()
	if err := w.RunFor(time.Second); err != nil {
		t.Fatal(err)
	}
	if a.closed != nil || !errors.Is(b.closed, sim.ErrReset) {
		t.Errorf("after an abort: %v and %v", a.closed, b.closed)
	}
	b = &pipe{world: w}
	closing, far := w.Net.Connect("a", &pipe{world: w}, "b", b)
	closing.Close()
	if _, err := closing.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("write after close: %v", err)
	}
	if err := w.RunFor(time.Second); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(b.closed, io.EOF) || len(w.Net.Connections("b")) != 1 {
		t.Errorf("after a close: %v", b.closed)
	}
	far.Close()
	if err := w.RunFor(time.Second); err != nil {
		t.Fatal(err)
	}
	if len(w.Net.Connections("a"))+len(w.Net.Connections("b")) != 0 {
		t.Error("the connection is remembered")
	}
}

func TestAHeldCableLosesNothing(t *testing.T) {
	w := newWorld(t, 1)
	w.Net.Hold("b", "a", true)
	b := &pipe{world: w}
	e, _ := w.Net.Connect("a", &pipe{world: w}, "b", b)
	if _, err := e.Write([]byte("late")); err != nil {
		t.Fatal(err)
	}
	if err := w.RunFor(time.Minute); err != nil {
		t.Fatal(err)
	}
	if b.got.Len() != 0 {
		t.Error("bytes went through a held cable")
	}
	w.Net.Hold("a", "b", false)
	if err := w.RunFor(time.Second); err != nil {
		t.Fatal(err)
	}
	if b.got.String() != "late" {
		t.Errorf("got %q", b.got.String())
	}
}

func TestNodesDisagreeAboutTime(t *testing.T) {
	w := newWorld(t, 1)
	fast, slow := w.NewNode("a").Clock, w.NewNode("b").Clock
	if fast.Drift() == slow.Drift() || max(fast.Drift(), slow.Drift()) > sim.DriftMax {
		t.Fatalf("drifts %d and %d", fast.Drift(), slow.Drift())
	}
	var rang []ident.Instant
	fast.NewAlarm(func() {
		now, _ := fast.Now()
		rang = append(rang, now)
	}).Set(10 * time.Second)
	before, _ := fast.Now()
	if err := w.RunFor(time.Minute); err != nil {
		t.Fatal(err)
	}
	f, fw := fast.Now()
	s, _ := slow.Now()
	wantApart := ident.Instant(time.Minute) * ident.Instant(fast.Drift()-slow.Drift()) / 1_000_000
	if off := f - s - wantApart; off < -10 || off > 10 {
		t.Errorf("after a minute %v apart, want %v", time.Duration(f-s), time.Duration(wantApart))
	}
	if len(rang) != 1 || rang[0] < before+ident.Instant(10*time.Second) || rang[0] > before+ident.Instant(10*time.Second)+1000 {
		t.Errorf("the alarm of 10 s rang at %v by its own clock", rang)
	}
	fast.Jump(-time.Hour)
	if mono, wall := fast.Now(); mono != f || wall != fw-3_600_000 {
		t.Errorf("after a jump of an hour: %d and %d, before %d and %d", mono, wall, f, fw)
	}
}

func TestStreamsOfChoicesAreApart(t *testing.T) {
	w := newWorld(t, 1)
	a, again, b := w.Rand("a"), w.Rand("a"), w.Rand("b")
	x, y, z := a.Uint64(), again.Uint64(), b.Uint64()
	if x != y || x == z {
		t.Errorf("%d %d %d", x, y, z)
	}
	buf := make([]byte, 16)
	if n, err := w.Entropy("ids").Read(buf); n != 16 || err != nil || bytes.Equal(buf, make([]byte, 16)) {
		t.Errorf("%d %v %x", n, err, buf)
	}
}
