package runtime

// Ref is the address of one actor, for as long as it lives and after. Refs are
// compared with ==; an actor that is spawned again under its name has another Ref,
// one that is restarted keeps it.
type Ref struct {
	mb *mailbox
}

// Name is the path of the actor in the spawn tree: "root/partitions/orders-3".
func (r *Ref) Name() string { return r.mb.path }

// Kind is the kind of the actor's Spec.
func (r *Ref) Kind() string { return r.mb.spec.Kind }

// String is the path.
func (r *Ref) String() string { return r.mb.path }

// Post sends from a goroutine that has no Runner: a timer, a callback of a library,
// a reply that is made on somebody else's goroutine. The turn is run by the
// dispatcher. Refusals are as with Runner.Send.
func (r *Ref) Post(m Message) error { return r.mb.post(m) }

// Stop asks the actor to stop, its children first. Messages are refused from the
// moment the actor takes the request; those queued are rejected. It is idempotent
// and does not wait; see Done.
func (r *Ref) Stop() { r.mb.askStop() }

// Done is closed when the actor and all its children have stopped.
func (r *Ref) Done() <-chan struct{} { return r.mb.done }

// Stopped reports whether Done is closed.
func (r *Ref) Stopped() bool {
	select {
	case <-r.mb.done:
		return true
	default:
		return false
	}
}
