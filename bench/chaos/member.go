package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/bench/chaos/check"
)

// team is a group of consumers whose members are clients of several kinds.
type team struct {
	group    string
	protocol string // of KIP-848: "consumer"; else "classic"
	addrs    []string
	topics   []string
}

// ownerPatience is how long a member may go on with a partition that another one has: no client hears at once that it is out.
const ownerPatience = 10 * time.Second

// consume is one member, of franz-go, until ctx ends. It commits what it was given a few times a second; no rebalance comes between a poll and its commit.
func (g team) consume(ctx context.Context, rec *recorder, name string) error {
	m := &memberState{team: g, rec: rec, name: name, positions: map[string]map[int32]int64{}}
	opts := []kgo.Opt{
		kgo.SeedBrokers(g.addrs...), kgo.ClientID(name), kgo.ConsumerGroup(g.group), kgo.ConsumeTopics(g.topics...), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100 * time.Millisecond), kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RequestTimeoutOverhead(2 * time.Second), kgo.DialTimeout(2 * time.Second), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, a map[string][]int32) { m.assigned(a) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, r map[string][]int32) { m.revoked(r) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, r map[string][]int32) { m.revoked(r) }),
	}
	if g.protocol == "consumer" {
		opts = append(opts, kgo.ServerSideBalancer())
	} else {
		opts = append(opts, kgo.Balancers(kgo.RangeBalancer()), kgo.SessionTimeout(3*time.Second), kgo.HeartbeatInterval(500*time.Millisecond), kgo.RebalanceTimeout(10*time.Second))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	committed := time.Now()
	for ctx.Err() == nil {
		t0 := rec.now()
		poll, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		fetches := client.PollFetches(poll)
		cancel()
		writePolls(rec, fetches, t0, name, g.group)
		m.advance(fetches)
		if time.Since(committed) > 250*time.Millisecond {
			m.commit(ctx, client)
			committed = time.Now()
		}
		client.AllowRebalance()
	}
	m.commit(context.WithoutCancel(ctx), client)
	return nil
}

// memberState is one member and how far it has read of what it owns.
type memberState struct {
	team
	rec  *recorder
	name string

	mu        sync.Mutex
	positions map[string]map[int32]int64
}

// assigned: reading begins where the group had come to, which the client finds out by itself.
func (m *memberState) assigned(a map[string][]int32) {
	m.forget(a)
	now := m.rec.now()
	for topic, partitions := range a {
		for _, p := range partitions {
			m.rec.write(check.Event{Kind: check.Assign, Worker: m.name, Group: m.group, TP: place{topic, p}.String(), T0: now, T1: now, Offset: -1, Patience: ownerPatience.Microseconds()})
		}
	}
}

func (m *memberState) revoked(r map[string][]int32) {
	m.forget(r)
	now := m.rec.now()
	for topic, partitions := range r {
		for _, p := range partitions {
			m.rec.write(check.Event{Kind: check.Revoke, Worker: m.name, Group: m.group, TP: place{topic, p}.String(), T0: now, T1: now})
		}
	}
}

// forget lets go of how far partitions were read.
func (m *memberState) forget(r map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for topic, partitions := range r {
		for _, p := range partitions {
			delete(m.positions[topic], p)
		}
	}
}

func (m *memberState) advance(fetches kgo.Fetches) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fetches.EachRecord(func(r *kgo.Record) {
		if m.positions[r.Topic] == nil {
			m.positions[r.Topic] = map[int32]int64{}
		}
		m.positions[r.Topic][r.Partition] = r.Offset + 1
	})
}

func (m *memberState) commit(ctx context.Context, client *kgo.Client) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	offsets := map[string]map[int32]kgo.EpochOffset{}
	m.mu.Lock()
	for topic, partitions := range m.positions {
		for p, at := range partitions {
			if offsets[topic] == nil {
				offsets[topic] = map[int32]kgo.EpochOffset{}
			}
			offsets[topic][p] = kgo.EpochOffset{Epoch: -1, Offset: at}
		}
	}
	m.mu.Unlock()
	if len(offsets) == 0 {
		return
	}
	t0 := m.rec.now()
	outcomes := map[place]error{}
	var failed error
	client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		if err != nil || resp == nil {
			failed = errors.Join(errors.New("no answer"), err)
			return
		}
		for i := range resp.Topics {
			for _, p := range resp.Topics[i].Partitions {
				outcomes[place{resp.Topics[i].Topic, p.Partition}] = kerr.ErrorForCode(p.ErrorCode)
			}
		}
	})
	t1 := m.rec.now()
	for topic, partitions := range offsets {
		for p, at := range partitions {
			e := check.Event{Kind: check.Commit, Worker: m.name, Group: m.group, TP: place{topic, p}.String(), T0: t0, T1: t1, Offset: at.Offset, Outcome: check.OK}
			err, answered := outcomes[place{topic, p}]
			if err = errors.Join(failed, err); err != nil || !answered { // an attempt before may have been taken: nobody knows
				e.Outcome = check.Info
				if err != nil {
					e.Text = err.Error()
				}
			}
			m.rec.write(e)
		}
	}
}
