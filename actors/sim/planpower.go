package sim

import (
	"fmt"
	"time"
)

// NewPowerPlan expands a seed to three brokers of which every topic is in the strict mode, and whose power fails at once at an instant of the seed's: at any
// moment, or in the middle of an operation of one of the disks. Some lose it once more while they come back. Nothing that was acknowledged with acks=all may be
// lost, so nothing else goes wrong that could be an excuse.
func NewPowerPlan(seed uint64) *Plan {
	r := stream(seed, "power")
	p := &Plan{Seed: seed, Promise: PromiseSynced, Brokers: 3, Voters: 3, Last: Power.String(), Early: chance(r, 10)}
	p.Duration = between(r, 600*time.Millisecond, 2*time.Second)
	p.planBroker(r)
	set := func(name string, values ...string) { p.Settings = p.Settings.With(name, one(r, values...)) }
	set("replica.lag.time.max.ms", "500", "10000")
	set("queued.max.request.bytes", "-1")
	p.Disk.Checkpoint = one(r, 50*time.Millisecond, 200*time.Millisecond, time.Second) // there should be marks when the power fails
	p.planTopics(r)
	for i := range p.Topics {
		t := &p.Topics[i]
		t.Factor = 3
		t.Configs = t.Configs.With("min.insync.replicas", one(r, "1", "2", "2"))
	}
	add := func(kind ClientKind, pause time.Duration) *ClientPlan {
		p.Clients = append(p.Clients, ClientPlan{
			Number: len(p.Clients), Kind: kind, Acks: -1, InFlight: 1 + r.IntN(5), Retry: true, Size: min(one(r, 120, 600, 3000), p.Segment/4), Pause: pause,
			Patience: between(r, 500*time.Millisecond, 4*time.Second),
		})
		return &p.Clients[len(p.Clients)-1]
	}
	add(Told, 50*time.Millisecond) // creates the topics
	for range 1 + r.IntN(3) {
		add(Idempotent, one(r, 5*time.Millisecond, 20*time.Millisecond))
	}
	if chance(r, 50) {
		add(Plain, 20*time.Millisecond)
	}
	if chance(r, 30) {
		set("offsets.topic.num.partitions", "1", "2")
		set("offsets.topic.replication.factor", "3")
		add(Committer, 15*time.Millisecond)
	}
	for i := range p.Brokers { // somebody reads what each leads
		c := add(Consumer, 20*time.Millisecond)
		c.Number, c.Sessions = 60+i, chance(r, 70)
	}
	p.planWeather(r)
	p.Weather.BufferMax = max(p.Weather.BufferMax, 4<<10)
	at := between(r, 100*time.Millisecond, p.Duration)
	for range one(r, 1, 1, 2, 3) {
		f := FaultPlan{Number: len(p.Faults), Kind: PowerAll, At: at, Pause: one(r, 0, 5*time.Millisecond, 300*time.Millisecond), Seed: r.Uint64(), Who: fmt.Sprint(1 + r.IntN(p.Brokers))}
		if chance(r, 50) {
			f.N = 1 + r.IntN(one(r, 5, 40, 200))
		}
		p.Faults = append(p.Faults, f)
		at += between(r, 0, one(r, 20*time.Millisecond, 500*time.Millisecond))
	}
	return p
}
