package main

import (
	"bufio"
	"context"
	"debug/buildinfo"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/bench/chaos/check"
	"github.com/troupe-broker/troupe/bench/peer"
)

// gauge looks at what the processes of the brokers hold.
type gauge struct {
	cluster *Cluster
	rec     *recorder
	raced   bool          // the race detector's memory is not the brokers'
	stood   time.Duration // the longest time that the machine did not let this process run when it should have
}

// newGauge makes one for brokers of a binary.
func newGauge(c *Cluster, rec *recorder, binary string) (*gauge, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	raced := slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
	return &gauge{cluster: c, rec: rec, raced: raced}, nil
}

// run looks every second until ctx ends.
func (g *gauge) run(ctx context.Context) error {
	const step = 100 * time.Millisecond
	for turn := 1; ; turn++ {
		began := time.Now()
		if !wait(ctx, step) {
			return nil
		}
		g.stood = max(g.stood, time.Since(began)-step)
		if turn%10 == 0 {
			g.look(ctx, "")
		}
	}
}

// look notes what each broker holds now. One that does not run, or does not answer, is left out.
func (g *gauge) look(ctx context.Context, rest check.Rest) {
	for i, b := range g.cluster.Brokers {
		load, err := loadOf(ctx, b)
		if err != nil {
			continue
		}
		load.Rest = rest
		if g.raced {
			load.Anon = 0
		}
		now := g.rec.now()
		g.rec.write(check.Event{Kind: check.Usage, Worker: fmt.Sprint("broker-", i+1), T0: now, T1: now, Load: &load})
	}
}

// awaitRest waits until the brokers have let go of what clients were, for as long as it shrinks, and notes what is left.
func (g *gauge) awaitRest(ctx context.Context) {
	const step = 250 * time.Millisecond
	last := -1
	for wait(ctx, step) {
		held := 0
		for _, b := range g.cluster.Brokers {
			if load, err := loadOf(ctx, b); err == nil {
				held += load.Descriptors + load.Goroutines
			}
		}
		if last >= 0 && held >= last {
			break
		}
		last = held
	}
	g.look(ctx, check.After)
}

// loadOf reads what a broker's process holds: from the kernel, and the goroutines from its metrics.
func loadOf(ctx context.Context, b *Broker) (load check.Load, err error) {
	if err := b.process.Err(); err != nil {
		return load, err
	}
	usage, err := peer.ReadUsage(b.PID())
	if err != nil {
		return load, err
	}
	load.Anon = usage.RssAnonBytes
	dir := fmt.Sprintf("/proc/%d/fd", b.PID())
	descriptors, err := os.ReadDir(dir)
	if err != nil {
		return load, err
	}
	for _, d := range descriptors {
		if to, err := os.Readlink(filepath.Join(dir, d.Name())); err == nil && strings.HasPrefix(to, b.Data+"/") {
			load.Files++
		} else {
			load.Descriptors++
		}
	}
	goroutines, err := metricOf(ctx, b, "go_goroutines")
	load.Goroutines = int(goroutines)
	return load, err
}

// metricOf reads one number of a broker's metrics.
func metricOf(ctx context.Context, b *Broker, name string) (n float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.Monitor+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }() // all of it was read, or none of it matters
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("there is no metric %s: %w", name, lines.Err())
}
