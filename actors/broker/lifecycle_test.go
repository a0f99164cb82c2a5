package broker

import (
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// newLifecycle makes the actor of a broker among others, with nothing under way.
func newLifecycle(t *testing.T) (*runtime.System, *lifecycleActor, *lines) {
	t.Helper()
	sys := runtime.NewSystem(runtime.Options{Clock: runtime.NewSimClock(0), OnBug: func(b *runtime.Blame) { t.Errorf("a bug: %v\n%s", b, b.Stack) }})
	log := &lines{}
	s := newShared(sys, zerolog.New(log))
	s.links = &links{}
	return sys, &lifecycleActor{shared: s, log: s.log}, log
}

// The last broker at a stop of all warned that no controller answers, would "try again", and waited for two seconds in no words.
func TestTheLastBrokerSaysWhyItWaitsAndGoesOn(t *testing.T) {
	sys, l, log := newLifecycle(t)
	left := ident.NoBrokerEpoch
	inTurn(t, sys, func(turn *runtime.Turn) {
		l.Started(turn)
		l.epoch, l.asked = 7, true // a heartbeat is under way
		l.Turn(turn, []runtime.Message{&leave{done: func(e ident.BrokerEpoch) { left = e }}})
		if left != ident.NoBrokerEpoch || !strings.Contains(log.buf.String(), "if no controller answers, for 2 s") {
			t.Errorf("it waits and says %s", log.buf.String())
		}
		l.heard(turn, cluster.Reply{Err: &cluster.Error{Code: wire.RequestTimedOut, Message: "no controller took the command in time"}})
	})
	if left != 7 || !strings.Contains(log.buf.String(), "stopping without that: no controller does it now") || log.loud() != "" {
		t.Errorf("left with epoch %d: %s", left, log.buf.String())
	}
}

// A broker that nobody has registered yet waited for the answer to its registration, half a minute where there is no controller, before it stopped.
func TestABrokerThatIsNotRegisteredStopsAtOnce(t *testing.T) {
	sys, l, log := newLifecycle(t)
	left := 0
	inTurn(t, sys, func(turn *runtime.Turn) {
		l.Started(turn)
		l.asked = true // its registration is under way
		l.Turn(turn, []runtime.Message{&leave{done: func(ident.BrokerEpoch) { left++ }}})
		if left != 1 {
			t.Errorf("it was told %d times that it may stop", left)
		}
		l.heard(turn, cluster.Reply{Body: &cluster.RegisterBrokerReply{Epoch: 9}}) // it was taken after all
	})
	if left != 1 || l.epoch != ident.NoBrokerEpoch || log.loud() != "" {
		t.Errorf("told %d times, epoch %d: %s", left, l.epoch, log.buf.String())
	}
}

// A broker that was paused while another process registered under its id registered anew when it went on, and said once more what it had held at its start.
func TestABrokerWhosePlaceIsTakenEnds(t *testing.T) {
	sys := runtime.NewSystem(runtime.Options{Clock: runtime.NewSimClock(0), OnBug: func(b *runtime.Blame) { t.Errorf("a bug: %v\n%s", b, b.Stack) }})
	var log lines
	s := newShared(sys, zerolog.New(&log))
	root := &listening{told: make(chan runtime.Message, 4)}
	var err error
	if s.root, err = sys.Spawn(nil, cast("root", "root", root)); err != nil {
		t.Fatal(err)
	}
	l := &lifecycleActor{shared: s, log: s.log}
	inTurn(t, sys, func(turn *runtime.Turn) {
		l.Started(turn)
		l.epoch, l.asked = 7, true // a heartbeat is under way
		l.heard(turn, cluster.Reply{Err: &cluster.Error{Code: wire.StaleBrokerEpoch, Message: "broker 1 has epoch 9"}})
		l.Turn(turn, []runtime.Message{signalTick})
	})
	m, ok := (<-root.told).(*supplanted)
	if !ok || !strings.Contains(m.reason.Error(), "TRP-4106") || !strings.Contains(m.reason.Error(), "another process") {
		t.Errorf("Root hears %+v", m)
	}
	if l.asked || l.epoch != ident.NoBrokerEpoch {
		t.Error("it goes on registering")
	}
}
