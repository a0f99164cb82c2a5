package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/troupe-broker/troupe/bench/load"
	"github.com/troupe-broker/troupe/bench/peer"
	"github.com/troupe-broker/troupe/bench/report"
)

// latencyLine is one open-loop run. Its CPU is that of the three brokers.
type latencyLine struct {
	Row string `json:"row"`
	report.Sample
	// RssAnon is what each broker held itself at the end, in bytes, by broker id.
	RssAnon map[int32]int64 `json:"rss_anon_bytes"`
}

// What voids a run, as in bench/partition: shares of one CPU that others used, and of the machine that the hypervisor took.
const (
	otherShareMax = 0.10
	stealShareMax = 0.01
)

// latency runs the rounds. Each target is started anew in each, in an order that turns round.
func (b *bench) latency(ctx context.Context) error {
	for round := 1; round <= b.rounds; round++ {
		order := slices.Clone(b.targets)
		if round%2 == 0 {
			slices.Reverse(order)
		}
		for _, name := range order {
			t, err := b.startTrio(ctx, name, world{})
			if err != nil {
				return err
			}
			for _, class := range b.classes {
				if err = b.openLoop(ctx, t, class, round); err != nil {
					err = fmt.Errorf("%s, open loop, %s: %w", name, class, err)
					break
				}
			}
			if err := errors.Join(err, t.stop()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) openLoop(ctx context.Context, t *trio, class report.Class, round int) error {
	run := func(d time.Duration) (lat load.Latencies, err error) {
		b.topics++
		topic := fmt.Sprintf("open-%d", b.topics)
		leader := t.Nodes[0]
		if err := t.createTopic(ctx, topic, 1, leader.ID, class); err != nil {
			return lat, err
		}
		if lat, err = (load.OpenLoop{
			Addr: leader.Addr, Topic: topic, Acks: -1, RecordBytes: b.recordBytes, RatePerSecond: b.rate, Batch: b.batch, Duration: d, InFlightMax: 1000,
		}).Run(ctx); err != nil {
			return lat, err
		}
		return lat, t.deleteTopic(ctx, topic)
	}
	if _, err := run(b.warmUp); err != nil {
		return err
	}
	before, err := b.reading(t)
	if err != nil {
		return err
	}
	lat, err := run(b.latencyTime)
	if err != nil {
		return err
	}
	after, err := b.reading(t)
	if err != nil {
		return err
	}
	requests := lat.Ack.TotalCount()
	used, own, elapsed := after.trio.Sub(before.trio), after.own.Sub(before.own), after.at.Sub(before.at)
	busy, steal := after.machine.Since(before.machine)
	line := latencyLine{Row: rowLatency, RssAnon: map[int32]int64{}, Sample: report.Sample{
		Workload: report.Workload{Name: fmt.Sprintf("open loop %d/s, %d a request", b.rate, b.batch), Class: class},
		Target:   t.name, Round: round, Bytes: requests * int64(b.batch) * int64(b.recordBytes), Requests: requests, Elapsed: elapsed,
		CPU: used.CPU(), CPUSystem: used.System, Generator: own.CPU(), Other: (busy - used.CPU() - own.CPU()).Seconds() / elapsed.Seconds(), Steal: steal,
		Ack: percentiles(lat.Ack), EndToEnd: percentiles(lat.EndToEnd), Service: percentiles(lat.Service),
	}}
	switch {
	case line.Other > otherShareMax:
		line.Void = fmt.Sprintf("others used %.0f %% of a CPU", 100*line.Other)
	case steal > stealShareMax:
		line.Void = fmt.Sprintf("the hypervisor took %.1f %%", 100*steal)
	}
	for _, n := range t.Nodes {
		u, err := n.Usage()
		if err != nil {
			return err
		}
		line.RssAnon[n.ID] = u.RssAnonBytes
	}
	fmt.Printf("  round %d  %-8s %-7s ack p50 %7.2f  p99 %8.2f  p99.9 %8.2f ms  %6.2f CPU-s/GB  %s\n", round, t.name, class,
		float64(line.Ack["50"])/1e6, float64(line.Ack["99"])/1e6, float64(line.Ack["99.9"])/1e6, line.CPUPerGB(), line.Void)
	return b.raw.add(line)
}

// reading is what all had used at one moment.
type reading struct {
	at        time.Time
	trio, own peer.Usage
	machine   peer.Machine
}

func (b *bench) reading(t *trio) (r reading, err error) {
	if r.trio, err = t.Usage(); err != nil {
		return r, err
	}
	if r.own, err = peer.ReadUsage(os.Getpid()); err != nil {
		return r, err
	}
	r.machine, err = peer.ReadMachine()
	r.at = time.Now()
	return r, err
}

func percentiles(h *hdrhistogram.Histogram) map[string]int64 {
	return map[string]int64{
		"50": h.ValueAtQuantile(50), "90": h.ValueAtQuantile(90), "99": h.ValueAtQuantile(99), "99.9": h.ValueAtQuantile(99.9), "max": h.Max(), "count": h.TotalCount(),
	}
}
