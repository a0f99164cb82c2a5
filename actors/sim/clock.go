package sim

import (
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
)

// DriftMax is the most that a node's clock gains or loses, in parts per million: five
// per cent, more than any crystal, so that what depends on equal clocks shows.
const DriftMax = 50_000

const million = 1_000_000

// NodeClock is the clock of one node: it runs a little faster or slower than the
// world's, and its wall clock jumps when somebody sets it.
type NodeClock struct {
	world  *runtime.SimClock
	ppm    int64
	offset time.Duration // of the wall clock
	alarms map[*nodeAlarm]struct{}
	frozen bool         // nobody is there to hear an alarm
	due    []*nodeAlarm // that fell due meanwhile
}

func newNodeClock(world *runtime.SimClock, ppm int64) *NodeClock {
	return &NodeClock{world: world, ppm: ppm, alarms: make(map[*nodeAlarm]struct{})}
}

// Now reads both clocks of the node.
func (c *NodeClock) Now() (ident.Instant, ident.Millis) {
	now, _ := c.world.Now()
	mono := ident.Instant(c.elapsed(time.Duration(now)))
	return mono, wallStart + ident.Millis(floorDiv(time.Duration(mono)+c.offset, time.Millisecond))
}

// Drift is how many parts per million the clock is fast.
func (c *NodeClock) Drift() int64 { return c.ppm }

// Jump sets the wall clock forward, or back. The monotonic clock does not care.
func (c *NodeClock) Jump(d time.Duration) { c.offset += d }

// NewAlarm makes an alarm that goes by this clock.
func (c *NodeClock) NewAlarm(fire func()) runtime.Alarm {
	a := &nodeAlarm{clock: c, fire: fire}
	a.alarm = c.world.NewAlarm(func() {
		if c.frozen {
			c.due = append(c.due, a)
			return
		}
		delete(c.alarms, a)
		fire()
	})
	return a
}

// freeze has alarms wait, or lets those go off that have waited.
func (c *NodeClock) freeze(on bool) {
	c.frozen = on
	due := c.due
	c.due = nil
	for _, a := range due {
		if _, set := c.alarms[a]; set {
			delete(c.alarms, a)
			a.fire()
		}
	}
}

// elapsed is what this clock shows after d of the world's time.
func (c *NodeClock) elapsed(d time.Duration) time.Duration {
	return d + d/million*time.Duration(c.ppm) + d%million*time.Duration(c.ppm)/million
}

// real is how long d of this clock takes, rounded up.
func (c *NodeClock) real(d time.Duration) time.Duration {
	rate := time.Duration(million + c.ppm)
	return d/rate*million + (d%rate*million+rate-1)/rate
}

func floorDiv(a, b time.Duration) time.Duration {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// forget cancels all alarms: the process is gone.
func (c *NodeClock) forget() {
	for a := range c.alarms {
		a.alarm.Cancel()
	}
	clear(c.alarms)
	c.frozen, c.due = false, nil
}

type nodeAlarm struct {
	clock *NodeClock
	alarm runtime.Alarm
	fire  func()
}

// Set arms the alarm by the node's clock.
func (a *nodeAlarm) Set(d time.Duration) {
	a.clock.alarms[a] = struct{}{}
	a.alarm.Set(a.clock.real(max(0, d)))
}

// Cancel forgets the setting.
func (a *nodeAlarm) Cancel() {
	delete(a.clock.alarms, a)
	a.alarm.Cancel()
}
