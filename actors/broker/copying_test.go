package broker

import (
	"testing"
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
)

// TestACopyHoldsTheCleanerUpForAWhile: as long as a follower asks, but not for ever, and not after it has given up.
func TestACopyHoldsTheCleanerUpForAWhile(t *testing.T) {
	var c copying
	now := ident.Instant(time.Hour)
	ask := func() { c.asked(now); now += copyPause / 2 }
	if c.holds(now) {
		t.Error("nobody has asked")
	}
	for began := now; now < began+copyHoldMax; ask() {
		if now > began && !c.holds(now) {
			t.Fatalf("compacted %v after the first ask", time.Duration(now-began))
		}
	}
	if c.holds(now) {
		t.Error("a copy that does not end keeps the log from being compacted for ever")
	}
	if c.cleaned(); !c.holds(now) {
		t.Error("the copy that began again when the log was compacted has no time")
	}
	if ask(); !c.holds(now) {
		t.Error("an ask does not count")
	}
	if now += copyPause; c.holds(now) {
		t.Error("a follower that has given up holds the cleaner up")
	}
	if ask(); !c.holds(now) {
		t.Error("a new copy does not count")
	}
}
