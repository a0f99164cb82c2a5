package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Protocol is how a committer belongs to its group.
type Protocol int8

// The protocols.
const (
	Simple   Protocol = iota // it is no member: it commits for all partitions
	Classic                  // JoinGroup, SyncGroup, Heartbeat
	Consumer                 // ConsumerGroupHeartbeat (KIP-848)
)

// Ledger is what the committers of one group have sent and were acknowledged. Numbers rise over all of them, so that whatever is committed can be held
// against it.
type Ledger struct {
	Group    string
	Topic    string
	Protocol Protocol
	Pause    time.Duration // between two commits of one committer

	mu    sync.Mutex
	next  int64
	sent  map[int32]int64 // the highest by partition
	acked map[int32]int64
}

// take gives out the next number for partitions.
func (l *Ledger) take(partitions []int32) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sent == nil {
		l.sent, l.acked = map[int32]int64{}, map[int32]int64{}
	}
	l.next++
	for _, p := range partitions {
		l.sent[p] = max(l.sent[p], l.next)
	}
	return l.next
}

func (l *Ledger) acknowledge(partition int32, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[partition] = max(l.acked[partition], n)
}

// Acked copies the highest acknowledged numbers.
func (l *Ledger) Acked() map[int32]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.acked)
}

// Sent copies the highest numbers that were sent.
func (l *Ledger) Sent() map[int32]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.sent)
}

// Commit commits until ctx ends, as one committer of the group. What the broker refuses is tried again with the next number.
func (l *Ledger) Commit(ctx context.Context, addr, name string, partitions []int32) error {
	mine := &assigned{all: map[int32]bool{}}
	opts := []kgo.Opt{
		kgo.SeedBrokers(addr), kgo.ClientID(name), kgo.DialTimeout(2 * time.Second), kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }), kgo.RetryTimeout(5 * time.Second),
	}
	if l.Protocol == Simple {
		mine.add(partitions)
	} else {
		opts = append(opts,
			kgo.ConsumerGroup(l.Group), kgo.ConsumeTopics(l.Topic), kgo.DisableAutoCommit(), kgo.HeartbeatInterval(200*time.Millisecond),
			kgo.SessionTimeout(6*time.Second), kgo.RebalanceTimeout(6*time.Second), kgo.Balancers(kgo.CooperativeStickyBalancer()),
			kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, a map[string][]int32) { mine.add(a[l.Topic]) }),
			kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, r map[string][]int32) { mine.remove(r[l.Topic]) }),
			kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, r map[string][]int32) { mine.remove(r[l.Topic]) }),
		)
	}
	if l.Protocol == Consumer {
		opts = append(opts, kgo.ServerSideBalancer())
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	pace := time.NewTicker(l.Pause)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pace.C:
		}
		if list := mine.list(); len(list) > 0 {
			if err := l.once(ctx, client, list); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
}

// once commits one number for partitions. An error is one that no client should see.
func (l *Ledger) once(ctx context.Context, client *kgo.Client, partitions []int32) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	n := l.take(partitions)
	var unexpected error
	settle := func(partition int32, err error) {
		switch {
		case err == nil:
			l.acknowledge(partition, n)
		case kerr.IsRetriable(err), errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.IllegalGeneration), errors.Is(err, kerr.RebalanceInProgress),
			errors.Is(err, kerr.StaleMemberEpoch), errors.Is(err, kerr.FencedMemberEpoch): // a rebalance, or the kill
		default:
			unexpected = fmt.Errorf("commit %d of %s-%d by group %s: %w", n, l.Topic, partition, l.Group, err)
		}
	}
	if l.Protocol == Simple {
		offsets := kadm.Offsets{}
		for _, p := range partitions {
			offsets.AddOffset(l.Topic, p, n, -1)
		}
		answers, err := kadm.NewClient(client).CommitOffsets(ctx, l.Group, offsets)
		if err == nil { // else nobody answered
			answers.Each(func(a kadm.OffsetResponse) { settle(a.Partition, a.Err) })
		}
		return unexpected
	}
	offsets := map[int32]kgo.EpochOffset{}
	for _, p := range partitions {
		offsets[p] = kgo.EpochOffset{Epoch: -1, Offset: n}
	}
	client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{l.Topic: offsets},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
			if err != nil || resp == nil {
				return
			}
			for i := range resp.Topics {
				for _, p := range resp.Topics[i].Partitions {
					settle(p.Partition, kerr.ErrorForCode(p.ErrorCode))
				}
			}
		})
	return unexpected
}

// Check holds what a reader was told against what had been acknowledged when the broker was killed, what was sent until the answer, and what a reader
// was told before.
func (l *Ledger) Check(acked, told, before, sent map[int32]int64) error {
	var problems []error
	for p, n := range acked {
		if told[p] < n {
			problems = append(problems, fmt.Errorf("%s %s-%d: %d was acknowledged, and %d is committed", l.Group, l.Topic, p, n, told[p]))
		}
	}
	for p, n := range told {
		if n > sent[p] {
			problems = append(problems, fmt.Errorf("%s %s-%d: %d is committed, which nobody sent (%d)", l.Group, l.Topic, p, n, sent[p]))
		}
		if n < before[p] {
			problems = append(problems, fmt.Errorf("%s %s-%d: %d is committed, and before it was %d", l.Group, l.Topic, p, n, before[p]))
		}
	}
	return errors.Join(problems...)
}

// assigned is the partitions of one committer.
type assigned struct {
	mu  sync.Mutex
	all map[int32]bool
}

func (a *assigned) add(partitions []int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range partitions {
		a.all[p] = true
	}
}

func (a *assigned) remove(partitions []int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range partitions {
		delete(a.all, p)
	}
}

func (a *assigned) list() []int32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []int32
	for p := range a.all {
		list = append(list, p)
	}
	return list
}
