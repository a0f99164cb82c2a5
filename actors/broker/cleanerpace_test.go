package broker

import (
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire/ident"
)

// pacedClock is a clock that moves only by pauses.
type pacedClock struct {
	runtime.Clock
	now ident.Instant
}

func (c *pacedClock) Now() (ident.Instant, ident.Millis) { return c.now, 0 }

func TestCompactionKeepsItsPace(t *testing.T) {
	clock := &pacedClock{now: 1}
	rate := 1000.0
	p := &pacer{clock: clock, rate: func() float64 { return rate }, pause: func(d time.Duration) {
		if d > pauseMax {
			t.Fatalf("a pause of %v", d)
		}
		clock.now += ident.Instant(d)
	}}
	never := func() bool { return false }
	for range 10 {
		p.take(500, never)
	}
	if took := time.Duration(clock.now - 1); took < 4900*time.Millisecond || took > 5100*time.Millisecond {
		t.Errorf("5000 bytes at 1000 a second took %v", took)
	}
	began := clock.now
	p.take(1<<40, func() bool { return clock.now > began+ident.Instant(time.Second) })
	if took := time.Duration(clock.now - began); took > 2*time.Second {
		t.Errorf("a cancelled run waited for %v", took)
	}
	rate, began = 1e13, clock.now
	p.take(1<<40, never)
	if clock.now != began {
		t.Error("without a limit it waits")
	}
}

// What is owed is bytes: when the rate changes, who waits already is served at the new one, and a run that is cancelled leaves the others nothing to wait for.
func TestAPaceThatChangesCountsForWhatWaits(t *testing.T) {
	clock := &pacedClock{now: 1}
	rate := 1000.0
	p := &pacer{clock: clock, rate: func() float64 { return rate }, pause: func(d time.Duration) { clock.now += ident.Instant(d) }}
	never := func() bool { return false }
	faster := func() bool {
		if clock.now > ident.Instant(time.Second) {
			rate = 1e6
		}
		return false
	}
	p.take(2_001_000, faster) // 1000 bytes in the first second, the others in two more
	if took := time.Duration(clock.now - 1); took < 2900*time.Millisecond || took > 3300*time.Millisecond {
		t.Errorf("it took %v, want 3 s", took)
	}
	began := clock.now
	p.take(1000, never)
	if took := time.Duration(clock.now - began); took > 100*time.Millisecond {
		t.Errorf("the next 1000 bytes waited for %v", took)
	}
	p.take(1<<40, func() bool { return clock.now > began+ident.Instant(time.Second) })
	began = clock.now
	p.take(1000, never)
	if took := time.Duration(clock.now - began); took > 100*time.Millisecond {
		t.Errorf("behind a cancelled run 1000 bytes waited for %v", took)
	}
}
