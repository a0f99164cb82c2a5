package check

import (
	"fmt"
	"slices"
)

// Anomaly is a kind of violation; the package comment explains each.
type Anomaly string

// The anomalies.
const (
	Lost         Anomaly = "lost"
	Duplicate    Anomaly = "duplicate"
	Reordered    Anomaly = "reordered"
	Moved        Anomaly = "moved"
	Hole         Anomaly = "hole"
	Unsent       Anomaly = "unsent"
	Inconsistent Anomaly = "inconsistent"
	Vanished     Anomaly = "vanished"
	Skip         Anomaly = "skip"
	CommitLost   Anomaly = "commit"
	Divergent    Anomaly = "divergent"
	Sequence     Anomaly = "sequence"
	Stale        Anomaly = "stale"
	Split        Anomaly = "split"
	Shared       Anomaly = "shared"
	Grown        Anomaly = "grown"
	GaveUp       Anomaly = "fatal"
)

// Violation is what must not be, once per record that it concerns.
type Violation struct {
	Anomaly Anomaly
	TP      string
	At      int64 // when the last operation that it contradicts ended, in microseconds; 0: it has no time
	Text    string
}

func (v Violation) String() string {
	if v.TP == "" {
		return fmt.Sprintf("%s: %s", v.Anomaly, v.Text)
	}
	return fmt.Sprintf("%s %s: %s", v.Anomaly, v.TP, v.Text)
}

// All holds a history against every rule. Violations stand by partition, then by anomaly, in the order of discovery.
func All(events []Event) []Violation {
	t := newTrial(events)
	for _, tp := range t.places {
		p := t.byPlace[tp]
		p.checkLog()
		p.checkSends()
		p.checkOrderInTime()
		p.checkReads()
		p.checkGroups()
		p.checkReplicas()
		p.checkEnds()
		p.checkLeaders()
		p.checkOwners()
	}
	t.checkUsage()
	return t.violations
}

// Count counts violations by anomaly.
func Count(violations []Violation) map[Anomaly]int {
	counts := map[Anomaly]int{}
	for _, v := range violations {
		counts[v.Anomaly]++
	}
	return counts
}

// trial is a history sorted by partition.
type trial struct {
	places     []string
	byPlace    map[string]*place
	usage      map[string][]*Event // by broker
	violations []Violation
}

// place is one partition's share of it.
type place struct {
	*trial
	tp       string
	sends    []Event
	reads    map[string][]Event // Poll and Assign, by worker, in their order
	log      []Record           // of Final
	logged   bool               // there was a Final
	at       map[int64]Record   // by offset, from log
	byID     map[id]int64       // offset, from log
	groups   map[string][]Event // Commit, Fetched, and Poll, Assign and Revoke of members
	replicas []Event
	ends     []Event
	leaders  []Event
}

type id struct {
	worker string
	number int64
}

func newTrial(events []Event) *trial {
	c := &trial{byPlace: map[string]*place{}, usage: map[string][]*Event{}}
	for i := range events {
		e := &events[i]
		if e.Kind == Fatal {
			c.violations = append(c.violations, Violation{GaveUp, e.TP, e.T1, e.Worker + ": " + e.Text})
			continue
		}
		if e.Kind == Usage && e.Load != nil {
			c.usage[e.Worker] = append(c.usage[e.Worker], e)
		}
		if e.TP == "" {
			continue
		}
		p := c.byPlace[e.TP]
		if p == nil {
			p = &place{trial: c, tp: e.TP, reads: map[string][]Event{}, at: map[int64]Record{}, byID: map[id]int64{}, groups: map[string][]Event{}}
			c.byPlace[e.TP] = p
			c.places = append(c.places, e.TP)
		}
		p.add(e)
	}
	slices.Sort(c.places)
	return c
}

func (p *place) add(e *Event) {
	switch e.Kind {
	case Send:
		p.sends = append(p.sends, *e)
	case Poll, Assign:
		p.reads[e.Worker] = append(p.reads[e.Worker], *e)
		if e.Group != "" {
			p.groups[e.Group] = append(p.groups[e.Group], *e)
		}
	case Commit, Fetched, Revoke:
		p.groups[e.Group] = append(p.groups[e.Group], *e)
	case Final:
		p.log, p.logged = append(p.log, e.Records...), true
	case Replica:
		p.replicas = append(p.replicas, *e)
	case Ends:
		p.ends = append(p.ends, *e)
	case Leader:
		p.leaders = append(p.leaders, *e)
	case Fault, Usage, Fatal: // no partition's own
	}
}

func (p *place) violate(a Anomaly, at int64, format string, args ...any) {
	p.violations = append(p.violations, Violation{a, p.tp, at, fmt.Sprintf(format, args...)})
}
