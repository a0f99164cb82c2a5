package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/bench/chaos/check"
)

// progressMax is within which time of the end of all faults each partition is to take a record, and each group to commit further. A miss is told, and fails no
// run: it breaks no promise.
const progressMax = 5 * time.Second

// progress is how long each partition, and each group on each partition, took to go on.
type progress map[string]time.Duration

// progressSince looks for the first record that was acknowledged, and the first commit that was taken, of those begun at or after a time. A time of 0: the run
// did not come so far.
func progressSince(events []check.Event, since int64) progress {
	if since == 0 {
		return nil
	}
	first := map[string]int64{}
	for i := range events {
		e := &events[i]
		var what string
		switch e.Kind {
		case check.Send:
			what = e.TP
		case check.Commit:
			what = "group " + e.Group + " on " + e.TP
		default:
			continue
		}
		at, known := first[what]
		if !known {
			first[what] = 0
		}
		if e.Outcome == check.OK && e.T0 >= since && (at == 0 || e.T1 < at) {
			first[what] = e.T1
		}
	}
	p := progress{}
	for what, at := range first {
		p[what] = progressMax + 1 // never
		if at > 0 {
			p[what] = time.Duration(at-since) * time.Microsecond
		}
	}
	return p
}

// worst is the longest.
func (p progress) worst() time.Duration {
	var worst time.Duration
	for _, d := range p {
		worst = max(worst, d)
	}
	return worst
}

// missed names what took longer than progressMax.
func (p progress) missed() string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(p)) {
		if p[what] > progressMax {
			all = append(all, fmt.Sprintf("%s (%.1f s)", what, p[what].Seconds()))
		}
	}
	return strings.Join(all, ", ")
}
