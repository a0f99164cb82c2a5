package broker

import (
	"testing"
)

func TestABucketKeepsARate(t *testing.T) {
	const second = 1000 * millisecond
	b, now, copied := &bucket{}, 5*second, int64(0)
	for range 600 { // of 100 ms
		if now += 100 * millisecond; b.open(now, 10_000) {
			b.take(now, 10_000, 7000)
			copied += 7000
		}
	}
	if copied < 590_000 || copied > 620_000 {
		t.Errorf("%d bytes in a minute at 10000 a second", copied)
	}
	// A second's worth is all that it saves up, and a debt is paid whole.
	now += 3600 * second
	b.take(now, 10_000, 30_000)
	if now += 2 * second; b.open(now, 10_000) {
		t.Error("a debt of two seconds is forgiven after two")
	}
	if now += millisecond; !b.open(now, 10_000) {
		t.Error("a debt of two seconds is not forgiven after more than two")
	}
	if b.open(now-second, 0) {
		t.Error("a rate of nothing lets something pass")
	}
}

func TestThrottledReplicasAreNamed(t *testing.T) {
	for text, want := range map[string]bool{"": false, "*": true, "1:2": true, "2:1": false, "0:1,1:2": true, "1:22": false} {
		if throttledOf(text).has(1, 2) != want {
			t.Errorf("%q: partition 1 on broker 2 is named: %v", text, !want)
		}
	}
}
