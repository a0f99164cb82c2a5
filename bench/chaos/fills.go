package main

import (
	"fmt"
	"time"

	"github.com/troupe-broker/troupe/bench/chaos/check"
)

// fills are the times at which a disk was full: how long after space was there again every partition had taken a record.
type fills []time.Duration

// fillsIn finds them. Only records count that were begun after the end of the fill.
func fillsIn(events []check.Event) (f fills) {
	var sends []check.Event
	var ends []int64
	for i := range events {
		switch e := &events[i]; {
		case e.Kind == check.Send:
			sends = append(sends, *e)
		case e.Kind == check.Fault && e.Worker == diskFullName:
			ends = append(ends, e.T1)
		}
	}
	for _, end := range ends {
		f = append(f, progressSince(sends, end).worst())
	}
	return f
}

// text is "" when no disk was full.
func (f fills) text() string {
	if len(f) == 0 {
		return ""
	}
	late, worst := 0, time.Duration(0)
	for _, d := range f {
		if worst = max(worst, d); d > progressMax {
			late++
		}
	}
	return fmt.Sprintf("disks full %d times; every partition served %.1f s after at most, %d times not within %v", len(f), worst.Seconds(), late, progressMax)
}
