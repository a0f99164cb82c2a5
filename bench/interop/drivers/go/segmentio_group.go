package main

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"
)

// join reads with the library's Reader and commits what it has read a few messages at a time.
func (s *segmentio) join(ctx context.Context, m membership, j *journal) (err error) {
	balancers := map[string]kafka.GroupBalancer{"range": kafka.RangeGroupBalancer{}, "roundrobin": kafka.RoundRobinGroupBalancer{}}
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: s.bootstrap, GroupID: m.Group, GroupTopics: m.Topics, GroupBalancers: []kafka.GroupBalancer{balancers[m.Assignor]},
		SessionTimeout: m.session(), HeartbeatInterval: m.heartbeat(), RebalanceTimeout: m.session(), JoinGroupBackoff: 200 * time.Millisecond,
		StartOffset: map[string]int64{"earliest": kafka.FirstOffset, "latest": kafka.LastOffset}[m.Reset],
		MinBytes:    1, MaxBytes: 1 << 20, MaxWait: 100 * time.Millisecond, ReadBackoffMin: 5 * time.Millisecond,
	})
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		first, err := r.FetchMessage(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		batch := []kafka.Message{first}
		j.write("got", first.Topic, int32(first.Partition), first.Offset)
		for len(batch) < 100 {
			soon, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
			message, err := r.FetchMessage(soon)
			cancel()
			if err != nil {
				break // nothing more at the moment; a real error comes again
			}
			j.write("got", message.Topic, int32(message.Partition), message.Offset)
			batch = append(batch, message)
		}
		// Not the member's context: what was got is committed before the member leaves.
		limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err = r.CommitMessages(limit, batch...)
		cancel()
		if err != nil {
			j.refused(err)
			continue
		}
		// Nothing is written as committed. The reader keeps messages of a generation that is over and commits them, and
		// what is handed to it late, with the generation that it is in by then, whoever owns the partition.
	}
}

func (s *segmentio) commit(ctx context.Context, group, topic string, partition int32, offset int64, metadata string) (got committed, err error) {
	c := s.client()
	answer, err := c.OffsetCommit(ctx, &kafka.OffsetCommitRequest{
		GroupID: group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{topic: {{Partition: int(partition), Offset: offset, Metadata: metadata}}},
	})
	if err != nil {
		return got, err
	}
	if err := answer.Topics[topic][0].Error; err != nil {
		return got, err
	}
	fetched, err := c.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: {int(partition)}}})
	if err != nil {
		return got, err
	}
	p := fetched.Topics[topic][0]
	return committed{p.CommittedOffset, p.Metadata}, p.Error
}
