package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/troupe-broker/troupe/bench/peer"
	"github.com/troupe-broker/troupe/bench/report"
)

// idleLine is one broker of an idle cluster.
type idleLine struct {
	Row        string `json:"row"`
	Target     string `json:"target"`
	Broker     int32  `json:"broker"`
	Controller bool   `json:"controller"`
	// Partitions is how many replicas it holds, Fresh whether it was started after they were made.
	Partitions int  `json:"partitions"`
	Fresh      bool `json:"fresh"`
	// CPU is the share of one processor over the time that was measured.
	CPU     float64 `json:"cpu_share"`
	RssAnon int64   `json:"rss_anon_bytes"`
	Threads int     `json:"threads"`
	Elapsed float64 `json:"elapsed_s"`
}

// idle measures a cluster without a topic, with one, and with one after a restart of all brokers.
func (b *bench) idle(ctx context.Context, name string) error {
	t, err := b.startTrio(ctx, name, world{})
	if err != nil {
		return err
	}
	err = func() error {
		if err := b.rest(ctx, t, 0, true); err != nil {
			return err
		}
		if err := t.createTopic(ctx, "idle", b.partitions, 0, report.Synced); err != nil {
			return err
		}
		if err := b.rest(ctx, t, b.partitions, false, "idle"); err != nil {
			return err
		}
		if err := errors.Join(t.Kill(), t.Start(ctx)); err != nil {
			return err
		}
		return b.rest(ctx, t, b.partitions, true, "idle")
	}()
	if err := errors.Join(err, t.stop()); err != nil {
		return fmt.Errorf("%s, idle: %w", name, err)
	}
	return nil
}

// rest lets the cluster alone, and then reads what it uses.
func (b *bench) rest(ctx context.Context, t *trio, partitions int, fresh bool, topics ...string) error {
	controller, err := t.awaitWhole(ctx, topics...)
	if err != nil {
		return err
	}
	if err := pauseFor(ctx, b.settle); err != nil {
		return err
	}
	before := make(map[int32]peer.Usage)
	begin := time.Now()
	for _, n := range t.Nodes {
		if before[n.ID], err = n.Usage(); err != nil {
			return err
		}
	}
	if err := pauseFor(ctx, b.idleTime); err != nil {
		return err
	}
	for _, n := range t.Nodes {
		u, err := n.Usage()
		if err != nil {
			return err
		}
		elapsed := time.Since(begin).Seconds()
		line := idleLine{
			Row: rowIdle, Target: t.name, Broker: n.ID, Controller: n.ID == controller, Partitions: partitions, Fresh: fresh,
			CPU: u.Sub(before[n.ID]).CPU().Seconds() / elapsed, RssAnon: u.RssAnonBytes, Threads: u.Threads, Elapsed: elapsed,
		}
		fmt.Printf("  %-8s broker %d, %4d partitions: %6.2f %% of a CPU, RssAnon %7.1f MB\n", t.name, n.ID, partitions, 100*line.CPU, float64(line.RssAnon)/1e6)
		if err := b.raw.add(line); err != nil {
			return err
		}
	}
	return nil
}

func pauseFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
