package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// join commits by the library's own interval: its synchronous commit tells nobody how it went.
func (s *saramaClient) join(ctx context.Context, m membership, j *journal) (err error) {
	c := s.config()
	strategies := map[string]func() sarama.BalanceStrategy{
		"range": sarama.NewBalanceStrategyRange, "roundrobin": sarama.NewBalanceStrategyRoundRobin, "sticky": sarama.NewBalanceStrategySticky,
		"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
	}
	c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[m.Assignor]()}
	c.Consumer.Group.Rebalance.Timeout = m.session()
	c.Consumer.Group.Rebalance.Retry.Backoff = 200 * time.Millisecond
	c.Consumer.Group.Session.Timeout = m.session()
	c.Consumer.Group.Heartbeat.Interval = m.heartbeat()
	c.Consumer.Offsets.Initial = map[string]int64{"earliest": sarama.OffsetOldest, "latest": sarama.OffsetNewest}[m.Reset]
	c.Consumer.Offsets.AutoCommit.Interval = 100 * time.Millisecond
	c.Consumer.MaxWaitTime = 100 * time.Millisecond
	c.Consumer.Return.Errors = true
	group, err := sarama.NewConsumerGroup(s.bootstrap, m.Group, c)
	if err != nil {
		return err
	}
	var errs sync.WaitGroup
	errs.Go(func() {
		for e := range group.Errors() {
			j.refused(e)
		}
	})
	handler := &saramaHandler{membership: m, journal: j}
	for ctx.Err() == nil {
		if err = group.Consume(ctx, m.Topics, handler); err != nil && ctx.Err() == nil {
			// A rebalance that failed, as when the member was thrown out: programs join again.
			j.refused(err)
			err = nil
			time.Sleep(50 * time.Millisecond)
		}
	}
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	err = errors.Join(err, group.Close())
	errs.Wait()
	return err
}

type saramaHandler struct {
	membership
	*journal
	sought sync.Once
}

func (h *saramaHandler) Setup(session sarama.ConsumerGroupSession) error {
	for topic, partitions := range session.Claims() {
		for _, p := range partitions {
			h.write("assigned", topic, p, -1)
			if h.Seek != nil && topic == h.Topics[0] && p == h.Seek.Partition {
				h.sought.Do(func() { session.ResetOffset(topic, p, h.Seek.Offset, "") })
			}
		}
	}
	return nil
}

func (h *saramaHandler) Cleanup(session sarama.ConsumerGroupSession) error {
	for topic, partitions := range session.Claims() {
		for _, p := range partitions {
			h.write("revoked", topic, p, -1)
		}
	}
	return nil
}

func (h *saramaHandler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case m, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			h.write("got", m.Topic, m.Partition, m.Offset)
			session.MarkMessage(m, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

func (s *saramaClient) commit(_ context.Context, group, topic string, partition int32, offset int64, metadata string) (got committed, err error) {
	config := s.config()
	config.Consumer.Return.Errors = true
	config.Consumer.Offsets.AutoCommit.Enable = false
	c, err := sarama.NewClient(s.bootstrap, config)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	offsets, err := sarama.NewOffsetManagerFromClient(group, c)
	if err != nil {
		return got, err
	}
	p, err := offsets.ManagePartition(topic, partition)
	if err != nil {
		return got, errors.Join(err, offsets.Close())
	}
	p.MarkOffset(offset, metadata)
	offsets.Commit()
	select {
	case e := <-p.Errors():
		err = e.Err
	default:
	}
	p.AsyncClose() // the manager waits for it; without automatic commits nobody else lets go of it
	if err := errors.Join(err, offsets.Close()); err != nil {
		return got, err
	}
	coordinator, err := c.Coordinator(group)
	if err != nil {
		return got, err
	}
	request := sarama.NewOffsetFetchRequest(c.Config().Version, group, map[string][]int32{topic: {partition}})
	answer, err := coordinator.FetchOffset(request)
	if err != nil {
		return got, err
	}
	block := answer.GetBlock(topic, partition)
	if block == nil {
		return got, fmt.Errorf("the answer lacks %s-%d", topic, partition)
	}
	if block.Err != sarama.ErrNoError {
		return got, block.Err
	}
	return committed{block.Offset, block.Metadata}, nil
}
