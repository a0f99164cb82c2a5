package runtime

import (
	"container/heap"
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
)

// SimClock is a clock that moves only when told. It is used by one goroutine.
type SimClock struct {
	mono   ident.Instant
	wall   ident.Millis
	rest   time.Duration // of the wall clock, below a millisecond
	alarms alarmHeap
	seq    uint64
}

// NewSimClock starts at 1 ns on the monotonic clock and at wall.
func NewSimClock(wall ident.Millis) *SimClock { return &SimClock{mono: 1, wall: wall} }

// Now reads both clocks.
func (c *SimClock) Now() (ident.Instant, ident.Millis) { return c.mono, c.wall }

// NewAlarm makes an alarm. fire runs inside Advance or Next.
func (c *SimClock) NewAlarm(fire func()) Alarm { return &simAlarm{clock: c, fire: fire, at: -1} }

// Advance moves time by d and fires what falls due, in the order of the instants, and
// of setting when these are equal. Alarms set by what fires count as well.
func (c *SimClock) Advance(d time.Duration) {
	until := c.mono + ident.Instant(d)
	for len(c.alarms) > 0 && c.alarms[0].due <= until {
		c.fireNext()
	}
	c.move(until)
}

// Next moves time to the earliest alarm and fires it. It returns false when no alarm
// is set.
func (c *SimClock) Next() bool {
	if len(c.alarms) == 0 {
		return false
	}
	c.fireNext()
	return true
}

// Earliest is the time until the earliest alarm, false when none is set.
func (c *SimClock) Earliest() (time.Duration, bool) {
	if len(c.alarms) == 0 {
		return 0, false
	}
	return time.Duration(max(0, c.alarms[0].due-c.mono)), true
}

// JumpWall moves the wall clock alone, as an operator or a time server does.
func (c *SimClock) JumpWall(d time.Duration) { c.addWall(d) }

func (c *SimClock) fireNext() {
	a := heap.Pop(&c.alarms).(*simAlarm)
	c.move(a.due)
	a.fire()
}

func (c *SimClock) move(to ident.Instant) {
	if to > c.mono {
		c.addWall(time.Duration(to - c.mono))
		c.mono = to
	}
}

func (c *SimClock) addWall(d time.Duration) {
	c.rest += d
	c.wall += ident.Millis(c.rest / time.Millisecond)
	c.rest %= time.Millisecond
}

type simAlarm struct {
	clock *SimClock
	fire  func()
	due   ident.Instant
	seq   uint64
	at    int // index in the heap; -1: not set
}

func (a *simAlarm) Set(d time.Duration) {
	a.Cancel()
	a.clock.seq++
	a.due, a.seq = a.clock.mono+ident.Instant(max(0, d)), a.clock.seq
	heap.Push(&a.clock.alarms, a)
}

func (a *simAlarm) Cancel() {
	if a.at >= 0 {
		heap.Remove(&a.clock.alarms, a.at)
	}
}

type alarmHeap []*simAlarm

// Len is for container/heap.
func (h *alarmHeap) Len() int { return len(*h) }

// Less is for container/heap.
func (h *alarmHeap) Less(i, j int) bool {
	a, b := (*h)[i], (*h)[j]
	if a.due != b.due {
		return a.due < b.due
	}
	return a.seq < b.seq
}

// Swap is for container/heap.
func (h *alarmHeap) Swap(i, j int) {
	s := *h
	s[i], s[j] = s[j], s[i]
	s[i].at, s[j].at = i, j
}

// Push is for container/heap.
func (h *alarmHeap) Push(x any) {
	a := x.(*simAlarm)
	a.at = len(*h)
	*h = append(*h, a)
}

// Pop is for container/heap.
func (h *alarmHeap) Pop() any {
	old := *h
	a := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	a.at = -1
	return a
}
