package runtime

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Behaviour is the code of an actor.
type Behaviour interface {
	// Turn handles a batch, in order. The batch is valid for the turn only. A
	// behaviour that can be restarted, or that survives a memory fault, sets
	// batch[i] to nil when message i is handled: whatever is left when a turn ends
	// early was not handled. Of what is left the first message is answered with a
	// *BugError, the others go back to the front of the mailbox.
	Turn(t *Turn, batch []Message)
}

// Starter is implemented by a behaviour that has work before its first message.
type Starter interface {
	// Started runs once per instance, before its first turn.
	Started(t *Turn)
}

// Stopper is implemented by a behaviour that holds something when it stops.
type Stopper interface {
	// Stopping runs when the actor was asked to stop, before its children are
	// stopped. New messages are refused already; those queued are rejected after it.
	Stopping(t *Turn)
	// Stopped runs last, when all children have stopped.
	Stopped(t *Turn)
}

// Restarter is implemented by a behaviour that holds outside things which its
// successor does not take over.
type Restarter interface {
	// Restarting runs on the instance that failed, before it is dropped. It must not
	// trust the instance's state.
	Restarting(t *Turn)
}

// Watcher is implemented by a behaviour that wants to know of deaths.
type Watcher interface {
	// Terminated tells that a child, or an actor given to Turn.Watch, has stopped.
	Terminated(t *Turn, who *Ref)
}

// Faulter is implemented by a behaviour whose turns touch mapped files.
type Faulter interface {
	// Faulted tells of a memory fault in the turn that just ended early. batch holds
	// what was not handled; the behaviour answers and sets to nil what it can, the
	// rest is rejected with a *FaultError. It returns false when the address is none
	// of its mappings: then the fault is a bug like any other.
	Faulted(t *Turn, f Fault, batch []Message) bool
}

// Fault is a memory access that the kernel refused.
type Fault struct {
	// Addr is the address that was touched.
	Addr uintptr
}

// Decision is what supervision does about a bug.
type Decision uint8

const (
	// Exit ends the process: the state of the actor cannot be trusted and matters.
	Exit Decision = iota
	// Stop ends the actor and its children only.
	Stop
	// Restart gives the actor a new instance, after a pause; its mailbox is kept.
	Restart
	// Quarantine refuses all messages for a time, then restarts.
	Quarantine
)

// String names the decision for logs and tables.
func (d Decision) String() string {
	switch d {
	case Exit:
		return "exit"
	case Stop:
		return "stop"
	case Restart:
		return "restart"
	case Quarantine:
		return "quarantine"
	}
	return fmt.Sprintf("decision(%d)", uint8(d))
}

// Policy says what follows a bug of an actor. The zero Policy exits.
type Policy struct {
	// OnBug is the first answer.
	OnBug Decision
	// RestartsMax within RestartsWithin are answered by a restart; the next failure
	// by Then. Used when OnBug is Restart. Defaults: 5 within 10 s.
	RestartsMax    int
	RestartsWithin time.Duration
	// BackoffMin is the pause before the first restart; it doubles up to BackoffMax
	// with each failure inside RestartsWithin. Defaults: 100 ms, 10 s.
	BackoffMin time.Duration
	BackoffMax time.Duration
	// Then is the answer to one restart too many: Exit, Stop or Quarantine.
	Then Decision
	// QuarantineFor is the length of a quarantine. Default: 1 min.
	QuarantineFor time.Duration
}

// Spec says what an actor is.
type Spec struct {
	// Name is unique among the children of one parent. It must not be empty and must
	// not contain a slash.
	Name string
	// Kind groups actors in the counters, for example "core.partition".
	Kind string
	// Behaviour is the code. A Spec has either Behaviour or New.
	Behaviour Behaviour
	// New makes the behaviour, again for each restart.
	New func() Behaviour
	// CountMax bounds the messages in the mailbox, those in the running turn
	// included. Default: 1024. A message that is Owed is taken all the same.
	CountMax int
	// BytesMax bounds their bytes, likewise. A message larger than BytesMax is
	// accepted by an empty mailbox only. Default: 8 MiB.
	BytesMax int
	// BatchMax bounds the messages of one turn, 1 to 64. Default: 64.
	BatchMax int
	// Blocking gives the actor a goroutine of its own. Required for actors whose
	// turns wait for a disk, a socket or a lock.
	Blocking bool
	// PanicOnFault turns a memory fault in a turn into a fact (see Faulter) instead
	// of the end of the process.
	PanicOnFault bool
	// OnBug is the policy.
	OnBug Policy
}

const (
	countMaxDefault       = 1024
	bytesMaxDefault       = 8 << 20
	restartsMaxDefault    = 5
	restartsWithinDefault = 10 * time.Second
	backoffMinDefault     = 100 * time.Millisecond
	backoffMaxDefault     = 10 * time.Second
	quarantineForDefault  = time.Minute
)

// withDefaults checks the spec and fills what was left zero.
func (s Spec) withDefaults() (Spec, error) {
	switch {
	case s.Name == "":
		return s, errors.New("actor spec: name is empty")
	case strings.ContainsAny(s.Name, "/~"):
		return s, fmt.Errorf("actor spec %q: name contains '/' or '~'", s.Name)
	case s.Kind == "":
		return s, fmt.Errorf("actor spec %q: kind is empty", s.Name)
	case (s.Behaviour == nil) == (s.New == nil):
		return s, fmt.Errorf("actor spec %q: exactly one of Behaviour and New must be set", s.Name)
	case s.CountMax < 0 || s.BytesMax < 0:
		return s, fmt.Errorf("actor spec %q: negative mailbox bound", s.Name)
	case s.BatchMax < 0 || s.BatchMax > batchMax:
		return s, fmt.Errorf("actor spec %q: batch bound %d is not in 1..%d", s.Name, s.BatchMax, batchMax)
	}
	restarts := s.OnBug.OnBug == Restart || s.OnBug.OnBug == Quarantine
	if restarts && s.New == nil {
		return s, fmt.Errorf("actor spec %q: policy %s needs New", s.Name, s.OnBug.OnBug)
	}
	if s.OnBug.OnBug == Restart && s.OnBug.Then == Restart {
		return s, fmt.Errorf("actor spec %q: restarts must end in exit, stop or quarantine", s.Name)
	}
	orDefault(&s.CountMax, countMaxDefault)
	orDefault(&s.BytesMax, bytesMaxDefault)
	orDefault(&s.BatchMax, batchMax)
	orDefault(&s.OnBug.RestartsMax, restartsMaxDefault)
	orDefault(&s.OnBug.RestartsWithin, restartsWithinDefault)
	orDefault(&s.OnBug.BackoffMin, backoffMinDefault)
	orDefault(&s.OnBug.BackoffMax, backoffMaxDefault)
	orDefault(&s.OnBug.QuarantineFor, quarantineForDefault)
	return s, nil
}

func orDefault[T int | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}
