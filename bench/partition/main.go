package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/bench/peer"
	"github.com/troupe-broker/troupe/bench/program"
	"github.com/troupe-broker/troupe/bench/report"
)

// machineTarget is the target of the floors that are no servers.
const machineTarget = "machine"

func main() {
	program.Main("partition", parseOptions, func(ctx context.Context, o options) error {
		if o.floorRole != "" {
			return o.serveFloor(ctx)
		}
		return o.run(ctx)
	})
}

func (o options) run(ctx context.Context) (err error) {
	b := &bench{options: o, dir: o.workDir, rng: rand.New(rand.NewPCG(o.seed, 2))}
	if b.dir == "" {
		if b.dir, err = os.MkdirTemp("", "troupe-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	}
	out := filepath.Join(o.out, "partition-"+time.Now().UTC().Format("20060102-150405"))
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	raw, err := os.Create(filepath.Join(out, "samples.jsonl"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, raw.Close()) }()
	b.log = report.NewLog(raw)
	defer func() { err = errors.Join(err, b.stop()) }()
	if err := b.start(ctx); err != nil {
		return err
	}
	if o.pin && runtime.NumCPU() > 1 {
		if err := pinSelf(1); err != nil {
			return err
		}
	}
	if err := b.warm(ctx); err != nil {
		return err
	}
	fetchTopic := b.newTopic()
	if len(o.fetchSizes) > 0 {
		if err := b.fill(ctx, fetchTopic); err != nil {
			return err
		}
	}
	if o.coldBytes > 0 {
		if err := b.fillCold(ctx); err != nil {
			return err
		}
	}
	for round := 1; round <= o.rounds; round++ {
		if err := b.round(ctx, round, fetchTopic); err != nil {
			return err
		}
	}
	return b.write(out)
}

func (b *bench) round(ctx context.Context, round int, fetchTopic string) error {
	if err := b.floors(round); err != nil {
		return err
	}
	for _, class := range b.classes {
		for _, size := range b.produceSizes {
			if err := b.produce(ctx, round, size, class); err != nil {
				return err
			}
		}
	}
	for _, size := range b.fetchSizes {
		if err := b.fetch(ctx, round, size, fetchTopic); err != nil {
			return err
		}
	}
	for _, class := range b.classes {
		for _, rate := range b.rates {
			if err := b.latency(ctx, round, rate, class); err != nil {
				return err
			}
		}
		if b.coldBytes > 0 {
			if err := b.cold(ctx, round, class); err != nil {
				return err
			}
		}
	}
	return nil
}

// toFloor names the floor that a workload is compared with.
func toFloor(w report.Workload) string {
	switch {
	case strings.HasPrefix(w.Name, "produce"):
		return nameD4
	case strings.HasPrefix(w.Name, "fetch"):
		return nameD5
	default:
		return ""
	}
}

// write makes the summary and the page from the samples.
func (b *bench) write(out string) error {
	all := b.log.Samples()
	isMachine := func(s report.Sample) bool { return s.Target == machineTarget }
	served := slices.DeleteFunc(slices.Clone(all), isMachine)
	p := report.Page{
		Title:   "One partition: Troupe beside the floor",
		Command: "go run ./bench/partition " + strings.Join(os.Args[1:], " "),
		Raw:     "samples.jsonl",
		Facts:   append(peer.Facts(), b.settings()...),
		ToFloor: report.Summarise(served, toFloor),
	}
	for _, l := range report.Summarise(slices.DeleteFunc(slices.Clone(all), func(s report.Sample) bool { return !isMachine(s) }),
		func(report.Workload) string { return "" }) {
		id, name, _ := strings.Cut(l.Name, " ")
		p.Floors = append(p.Floors, []string{
			id, name, l.MBPerSecond.String(), fmt.Sprintf("%.3g", 1000/l.MBPerSecond.Median),
			time.Duration(float64(time.Second) / l.Requests.Median).String(),
		})
	}
	for _, profile := range b.kafka {
		base := "kafka-" + profile
		for _, l := range report.Summarise(served, func(report.Workload) string { return base }) {
			if l.Target == nameTroupe && l.Paired > 0 {
				p.ToPeer = append(p.ToPeer, l)
			}
		}
	}
	for _, s := range served {
		if s.Ack != nil && s.Void == "" {
			p.Latency = append(p.Latency, s)
		}
	}
	text, err := os.Create(filepath.Join(out, "summary.txt"))
	if err != nil {
		return err
	}
	html, err := os.Create(filepath.Join(out, "report.html"))
	if err != nil {
		return errors.Join(err, text.Close())
	}
	if err := errors.Join(p.Text(text), text.Close(), p.HTML(html), html.Close(), p.Text(os.Stdout)); err != nil {
		return err
	}
	fmt.Println("\nwritten:", out)
	return nil
}

func (b *bench) settings() [][2]string {
	revision := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	placement := "all processes on all CPUs"
	if b.pin {
		placement = "servers on CPU 0, generator on CPU 1"
	}
	out := [][2]string{
		{"Go", runtime.Version()},
		{"revision", revision},
		{"placement", placement},
		{"requests in flight", fmt.Sprint(b.inFlight)},
		{"record", fmt.Sprintf("%d B, incompressible", b.recordBytes)},
		{"rounds", fmt.Sprint(b.rounds)},
		{"classes", "cached: acknowledged from the page cache. synced: acknowledged after fdatasync (Troupe's default; Kafka with flush.messages=1)"},
	}
	if len(b.kafka) > 0 {
		out = append(out, [2]string{"Apache Kafka", peer.KafkaVersion + ", profiles " + strings.Join(b.kafka, ", ")})
	}
	return out
}
