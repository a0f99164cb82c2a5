package sim

import (
	"slices"
	"time"

	"github.com/troupe-broker/troupe/cluster/config"
)

// Shrink looks for a smaller plan that breaks the same invariant: faults, clients, settings and time are taken out as
// long as it still does. Each thing that is left draws from a stream of its own number, so that what is taken out does
// not change the rest more than it has to. runs bounds the runs it makes; it returns what it found, and how many runs
// that took.
func Shrink(p *Plan, invariant string, runs int) (*Plan, int) {
	s := &shrinker{best: p, invariant: invariant, left: runs}
	for before := runs + 1; s.left > 0 && s.left < before; {
		before = s.left
		if !s.round() {
			break
		}
	}
	return s.best, runs - s.left
}

type shrinker struct {
	best      *Plan
	invariant string
	left      int
}

// try takes a change of the plan over if the invariant still breaks.
func (s *shrinker) try(change func(*Plan)) bool {
	if s.left == 0 {
		return false
	}
	s.left--
	q := s.best.clone()
	change(q)
	if o := Run(q, Options{}); o.Failure == nil || o.Failure.Invariant != s.invariant {
		return false
	}
	s.best = q
	return true
}

// round tries everything once and tells whether anything helped.
func (s *shrinker) round() bool {
	helped := halve(s, func(p *Plan) *[]FaultPlan { return &p.Faults }, 0)
	helped = halve(s, func(p *Plan) *[]ClientPlan { return &p.Clients }, 1) || helped // the first one creates the topics
	helped = halve(s, func(p *Plan) *[]TopicPlan { return &p.Topics }, 1) || helped
	for s.best.Duration > 50*time.Millisecond && s.try(func(p *Plan) { p.Duration /= 2 }) { // after those: the less time, the more hangs on when things are done
		helped = true
	}
	for i := range s.best.Topics {
		if s.best.Topics[i].Partitions > 1 {
			helped = s.try(func(p *Plan) { p.Topics[i].Partitions = 1 }) || helped
		}
		helped = s.settings(func(p *Plan) *config.Set { return &p.Topics[i].Configs }) || helped
	}
	helped = s.settings(func(p *Plan) *config.Set { return &p.Settings }) || helped
	for _, calm := range []func(*Plan){
		func(p *Plan) { p.Weather = FairWeather },
		func(p *Plan) { p.Disk = DiskPlan{} },
		func(p *Plan) { p.Disk.Writeback, p.Disk.Cold = 0, 0 },
		func(p *Plan) { p.Last = CleanStop.String() },
		func(p *Plan) { p.Last = Kill.String() },
	} {
		q := s.best.clone()
		if calm(q); q.String() == s.best.String() || s.best.Last != "" && q.Last != s.best.Last {
			continue
		}
		helped = s.try(calm) || helped
	}
	for i := range s.best.Clients {
		for _, calm := range []func(*ClientPlan){
			func(c *ClientPlan) { c.InFlight = min(c.InFlight, 1) },
			func(c *ClientPlan) { c.Codec = 0 },
			func(c *ClientPlan) { c.First, c.Ahead = 0, 0 },
			func(c *ClientPlan) { c.Sessions = false },
			func(c *ClientPlan) { c.Pause = 50 * time.Millisecond },
		} {
			if c := s.best.Clients[i]; func() bool { calm(&c); return c == s.best.Clients[i] }() {
				continue
			}
			helped = s.try(func(p *Plan) { calm(&p.Clients[i]) }) || helped
		}
	}
	return helped
}

// halve takes things of a list out: all, then halves, then one by one; the first keep stay.
func halve[T any](s *shrinker, list func(*Plan) *[]T, keep int) (helped bool) {
	for size := len(*list(s.best)) - keep; size > 0; size /= 2 {
		for i := keep; i < len(*list(s.best)); {
			end := min(i+size, len(*list(s.best)))
			if s.try(func(p *Plan) { *list(p) = slices.Delete(*list(p), i, end) }) {
				helped = true
				continue
			}
			i += size
		}
	}
	return helped
}

// needed are settings without which there is no broker, or no promise, or no memory: a segment of the default size is mapped whole.
var needed = []string{"log.dir", "listeners", "metrics.listen", "write.caching", "log.segment.bytes", "offsets.topic.segment.bytes"}

// settings takes settings out.
func (s *shrinker) settings(set func(*Plan) *config.Set) (helped bool) {
	for i := 0; i < len(*set(s.best)); {
		if !slices.Contains(needed, (*set(s.best))[i].Name) && s.try(func(p *Plan) { *set(p) = slices.Delete(*set(p), i, i+1) }) {
			helped = true
			continue
		}
		i++
	}
	return helped
}

// clone is a copy that can be changed.
func (p *Plan) clone() *Plan {
	q := *p
	q.Settings, q.Topics, q.Clients, q.Faults = slices.Clone(p.Settings), slices.Clone(p.Topics), slices.Clone(p.Clients), slices.Clone(p.Faults)
	for i := range q.Topics {
		q.Topics[i].Configs = slices.Clone(q.Topics[i].Configs)
	}
	return &q
}
