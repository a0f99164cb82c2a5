package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-broker/troupe/bench/load"
)

const (
	steadyRate  = 100_000 // committed offsets a second, all connections together
	produceRate = 300
)

// commits measures how many offsets a second are committed in requests of ten, and what a steady rate of them does to a producer beside.
//
// The producer stands beside steadyRate and not beside the fastest commits there can be: next to a broker and a generator that use all there is of two
// cores, it would measure the queue for a core. Who commits is a process of its own, whose CPU is told, and in a third run beside the producer it talks to
// nobody but itself: what that costs the producer is no broker's. The three runs follow each other several times, since a ratio of two is good within a
// minute or so.
func (b *bench) commits(ctx context.Context, s *server, class string) error {
	// What the runs before have left dirty is synced under the first producer, which is not counted.
	if _, err := b.produce(ctx, s, "warm", class); err != nil {
		return err
	}
	fastest, err := b.commitFor(ctx, s, commitLoad{}, func() error { time.Sleep(b.duration); return nil })
	if err != nil {
		return err
	}
	if err := errors.Join(
		b.raw.add(s.name, class+": offsets committed a second", fastest.rate),
		b.raw.add(s.name, class+": CPU µs per committed offset", fastest.cpu),
	); err != nil {
		return err
	}
	for pair := range b.pairs {
		if err := b.besides(ctx, s, class, pair); err != nil {
			return err
		}
	}
	return nil
}

// besides measures a producer alone, beside a generator that talks to itself, and beside one that commits.
func (b *bench) besides(ctx context.Context, s *server, class string, pair int) error {
	alone, err := b.produce(ctx, s, fmt.Sprint("alone-", pair), class)
	if err != nil {
		return err
	}
	var idle, beside latency
	hollow, err := b.commitFor(ctx, s, commitLoad{rate: steadyRate, hollow: true}, func() (err error) {
		idle, err = b.produce(ctx, s, fmt.Sprint("hollow-", pair), class)
		return err
	})
	if err != nil {
		return err
	}
	steady, err := b.commitFor(ctx, s, commitLoad{rate: steadyRate}, func() (err error) {
		beside, err = b.produce(ctx, s, fmt.Sprint("beside-", pair), class)
		return err
	})
	if err != nil {
		return err
	}
	add := func(what string, x float64) error { return b.raw.add(s.name, class+": "+what, x) }
	return errors.Join(
		add("produce p50 alone, ms", alone.p50), add("produce p99 alone, ms", alone.p99),
		add("produce p50 beside the generator alone, ms", idle.p50), add("produce p99 beside the generator alone, ms", idle.p99),
		add("generator alone, cores", hollow.generator),
		add("offsets a second beside the producer", steady.rate),
		add("broker beside the producer, cores", steady.broker), add("generator beside the producer, cores", steady.generator),
		add("produce p50 beside commits, ms", beside.p50), add("produce p99 beside commits, ms", beside.p99),
		add("produce p99 beside commits / alone", beside.p99/alone.p99),
	)
}

// commitLoad says what a generator is to do.
type commitLoad struct {
	rate   int  // offsets a second; 0: as fast as answers come
	hollow bool // it answers itself
}

// committing is what a run of commits came to.
type committing struct {
	rate      float64 // offsets a second
	cpu       float64 // of the broker, µs for each
	broker    float64 // cores that it used, for whatever
	generator float64
}

// commitFor commits while something else is done.
func (b *bench) commitFor(ctx context.Context, s *server, l commitLoad, meanwhile func() error) (c committing, err error) {
	g, err := b.startGenerator(ctx, s, l)
	if err != nil {
		return committing{}, err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	cpu0, err := s.Usage()
	if err != nil {
		return committing{}, err
	}
	before, err := g.look()
	if err != nil {
		return committing{}, err
	}
	began := time.Now()
	if err := meanwhile(); err != nil {
		return committing{}, err
	}
	after, err := g.look()
	if err != nil {
		return committing{}, err
	}
	took := time.Since(began)
	cpu1, err := s.Usage()
	if err != nil {
		return committing{}, err
	}
	n, cpu := after.committed-before.committed, cpu1.Sub(cpu0).CPU()
	return committing{
		rate:   float64(n) / took.Seconds(),
		cpu:    float64(cpu.Microseconds()) / float64(max(1, n)),
		broker: cpu.Seconds() / took.Seconds(), generator: (after.cpu - before.cpu).Seconds() / took.Seconds(),
	}, nil
}

// latency is what a producer saw, in ms.
type latency struct{ p50, p99 float64 }

// produce is an open loop of single records.
func (b *bench) produce(ctx context.Context, s *server, what, class string) (latency, error) {
	topic := fmt.Sprintf("produce-%s-%s", what, class)
	if err := s.createTopic(ctx, topic, 1, class); err != nil {
		return latency{}, err
	}
	lat, err := load.OpenLoop{
		Addr: s.addr, Topic: topic, Acks: -1, RecordBytes: 100, RatePerSecond: produceRate, Duration: b.duration, InFlightMax: 1000,
	}.Run(ctx)
	if err != nil {
		return latency{}, err
	}
	at := func(q float64) float64 { return ms(time.Duration(lat.Ack.ValueAtQuantile(q))) }
	return latency{p50: at(50), p99: at(99)}, nil
}
