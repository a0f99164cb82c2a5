package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// clusterFaults are what goes wrong among several brokers.
var clusterFaults = []FaultKind{
	Kill, Kill, Kill, KillAt, CleanStop, SlowDisk, FullDisk, CutLine, LoseAnswer, WallJump, Freeze, Freeze, Split, Split, OneWay, Isolate, Isolate, CutPeers, Rumour,
}

// whom a fault hits.
var targets = []string{"1", "2", "3", "controller", "controller", "leader:t0-0", "leader:t0-0", "follower:t0-0", "leader:t1-0", "any"}

// NewClusterPlan expands a seed to a plan of several brokers.
func NewClusterPlan(seed uint64) *Plan {
	r := stream(seed, "cluster")
	p := &Plan{Seed: seed, Promise: one(r, PromiseSynced, PromiseSynced, PromiseCached, PromiseMixed), Brokers: one(r, 3, 3, 3, 3, 4, 5), Voters: 3, Early: chance(r, 15)}
	if p.Brokers == 5 && chance(r, 50) {
		p.Voters = 5
	}
	p.Duration = between(r, 800*time.Millisecond, 4500*time.Millisecond)
	p.planBroker(r)
	set := func(name string, values ...string) { p.Settings = p.Settings.With(name, one(r, values...)) }
	set("replica.lag.time.max.ms", "500", "2000", "10000")
	set("auto.leader.rebalance.enable", "true", "false")
	set("leader.imbalance.check.interval.seconds", "1", "300")
	set("metrics.listen", "")
	set("queued.max.request.bytes", "-1")
	p.Disk.Checkpoint = one(stream(seed, "cluster/checkpoints"), 0, 200*time.Millisecond, time.Second, time.Second) // soon, so that there are marks when the power fails
	p.planTopics(r)
	for i := range p.Topics {
		p.replicate(r, &p.Topics[i])
	}
	p.planClients(r)
	mischief := stream(seed, "cluster/mischief")
	p.Clients = slices.DeleteFunc(p.Clients, func(c ClientPlan) bool {
		return (c.Kind == Hostile || c.Kind == Curious) && chance(mischief, 50)
	})
	for i := range p.Clients {
		p.Clients[i].Number = i
	}
	for i := range p.Brokers { // somebody reads what each leads
		p.Clients = append(p.Clients, ClientPlan{Number: 60 + i, Kind: Consumer, Acks: -1, Pause: one(r, 15*time.Millisecond, 100*time.Millisecond), Sessions: chance(r, 70), Patience: between(r, 500*time.Millisecond, 4*time.Second)})
	}
	if r := stream(seed, "cluster/groups"); chance(r, 30) {
		p.Settings = p.Settings.With("offsets.topic.num.partitions", one(r, "1", "2")).With("offsets.topic.segment.bytes", one(r, "1000", "1048576")).With("offsets.topic.replication.factor", "3")
		for i := range 1 + r.IntN(2) {
			p.Clients = append(p.Clients, ClientPlan{
				Number: 90 + i, Kind: Committer, Pause: one(r, 15*time.Millisecond, 100*time.Millisecond), Patience: between(r, 500*time.Millisecond, 4*time.Second),
			})
		}
	}
	if r := stream(seed, "cluster/voters"); chance(r, 30) {
		p.Clients = append(p.Clients, ClientPlan{Number: 70, Kind: Governor, Pause: one(r, 50*time.Millisecond, 300*time.Millisecond), Patience: between(r, 500*time.Millisecond, 4*time.Second)})
	}
	p.planWeather(r)
	p.Weather.BufferMax = max(p.Weather.BufferMax, 4<<10)
	p.planClusterFaults(stream(seed, "cluster/faults"))
	p.planClusterMembers(stream(seed, "cluster/members"))
	p.planOutcast(stream(seed, "cluster/outcast"))
	p.planNear(stream(seed, "cluster/near"))
	p.planClusterKeyed(stream(seed, "cluster/keyed"))
	return p
}

// planClusterMembers draws groups with members, whose coordinators come and go with their brokers. Their offsets do not expire: each broker has a clock of its
// own.
func (p *Plan) planClusterMembers(r *rand.Rand) {
	if chance(r, 40) {
		return
	}
	before := len(p.Clients)
	if p.planMembers(r); len(p.Clients) == before {
		return
	}
	p.Settings = p.Settings.With("offsets.topic.replication.factor", one(r, "3", "3", "2")).Without("offsets.retention.minutes")
	if text, drawn := p.Settings.Get(tombstonesStay); drawn && text != "86400000" {
		// A replica that was away for longer than tombstones stay keeps what they deleted (docs/bare-metal.md): here they outlast whoever is cut off.
		p.Settings = p.Settings.With(tombstonesStay, "20000")
	}
}

const tombstonesStay = "log.cleaner.delete.retention.ms"

// planClusterKeyed draws clients of a compacted topic. Tombstones stay for longer than anybody is away, as those of the offsets do.
func (p *Plan) planClusterKeyed(r *rand.Rand) {
	topics, clients := len(p.Topics), len(p.Clients)
	p.planKeyed(r)
	for i := range p.Topics[topics:] {
		t := &p.Topics[topics+i]
		p.replicate(r, t)
		t.Configs = t.Configs.With("write.caching", "false").With("delete.retention.ms", one(r, "20000", "86400000"))
	}
	for i := range p.Clients[clients:] {
		p.Clients[clients+i].Number = 110 + i
	}
	if len(p.Topics) == topics {
		return
	}
	for range r.IntN(3) { // what a leader that nobody hears writes meanwhile is cut off later, and compacted before if that is possible
		f := FaultPlan{Number: len(p.Faults), Kind: Isolate, At: between(r, p.Duration/8, p.Duration*7/8), For: between(r, 500*time.Millisecond, 4*time.Second), Seed: r.Uint64(), Who: "leader:" + keyedTopic + "-0"}
		p.Faults = append(p.Faults, f)
	}
}

// planOutcast draws a broker that hears of no other for much longer than its session, with clients at it that wait for nobody else.
func (p *Plan) planOutcast(r *rand.Rand) {
	if !chance(r, 12) {
		return
	}
	p.Settings = p.Settings.With("broker.session.timeout.ms", "2000")
	p.Duration = max(p.Duration, between(r, 5*time.Second, 8*time.Second))
	f := FaultPlan{Number: len(p.Faults), Kind: one(r, Isolate, Isolate, Freeze), At: between(r, 300*time.Millisecond, 1500*time.Millisecond), Seed: r.Uint64(), Who: one(r, "leader:t0-0", "any")}
	f.For = between(r, 4*time.Second, 8*time.Second)
	p.Faults = append(p.Faults, f)
	for i := range 2 {
		p.Clients = append(p.Clients, ClientPlan{
			Number: 80 + i, Kind: Plain, Acks: 1, InFlight: 1 + r.IntN(3), Retry: true, Size: min(300, p.Segment/4), Pause: 15 * time.Millisecond, Patience: between(r, 500*time.Millisecond, 4*time.Second),
		})
	}
}

// compacts tells whether logs are compacted all the time.
func (p *Plan) compacts() bool {
	_, set := p.Settings.Get("log.cleaner.backoff.ms")
	return set
}

// replicate draws how a topic is replicated.
func (p *Plan) replicate(r *rand.Rand, t *TopicPlan) {
	t.Factor = one[int16](r, 3, 3, 3, 2, 1)
	t.Configs = t.Configs.With("min.insync.replicas", fmt.Sprint(1+r.IntN(min(2, int(t.Factor)))))
}

func (p *Plan) planClusterFaults(r *rand.Rand) {
	allowed := slices.Clone(clusterFaults)
	if p.Promise != PromiseCached {
		allowed = append(allowed, Power, Power, PowerAt, PowerAtSync, PowerAll)
	}
	if p.Promise == PromiseSynced {
		allowed = append(allowed, BrokenDisk)
	}
	var kinds []FaultKind
	for range 1 + r.IntN(5) {
		kinds = append(kinds, one(r, allowed...))
	}
	for range r.IntN(one(r, 3, 9, 16)) {
		f := FaultPlan{Number: len(p.Faults), Kind: one(r, kinds...), Seed: r.Uint64()}
		f.At = between(r, 0, p.Duration*9/10)
		f.For = between(r, 10*time.Millisecond, max(p.Duration/2, 3*time.Second))
		f.Pause = one(r, 0, 5*time.Millisecond, time.Second, 3*time.Second)
		f.N = 1 + r.IntN(one(r, 3, 30, 300))
		f.Room = int64(r.IntN(one(r, 1, 3000, 30_000)))
		f.Rule = brokenRule(r)
		f.Jump = one(r, time.Duration(-1), 1) * between(r, time.Millisecond, one(r, time.Second, 10*time.Minute, 2*time.Hour))
		who := one(r, targets...)
		f.tidy()
		f.Who = who
		p.Faults = append(p.Faults, f)
	}
}
