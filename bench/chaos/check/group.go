package check

import (
	"cmp"
	"slices"
)

// checkGroups: what a group committed stays, and its members were given all that lies below.
func (p *place) checkGroups() {
	for _, group := range sortedKeys(p.groups) {
		p.checkCommits(group)
		p.checkCoverage(group)
	}
}

// checkCommits sweeps over commits and fetches in the order in which they began. The floor is the highest offset that was committed, or told to somebody,
// before.
func (p *place) checkCommits(group string) {
	var began []*Event
	for i := range p.groups[group] {
		if e := &p.groups[group][i]; e.Kind == Fetched && e.Outcome == OK || e.Kind == Commit && e.Outcome != Fail {
			began = append(began, e)
		}
	}
	ended := slices.DeleteFunc(slices.Clone(began), func(e *Event) bool { return e.Outcome != OK })
	slices.SortStableFunc(began, func(a, b *Event) int { return cmp.Compare(a.T0, b.T0) })
	slices.SortFunc(ended, func(a, b *Event) int { return cmp.Compare(a.T1, b.T1) })
	asked := map[int64]int64{} // by offset, when its first commit began
	for _, e := range began {
		if _, again := asked[e.Offset]; e.Kind == Commit && !again {
			asked[e.Offset] = e.T0
		}
	}
	var floor *Event
	for _, e := range began {
		for len(ended) > 0 && ended[0].T1 < e.T0 {
			if floor == nil || ended[0].Offset > floor.Offset {
				floor = ended[0]
			}
			ended = ended[1:]
		}
		if floor != nil && e.Offset < floor.Offset && e.Outcome == OK {
			was, is := "committed", "committed"
			if floor.Kind == Fetched {
				was = "told to be committed"
			}
			if e.Kind == Fetched {
				is = "told to be committed"
			}
			p.violate(CommitLost, e.T1, "group %s: %d was %s (by %s), and then %d was %s (by %s)", group, floor.Offset, was, floor.Worker, e.Offset, is, e.Worker)
		}
		if e.Kind != Fetched || e.Offset < 0 {
			continue
		}
		if first, ever := asked[e.Offset]; !ever || first > e.T1 {
			p.violate(CommitLost, e.T1, "group %s: %d is told to be committed, and nobody had committed it", group, e.Offset)
		}
	}
}

// checkCoverage: every offset below the highest that is committed was given to a member.
func (p *place) checkCoverage(group string) {
	given := map[int64]bool{}
	top, at := int64(0), int64(0)
	for i := range p.groups[group] {
		switch e := &p.groups[group][i]; e.Kind {
		case Poll:
			for _, r := range e.Records {
				given[r.Offset] = true
			}
		case Fetched:
			if e.Outcome == OK && e.Offset > top {
				top, at = e.Offset, e.T1
			}
		default:
		}
	}
	for o := int64(0); o < top; o++ {
		if given[o] {
			continue
		}
		first := o
		for o+1 < top && !given[o+1] {
			o++
		}
		p.violate(Skip, at, "group %s has committed %d, and no member was given offsets %d to %d", group, top, first, o)
	}
}
