package runtime

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Turn is what a behaviour may do while it runs. It is valid until the method it was
// passed to returns.
type Turn struct {
	r      *Runner
	mb     *mailbox
	mono   ident.Instant
	wall   ident.Millis
	looked bool // the clock was read in this turn
}

// Self is the actor whose turn it is.
func (t *Turn) Self() *Ref { return &t.mb.ref }

// System is where the actor lives.
func (t *Turn) System() *System { return t.mb.sys }

// Log is the system's logger.
func (t *Turn) Log() *zerolog.Logger { return &t.mb.sys.log }

// Send queues a message; the receiver runs after this turn has ended, at the
// earliest. Refusals are as with Runner.Send.
func (t *Turn) Send(to *Ref, m Message) error { return t.r.Send(to, m) }

// Now is the time of the turn: the clock is read once, when first asked for. An actor
// whose turns block reads System.Now instead.
func (t *Turn) Now() (ident.Instant, ident.Millis) {
	if !t.looked {
		t.mono, t.wall = t.mb.sys.clock.Now()
		t.looked = true
	}
	return t.mono, t.wall
}

// NewTimer makes a timer that is not armed. Making one allocates, arming does not:
// an actor keeps the timers it uses often.
func (t *Turn) NewTimer(m Message) *Timer {
	timer := &Timer{mb: t.mb, msg: m}
	timer.alarm = t.mb.sys.clock.NewAlarm(func() { timer.mb.fire(timer) })
	t.mb.timers.add(timer)
	return timer
}

// After sends m to the actor itself, d from now.
func (t *Turn) After(d time.Duration, m Message) *Timer {
	timer := t.NewTimer(m)
	timer.once = true
	timer.Reset(d)
	return timer
}

// Spawn starts a child of this actor; see System.Spawn.
func (t *Turn) Spawn(spec Spec) (*Ref, error) { return t.mb.sys.Spawn(&t.mb.ref, spec) }

// Watch tells the behaviour's Terminated when the other actor has stopped, at once
// when it has already. Children are watched by themselves.
func (t *Turn) Watch(who *Ref) { t.mb.cell.watch(who.mb) }

// Stop stops this actor when the turn has ended.
func (t *Turn) Stop() { t.mb.askStop() }

// Flush gives what this turn has sent to the dispatcher now. It is for blocking
// actors whose turn goes on waiting; others need not hurry.
func (t *Turn) Flush() { t.r.handOver() }
