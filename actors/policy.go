package actors

import (
	"fmt"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// Decision is what is done about a bug of an actor: a panic in its code.
type Decision uint8

const (
	// Exit ends the broker. Only the core cast may ask for it.
	Exit Decision = iota
	// Halt ends the actor for as long as the process lives. The rest goes on.
	Halt
	// Restart drops the message that failed and makes a new instance, after a pause;
	// what else is in the mailbox is kept.
	Restart
	// Quarantine refuses all messages for a time, then restarts.
	Quarantine
)

// String names the decision.
func (d Decision) String() string {
	if d == Halt {
		return "halt"
	}
	return d.runtime().String()
}

func (d Decision) runtime() runtime.Decision {
	switch d {
	case Exit:
		return runtime.Exit
	case Halt:
		return runtime.Stop
	case Restart:
		return runtime.Restart
	case Quarantine:
		return runtime.Quarantine
	}
	panic(fmt.Sprintf("actors: decision %d does not exist", d))
}

// Policy says what follows a bug. The policy of an actor that declares none is
// DefaultPolicy.
type Policy struct {
	// OnBug is the first answer.
	OnBug Decision
	// RestartsMax restarts within RestartsWithin are made; the next bug gets Then.
	RestartsMax    int
	RestartsWithin time.Duration
	// BackoffMin is the pause before a restart. It doubles with each bug inside
	// RestartsWithin, up to BackoffMax.
	BackoffMin, BackoffMax time.Duration
	// Then is Halt or Quarantine.
	Then Decision
	// QuarantineFor is the length of a quarantine.
	QuarantineFor time.Duration
}

// DefaultPolicy restarts up to five times in ten seconds, after 100 ms and twice as
// long each time, and then refuses messages for a minute before it tries again.
var DefaultPolicy = Policy{
	OnBug: Restart, RestartsMax: 5, RestartsWithin: 10 * time.Second,
	BackoffMin: 100 * time.Millisecond, BackoffMax: 10 * time.Second,
	Then: Quarantine, QuarantineFor: time.Minute,
}

func (p Policy) runtime() runtime.Policy {
	return runtime.Policy{
		OnBug: p.OnBug.runtime(), RestartsMax: p.RestartsMax, RestartsWithin: p.RestartsWithin,
		BackoffMin: p.BackoffMin, BackoffMax: p.BackoffMax, Then: p.Then.runtime(), QuarantineFor: p.QuarantineFor,
	}
}

// extension reports why the policy is not for an actor outside the core, "" when it is.
func (p Policy) extension() string {
	switch {
	case p.OnBug == Exit:
		return "its policy ends the broker"
	case p.OnBug == Restart && p.Then != Halt && p.Then != Quarantine:
		return "its restarts must end in Halt or Quarantine"
	}
	return ""
}
