// Package runtime runs the broker's actors. It is the only package that imports
// protoactor-go, of which it uses the PIDs, spawning, the mailbox interface, the
// supervision hooks and death watch; mailboxes, dispatching, clock, timers, replies
// and counters are its own, around the same actors.
//
// # The sender runs the turn
//
// Waking an idle thread costs more than most turns. So a goroutine that sends owns
// a Runner: Send only queues and, when the receiver was free, claims it; Run then
// visits the claimed actors on the goroutine that sent. When the receiver is busy
// the message waits in its mailbox and the running turn takes it, with all others
// that came, as one batch. Rules that follow:
//
//   - No turn starts inside a turn. What a turn sends goes to the list of its
//     goroutine and runs after the actor was released, so A to B to A queues.
//   - After 64 turns or 200 µs a Run hands what is left to the dispatcher.
//   - An actor that may block says so (Spec.Blocking) and has a goroutine of its
//     own; it never runs on a sender.
//   - A reply is a callback carried in the message. It may only enqueue.
//   - Timers send a message; they never run turns.
//
// # Answers
//
// A message that expects an answer implements Rejecter. The runtime answers it,
// once, whenever the receiver cannot: the mailbox is full, the actor stops, has
// stopped or is in quarantine, or its turn panicked while the message was the next
// one to handle. Send returns the same error, for counting; the sender must not
// answer again.
//
// The answer itself may find a full mailbox, too. Where its actor cannot go on
// without it, it is Owed, and no bound keeps it out.
//
// # Bugs
//
// A panic in a turn is caught around that turn and blamed on the actor by name
// (Blame), never on the session whose goroutine ran it. One function, supervise,
// decides what follows, by the Policy of the actor's Spec: exit, stop, restart with
// backoff, quarantine. A memory fault in a turn that asked for it
// (Spec.PanicOnFault) is a fact of its own, told to the behaviour first.
//
// # Order
//
// Messages of one sender to one actor arrive in the order sent. System messages
// (start, stop, watch, supervision) go first and are never bounded. Nothing is said
// about the order of messages of two senders.
//
// # Glossary
//
//   - System: one tree of actors with its clock and dispatcher; one per broker.
//   - Spec: what an actor is: name, kind, behaviour, bounds, policy.
//   - Ref: the address of one actor. Messages go to Refs.
//   - Behaviour: the code of an actor; its Turn gets a batch of messages.
//   - Turn: what a behaviour may do while it runs.
//   - Runner: the list of claimed actors of one sending goroutine.
//   - Timer: a message that comes later, to the actor that armed it.
//   - Clock: the only source of time; RealClock in production, SimClock in tests.
//   - Dispatcher: who runs what no sender runs: Pool, or Seeded for simulation.
//   - Background: who runs what is no turn and must delay none, such as unlinking files.
//   - Blame: one bug or fault, with the actor that had it.
package runtime
