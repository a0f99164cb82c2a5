package check

import (
	"cmp"
	"slices"
)

// StaleMax is how long a broker that leads no more may go on telling what it knew: the time of a session, in microseconds. Kafka promises no more
// (a leader is not asked whether it still is one), and what is told to producers and group members does not hang on it.
const StaleMax = 6_000_000

// checkEnds sweeps over what was told of the partition's end, the high watermark. The floor is the highest end that was told, or follows from an acknowledgement,
// StaleMax before.
func (p *place) checkEnds() {
	type told struct {
		at, end int64
		by      string
	}
	var floors []told
	for i := range p.ends {
		e := &p.ends[i]
		if p.logged && e.Offset > p.end() {
			p.violate(Vanished, e.T1, "%s was told that the log ends at %d, and it ends at %d", e.Worker, e.Offset, p.end())
		}
		floors = append(floors, told{e.T1, e.Offset, "was told to " + e.Worker})
	}
	for i := range p.sends {
		if s := &p.sends[i]; s.Outcome == OK && s.Offset >= 0 {
			floors = append(floors, told{s.T1, s.Offset + 1, "follows from an acknowledgement to " + s.Worker})
		}
	}
	slices.SortFunc(floors, func(a, b told) int { return cmp.Compare(a.at, b.at) })
	asked := slices.Clone(p.ends)
	slices.SortStableFunc(asked, func(a, b Event) int { return cmp.Compare(a.T0, b.T0) })
	var floor told
	for _, e := range asked {
		for len(floors) > 0 && floors[0].at+StaleMax < e.T0 {
			if floors[0].end > floor.end {
				floor = floors[0]
			}
			floors = floors[1:]
		}
		if e.Offset < floor.end {
			p.violate(Stale, e.T1, "the end %d %s at %d µs, and %s, who asked at %d µs, was told %d", floor.end, floor.by, floor.at, e.Worker, e.T0, e.Offset)
		}
	}
}

// checkLeaders: an epoch has one leader.
func (p *place) checkLeaders() {
	leader := map[int32]int32{}
	for i := range p.leaders {
		e := &p.leaders[i]
		if e.Broker < 1 {
			continue
		}
		if first, known := leader[e.Epoch]; known && first != e.Broker {
			p.violate(Split, e.T1, "broker %d leads in epoch %d, and so did broker %d", e.Broker, e.Epoch, first)
			continue
		}
		leader[e.Epoch] = e.Broker
	}
}
