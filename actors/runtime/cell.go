package runtime

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
)

var stopMessage = &actor.Stop{}

// System messages of ours, beside protoactor's.
type (
	// adopt asks an actor to spawn a child that exists as a mailbox already. It comes
	// as a message because the list of children is the parent's own.
	adopt struct{ child *mailbox }
	// watch asks an actor to tell watcher when it has stopped.
	watch struct{ watcher *mailbox }
	// terminated tells a watcher that who had stopped before it asked.
	terminated struct{ who *mailbox }
)

// cell is the protoactor actor around a behaviour. It lives as long as the actor,
// through restarts. All fields are owned by whoever holds the claim of the mailbox.
type cell struct {
	mb         *mailbox
	parent     *mailbox
	behaviour  Behaviour
	ctx        actor.Context
	turn       *Turn               // of the Runner that handles the system message
	peers      map[string]*mailbox // children and watched actors, by PID id
	waiting    []*adopt            // children asked for since the instance failed
	alive      bool                // Started has run for this instance
	stopping   bool
	restarting bool
	goexit     bool // a hook ended its goroutine
}

// Receive takes the lifecycle messages of protoactor. User messages do not come this
// way: the mailbox gives them to the behaviour as batches.
func (c *cell) Receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *actor.Started:
		c.start(ctx)
	case *actor.Restarting:
		c.restart()
	case *actor.Stopping:
		c.stop()
	case *actor.Stopped:
		c.end()
	case *actor.Terminated:
		c.terminated(msg.Who.Id)
	}
}

func (c *cell) start(ctx actor.Context) {
	c.ctx = ctx
	c.restarting = false
	if c.stopping {
		return
	}
	c.hook("New", func() {
		c.behaviour = c.mb.spec.Behaviour
		if c.mb.spec.New != nil {
			c.behaviour = c.mb.spec.New()
		}
	})
	if c.behaviour == nil {
		return
	}
	c.alive = true
	if b, ok := c.behaviour.(Starter); ok {
		c.hook("Started", func() { b.Started(c.turn) })
	}
}

func (c *cell) restart() {
	c.restarting = true
	c.mb.timers.clear()
	if b, ok := c.behaviour.(Restarter); ok && c.alive {
		c.lastHook("Restarting", func() { b.Restarting(c.turn) })
	}
	c.alive = false
	c.behaviour = nil
	c.mb.restarted()
}

func (c *cell) stop() {
	c.stopping = true
	c.mb.close()
	c.mb.timers.clear()
	if b, ok := c.behaviour.(Stopper); ok && c.alive {
		c.lastHook("Stopping", func() { b.Stopping(c.turn) })
	}
	c.mb.rejectQueued(ErrStopped)
	for _, a := range c.waiting {
		a.child.abort()
	}
	c.waiting = nil
}

func (c *cell) end() {
	if b, ok := c.behaviour.(Stopper); ok && c.alive {
		c.lastHook("Stopped", func() { b.Stopped(c.turn) })
	}
	c.alive = false
	c.mb.timers.clear()
	for _, id := range slices.Sorted(maps.Keys(c.peers)) {
		c.peers[id].PostSystemMessage(&actor.Unwatch{Watcher: c.ctx.Self()})
	}
	c.peers = nil
	// Before the parent and the watchers are told, so that who hears of a death finds
	// the dead dead.
	c.mb.bury()
}

// terminated tells the behaviour of a death, once for each actor.
func (c *cell) terminated(id string) {
	who, ok := c.peers[id]
	if !ok {
		return
	}
	delete(c.peers, id)
	if b, ok := c.behaviour.(Watcher); ok && c.alive {
		c.hook("Terminated", func() { b.Terminated(c.turn, &who.ref) })
	}
}

// adopt spawns a child, now that it is the parent's turn.
func (c *cell) adopt(a *adopt) {
	switch {
	case c.stopping:
		a.child.abort()
	case c.restarting || c.mb.suspended: // the next instance's, as the failed one's children end with it
		c.waiting = append(c.waiting, a)
	default:
		name := a.child.id[len(c.mb.id)+1:]
		c.addPeer(a.child)
		a.child.launch()
		if _, err := c.ctx.SpawnNamed(c.mb.sys.props(a.child), name); err != nil {
			panic(fmt.Sprintf("actors/runtime: spawn %s: %v", a.child.path, err))
		}
	}
}

// resume lets the actor go on after a restart.
func (c *cell) resume() {
	c.mb.suspend(false)
	waiting := c.waiting
	c.waiting = nil
	for _, a := range waiting {
		c.adopt(a)
	}
}

// watch asks for news of who's death.
func (c *cell) watch(who *mailbox) {
	if who.sys != c.mb.sys {
		panic("actors/runtime: Watch across Systems")
	}
	if _, ok := c.peers[who.id]; ok || who == c.mb {
		return
	}
	c.addPeer(who)
	who.PostSystemMessage(&watch{watcher: c.mb})
}

func (c *cell) addPeer(who *mailbox) {
	if c.peers == nil {
		c.peers = make(map[string]*mailbox)
	}
	c.peers[who.id] = who
}

// hook runs code of the behaviour outside a turn. A panic is escalated.
func (c *cell) hook(name string, f func()) {
	c.try(name, f, func(b *Blame) { c.mb.invoker.EscalateFailure(b, nil) })
}

// lastHook runs code of an instance that ends anyhow: a panic changes nothing, unless
// the policy is to exit.
func (c *cell) lastHook(name string, f func()) { c.try(name, f, c.mb.superviseLast) }

// try runs f and passes a panic to failed. It does so while the stack unwinds,
// because a goroutine that ends itself does not come back.
func (c *cell) try(name string, f func(), failed func(*Blame)) {
	ended := false
	defer func() {
		if ended {
			return
		}
		reason := recover()
		c.goexit = reason == nil
		b := c.mb.blame(reason, nil)
		b.Message = name
		c.mb.mu.Lock()
		c.mb.panics++
		c.mb.mu.Unlock()
		failed(b)
	}()
	f()
	ended = true
}

// faulted offers a memory fault to the behaviour and says whether it dealt with it.
func (c *cell) faulted(t *Turn, f Fault, batch []Message) (dealt bool) {
	if b, ok := c.behaviour.(Faulter); ok {
		c.try("Faulted", func() { dealt = b.Faulted(t, f, batch) }, c.mb.superviseLast)
	}
	return dealt
}

// blame describes a panic that is being recovered. There is always a reason, except
// when the goroutine ends itself.
func (m *mailbox) blame(reason any, batch []Message) *Blame {
	at, _ := m.sys.clock.Now()
	goexit := reason == nil
	if goexit {
		reason = errGoexit
	}
	b := &Blame{Actor: m.path, Kind: m.spec.Kind, Reason: reason, Stack: string(debug.Stack()), At: at, ref: &m.ref, goexit: goexit}
	for _, msg := range batch {
		if msg != nil {
			b.Message = fmt.Sprintf("%T", msg)
			break
		}
	}
	// Only a fault recovered under SetPanicOnFault has an address.
	if err, ok := reason.(interface{ Addr() uintptr }); ok {
		b.Fault = &Fault{Addr: err.Addr()}
	}
	return b
}
