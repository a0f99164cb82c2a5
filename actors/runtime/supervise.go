package runtime

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// strategy brings protoactor's failures to supervise. It is the strategy of every
// actor, and of the guardian above those that have no parent.
type strategy struct{}

var supervision = &strategy{}

// HandleFailure is called by protoactor for the actor that failed, with the Blame
// that was escalated.
func (*strategy) HandleFailure(_ *actor.ActorSystem, _ actor.Supervisor, _ *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	if blame, ok := reason.(*Blame); ok {
		blame.ref.mb.supervise(blame)
		return
	}
	panic(reason) // not a bug of an actor: one of this package
}

// failures is the memory supervision has of an actor. mu of the mailbox guards it.
type failures struct {
	times []time.Duration // instants of the failures inside RestartsWithin
	alarm Alarm           // the restart to come
}

// supervise decides what follows a bug. It is the only place that does.
func (m *mailbox) supervise(b *Blame) {
	p := &m.spec.OnBug
	b.Failures = m.countFailure(time.Duration(b.At))
	b.Decision = p.OnBug
	if p.OnBug == Restart && b.Failures > p.RestartsMax {
		b.Decision = p.Then
	}
	m.sys.tell(b)
	switch b.Decision {
	case Exit, Stop:
		m.askStop()
	case Restart:
		m.restartAfter(p.backoff(b.Failures))
	case Quarantine:
		m.mu.Lock()
		m.shut = true
		m.failures.times = m.failures.times[:0]
		m.mu.Unlock()
		m.rejectQueued(ErrQuarantined)
		m.restartAfter(p.QuarantineFor)
	}
}

// superviseLast tells of a bug in an instance that is ending anyhow. One that ended
// its goroutine has left the actor half stopped, for ever.
func (m *mailbox) superviseLast(b *Blame) {
	b.Decision = Stop
	if m.spec.OnBug.OnBug == Exit || b.goexit {
		b.Decision = Exit
	}
	m.sys.tell(b)
}

// countFailure notes a failure and returns how many there were lately.
func (m *mailbox) countFailure(at time.Duration) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := m.failures.times[:0]
	for _, t := range m.failures.times {
		if at-t < m.spec.OnBug.RestartsWithin {
			kept = append(kept, t)
		}
	}
	m.failures.times = append(kept, at)
	return len(m.failures.times)
}

// backoff is the pause before the restart that answers the n-th failure.
func (p *Policy) backoff(n int) time.Duration {
	d := p.BackoffMin
	for ; n > 1 && d < p.BackoffMax; n-- {
		d *= 2
	}
	return min(d, p.BackoffMax)
}

func (m *mailbox) restartAfter(d time.Duration) {
	m.mu.Lock()
	if m.failures.alarm == nil {
		m.failures.alarm = m.sys.clock.NewAlarm(func() { m.PostSystemMessage(&actor.Restart{}) })
	}
	alarm := m.failures.alarm
	m.mu.Unlock()
	alarm.Set(d)
}
