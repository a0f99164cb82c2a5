package broker

import (
	"fmt"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// lifecycleActor is the broker's own membership: it registers this run with the controller, keeps it alive with heartbeats, asks to be unfenced when the
// replicas serve, and to leave when the broker stops.
//
//	registering ── registered ──> fenced ── replicas ready, caught up ──> serving ── leave ──> leaving ── nothing left to move ──> left
type lifecycleActor struct {
	shared    *shared
	log       zerolog.Logger
	register  cluster.RegisterBroker // what to say of this run
	serving   func()                 // told once, when the broker is unfenced
	ready     bool                   // Root has said that the replicas that were here at the start serve
	epoch     ident.BrokerEpoch      // NoBrokerEpoch: not registered
	unfenced  bool
	asked     bool          // a registration or heartbeat is under way
	sent      ident.Instant // when the last heartbeat was
	again     bool          // another heartbeat is due at once
	leaving   []*leave
	left      bool
	timer     *runtime.Timer
	refusedAt wire.ErrorCode // the last refusal told, so that it is told once
	retryMs   int64          // the next pause after a refusal
}

const (
	// retryMin and retryMax bound the pause before another attempt after a refusal, which doubles. A lone voter elects itself in some milliseconds.
	retryMinMs = 2
	retryMaxMs = 250
	// commandMs is how long the controller may take over a command of the broker's own.
	commandMs = 30_000
	// patienceMs is the same for a heartbeat, whose controller may have gone.
	patienceMs = 2000
)

// Messages of the lifecycle actor.
type (
	// readiness tells, once and for good, that the replicas of the start serve. Topics created later are not waited for.
	readiness struct{}
	// heard is the controller's answer.
	heard struct{ reply cluster.Reply }
	// leave asks for a controlled shutdown. done is told, once, when there is nothing left to move.
	leave struct{ done func(ident.BrokerEpoch) }
)

// Bytes implements runtime.Message.
func (*readiness) Bytes() int { return 0 }
func (*heard) Bytes() int     { return 0 }
func (*leave) Bytes() int     { return 0 }

// Owed implements runtime.Owed: nobody says so again.
func (*readiness) Owed() {}

// Owed implements runtime.Owed: there is one for each question, and without it no other is asked.
func (*heard) Owed() {}

// Reject implements runtime.Rejecter.
func (l *leave) Reject(error) { l.done(ident.NoBrokerEpoch) }

// Started implements runtime.Starter. The first signalTick begins.
func (l *lifecycleActor) Started(t *runtime.Turn) {
	l.epoch, l.retryMs = ident.NoBrokerEpoch, retryMinMs
	l.timer = t.NewTimer(signalTick)
}

// Turn implements runtime.Behaviour.
func (l *lifecycleActor) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case *readiness:
			l.ready = true
			l.hurry(t)
		case *heard:
			l.heard(t, m.reply)
		case *leave:
			l.leaving = append(l.leaving, m)
			if len(l.leaving) == 1 && l.epoch != ident.NoBrokerEpoch && l.shared.links != nil {
				l.log.Info().Msgf("stopping: waiting for the controller to move what this broker leads to others; if no controller answers, for %d s", patienceMs/1000)
			}
			l.hurry(t)
		case signal:
			l.attempt(t)
		default:
			panic("broker: the lifecycle actor got a message that it does not know")
		}
	}
}

// hurry sends a heartbeat now, or as soon as the one under way is answered.
func (l *lifecycleActor) hurry(t *runtime.Turn) {
	switch {
	case l.left:
		l.finish()
	case l.asked && len(l.leaving) > 0 && l.epoch == ident.NoBrokerEpoch:
		l.depart() // a registration that is under way may take as long as there is no controller; if it is taken after all, it stays fenced
	case l.asked:
		l.again = true
	default:
		l.attempt(t)
	}
}

// attempt registers, or sends a heartbeat.
func (l *lifecycleActor) attempt(t *runtime.Turn) {
	if l.asked || l.left {
		return
	}
	mono, _ := t.Now()
	deadline := mono + commandMs*millisecond
	if l.epoch == ident.NoBrokerEpoch {
		if len(l.leaving) > 0 {
			l.depart() // never registered: nothing to leave
			return
		}
		c := l.register
		if c.ClusterID = l.shared.clusterID(); c.ClusterID == "" {
			l.timer.Reset(millis(retryMaxMs)) // there is no cluster yet
			return
		}
		c.Deadline = deadline
		l.propose(t, &c, &c.Ask)
		return
	}
	c := &cluster.Heartbeat{
		Broker: l.register.Broker, Epoch: l.epoch, Arrived: mono, WantFence: !l.ready, WantShutdown: len(l.leaving) > 0,
	}
	if image := l.shared.image.Load(); image != nil {
		c.Applied = image.Index()
	}
	if c.Deadline = deadline; l.shared.links != nil {
		c.Deadline = mono + patienceMs*millisecond
	}
	l.sent = mono
	l.propose(t, c, &c.Ask)
}

func (l *lifecycleActor) propose(t *runtime.Turn, c cluster.Command, ask *cluster.Ask) {
	l.asked = true
	self := t.Self()
	_ = t.Send(l.shared.controller, &proposal{command: c, ask: ask, answer: func(r cluster.Reply) { _ = self.Post(&heard{reply: r}) }}) // Reject answers
}

// heard takes in the controller's answer and sets the time of the next word.
func (l *lifecycleActor) heard(t *runtime.Turn, r cluster.Reply) {
	l.asked = false
	if l.left {
		return
	}
	pause := l.retryMs
	l.retryMs = min(max(2*l.retryMs, retryMinMs), retryMaxMs)
	switch body := r.Body.(type) { //nolint:gochecksumtype // it asks two questions; any other answer is a refusal
	case *cluster.RegisterBrokerReply:
		l.epoch, l.refusedAt, l.retryMs = body.Epoch, wire.NoError, retryMinMs
		l.again = true
		l.shared.epoch.Store(int64(body.Epoch))
		for _, d := range l.shared.directories {
			d.store.Told()
		}
		if l.shared.links != nil {
			l.shared.links.become(l.shared.self())
			l.log.Info().Int64("epoch", int64(body.Epoch)).Msg("registered; waiting to be unfenced")
		}
		_ = t.Send(l.shared.root, &caughtUp{}) // gone only when the broker stops
	case *cluster.HeartbeatReply:
		pause, l.retryMs = l.shared.settings.Load().HeartbeatMs, retryMinMs
		l.shared.extendLease(l.sent, body)
		l.told(body)
	default:
		l.refused(t, r.Err)
	}
	if l.again && !l.left {
		l.again = false
		l.attempt(t)
		return
	}
	l.timer.Reset(millis(pause))
}

// told takes in what a heartbeat brought.
func (l *lifecycleActor) told(r *cluster.HeartbeatReply) {
	l.refusedAt = wire.NoError
	switch {
	case len(l.leaving) > 0:
		if r.ShouldShutDown {
			l.depart()
		}
	case !r.Fenced && !l.unfenced:
		l.unfenced = true
		l.log.Info().Int64("epoch", int64(l.epoch)).Msg("serving")
		l.serving()
	case !r.CaughtUp && l.ready:
		l.again = true
	}
}

// refused goes on after an answer that was none. A broker that is not registered registers anew. One whose place another process has taken ends: what it would
// say of its replicas was true when it started, and is not looked at again in a process that serves.
func (l *lifecycleActor) refused(t *runtime.Turn, err *cluster.Error) {
	if err.Code == wire.StaleBrokerEpoch || err.Code == wire.BrokerIDNotRegistered {
		l.epoch = ident.NoBrokerEpoch
		l.shared.lease.Store(0)
		l.shared.heard.Store(0)
	}
	if err.Code == wire.StaleBrokerEpoch && len(l.leaving) == 0 {
		l.left = true
		l.timer.Stop()
		_ = t.Send(l.shared.root, &supplanted{reason: fmt.Errorf( // Root is gone only when the broker stops
			"%s: another process has registered as broker %d; give each broker an id of its own, and start this one again if it is the one that shall serve", codeSupplanted, l.shared.identity.Broker)})
		return
	}
	if len(l.leaving) > 0 { // a controller that does not answer moves nothing
		l.log.Info().Str("reason", err.Message).
			Msg("stopping without that: no controller does it now; so it is for the last ones when all brokers of a cluster stop")
		l.depart()
		return
	}
	switch err.Code {
	case l.refusedAt, wire.NotController:
	case wire.RequestTimedOut:
		l.log.Warn().Msg("no controller answers this broker; trying again")
	default:
		l.log.Warn().Err(err).Msg(codeRegistration + ": the controller refuses this broker; trying again")
	}
	l.refusedAt = err.Code
}

// depart ends the membership.
func (l *lifecycleActor) depart() {
	l.left = true
	l.timer.Stop()
	l.finish()
}

func (l *lifecycleActor) finish() {
	for _, w := range l.leaving {
		w.done(l.epoch)
	}
	l.leaving = nil
}

// Stopping implements runtime.Stopper.
func (l *lifecycleActor) Stopping(*runtime.Turn) { l.finish() }

// Stopped implements runtime.Stopper.
func (l *lifecycleActor) Stopped(*runtime.Turn) {}
