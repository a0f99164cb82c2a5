package broker

import (
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
)

// An observer that reached no voter said so twice a second for as long as that went on.
func TestAnObserverWithoutVotersSaysSoNowAndThen(t *testing.T) {
	clock := runtime.NewSimClock(0)
	sys := runtime.NewSystem(runtime.Options{Clock: clock, OnBug: func(b *runtime.Blame) { t.Errorf("a bug: %v\n%s", b, b.Stack) }})
	var log lines
	observer, err := cluster.NewObserver(cluster.ObserverOptions{Broker: 4})
	if err != nil {
		t.Fatal(err)
	}
	s := newShared(sys, zerolog.New(&log))
	s.facts = &facts{host: new(actors.Host)}
	c := &controllerActor{seat: seat{observer: observer}, shared: s, log: s.log}
	for range 200 {
		inTurn(t, sys, func(turn *runtime.Turn) {
			c.note(turn, cluster.Note{Kind: cluster.NoteDropped, Broker: 1, Text: "the connection has ended"})
			c.note(turn, cluster.Note{Kind: cluster.NoteSilent, Broker: 2})
		})
		clock.Advance(500 * time.Millisecond)
	}
	text := log.buf.String()
	if n := strings.Count(text, "\n"); n != 8 {
		t.Errorf("%d lines in 100 s:\n%s", n, text)
	}
	if n := strings.Count(text, `"level":"warn"`); n != 6 {
		t.Errorf("%d of them are warnings:\n%s", n, text)
	}
}
