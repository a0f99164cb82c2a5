package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// planMembers draws groups with members. Their sessions are short, so that a world of seconds has what takes minutes elsewhere; the log of the offsets is cut
// into small segments and compacted all the time.
func (p *Plan) planMembers(r *rand.Rand) {
	if !chance(r, 40) {
		return
	}
	p.planCoordinators(r)
	p.Duration = min(p.Duration, 5*time.Second) + between(r, 0, 4*time.Second)
	first := len(p.Clients)
	for g := range 1 + r.IntN(2) {
		kinds := one(r, []ClientKind{Classic}, []ClientKind{Modern}, []ClientKind{Classic, Modern})
		for range 1 + r.IntN(4) {
			c := ClientPlan{
				Number: len(p.Clients), Kind: one(r, kinds...), Group: fmt.Sprintf("g%d", g), Topics: one(r, "t0", "t0,t1", "t0,t1,t2"),
				Pause: one(r, 15*time.Millisecond, 40*time.Millisecond), Patience: between(r, time.Second, 4*time.Second), Session: one(r, 600*time.Millisecond, 1500*time.Millisecond, 4*time.Second),
				Rebalance: one(r, 700*time.Millisecond, 2*time.Second),
			}
			if chance(r, 30) {
				c.Instance = fmt.Sprintf("i%d", c.Number)
			}
			p.Clients = append(p.Clients, c)
		}
		p.planChurn(r, first, len(kinds) > 1)
		first = len(p.Clients)
	}
	if chance(r, 50) {
		p.Clients = append(p.Clients, ClientPlan{
			Number: len(p.Clients), Kind: Operator, Pause: one(r, 100*time.Millisecond, 400*time.Millisecond), Patience: between(r, time.Second, 4*time.Second),
		})
	}
	p.planHabits(stream(p.Seed, "plan/habits"))
}

// planHabits draws how members subscribe and rebalance, and whether the configs of their groups change. It draws from a stream of its own, so that everything
// else about a seed stays what it was.
func (p *Plan) planHabits(r *rand.Rand) {
	gradual := make(map[string]bool) // a group has one way to rebalance
	for i := range p.Clients {
		switch c := &p.Clients[i]; c.Kind {
		case Classic, Modern:
			if _, drawn := gradual[c.Group]; !drawn {
				gradual[c.Group] = chance(r, 50)
			}
			c.Gradual = gradual[c.Group]
			if chance(r, 30) {
				c.Regex = one(r, "t0", "t[01]", "t.*", "t0|t2")
			}
		case Operator:
			c.Adjusts = chance(r, 60)
		default:
		}
	}
}

// planCoordinators draws how the broker coordinates, and compacts.
func (p *Plan) planCoordinators(r *rand.Rand) {
	set := func(name string, values ...string) { p.Settings = p.Settings.With(name, one(r, values...)) }
	set("group.initial.rebalance.delay.ms", "0", "300")
	set("group.min.session.timeout.ms", "100")
	set("group.consumer.min.session.timeout.ms", "100")
	set("group.consumer.session.timeout.ms", "700", "2000")
	set("group.consumer.min.heartbeat.interval.ms", "20")
	set("group.consumer.heartbeat.interval.ms", "100", "300")
	set("group.consumer.assignment.interval.ms", "0", "0", "200")
	set("offsets.topic.num.partitions", "1", "2")
	set("offsets.topic.segment.bytes", "1048576") // the least; the simulated disk has no memory to spare
	set("offsets.load.buffer.size", "1", "500", "5242880")
	set("offsets.topic.compression.codec", "0", "0", "2", "3")
	set("group.coordinator.append.linger.ms", "-1", "-1", "5")
	if chance(r, 80) { // compaction
		set("log.roll.ms", "10", "100")
		set("log.cleaner.backoff.ms", "15", "100")
		set("log.cleaner.min.cleanable.ratio", "0", "0.3")
		set(tombstonesStay, "0", "500", "86400000")
		set("log.cleaner.dedupe.buffer.size", "134217728", "2000")
	}
	switch committers := slices.ContainsFunc(p.Clients, func(c ClientPlan) bool { return c.Kind == Committer }); {
	case !committers && chance(r, 20):
		set("offsets.retention.minutes", "1")
		set("offsets.retention.check.interval.ms", "50", "1000")
		jump := FaultPlan{Number: len(p.Faults), Kind: WallJump, At: between(r, 0, p.Duration*9/10), Jump: between(r, 50*time.Second, 3*time.Minute)}
		p.Faults = append(p.Faults, jump)
	case chance(r, 30):
		set("offsets.retention.check.interval.ms", "50", "1000")
	}
}

// planChurn draws what befalls the members from a number on.
func (p *Plan) planChurn(r *rand.Rand, first int, mixed bool) {
	kinds := []FaultKind{Silence, Silence, Quit, Die}
	if mixed || chance(r, 15) {
		kinds = append(kinds, Move, Move)
	}
	for range r.IntN(6) {
		f := FaultPlan{Number: len(p.Faults), Kind: one(r, kinds...), N: first + r.IntN(len(p.Clients)-first)}
		f.At, f.For = between(r, 0, p.Duration*9/10), between(r, time.Millisecond, one(r, 50*time.Millisecond, time.Second, 4*time.Second))
		p.Faults = append(p.Faults, f)
	}
}

// planKeyed draws clients of a compacted topic.
func (p *Plan) planKeyed(r *rand.Rand) {
	if !chance(r, 12) {
		return
	}
	set := func(name string, values ...string) { p.Settings = p.Settings.With(name, one(r, values...)) }
	set("log.cleaner.backoff.ms", "15", "100", "400")
	set("log.cleaner.dedupe.buffer.size", "134217728", "2000")
	t := TopicPlan{Name: keyedTopic, Partitions: 1 + int32(r.IntN(2))}
	t.Configs = t.Configs.With("write.caching", fmt.Sprint(p.Promise == PromiseCached)).With("cleanup.policy", "compact").
		With("segment.ms", one(r, "10", "100")).With("min.cleanable.dirty.ratio", one(r, "0", "0.4")).
		With("delete.retention.ms", one(r, "0", "300", "86400000")).With("max.message.bytes", "1048588")
	p.Topics = append(p.Topics, t)
	for range 1 + r.IntN(2) {
		p.Clients = append(p.Clients, ClientPlan{
			Number: len(p.Clients), Kind: Keyed, Pause: one(r, 10*time.Millisecond, 40*time.Millisecond), Patience: between(r, 500*time.Millisecond, 4*time.Second), Size: 100,
			Codec: one[int8](r, 0, 0, 1, 3),
		})
	}
}
