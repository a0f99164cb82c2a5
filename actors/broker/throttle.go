package broker

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Replication throttles (KIP-73): what replicas copy that are not in sync and that a topic names in leader.replication.throttled.replicas or
// follower.replication.throttled.replicas counts against a rate of the broker. An in-sync replica is never throttled, so it cannot fall out of the ISR by that.
//
// As Kafka does, the side whose rate is used up lets a pause pass: its leader refuses the ask, or the follower does not send it, and the follower's machine asks
// again after replica.fetch.backoff.ms at most. What one answer brings is counted when it has gone, so a rate is kept over seconds, not within one.

// bucket holds the bytes that may be copied now. It may be in debt, and never has more than a second's worth.
type bucket struct {
	mu     sync.Mutex
	tokens float64
	at     ident.Instant
}

// open tells whether anything may be copied at a rate, in bytes per second.
func (b *bucket) open(now ident.Instant, rate int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(now, rate)
	return b.tokens > 0
}

// take counts bytes that were copied.
func (b *bucket) take(now ident.Instant, rate, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(now, rate)
	b.tokens -= float64(n)
}

func (b *bucket) fill(now ident.Instant, rate int64) {
	passed := max(now-b.at, 0)
	b.tokens = min(b.tokens+float64(rate)*float64(passed)/float64(1000*millisecond), float64(rate))
	b.at = max(now, b.at)
}

// throttles are those of a broker.
type throttles struct{ leader, follower bucket }

// throttledReplicas is the value of one of the two topic configs.
type throttledReplicas []string

func throttledOf(text string) throttledReplicas {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// has tells whether a replica is named: by itself as partition:broker, or by *.
func (l throttledReplicas) has(partition int32, b ident.BrokerID) bool {
	if len(l) == 0 {
		return false
	}
	if l[0] == "*" {
		return true
	}
	name := strings.Join([]string{strconv.Itoa(int(partition)), b.String()}, ":")
	return slices.Contains(l, name)
}

// slowed tells whether what a replica copies counts against a rate.
func (p *partitionActor) slowed(list throttledReplicas, rate int64, b ident.BrokerID) bool {
	return len(list) > 0 && rate < math.MaxInt64 && !slices.Contains(p.become.ISR, b) && list.has(p.replica.tp.Partition, b)
}

// slows tells whether a follower of this leader has to wait.
func (p *partitionActor) slows(a *followerAsk) bool {
	rate := p.shared.settings.Load().LeaderThrottle
	return p.slowed(p.settings.slowLeader, rate, a.link.peer.Broker) && !p.shared.throttles.leader.open(p.now.Mono, rate)
}

// gave counts what a follower gets.
func (p *partitionActor) gave(a *followerAsk, n int) {
	if rate := p.shared.settings.Load().LeaderThrottle; p.slowed(p.settings.slowLeader, rate, a.link.peer.Broker) {
		p.shared.throttles.leader.take(p.now.Mono, rate, int64(n))
	}
}

// waits tells whether this follower has to wait before it asks. The machine hears it as a refusal of the leader, and asks again after a pause.
func (p *partitionActor) waits(t *runtime.Turn, q *partition.Inquiry) bool {
	rate := p.shared.settings.Load().FollowerThrottle
	if !p.slowed(p.settings.slowFollower, rate, p.shared.identity.Broker) || p.shared.throttles.follower.open(p.now.Mono, rate) {
		return false
	}
	m := leaderAnswers.Get().(*leaderAnswer)
	m.leader = p.machine.Leader()
	m.command.LeaderEpoch, m.command.Generation, m.command.From, m.command.Code = q.LeaderEpoch, q.Generation, q.From, wire.ThrottlingQuotaExceeded
	_ = t.Send(t.Self(), m) // one that has stopped asks nobody
	return true
}

// copied counts what this follower has got.
func (p *partitionActor) copied(n int) {
	if rate := p.shared.settings.Load().FollowerThrottle; n > 0 && p.slowed(p.settings.slowFollower, rate, p.shared.identity.Broker) {
		p.shared.throttles.follower.take(p.now.Mono, rate, int64(n))
	}
}
