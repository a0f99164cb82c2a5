package runtime

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// batchMax is the largest batch of one turn; a Runner holds a buffer of this size.
const batchMax = 64

// mailbox is the queue of one actor and the right to run it. protoactor posts its
// system messages here through the actor.Mailbox interface; messages of ours come
// through offer.
//
// Exactly one goroutine at a time owns the right to run: whoever turned claimed
// from false to true. The message that claimed an idle actor is kept beside the queue, as
// first, so the uncontended way through costs two lock pairs and no queueing.
type mailbox struct {
	// Fixed at spawn.
	sys  *System
	ref  Ref
	spec Spec
	path string
	id   string // of the PID: the path, with the number of the incarnation in each part
	done chan struct{}
	wake chan struct{} // blocking actors: holds a token while claimed and waiting
	cell cell

	inPlace bool // senders run its turns
	plain   bool // its turns are neither recorded nor may they fault

	// more is set when a look under mu is needed before the next turn: anything is
	// queued, or the actor is not simply running.
	more atomic.Bool

	mu      sync.Mutex
	claimed bool
	queue   ring
	system  []any // system messages, oldest first
	early   []any // system messages that came before the actor was started

	started   bool // Started was posted; nothing runs before
	suspended bool // failed; waits for a restart or a stop
	closed    bool // refuses: stopping or stopped
	shut      bool // refuses: in quarantine
	full      bool // refuses: told so by a test
	stopAsked bool
	dead      bool // stopped for good

	count     int // queued, first, and in the running turn
	bytes     int
	countHigh int
	bytesHigh int
	counters
	failures failures

	// Owned by whoever holds the claim.
	first   slot // the message that claimed, when the queue was empty
	invoker actor.MessageInvoker
	timers  timerSet
}

func newMailbox(sys *System, parent *mailbox, spec Spec) *mailbox {
	m := &mailbox{sys: sys, spec: spec, done: make(chan struct{})}
	m.path, m.id = spec.Name, spec.Name+"~"+strconv.FormatUint(sys.incarnation.Add(1), 36)
	if parent != nil {
		m.path, m.id = parent.path+"/"+m.path, parent.id+"/"+m.id
	}
	m.ref.mb = m
	m.cell.mb = m
	m.cell.parent = parent
	m.more.Store(true)
	if spec.Blocking && sys.dispatcher.blocks() {
		m.wake = make(chan struct{}, 1)
	}
	m.inPlace = m.wake == nil && sys.inPlace
	m.plain = !sys.traced && !spec.PanicOnFault
	return m
}

// PostSystemMessage queues a message of the actor system. It is never refused.
func (m *mailbox) PostSystemMessage(msg any) {
	m.mu.Lock()
	if m.dead {
		m.mu.Unlock()
		m.answerDead(msg)
		return
	}
	if _, first := msg.(*actor.Started); first {
		m.started = true
	}
	if !m.started {
		m.early = append(m.early, msg)
		m.mu.Unlock()
		return
	}
	m.system = append(m.system, msg)
	m.more.Store(true)
	claim := !m.claimed
	if claim {
		m.claimed = true
	}
	m.mu.Unlock()
	if claim {
		m.dispatch()
	}
}

// PostUserMessage takes a message that was sent to the PID. Nothing of ours sends
// so; it keeps the mailbox a whole actor.Mailbox.
func (m *mailbox) PostUserMessage(msg any) {
	if msg, ok := msg.(Message); ok {
		// Refusals were answered; protoactor has nobody to tell.
		_ = m.post(msg)
	}
}

// RegisterHandlers is called by protoactor when the actor's context exists.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.mu.Lock()
	m.invoker = invoker
	m.mu.Unlock()
}

// Start is called by protoactor after it has posted Started. What came before the
// actor existed follows now.
func (m *mailbox) Start() {
	m.mu.Lock()
	early := m.early
	m.early = nil
	m.mu.Unlock()
	for _, msg := range early {
		m.PostSystemMessage(msg)
	}
}

// UserMessageCount is the depth of the mailbox.
func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// offer queues one message. When it claimed the actor, the caller must see to it
// that the actor is visited. With carry, the message may pass by the queue.
func (m *mailbox) offer(msg Message, carry bool) (claimed bool, err error) {
	size := msg.Bytes()
	m.mu.Lock()
	if err := m.admit(msg, size); err != nil {
		m.rejects++
		m.mu.Unlock()
		reject(msg, err)
		return false, err
	}
	m.count++
	m.bytes += size
	if m.count > m.countHigh {
		m.countHigh = m.count
	}
	if m.bytes > m.bytesHigh {
		m.bytesHigh = m.bytes
	}
	ready := !m.claimed && m.started && !m.suspended
	if ready {
		m.claimed = true
	}
	if ready && carry {
		m.first = slot{msg, size}
	} else {
		m.queue.push(slot{msg, size})
		m.more.Store(true)
	}
	m.mu.Unlock()
	return ready, nil
}

// admit checks the state and the bounds. mu is held.
func (m *mailbox) admit(msg Message, size int) error {
	switch {
	case m.closed:
		return ErrStopped
	case m.shut:
		return ErrQuarantined
	case m.full, m.count >= m.spec.CountMax, m.bytes+size > m.spec.BytesMax && m.count > 0:
		if _, owed := msg.(Owed); !owed {
			return ErrFull
		}
	}
	return nil
}

// post sends from anywhere; the dispatcher runs the turn.
func (m *mailbox) post(msg Message) error {
	claimed, err := m.offer(msg, false)
	if claimed {
		m.dispatch()
	}
	return err
}

// dispatch gives a claimed actor to its own goroutine or to the dispatcher.
func (m *mailbox) dispatch() {
	if m.wake != nil {
		m.wake <- struct{}{} // never blocks: one claim, one token
		return
	}
	m.sys.dispatcher.enqueue(m)
}

// putBack returns a message that was taken but not handled to the front. It stays
// counted. mu is held.
func (m *mailbox) putBack(s slot) {
	m.queue.pushFront(s)
	m.more.Store(true)
}

// queueFirst puts the message that claimed to the front of the queue: something came
// before the actor could be visited, or somebody else will. mu is held.
func (m *mailbox) queueFirst() {
	if m.first.msg != nil {
		m.putBack(m.first)
		m.first.msg = nil
	}
}

// fire queues the message of a timer. Timers are not bounded by CountMax: an actor
// has at most one message in flight per timer it made.
func (m *mailbox) fire(t *Timer) {
	m.mu.Lock()
	if m.closed || !t.ring() {
		m.mu.Unlock()
		return
	}
	m.queue.push(slot{msg: t})
	m.count++
	m.more.Store(true)
	claim := !m.claimed && m.started && !m.suspended
	if claim {
		m.claimed = true
	}
	m.mu.Unlock()
	if claim {
		m.dispatch()
	}
}

// answerDead gives a dead actor's answer to a system message.
func (m *mailbox) answerDead(msg any) {
	switch msg := msg.(type) {
	case *watch:
		msg.watcher.PostSystemMessage(&terminated{who: m})
	case *adopt:
		msg.child.abort()
	}
}

// askStop posts one stop message.
func (m *mailbox) askStop() {
	m.mu.Lock()
	asked := m.stopAsked
	m.stopAsked = true
	m.mu.Unlock()
	if !asked {
		m.PostSystemMessage(stopMessage)
	}
}

// suspend stops or lets go on the turns of the actor. The claim is held.
func (m *mailbox) suspend(on bool) {
	m.mu.Lock()
	m.suspended = on
	m.more.Store(true)
	m.mu.Unlock()
}

// restarted ends a quarantine and counts the new instance.
func (m *mailbox) restarted() {
	m.mu.Lock()
	m.shut = false
	m.restarts++
	m.mu.Unlock()
}

// launch starts the goroutine of a blocking actor.
func (m *mailbox) launch() {
	if m.wake != nil {
		m.sys.goroutines.Add(1)
		go m.loop()
	}
}

// loop runs a blocking actor until it is dead.
func (m *mailbox) loop() {
	r := NewRunner(m.sys)
	defer func() {
		if r.gone {
			go m.loop()
			return
		}
		m.sys.goroutines.Done()
	}()
	for range m.wake {
		r.visit(m, &budget{turns: 1})
		r.Run()
		if m.dead {
			return
		}
	}
}

// close refuses messages from now on.
func (m *mailbox) close() {
	m.mu.Lock()
	m.closed = true
	m.more.Store(true)
	m.mu.Unlock()
}

// rejectQueued answers all that is queued.
func (m *mailbox) rejectQueued(why error) {
	for {
		m.mu.Lock()
		if m.queue.n == 0 {
			m.mu.Unlock()
			return
		}
		s := m.queue.pop()
		m.count--
		m.bytes -= s.bytes
		if _, timer := s.msg.(*Timer); !timer {
			m.rejects++
		}
		m.mu.Unlock()
		reject(s.msg, why)
	}
}

// bury ends a stopped actor: what the system still had for it is answered, waiters
// are told. The claim is kept for ever.
func (m *mailbox) bury() {
	m.mu.Lock()
	m.dead = true
	rest := append(m.system, m.early...)
	m.system, m.early = nil, nil
	m.mu.Unlock()
	m.rejectQueued(ErrStopped)
	for _, msg := range rest {
		m.answerDead(msg)
	}
	m.sys.forget(m)
	close(m.done)
}

// abort ends an actor that was never started, because its parent stopped first.
func (m *mailbox) abort() {
	m.close()
	m.mu.Lock()
	m.claimed = true
	m.mu.Unlock()
	m.bury()
}
