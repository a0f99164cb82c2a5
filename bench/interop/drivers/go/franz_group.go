package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// join consumes with rebalances blocked between a poll and its commit, as the library advises for at-least-once.
func (f *franz) join(ctx context.Context, m membership, j *journal) error {
	balancers := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(), "sticky": kgo.StickyBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(), "uniform": kgo.StickyBalancer(),
	}
	reset := map[string]kgo.Offset{"earliest": kgo.NewOffset().AtStart(), "latest": kgo.NewOffset().AtEnd()}[m.Reset]
	each := func(kind string) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			for topic, list := range partitions {
				for _, p := range list {
					j.write(kind, topic, p, -1)
				}
			}
		}
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(f.bootstrap...), kgo.ClientID("interop-franz-go"), kgo.ConsumerGroup(m.Group), kgo.Balancers(balancers[m.Assignor]),
		kgo.ConsumeStartOffset(reset), kgo.ConsumeResetOffset(reset), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(each("assigned")), kgo.OnPartitionsRevoked(each("revoked")), kgo.OnPartitionsLost(each("revoked")),
		kgo.FetchMaxWait(500 * time.Millisecond), kgo.AdjustFetchOffsetsFn(m.adjust()),
	}
	if m.Pattern != "" {
		opts = append(opts, kgo.ConsumeTopics(m.Pattern), kgo.ConsumeRegex(), kgo.MetadataMaxAge(2*time.Second), kgo.MetadataMinAge(250*time.Millisecond))
	} else {
		opts = append(opts, kgo.ConsumeTopics(m.Topics...))
	}
	if m.Protocol == "consumer" {
		opts = append(opts, kgo.ServerSideBalancer())
	} else {
		opts = append(opts, kgo.SessionTimeout(m.session()), kgo.HeartbeatInterval(m.heartbeat()), kgo.RebalanceTimeout(m.session()))
	}
	if m.Instance != "" {
		opts = append(opts, kgo.InstanceID(m.Instance))
	}
	c, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer c.CloseAllowingRebalance()
	for {
		fetches := c.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		for _, e := range fetches.Errors() {
			if _, fatal := errors.AsType[*kgo.ErrGroupSession](e.Err); !fatal {
				return e.Err
			}
			j.refused(e.Err) // out of the group for a moment; the library joins again
		}
		next := map[string]map[int32]kgo.EpochOffset{}
		fetches.EachRecord(func(r *kgo.Record) {
			j.write("got", r.Topic, r.Partition, r.Offset)
			if next[r.Topic] == nil {
				next[r.Topic] = map[int32]kgo.EpochOffset{}
			}
			next[r.Topic][r.Partition] = kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1}
		})
		if len(next) > 0 {
			f.commitSync(c, next, j)
		}
		c.AllowRebalance()
	}
}

func (f *franz) commitSync(c *kgo.Client, next map[string]map[int32]kgo.EpochOffset, j *journal) {
	// Not the member's context: what was got is committed before the member leaves.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c.CommitOffsetsSync(ctx, next, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
		if err != nil {
			j.refused(err)
			return
		}
		for _, t := range answer.Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					j.refused(err)
					continue
				}
				j.write("committed", t.Topic, p.Partition, next[t.Topic][p.Partition].Offset)
			}
		}
	})
}

// adjust is how franz-go lets an application seek: it is asked for each assignment where to begin.
func (m membership) adjust() func(context.Context, map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	done := m.Seek == nil
	return func(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
		if done {
			return offsets, nil
		}
		if _, ok := offsets[m.Topics[0]][m.Seek.Partition]; ok {
			offsets[m.Topics[0]][m.Seek.Partition] = kgo.NewOffset().At(m.Seek.Offset)
			done = true
		}
		return offsets, nil
	}
}

func (f *franz) commit(ctx context.Context, group, topic string, partition int32, offset int64, metadata string) (committed, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(f.bootstrap...))
	if err != nil {
		return committed{}, err
	}
	defer c.Close()
	admin := kadm.NewClient(c)
	var offsets kadm.Offsets
	offsets.Add(kadm.Offset{Topic: topic, Partition: partition, At: offset, LeaderEpoch: -1, Metadata: metadata})
	if err := admin.CommitAllOffsets(ctx, group, offsets); err != nil {
		return committed{}, err
	}
	fetched, err := admin.FetchOffsetsForTopics(ctx, group, topic)
	if err != nil {
		return committed{}, err
	}
	got, ok := fetched.Lookup(topic, partition)
	if !ok {
		return committed{}, errors.New("the answer lacks the partition")
	}
	return committed{got.At, got.Metadata}, got.Err
}
