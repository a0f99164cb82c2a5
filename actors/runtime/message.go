package runtime

import (
	"errors"
	"fmt"
)

// Message is anything that can be sent to an actor. It must not be changed after
// it was sent, except by its receiver.
type Message interface {
	// Bytes is the memory the message keeps alive, for the byte bound of the
	// mailbox. It must not change while the message is queued.
	Bytes() int
}

// Rejecter is implemented by every message that expects an answer. Reject is
// called at most once, and never for a message that was handled, on whatever
// goroutine found out that the receiver will not handle it: it may only enqueue.
type Rejecter interface {
	Reject(err error)
}

// Owed is a message that a full mailbox takes all the same, because it comes once and its
// actor could not go on without it: what it lent or asked for comes back by it, or it is an
// order of whoever made the actor. Nobody outside may be able to cause many.
type Owed interface {
	Message
	// Owed does nothing.
	Owed()
}

// Sender is who a message can be sent through: a Runner, or a Turn.
type Sender interface {
	// Send queues the message; see Runner.Send.
	Send(to *Ref, m Message) error
}

// The reasons for which a message is refused. They reach the sender from Send and
// the message through Reject.
var (
	// ErrFull says that the receiver's mailbox is at its bound of messages or bytes.
	ErrFull = errors.New("mailbox full")
	// ErrStopped says that the receiver is stopping or has stopped.
	ErrStopped = errors.New("actor stopped")
	// ErrQuarantined says that the receiver failed too often and takes no messages
	// for now.
	ErrQuarantined = errors.New("actor in quarantine")
)

// BugError is the answer to the message whose handling panicked.
type BugError struct {
	// Actor is the path of the actor that is to blame.
	Actor string
}

// Error names the actor.
func (e *BugError) Error() string { return fmt.Sprintf("actor %s failed in this turn", e.Actor) }

// FaultError is the answer to messages lost to a memory fault that the behaviour
// dealt with but did not answer itself.
type FaultError struct {
	// Actor is the path of the actor whose turn hit the fault.
	Actor string
	// Addr is the address that could not be read or written.
	Addr uintptr
}

// Error names the actor and the address.
func (e *FaultError) Error() string {
	return fmt.Sprintf("memory fault at %#x in a turn of actor %s", e.Addr, e.Actor)
}

func reject(m Message, err error) {
	if r, ok := m.(Rejecter); ok {
		r.Reject(err)
	}
}
