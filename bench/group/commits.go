package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/bench/load"
)

const (
	commitConns     = 4
	commitsInFlight = 16
	commitSize      = 10      // partitions in a request
	steadyRate      = 100_000 // committed offsets a second, all connections together
	produceRate     = 300
)

// commits measures how many offsets a second are committed in requests of ten, and what a steady rate of them does to a producer beside.
//
// The producer stands beside steadyRate and not beside the fastest commits there can be: next to a broker and a generator that use all there is of two
// cores, it would measure the queue for a core.
func (b *bench) commits(ctx context.Context, s *server, class string) error {
	// What the runs before have left dirty is synced under the first producer, which is not counted.
	if _, err := b.produce(ctx, s, "warm", class); err != nil {
		return err
	}
	alone, err := b.produce(ctx, s, "alone", class)
	if err != nil {
		return err
	}
	fastest, err := b.commitFor(ctx, s, 0, func() error { time.Sleep(b.duration); return nil })
	if err != nil {
		return err
	}
	var beside float64
	steady, err := b.commitFor(ctx, s, steadyRate, func() (err error) {
		beside, err = b.produce(ctx, s, "beside", class)
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(
		b.raw.add(s.name, class+": offsets committed a second", fastest.rate),
		b.raw.add(s.name, class+": CPU µs per committed offset", fastest.cpu),
		b.raw.add(s.name, class+": produce p99 alone, ms", alone),
		b.raw.add(s.name, class+": offsets a second beside the producer", steady.rate),
		b.raw.add(s.name, class+": produce p99 beside them, ms", beside),
	)
}

// committing is what a run of commits came to.
type committing struct {
	rate float64 // offsets a second
	cpu  float64 // of the broker, µs for each
}

// commitFor commits, at a rate of offsets a second or (0) as fast as answers come, while something else is done.
func (b *bench) commitFor(ctx context.Context, s *server, rate int, meanwhile func() error) (committing, error) {
	during, cancel := context.WithCancel(ctx)
	defer cancel()
	var committed atomic.Int64
	var committers sync.WaitGroup
	errs := make(chan error, commitConns)
	for i := range commitConns {
		group := fmt.Sprintf("commits-%d", i)
		if err := awaitCoordinator(ctx, s.addr, group); err != nil {
			return committing{}, err
		}
		pace := pace{}
		if rate > 0 {
			pace.every = time.Second * commitConns * commitSize / time.Duration(rate)
		}
		committers.Go(func() { errs <- commitOn(during, s.addr, group, b.topic, pace, &committed) })
	}
	cpu0, err := s.Usage()
	if err != nil {
		return committing{}, err
	}
	began, before := time.Now(), committed.Load()
	err = meanwhile()
	n, took := committed.Load()-before, time.Since(began)
	cpu1, usageErr := s.Usage()
	cancel()
	committers.Wait()
	close(errs)
	err = errors.Join(err, usageErr)
	for e := range errs {
		err = errors.Join(err, e)
	}
	return committing{
		rate: float64(n) / took.Seconds(),
		cpu:  float64(cpu1.Sub(cpu0).CPU().Microseconds()) / float64(max(1, n)),
	}, err
}

// pace says when requests are due. Who is late catches up.
type pace struct {
	every time.Duration // 0: at once
	next  time.Time
}

// wait returns when the next request is due.
func (p *pace) wait() {
	if p.every == 0 {
		return
	}
	if p.next.IsZero() {
		p.next = time.Now()
	}
	time.Sleep(time.Until(p.next))
	p.next = p.next.Add(p.every)
}

// produce is the p99 of an open loop of single records, in ms.
func (b *bench) produce(ctx context.Context, s *server, what, class string) (float64, error) {
	topic := fmt.Sprintf("produce-%s-%s", what, class)
	if err := s.createTopic(ctx, topic, 1, class); err != nil {
		return 0, err
	}
	lat, err := load.OpenLoop{
		Addr: s.addr, Topic: topic, Acks: -1, RecordBytes: 100, RatePerSecond: produceRate, Duration: b.duration, InFlightMax: 1000,
	}.Run(ctx)
	if err != nil {
		return 0, err
	}
	return ms(time.Duration(lat.Ack.ValueAtQuantile(99))), nil
}

// commitOn commits offsets of a simple consumer on one connection, with some requests always under way.
func commitOn(ctx context.Context, addr, group, topic string, pace pace, committed *atomic.Int64) error {
	c, err := dial(ctx, addr, group)
	if err != nil {
		return err
	}
	defer c.leave()
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Version, r.Group, r.Generation = 8, group, -1
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = topic
	t.Partitions = make([]kmsg.OffsetCommitRequestTopicPartition, commitSize)
	r.Topics = append(r.Topics, t)
	var due []int32
	for offset := int64(0); ; offset++ {
		for i := range t.Partitions {
			p := &t.Partitions[i]
			p.Partition, p.Offset, p.LeaderEpoch = int32((int(offset)*commitSize+i)%partitions), offset, -1
		}
		pace.wait()
		over := ctx.Err() != nil
		if !over {
			id, err := c.send(r)
			if err != nil {
				return err
			}
			due = append(due, id)
		}
		if len(due) == 0 {
			return nil
		}
		if len(due) < commitsInFlight && !over {
			continue
		}
		if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		a, err := c.receive(r, due[0])
		if err != nil {
			return fmt.Errorf("OffsetCommit: %w", err)
		}
		due = due[1:]
		for _, t := range a.(*kmsg.OffsetCommitResponse).Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode != 0 {
					return failed("OffsetCommit", p.ErrorCode)
				}
				committed.Add(1)
			}
		}
	}
}
