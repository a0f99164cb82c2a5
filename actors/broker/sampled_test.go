package broker

import (
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// A broker that dials again and again, and is refused each time, was told once a second.
func TestWhatGoesOnIsToldAtGrowingIntervals(t *testing.T) {
	clock := runtime.NewSimClock(0)
	s := newSampledLog(zerolog.Nop(), clock)
	pass := func(seconds int) (told []int, skipped int) {
		for i := range 2 * seconds {
			if n, ok := s.seldom("refused"); ok {
				told = append(told, i/2)
				skipped += n
			}
			clock.Advance(500 * time.Millisecond)
		}
		return told, skipped
	}
	if told, skipped := pass(71); !slices.Equal(told, []int{0, 10, 30, 70}) || skipped != 137 {
		t.Errorf("told at %v, with %d left out", told, skipped)
	}
	if _, ok := s.seldom("another"); !ok {
		t.Error("one kind hides another")
	}
	clock.Advance(complainFirst)
	if told, _ := pass(11); !slices.Equal(told, []int{0, 10}) {
		t.Errorf("what begins again is told at %v", told)
	}
}
