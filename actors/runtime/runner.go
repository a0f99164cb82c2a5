package runtime

import (
	"errors"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/troupe-broker/troupe/wire/ident"
)

const (
	// turnsMax and nanosMax bound what one Run does on the goroutine that sends.
	turnsMax = 64
	nanosMax = ident.Instant(200_000)
	// The clock is read after this many turns, or bytes, whichever comes first:
	// reading it costs more than a small turn, and what takes long is bytes.
	turnsUnclocked = 8
	bytesUnclocked = 32 << 10
	// readyKept is the capacity a Runner's list keeps after a burst.
	readyKept = 1024
)

// errGoexit is the reason of a turn that ended its goroutine.
var errGoexit = errors.New("turn called runtime.Goexit")

// Runner is the list of actors that one goroutine has claimed by sending to them. A
// Runner is used by one goroutine; whoever sends must call Run or Flush soon after, or
// the receivers wait for ever.
type Runner struct {
	sys   *System
	ready []*mailbox
	head  int
	turn  Turn
	inRun bool
	gone  bool // a turn has ended the goroutine

	// The batch of the running turn.
	batch [batchMax]Message
	sizes [batchMax]int
	bytes int // of the whole batch
	// Set by a crash: messages that went back to the mailbox.
	kept      int
	keptBytes int
}

// NewRunner makes the Runner of one goroutine.
func NewRunner(sys *System) *Runner {
	r := &Runner{sys: sys}
	r.turn.r = r
	return r
}

// Send queues a message for an actor, of any System. It runs nothing and never
// waits. When the receiver refuses (ErrFull, ErrStopped, ErrQuarantined) the message
// has been answered through Reject by the time Send returns the error.
func (r *Runner) Send(to *Ref, m Message) error {
	mb := to.mb
	claimed, err := mb.offer(m, mb.inPlace)
	switch {
	case !claimed:
		return err
	case mb.inPlace:
		r.ready = append(r.ready, mb)
	default:
		mb.dispatch()
	}
	return nil
}

// Run runs the turns of the actors this goroutine has claimed, and of those that
// they claim in turn, within the budget; the dispatcher gets what is left. Calling it
// inside a turn is a bug.
func (r *Runner) Run() {
	if r.inRun {
		panic("actors/runtime: Run called inside a turn; what a turn sends runs after it")
	}
	if len(r.ready) == 0 {
		return
	}
	r.inRun = true
	b := budget{turns: turnsMax}
	for r.head < len(r.ready) && b.turns > 0 {
		m := r.ready[r.head]
		r.ready[r.head] = nil
		r.head++
		r.visit(m, &b)
		if r.head < len(r.ready) && b.spent(r.sys.real) {
			break
		}
	}
	if r.head < len(r.ready) {
		r.handOver()
	} else {
		r.emptied()
	}
	r.inRun = false
}

// Flush gives the actors this goroutine has claimed to the dispatcher, for a goroutine
// that ends, or waits, before it could run their turns.
func (r *Runner) Flush() { r.handOver() }

// handOver gives all claimed actors to the dispatcher.
func (r *Runner) handOver() {
	for ; r.head < len(r.ready); r.head++ {
		m := r.ready[r.head]
		r.ready[r.head] = nil
		m.mu.Lock()
		m.queueFirst()
		m.mu.Unlock()
		m.dispatch()
	}
	r.emptied()
}

// emptied makes the list ready for the next Run.
func (r *Runner) emptied() {
	r.head = 0
	if cap(r.ready) > readyKept {
		r.ready = nil
	}
	r.ready = r.ready[:0]
}

// budget is what is left of a Run. The clock is read only when there is more to do
// after some turns, so that the usual Run of one turn does not pay for it.
type budget struct {
	turns     int
	unclocked int // turns since the clock was read
	bytes     int // handled in them
	until     ident.Instant
}

// use books a turn.
func (b *budget) use(bytes int) {
	b.turns--
	b.unclocked++
	b.bytes += bytes
}

// spent reports whether the rest belongs to the dispatcher. clock is nil when time
// does not count.
func (b *budget) spent(clock *RealClock) bool {
	if b.turns <= 0 {
		return true
	}
	if clock == nil || (b.unclocked < turnsUnclocked && b.bytes < bytesUnclocked) {
		return false
	}
	b.unclocked, b.bytes = 0, 0
	now := clock.mono()
	if b.until == 0 {
		b.until = now + nanosMax
	}
	return now >= b.until
}

// visit runs turns of a claimed actor until nothing is queued or the budget is spent.
func (r *Runner) visit(m *mailbox, b *budget) {
	n := 1
	if m.first.msg != nil && !m.more.Load() {
		r.batch[0], r.sizes[0], r.bytes = m.first.msg, m.first.bytes, m.first.bytes
		m.first.msg = nil
	} else {
		m.mu.Lock()
		m.queueFirst()
		n = m.take(r, b)
	}
	for n > 0 {
		r.runTurn(m, n)
		b.use(r.bytes)
		m.mu.Lock()
		m.account(r, n)
		n = m.take(r, b)
	}
}

// account books the turn that just ended. mu is held.
func (m *mailbox) account(r *Runner, n int) {
	m.turns++
	m.messages += uint64(n)
	m.count -= n
	m.bytes -= r.bytes
	if r.kept > 0 {
		m.messages -= uint64(r.kept)
		m.count += r.kept
		m.bytes += r.keptBytes
		r.kept, r.keptBytes = 0, 0
	}
}

// take handles the system messages, then moves the next batch into r and returns its
// length. It returns 0 when the actor was released, was given to the dispatcher or is
// dead. mu is held on entry and free on return.
func (m *mailbox) take(r *Runner, b *budget) int {
	for len(m.system) > 0 {
		msg := m.system[0]
		m.system[0] = nil
		m.system = m.system[1:]
		if len(m.system) == 0 {
			m.system = nil
		}
		m.mu.Unlock()
		r.handleSystem(m, msg)
		if m.dead {
			return 0
		}
		m.mu.Lock()
	}
	n := 0
	if !m.suspended {
		if m.queue.n > 0 {
			if b.spent(m.sys.real) {
				m.mu.Unlock()
				m.dispatch()
				return 0
			}
			n = m.drain(r, min(m.spec.BatchMax, m.sys.dispatcher.batch(m.queue.n)))
		}
	}
	if n == 0 {
		m.claimed = false
	}
	if m.queue.n == 0 && !m.suspended && !m.closed && m.more.Load() {
		m.more.Store(false)
	}
	m.mu.Unlock()
	return n
}

// drain moves up to limit messages into r. mu is held.
func (m *mailbox) drain(r *Runner, limit int) int {
	n := 0
	r.bytes = 0
	for n < limit && m.queue.n > 0 {
		s := m.queue.pop()
		if t, ok := s.msg.(*Timer); ok {
			if s.msg = t.deliver(); s.msg == nil {
				m.count--
				continue
			}
		}
		r.batch[n], r.sizes[n] = s.msg, s.bytes
		r.bytes += s.bytes
		n++
	}
	return n
}

// handleSystem handles one message of the actor system.
func (r *Runner) handleSystem(m *mailbox, msg any) {
	r.turn.mb, r.turn.looked = m, false
	m.cell.turn = &r.turn
	defer func() {
		if m.cell.goexit {
			m.cell.goexit = false
			r.abandon(m)
		}
	}()
	switch msg := msg.(type) {
	case *actor.SuspendMailbox:
		m.suspend(true)
	case *actor.ResumeMailbox:
		m.cell.resume()
	case *actor.Restart:
		if m.cell.stopping || m.cell.restarting {
			return // protoactor would bring it back to life, or do it twice
		}
		m.suspend(true)
		m.invoker.InvokeSystemMessage(msg)
	case *adopt:
		m.cell.adopt(msg)
	case *watch:
		m.invoker.InvokeSystemMessage(&actor.Watch{Watcher: m.sys.library.system.NewLocalPID(msg.watcher.id)})
	case *terminated:
		m.cell.terminated(msg.who.id)
	default:
		m.invoker.InvokeSystemMessage(msg)
	}
}

// runTurn gives the batch to the behaviour. A panic ends here.
func (r *Runner) runTurn(m *mailbox, n int) {
	r.turn.mb, r.turn.looked = m, false
	if m.plain {
		r.protect(m, n)
	} else {
		r.runSpecial(m, n)
	}
	if n == 1 {
		r.batch[0] = nil // the usual case, at a fifth of the price
		return
	}
	clear(r.batch[:n])
}

// runSpecial runs a turn that is recorded, or whose memory faults are facts.
func (r *Runner) runSpecial(m *mailbox, n int) {
	if m.sys.traced {
		m.sys.dispatcher.record(m, r.batch[:n])
	}
	if !m.spec.PanicOnFault {
		r.protect(m, n)
		return
	}
	before := debug.SetPanicOnFault(true)
	r.protect(m, n)
	debug.SetPanicOnFault(before)
}

// protect catches the panic of a turn.
func (r *Runner) protect(m *mailbox, n int) {
	ended := false
	defer func() {
		if !ended {
			r.crashed(m, n, recover())
		}
	}()
	m.cell.behaviour.Turn(&r.turn, r.batch[:n])
	ended = true
}

// crashed sorts out a turn that ended early: a fault is offered to the behaviour, a
// bug is escalated. What was not handled is answered or goes back.
func (r *Runner) crashed(m *mailbox, n int, reason any) {
	blame := m.blame(reason, r.batch[:n])
	if blame.Fault != nil && m.cell.faulted(&r.turn, *blame.Fault, r.batch[:n]) {
		for _, msg := range r.batch[:n] {
			if msg != nil {
				reject(msg, &FaultError{Actor: m.path, Addr: blame.Fault.Addr})
			}
		}
		return
	}
	poison := Message(nil)
	m.mu.Lock()
	m.panics++
	for i := n - 1; i >= 0; i-- {
		if msg := r.batch[i]; msg != nil {
			m.putBack(slot{msg, r.sizes[i]})
			r.kept++
			r.keptBytes += r.sizes[i]
		}
	}
	if r.kept > 0 {
		s := m.queue.pop()
		poison = s.msg
		r.kept--
		r.keptBytes -= s.bytes
	}
	m.mu.Unlock()
	if poison != nil {
		reject(poison, &BugError{Actor: m.path})
	}
	m.invoker.EscalateFailure(blame, poison)
	if blame.goexit {
		m.mu.Lock()
		m.account(r, n)
		m.mu.Unlock()
		r.abandon(m)
	}
}

// abandon lets others go on with what this goroutine holds: a turn of m is ending it.
func (r *Runner) abandon(m *mailbox) {
	m.dispatch()
	r.handOver()
	r.inRun, r.gone = false, true
}
