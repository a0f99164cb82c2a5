package broker

import (
	"bytes"
	"io"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// lines keeps what is logged.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

var _ io.Writer = (*lines)(nil)

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// loud is the first line above info; empty: there is none.
func (l *lines) loud() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, `"level":"warn"`) || strings.Contains(line, `"level":"error"`) {
			return line
		}
	}
	return ""
}

// until waits for a fact.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for over := time.Now().Add(15 * time.Second); !is(); {
		if time.Now().After(over) {
			t.Fatalf("waited in vain for %s", what)
		}
		goruntime.Gosched()
	}
}

// Each start had warnings of connections that had ended, because every broker opens its connections again when it registers. What is usual is not told; that a
// broker is lost is.
func TestOnlyALossIsWarnedOf(t *testing.T) {
	noLeaks(t)
	var log lines
	a := newSide(t, sideOptions{self: identityOf(1, ident.NoBrokerEpoch), log: &log})
	b := newSide(t, sideOptions{self: identityOf(2, ident.NoBrokerEpoch), log: &log})
	meet(a, b)
	for epoch := ident.BrokerEpoch(10); epoch < 13; epoch++ {
		for _, x := range []*side{a, b} {
			x.self.Epoch = epoch
			x.become(x.self)
		}
		reached := func(s, other *side, p peer.Purpose, dialled bool) func() bool {
			return func() bool {
				l := s.table.find(other.self.Broker, p, dialled)
				return l != nil && l.peer.Epoch == epoch
			}
		}
		for _, p := range []peer.Purpose{peer.Control, peer.Data} {
			for _, dialled := range []bool{true, false} {
				until(t, "the connections to be back", reached(a, b, p, dialled))
				until(t, "the connections to be back", reached(b, a, p, dialled))
			}
		}
	}
	if line := log.loud(); line != "" {
		t.Errorf("brokers register, and one logs %s", line)
	}
	b.stop()
	until(t, "a warning that a broker is lost", func() bool { return strings.Contains(log.loud(), "connection refused") })
}

// A broker that has not been reached yet may start later than this one.
func TestABrokerThatMayStartLaterIsNotWarnedOfAtOnce(t *testing.T) {
	noLeaks(t)
	var log lines
	b := newSide(t, sideOptions{self: identityOf(2, 1)})
	b.stop()
	a := newSide(t, sideOptions{self: identityOf(1, 1), log: &log})
	a.know(2, b.address)
	until(t, "a word that it is not there", func() bool {
		log.mu.Lock()
		defer log.mu.Unlock()
		return strings.Contains(log.buf.String(), "connection refused")
	})
	if line := log.loud(); line != "" {
		t.Errorf("logged %s", line)
	}
}

// What is known of brokers that have gone, and of whoever else has ever connected, was kept for ever.
func TestBrokersThatAreGoneAreForgotten(t *testing.T) {
	noLeaks(t)
	a, b := newSide(t, sideOptions{self: identityOf(1, 10)}), newSide(t, sideOptions{self: identityOf(2, 20)})
	meet(a, b)
	known := func() int {
		a.table.mu.Lock()
		defer a.table.mu.Unlock()
		return len(a.table.peers)
	}
	for id := ident.BrokerID(100); id < 150; id++ {
		g := a.guest().welcomed(identityOf(id, 1), peer.Control)
		_ = g.Close()
	}
	until(t, "strangers to be forgotten", func() bool { return known() == 1 })
	b.know(1, "")
	b.follow(1, false)
	a.know(2, "")
	if _, ok := a.table.last(2); !ok {
		t.Error("a broker is forgotten while it is connected")
	}
	a.follow(2, false)
	until(t, "the other broker to be forgotten", func() bool { return known() == 0 })
	a.know(2, b.address) // and is met again
	a.await("opened", on(peer.Control, true))
}

func TestAComplaintIsRepeatedAtGrowingIntervals(t *testing.T) {
	var c complaint
	second := ident.Instant(time.Second)
	said := map[string][]ident.Instant{}
	for i := range 200 {
		now := ident.Instant(i) * second / 2
		for _, reason := range []string{"silent", "refused"} {
			if c.due(now, reason) {
				said[reason] = append(said[reason], now/second)
			}
		}
		if c.lasts(now) != (now >= 10*second) {
			t.Errorf("at %d it lasts: %v", now/second, c.lasts(now))
		}
	}
	for _, reason := range []string{"silent", "refused"} {
		if got := said[reason]; len(got) != 4 || got[0] != 0 || got[1] != 10 || got[2] != 30 || got[3] != 70 {
			t.Errorf("%s is told at %v", reason, got)
		}
	}
	if c.over(); !c.due(101*second, "silent") || c.lasts(101*second) {
		t.Error("what begins again is not told, or lasts")
	}
	told := 0
	for i := range 1000 {
		if c.due(102*second, strings.Repeat("x", i)) {
			told++
		}
	}
	if told > complaintsMax || len(c.said) > complaintsMax+1 {
		t.Errorf("of 1000 reasons %d are told, and %d remembered", told, len(c.said))
	}
}
