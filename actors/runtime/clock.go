package runtime

import (
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Clock is where a System takes time from. Implementations are safe for use by
// several goroutines unless they say otherwise.
type Clock interface {
	// Now reads the monotonic and the wall clock.
	Now() (ident.Instant, ident.Millis)
	// NewAlarm makes an alarm that is not set. fire runs on an unknown goroutine, or
	// on that of the simulation, and must not block.
	NewAlarm(fire func()) Alarm
}

// Alarm calls its function once, some time after it was set.
type Alarm interface {
	// Set makes the alarm fire d from now; an earlier setting is forgotten. A d of
	// zero or less fires as soon as possible, never inside Set.
	Set(d time.Duration)
	// Cancel forgets the setting. A fire that has begun goes on.
	Cancel()
}

// RealClock is the computer's clock. It is the only reader of time in production.
type RealClock struct {
	base time.Time
}

// NewRealClock starts the monotonic clock at 1 ns, so that zero stays "never".
func NewRealClock() *RealClock { return &RealClock{base: time.Now().Add(-1)} }

// Now reads both clocks of the computer.
func (c *RealClock) Now() (ident.Instant, ident.Millis) {
	now := time.Now()
	return ident.Instant(now.Sub(c.base)), ident.Millis(now.UnixMilli())
}

// NewAlarm makes an alarm on a Go timer. fire runs on a goroutine of its own.
func (c *RealClock) NewAlarm(fire func()) Alarm {
	t := time.AfterFunc(time.Hour, fire)
	t.Stop()
	return (*realAlarm)(t)
}

// mono reads the monotonic clock only, which is half the price of Now.
func (c *RealClock) mono() ident.Instant { return ident.Instant(time.Since(c.base)) }

type realAlarm time.Timer

func (a *realAlarm) Set(d time.Duration) { (*time.Timer)(a).Reset(d) }

func (a *realAlarm) Cancel() { (*time.Timer)(a).Stop() }
