package runtime

import (
	"fmt"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Blame is one bug, or one memory fault, and the actor that had it.
type Blame struct { //nolint:errname // the word of the house: it is a report first, and an error for whoever ends on it
	// Actor is the path of the actor, for example "root/partitions/orders-3".
	Actor string
	// Kind is the kind of its Spec.
	Kind string
	// Message is the Go type of the first message that was not handled, or the name
	// of the hook that failed, such as "Started".
	Message string
	// Reason is what was passed to panic.
	Reason any
	// Stack is the stack of the panic, as the Go runtime prints it.
	Stack string
	// Fault is set when the reason was a memory fault.
	Fault *Fault
	// At is when.
	At ident.Instant
	// Failures counts the bugs of the actor inside its policy's RestartsWithin, this
	// one included.
	Failures int
	// Decision is what supervision did about it.
	Decision Decision

	ref    *Ref
	goexit bool // the turn or hook ended its goroutine
}

// Error tells who failed, at what and why; the stack is left out.
func (b *Blame) Error() string {
	what := "bug"
	if b.Fault != nil {
		what = fmt.Sprintf("memory fault at %#x", b.Fault.Addr)
	}
	return fmt.Sprintf("%s in actor %s (%s) at %s: %v", what, b.Actor, b.Kind, b.Message, b.Reason)
}

// Unwrap gives the reason when it was an error.
func (b *Blame) Unwrap() error {
	err, ok := b.Reason.(error)
	if !ok {
		return nil
	}
	return err
}
