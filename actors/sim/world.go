package sim

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
)

// wallStart is what the world's wall clock shows at first: 2023-11-14 22:13:20 UTC.
const wallStart ident.Millis = 1_700_000_000_000

// World is one simulation: a clock, an order, nodes, a network. It is used by one
// goroutine.
type World struct {
	// Net carries bytes between nodes and clients.
	Net *Network
	// Trace, when set, is told every event: for a person who replays a seed.
	Trace func(event string)

	seed   uint64
	clock  *runtime.SimClock
	run    *runtime.Seeded
	checks []check
}

type check struct {
	name string
	f    func() error
}

// NewWorld makes the world of a seed.
func NewWorld(seed uint64) *World {
	clock := runtime.NewSimClock(wallStart)
	w := &World{seed: seed, clock: clock, run: runtime.NewSeeded(seed, clock)}
	w.Net = newNetwork(w)
	w.run.OnTurn = w.turn
	return w
}

// Seed is the seed.
func (w *World) Seed() uint64 { return w.seed }

// Now is the world's own time, which no node sees.
func (w *World) Now() ident.Instant {
	now, _ := w.clock.Now()
	return now
}

// Rand is a source of choices for one purpose, named by stream. What is drawn from one
// stream does not move the others, so that a fault can be taken out of a run without
// changing the rest. Each call starts the stream anew.
func (w *World) Rand(stream string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(stream)) // a hash does not fail
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// Entropy is a stream as bytes, for what wants ids and keys.
func (w *World) Entropy(stream string) io.Reader { return entropy{w.Rand(stream)} }

type entropy struct{ rand *rand.Rand }

// Read fills p.
func (e entropy) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e.rand.Uint32())
	}
	return len(p), nil
}

// After has f called d from now. It is an event of the world, by its name.
func (w *World) After(d time.Duration, name string, f func()) {
	w.after(d, func() {
		w.Note(name)
		f()
	})
}

// Note makes something that happened part of the run's hash, and of the trace.
func (w *World) Note(event string) {
	w.run.Mix(event)
	if w.Trace != nil {
		w.Trace(fmt.Sprintf("%v %s", time.Duration(w.Now()), event))
	}
}

// Check adds an invariant, which is looked at after every step.
func (w *World) Check(name string, f func() error) { w.checks = append(w.checks, check{name, f}) }

// Hash is the hash of all events so far.
func (w *World) Hash() uint64 { return w.run.Hash() }

// Steps is the number of turns so far.
func (w *World) Steps() uint64 { return w.run.Steps() }

// ErrStill says that nothing can happen any more in the world.
var ErrStill = errors.New("nothing is ready and no alarm is set")

// Step lets the next thing happen: a turn of an actor, or an event. It fails when an
// actor has failed with the decision to exit, when an invariant does not hold, and
// with ErrStill.
func (w *World) Step() error {
	went := w.run.Step()
	if err := w.run.Err(); err != nil {
		return fmt.Errorf("seed %d, step %d: %w", w.seed, w.run.Steps(), err)
	}
	for _, c := range w.checks {
		if err := c.f(); err != nil {
			return fmt.Errorf("seed %d, step %d, at %v: %s does not hold: %w", w.seed, w.run.Steps(), time.Duration(w.Now()), c.name, err)
		}
	}
	if !went {
		return ErrStill
	}
	return nil
}

// RunFor steps until d has passed. A world that is still before lets the time pass.
func (w *World) RunFor(d time.Duration) error {
	end := w.Now() + ident.Instant(d)
	err := w.steps(end, func() bool { return w.Now() >= end })
	if now := w.Now(); err == nil && now < end {
		w.clock.Advance(time.Duration(end - now))
	}
	return err
}

// RunUntil steps until done says so, at most for limit of the world's time.
func (w *World) RunUntil(limit time.Duration, done func() bool) error {
	end := w.Now() + ident.Instant(limit)
	if err := w.steps(end, func() bool { return done() || w.Now() >= end }); err != nil {
		return err
	}
	if !done() {
		return fmt.Errorf("seed %d: not within %v: %d actors are ready", w.seed, limit, w.run.Ready())
	}
	return nil
}

func (w *World) after(d time.Duration, f func()) { w.clock.NewAlarm(f).Set(d) }

// event is Note for what happens often: it is put into words only for a trace.
func (w *World) event(what string, numbers ...uint64) {
	w.run.Mix(what, numbers...)
	if w.Trace != nil {
		w.Trace(fmt.Sprintf("%v %s %x", time.Duration(w.Now()), what, numbers))
	}
}

// steps steps until stop says so, or all that is left comes after end.
func (w *World) steps(end ident.Instant, stop func() bool) error {
	for !stop() {
		next, set := w.clock.Earliest()
		if w.run.Ready() == 0 && (!set || w.Now()+ident.Instant(next) > end) {
			return nil
		}
		if err := w.Step(); err != nil {
			return err
		}
	}
	return nil
}

// turn traces a turn. It is in the hash already.
func (w *World) turn(actor string, batch []runtime.Message) {
	if w.Trace == nil {
		return
	}
	var event strings.Builder
	fmt.Fprintf(&event, "%v %s", time.Duration(w.Now()), actor)
	for _, m := range batch {
		fmt.Fprintf(&event, " %T", m)
	}
	w.Trace(event.String())
}
