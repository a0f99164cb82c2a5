package classic_test

import (
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/group/classic"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

const millisecond ident.Instant = 1_000_000

// world is one group with the clock, the timers and the bundle that a shard would give it.
type world struct {
	g    *classic.Group
	cfg  coord.Config
	now  coord.Now
	out  coord.Out
	last ident.RequestID
}

func newWorld() *world {
	w := &world{g: classic.New("g"), cfg: coord.DefaultConfig(), now: coord.Now{Mono: 1000 * millisecond, Wall: 1_000_000}}
	w.out.Timers = coord.NewTimers()
	return w
}

// pass lets time pass and runs what becomes due, each timer at its own time.
func (w *world) pass(d ident.Instant) {
	end := w.now.Mono + d
	for {
		due, ok := w.out.Timers.Next()
		if !ok || due > end {
			break
		}
		w.at(max(due, w.now.Mono))
		key, _ := w.out.Timers.Pop(w.now.Mono)
		w.g.Timer(w.now, &w.cfg, key, &w.out)
	}
	w.at(end)
}

func (w *world) at(t ident.Instant) {
	w.now.Wall += ident.Millis(t/millisecond - w.now.Mono/millisecond)
	w.now.Mono = t
}

func (w *world) request() ident.RequestID { w.last++; return w.last }

// subscription is a ConsumerProtocolSubscription of version 0 without user data.
func subscription(topics ...string) []byte {
	b := []byte{0, 0, 0, 0, 0, byte(len(topics))}
	for _, t := range topics {
		b = append(b, 0, byte(len(t)))
		b = append(b, t...)
	}
	return append(b, 0xff, 0xff, 0xff, 0xff)
}

func (w *world) join(member, instance, newMember string) ident.RequestID {
	id := w.request()
	w.g.Join(w.now, &w.cfg, id, &coord.Join{
		Group: "g", Member: member, Instance: instance, NewMember: newMember, ProtocolType: classic.ConsumerProtocol,
		Protocols: []coord.Protocol{{Name: "range", Metadata: subscription("t")}}, SessionTimeout: 10_000, RebalanceTimeout: 60_000, SkipAssignment: true,
	}, &w.out)
	return id
}

// stable makes a stable group of n members m0, m1, …
func stable(t *testing.T, n int) *world {
	t.Helper()
	w := newWorld()
	for i := range n {
		w.join("", "", fmt.Sprintf("m%d", i))
	}
	w.pass(1000 * millisecond)
	for i := n - 1; i >= 0; i-- {
		w.g.Sync(w.now, &w.cfg, w.request(), &coord.Sync{Group: "g", Member: fmt.Sprintf("m%d", i), Generation: 1}, &w.out)
	}
	if w.g.State() != classic.Stable || w.g.Len() != n {
		t.Fatalf("the group is %v with %d members", w.g.State(), w.g.Len())
	}
	w.out.Reset()
	return w
}

func TestHeartbeatAllocatesNothing(t *testing.T) {
	w := stable(t, 100)
	c := &coord.Heartbeat{Group: "g", Member: "m7", Generation: 1}
	wrong := &coord.Heartbeat{Group: "g", Member: "m7", Generation: 5}
	w.g.Heartbeat(w.now, &w.cfg, 1, c, &w.out) // the bundle's memory is made once
	before := w.out.Timers.Len()
	got := testing.AllocsPerRun(1000, func() {
		w.out.Reset()
		w.now.Mono += millisecond
		w.g.Heartbeat(w.now, &w.cfg, 1, c, &w.out)
		w.g.Heartbeat(w.now, &w.cfg, 2, wrong, &w.out)
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
	if code := w.out.Replies[0].Answer.(*coord.HeartbeatReply).Code; code != wire.NoError {
		t.Errorf("answered %v", code)
	}
	if after := w.out.Timers.Len(); after != before {
		t.Errorf("%d timers before, %d after", before, after)
	}
}
