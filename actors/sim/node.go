package sim

import (
	"fmt"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// Node is a process of the world, through all its lives.
type Node struct {
	// Name is unique in the world.
	Name string
	// Clock is what the node takes for the time.
	Clock *NodeClock

	world *World
	sys   *runtime.System
	lives int
}

// NewNode adds a process that is not running. Its clock has a drift drawn from the
// seed, up to DriftMax either way.
func (w *World) NewNode(name string) *Node {
	r := w.Rand("clock/" + name)
	return &Node{Name: name, world: w, Clock: newNodeClock(w.clock, r.Int64N(2*DriftMax+1)-DriftMax)}
}

// Boot starts the process: a System without actors.
func (n *Node) Boot(log zerolog.Logger) *runtime.System {
	if n.sys != nil {
		panic("sim: " + n.Name + " is running")
	}
	n.lives++
	n.world.Note(fmt.Sprintf("%s boots for the %d. time", n.Name, n.lives))
	n.sys = runtime.NewSystem(runtime.Options{Log: log, Clock: n.Clock, Dispatcher: n.world.run})
	return n.sys
}

// Running is the System of the running process, nil when it is not running.
func (n *Node) Running() *runtime.System { return n.sys }

// Crash ends the process at once, as kill -9: nothing that it had queued happens, its
// timers are forgotten, its connections are reset.
func (n *Node) Crash() {
	if n.sys == nil {
		return
	}
	n.world.Note(n.Name + " crashes")
	n.world.run.Abandon(n.sys)
	n.sys = nil
	n.Clock.forget()
	n.world.Net.abortAll(n.Name)
}

// Freeze has the process stand still, as SIGSTOP does, or go on. Its clock goes on all
// the time: alarms that fall due meanwhile fire afterwards.
func (n *Node) Freeze(on bool) {
	n.world.Note(fmt.Sprintf("%s stands still: %v", n.Name, on))
	n.world.run.Freeze(n.sys, on)
	n.Clock.freeze(on)
}

// Stopped tells that the System was shut down in order. The next Boot makes another.
func (n *Node) Stopped() {
	n.world.Note(n.Name + " has stopped")
	n.sys = nil
	n.world.Net.abortAll(n.Name)
}
