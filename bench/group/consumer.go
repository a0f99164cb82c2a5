package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// consumerMember is one member of a KIP-848 group. It behaves as Kafka's Java client does: it sends a heartbeat at the interval it is told, and at once when
// it has given up or taken partitions.
type consumerMember struct {
	group, topic string
	c            *client
	id           string
	epoch        int32
	owned        map[[16]byte][]int32
	events       chan<- event
}

func (m *consumerMember) run(ctx context.Context, number int, stop <-chan struct{}) {
	err := m.live(ctx, number, stop)
	m.c.leave()
	m.events <- event{member: number, kind: ended, at: time.Now(), err: err}
}

func (m *consumerMember) live(ctx context.Context, number int, stop <-chan struct{}) error {
	r := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	r.Version, r.Group, r.MemberID, r.RebalanceTimeoutMillis = 1, m.group, m.id, sessionTimeout
	r.SubscribedTopicNames = []string{m.topic}
	r.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	m.events <- event{member: number, kind: joining, at: time.Now()}
	for {
		r.MemberEpoch = m.epoch
		a, err := ask[*kmsg.ConsumerGroupHeartbeatResponse](m.c, r, patience)
		if err != nil {
			return err
		}
		if a.ErrorCode != 0 {
			return failed("ConsumerGroupHeartbeat", a.ErrorCode)
		}
		moved := a.MemberEpoch != m.epoch
		m.epoch = a.MemberEpoch
		r = kmsg.NewPtrConsumerGroupHeartbeatRequest()
		r.Version, r.Group, r.MemberID, r.RebalanceTimeoutMillis = 1, m.group, m.id, -1
		wait := time.Duration(a.HeartbeatIntervalMillis) * time.Millisecond
		if a.Assignment != nil {
			m.take(a.Assignment.Topics)
			r.Topics = m.report()
			wait, moved = 0, true
		}
		if moved {
			m.events <- event{member: number, kind: inGroup, at: time.Now(), generation: m.epoch, partitions: m.held()}
		}
		select {
		case <-time.After(wait):
		case <-stop:
			r.MemberEpoch = -1
			_, err := ask[*kmsg.ConsumerGroupHeartbeatResponse](m.c, r, patience)
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (m *consumerMember) take(topics []kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic) {
	m.owned = make(map[[16]byte][]int32, len(topics))
	for _, t := range topics {
		m.owned[t.TopicID] = t.Partitions
	}
}

func (m *consumerMember) report() []kmsg.ConsumerGroupHeartbeatRequestTopic {
	out := []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	for id, p := range m.owned {
		t := kmsg.NewConsumerGroupHeartbeatRequestTopic()
		t.TopicID, t.Partitions = id, p
		out = append(out, t)
	}
	return out
}

func (m *consumerMember) held() (n int) {
	for _, p := range m.owned {
		n += len(p)
	}
	return n
}

func (w *crowd) addConsumer(ctx context.Context, addr, group, topic string) error {
	c, err := dial(ctx, addr, fmt.Sprintf("raw-%d", w.count))
	if err != nil {
		return err
	}
	number := w.count
	m := &consumerMember{group: group, topic: topic, c: c, id: fmt.Sprintf("member-%04d-%s", number, group), events: w.events}
	w.count++
	w.members.Go(func() { m.run(ctx, number, w.stop) })
	return nil
}

// consumer measures how long a KIP-848 group of raw members takes until all members are in one epoch and hold all partitions, after the last of them joined.
func (b *bench) consumer(ctx context.Context, s *server, group, topic string) error {
	w := newCrowd()
	defer w.end()
	for range b.members {
		if err := w.addConsumer(ctx, s.addr, group, topic); err != nil {
			return err
		}
	}
	at, err := w.settle(ctx, settled(b.members, true))
	if err != nil {
		return err
	}
	return b.raw.add(s.name, "KIP-848: convergence after the last join, ms", ms(at.Sub(w.last)))
}
