package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
)

// clock is the computer's clock, put wrong: its wall is ahead or behind, and its seconds are shorter or longer than they should be. Monotonic time
// goes on from where it was when the speed changes.
type clock struct {
	file  string
	real  *runtime.RealClock
	text  string // of the file, as it was read last; of who reads it
	over  chan struct{}
	reads sync.WaitGroup

	mu    sync.Mutex
	ahead ident.Millis // the wall, before it drifts
	speed float64      // 1: right
	since ident.Instant
	mono  ident.Instant // at since
	drift ident.Millis  // of the wall, at since
}

// newClock makes a clock that is as wrong as the file says, now and soon after the file has changed. No file: it is right.
func newClock(file string) (*clock, error) {
	const every = 50 * time.Millisecond
	c := &clock{file: file, real: runtime.NewRealClock(), over: make(chan struct{}), speed: 1}
	c.since, _ = c.real.Now()
	c.mono = c.since
	if file == "" {
		return c, nil
	}
	if err := c.read(); err != nil {
		return nil, err
	}
	c.reads.Go(func() {
		pace := time.NewTicker(every)
		defer pace.Stop()
		for {
			select {
			case <-c.over:
				return
			case <-pace.C:
			}
			if err := c.read(); err != nil {
				fmt.Fprintln(os.Stderr, "proving: the clock stays:", err)
			}
		}
	})
	return c, nil
}

func (c *clock) stop() {
	close(c.over)
	c.reads.Wait()
}

func (c *clock) read() error {
	text, err := os.ReadFile(c.file)
	if err != nil || string(text) == c.text {
		return err
	}
	c.text = string(text)
	var aheadMs, ppm int64
	if _, err := fmt.Sscan(c.text, &aheadMs, &ppm); err != nil {
		return fmt.Errorf("%s: %w", c.file, err)
	}
	now, _ := c.real.Now()
	c.set(now, ident.Millis(aheadMs), ppm)
	return nil
}

// set puts it wrong from now on.
func (c *clock) set(now ident.Instant, ahead ident.Millis, ppm int64) {
	const million = 1e6
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mono, c.drift = c.at(now)
	c.since, c.ahead, c.speed = now, ahead, 1+float64(ppm)/million
}

// at gives monotonic time, and by how much the wall has drifted.
func (c *clock) at(now ident.Instant) (ident.Instant, ident.Millis) {
	passed := now - c.since
	mine := ident.Instant(float64(passed) * c.speed)
	return c.mono + mine, c.drift + ident.Millis(time.Duration(mine-passed).Milliseconds())
}

// Now implements runtime.Clock.
func (c *clock) Now() (ident.Instant, ident.Millis) {
	now, wall := c.real.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	mono, drift := c.at(now)
	return mono, wall + c.ahead + drift
}

// NewAlarm implements runtime.Clock. An alarm that was set before the speed changed fires by the old one.
func (c *clock) NewAlarm(fire func()) runtime.Alarm { return &alarm{c.real.NewAlarm(fire), c} }

type alarm struct {
	runtime.Alarm
	clock *clock
}

func (a *alarm) Set(d time.Duration) {
	a.clock.mu.Lock()
	speed := a.clock.speed
	a.clock.mu.Unlock()
	a.Alarm.Set(time.Duration(float64(d) / speed))
}
