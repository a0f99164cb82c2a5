package runtime

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Seeded is the dispatcher of simulations: one goroutine, the order drawn from a
// seed. Several Systems may share one. Senders run nothing, blocking actors are
// ordinary, a turn gets a random part of what is queued, and time passes between
// turns, so that timers come among the messages. The same seed and the same inputs
// give the same Hash.
type Seeded struct {
	// OnTurn, when set, hears of every turn before it runs.
	OnTurn func(actor string, batch []Message)

	clock  *SimClock
	rand   *rand.Rand
	ready  []*mailbox
	runner *Runner
	hash   uint64
	steps  uint64
	types  map[reflect.Type]uint64
	blames []*Blame
	failed *Blame
	ran    *System // whose actor had the last turn; nil: the last step was none
	delay  func(s *System, actor string) time.Duration
	late   func(s *System, actor string) time.Duration
	frozen []*mailbox // that would be ready, of Systems that stand still
	watch  func(actor string, batch []Message)
}

// turnTimeMax is the most that one simulated turn takes.
const turnTimeMax = 20 * time.Microsecond

// NewSeeded makes the dispatcher of one simulation over its clock.
func NewSeeded(seed uint64, clock *SimClock) *Seeded {
	return &Seeded{
		clock: clock,
		rand:  rand.New(rand.NewPCG(seed, 0x7472_6f75_7065)),
		hash:  14695981039346656037,
		types: make(map[reflect.Type]uint64),
	}
}

// Step lets a little time pass and runs one turn of one ready actor; when none is
// ready, it moves to the next alarm. It returns false when nothing is ready and no
// alarm is set, or a bug with the decision Exit has ended the run.
func (d *Seeded) Step() bool {
	if d.failed != nil {
		return false
	}
	d.ran = nil
	if len(d.ready) == 0 {
		return d.clock.Next()
	}
	d.clock.Advance(time.Duration(d.rand.Int64N(int64(turnTimeMax))))
	if len(d.ready) == 0 {
		return true // an alarm has abandoned those that were
	}
	i := d.rand.IntN(len(d.ready))
	m := d.ready[i]
	d.ready[i] = d.ready[len(d.ready)-1]
	d.ready = d.ready[:len(d.ready)-1]
	if d.runner == nil {
		d.runner = NewRunner(m.sys)
	}
	d.ran = m.sys
	d.runner.visit(m, &budget{turns: 1})
	d.runner.Run()
	d.steps++
	return d.failed == nil
}

// Drain steps until no actor is ready and no alarm is due. It returns false when a
// bug has ended the run.
func (d *Seeded) Drain() bool {
	for d.failed == nil {
		if due, set := d.clock.Earliest(); len(d.ready) == 0 && (!set || due > 0) {
			return true
		}
		d.Step()
	}
	return false
}

// Fill makes an actor refuse all messages with ErrFull, or accept them again.
func (d *Seeded) Fill(r *Ref, full bool) {
	r.mb.mu.Lock()
	r.mb.full = full
	r.mb.mu.Unlock()
}

// Restart makes an actor take a new instance before its next message, as after a bug
// but without one. The actor's Spec must have New.
func (d *Seeded) Restart(r *Ref) {
	if r.mb.spec.New == nil {
		panic("actors/runtime: restart of " + r.Name() + ", whose spec has no New")
	}
	r.mb.PostSystemMessage(&actor.Restart{})
}

// Abandon ends a System as a crash of its process does: no actor runs again, no
// timer fires, nothing is answered, and what a turn does that is under way concerns
// nobody. It may be called inside a turn.
func (d *Seeded) Abandon(s *System) {
	d.ready = slices.DeleteFunc(d.ready, func(m *mailbox) bool { return m.sys == s })
	d.frozen = slices.DeleteFunc(d.frozen, func(m *mailbox) bool { return m.sys == s })
	s.abandoned = true
}

// Freeze has a System stand still, as a process that got SIGSTOP: none of its actors
// runs, what they are sent waits. Its timers are its Clock's affair. Freeze with on
// false lets it go on.
func (d *Seeded) Freeze(s *System, on bool) {
	s.frozen = on
	from, to := &d.frozen, &d.ready
	if on {
		from, to = to, from
	}
	var rest []*mailbox
	for _, m := range *from {
		if m.sys == s {
			*to = append(*to, m)
		} else {
			rest = append(rest, m)
		}
	}
	*from = rest
}

// Reclaim takes back what an abandoned System holds of the library. It is called
// between steps, once.
func (d *Seeded) Reclaim(s *System) {
	if !s.abandoned {
		panic("actors/runtime: Reclaim of a System that was not abandoned")
	}
	for _, m := range s.live {
		s.library.system.ProcessRegistry.Remove(s.library.system.NewLocalPID(m.id))
	}
	s.library.close()
}

// Hold makes the turns of blocking actors wait: delay is asked whenever such an actor
// has something to do, and its turn comes so much later, while others run. Zero lets
// it run when its turn comes. Without Hold blocking actors are like others.
func (d *Seeded) Hold(delay func(s *System, actor string) time.Duration) { d.delay = delay }

// Late makes the turns of all other actors wait, as on a machine that has other things
// to do: what an actor is sent in the meantime is there when its turn comes. Without
// Late they run in their turn.
func (d *Seeded) Late(delay func(s *System, actor string) time.Duration) { d.late = delay }

// Watch has every turn told before it runs.
func (d *Seeded) Watch(turn func(actor string, batch []Message)) { d.watch = turn }

// Ready is the number of actors with something to do.
func (d *Seeded) Ready() int { return len(d.ready) }

// Ran is the System whose actor had a turn in the last step; nil when that only moved time.
func (d *Seeded) Ran() *System { return d.ran }

// Steps is the number of turns that were run.
func (d *Seeded) Steps() uint64 { return d.steps }

// Err is the bug that has ended the run, or nil.
func (d *Seeded) Err() error {
	if d.failed == nil {
		return nil
	}
	return d.failed
}

// Blames lists all bugs and what was decided about them, oldest first.
func (d *Seeded) Blames() []*Blame { return d.blames }

// Hash is the hash of all events so far: who ran, when, with what.
func (d *Seeded) Hash() uint64 { return d.hash }

// Mix adds an event of the world around the actors to the hash.
func (d *Seeded) Mix(event string, numbers ...uint64) {
	for i := range len(event) {
		d.mix(uint64(event[i]))
	}
	for _, n := range numbers {
		d.mix(n)
	}
}

func (d *Seeded) mix(v uint64) {
	d.hash = (d.hash ^ v) * 1099511628211
	d.hash ^= d.hash >> 29
}

// record adds a turn to the hash.
func (d *Seeded) record(m *mailbox, batch []Message) {
	now, _ := d.clock.Now()
	d.mix(uint64(now))
	d.Mix(m.path)
	if d.OnTurn != nil {
		d.OnTurn(m.path, batch)
	}
	for _, msg := range batch {
		d.mix(d.typeOf(msg))
		d.mix(uint64(msg.Bytes()))
	}
	if d.watch != nil {
		d.watch(m.path, batch)
	}
}

func (d *Seeded) typeOf(msg any) uint64 {
	t := reflect.TypeOf(msg)
	id, ok := d.types[t]
	if !ok {
		h := fnv.New64a()
		_, _ = h.Write([]byte(t.String())) // a hash does not fail
		id = h.Sum64()
		d.types[t] = id
	}
	return id
}

func (d *Seeded) enqueue(m *mailbox) {
	if m.sys.abandoned {
		return
	}
	delay := d.late
	if m.spec.Blocking {
		delay = d.delay
	}
	if delay != nil {
		if wait := delay(m.sys, m.path); wait > 0 {
			d.clock.NewAlarm(func() { d.admit(m) }).Set(wait)
			return
		}
	}
	d.admit(m)
}

func (d *Seeded) admit(m *mailbox) {
	switch {
	case m.sys.abandoned:
	case m.sys.frozen:
		d.frozen = append(d.frozen, m)
	default:
		d.ready = append(d.ready, m)
	}
}

func (d *Seeded) batch(n int) int { return 1 + d.rand.IntN(n) }

func (d *Seeded) inPlace() bool { return false }

func (d *Seeded) blocks() bool { return false }

func (d *Seeded) traced() bool { return true }

func (d *Seeded) told(b *Blame) bool {
	d.blames = append(d.blames, b)
	if b.Decision == Exit && d.failed == nil {
		d.failed = b
	}
	return true
}

// errStuck ends a wait that nothing can end any more.
var errStuck = errors.New("nothing is ready and no alarm is set")

func (d *Seeded) await(ctx context.Context, done <-chan struct{}) error {
	for {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		default:
		}
		if !d.Step() {
			select {
			case <-done:
				return nil
			default:
			}
			if d.failed != nil {
				return fmt.Errorf("simulation ended by a bug: %w", d.failed)
			}
			return errStuck
		}
	}
}

func (d *Seeded) close() {}
