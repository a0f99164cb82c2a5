package actors

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Actor is the code of an extension actor.
type Actor interface {
	// Receive handles one message: a Fact, or what another actor sent. An error says
	// that this message could not be handled; it is counted and logged, and the actor
	// goes on. A panic says that the actor's state is lost; see Policy.
	Receive(c *Ctx, msg any) error
}

// Provisioner is implemented by an actor that has work before its first message, such
// as reading its configuration.
type Provisioner interface {
	// Provision prepares a new instance. When it fails at the start of the broker, the
	// broker does not start; after a restart it counts as a bug.
	Provision(c *Ctx) error
}

// Stopper is implemented by an actor that holds something.
type Stopper interface {
	// Stop lets it go. It is called once for an instance that was provisioned, not for
	// one that panicked.
	Stop(c *Ctx)
}

// Ctx is all that an actor may do. It is valid inside the methods it is passed to.
type Ctx struct {
	of   *running
	turn *runtime.Turn // nil outside the methods

	configured bool // Config was called
}

// ID is the actor's id.
func (c *Ctx) ID() string { return c.of.info.ID() }

// Log writes lines that carry the actor's id.
func (c *Ctx) Log() *zerolog.Logger { return &c.of.log }

// Now reads the monotonic and the wall clock. It does not change within a Receive.
func (c *Ctx) Now() (ident.Instant, ident.Millis) { return c.inTurn().Now() }

// After sends msg to the actor itself, d from now. Timers end with the instance.
func (c *Ctx) After(d time.Duration, msg any) *Timer {
	return &Timer{c.inTurn().After(d, wrap(msg))}
}

// Send sends to another extension actor, by id. The message must not be changed
// afterwards. The error says that nobody of this id runs, or that it takes nothing
// more.
func (c *Ctx) Send(to string, msg any) error {
	return c.of.host.send(c.inTurn(), to, wrap(msg))
}

// Emit tells all other observers, which may be none. What a full mailbox refuses is
// lost, and counted there. The message must not be changed afterwards.
func (c *Ctx) Emit(msg any) {
	c.of.host.tell(c.inTurn(), wrap(msg), c.of)
}

// Count adds to a counter of the actor, which is exported as
// troupe_actor_<kind>_<actor>_<name>_total. labels are at most two pairs of name and
// value; a counter has the same label names in each call. delta must not be negative.
func (c *Ctx) Count(name string, delta float64, labels ...string) {
	c.of.series.add(seriesCounter, name, delta, labels)
}

// Observe adds a value to a summary of the actor: how many values there were and what
// is their sum.
func (c *Ctx) Observe(name string, value float64, labels ...string) {
	c.of.series.add(seriesSummary, name, value, labels)
}

// Config decodes the actor's configuration, the keys actors.<id>.<key>, into the
// struct that dst points to: a field tagged `config:"key"` takes the value of the key,
// and keeps what it has when the key is not given. Fields are string, bool, int,
// int64, float64 or time.Duration. A key that no field takes is an error.
func (c *Ctx) Config(dst any) error {
	c.configured = true
	return c.of.settings.decode(c.ID(), dst)
}

func (c *Ctx) inTurn() *runtime.Turn {
	if c.turn == nil {
		panic("actors: " + c.ID() + " used its Ctx outside a method it was passed to")
	}
	return c.turn
}

// Timer is a message to come.
type Timer struct {
	timer *runtime.Timer
}

// Stop calls the message off.
func (t *Timer) Stop() { t.timer.Stop() }

// envelope carries what is no runtime.Message by itself.
type envelope struct {
	msg   any
	bytes int
}

// Bytes is the size the message states, or a guess.
func (e *envelope) Bytes() int { return e.bytes }

// wrap makes a message of the runtime.
func wrap(msg any) runtime.Message {
	if f, ok := msg.(Fact); ok {
		return f
	}
	e := &envelope{msg: msg, bytes: factBytes}
	if sized, ok := msg.(interface{ Bytes() int }); ok {
		e.bytes = sized.Bytes()
	}
	return e
}
