package main

import (
	"testing"
	"time"
)

// at makes a history of milliseconds.
func at(ms ...int) []time.Time {
	var acks []time.Time
	for _, m := range ms {
		acks = append(acks, moment(m))
	}
	return acks
}

func moment(ms int) time.Time { return time.Unix(1, 0).Add(time.Duration(ms) * time.Millisecond) }

func TestGapIsTheLongestOneThatEndsAfterTheFault(t *testing.T) {
	// A pause of 300 before the fault, an answer that was under way, the gap, a second stall, and one behind the end of the trial.
	acks := at(0, 300, 301, 302, 303, 903, 904, 1004, 1005, 4000)
	for _, c := range []struct {
		from, to, want int
	}{
		{302, 2000, 600},
		{900, 2000, 600}, // the fault came in the middle of the gap
		{303, 902, 0},    // it has not ended
		{904, 2000, 100},
		{302, 4000, 2995},
	} {
		if got := gap(acks, moment(c.from), moment(c.to)); got != time.Duration(c.want)*time.Millisecond {
			t.Errorf("gap after %d up to %d is %v, want %d ms", c.from, c.to, got, c.want)
		}
	}
	if got := gap(nil, moment(0), moment(1)); got != 0 {
		t.Errorf("without acknowledgements the gap is %v", got)
	}
}

func TestFlowingBeginsBehindTheLastPause(t *testing.T) {
	acks := at(0, 10, 20, 500, 510, 520)
	for _, c := range []struct {
		now  int
		want time.Time
	}{
		{530, moment(500)},
		{620, moment(500)},
		{621, time.Time{}},
		{25, moment(0)},
	} {
		upTo := acks
		for len(upTo) > 0 && upTo[len(upTo)-1].After(moment(c.now)) {
			upTo = upTo[:len(upTo)-1]
		}
		if got := flowing(upTo, moment(c.now), 100*time.Millisecond); !got.Equal(c.want) {
			t.Errorf("at %d they flow since %v, want %v", c.now, got, c.want)
		}
	}
}
