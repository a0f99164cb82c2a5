package broker

import (
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire/ident"
)

// What a founding waits for was told once, minutes ago, when somebody came to look why a broker does not serve.
func TestWhatAFoundingWaitsForIsToldAgain(t *testing.T) {
	clock := runtime.NewSimClock(0)
	sys := runtime.NewSystem(runtime.Options{Clock: clock, OnBug: func(b *runtime.Blame) { t.Errorf("a bug: %v\n%s", b, b.Stack) }})
	var log lines
	founding, err := cluster.NewFounding(cluster.FoundingOptions{Self: cluster.Announcement{Broker: 2, Node: 20, Expect: 3}, Join: true, Numbered: true})
	if err != nil {
		t.Fatal(err)
	}
	s := newShared(sys, zerolog.New(&log))
	c := &controllerActor{seat: seat{founding: founding}, shared: s, log: s.log, address: "here"}
	c.known.start(s)
	wait := func(first cluster.FoundingCommand) (told, warned int) {
		log.mu.Lock()
		log.buf.Reset()
		log.mu.Unlock()
		inTurn(t, sys, func(turn *runtime.Turn) { c.found(turn, first) })
		for range 200 {
			inTurn(t, sys, c.tellWaits)
			clock.Advance(500 * time.Millisecond)
		}
		text := log.buf.String()
		return strings.Count(text, "\n"), strings.Count(text, `"level":"warn"`)
	}
	if told, warned := wait(&cluster.Begin{Address: c.address}); told != 4 || warned != 0 {
		t.Errorf("waiting for others is told %d times in 100 s, %d times as a warning", told, warned)
	}
	other := &cluster.Seen{Broker: 2, Node: 21, Run: cluster.Incarnation{1}, Address: "there", Expect: 3}
	if told, warned := wait(other); told != 4 || warned != 3 {
		t.Errorf("that two have one id is told %d times in 100 s, %d times as a warning", told, warned)
	}
	if want := "two brokers are number 2, this one at here and broker 2 at there: give each its own --broker-id"; strings.Count(log.buf.String(), want) != 4 {
		t.Errorf("nobody says %q:\n%s", want, log.buf.String())
	}
	if told, _ := wait(&cluster.Gone{Broker: 2, Node: ident.NodeID(21), Run: cluster.Incarnation{1}}); told != 4 {
		t.Errorf("that it waits for others again is told %d times", told)
	}
}
