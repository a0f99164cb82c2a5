package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/troupe-broker/troupe/bench/chaos/volatile"
)

// prove gives each broker of a test build its clock and its platter.
func (c *Cluster) prove() error {
	for i, b := range c.Brokers {
		b.clock, b.platter = filepath.Join(c.home(i), "clock"), filepath.Join(c.home(i), "platter")
		b.command.Env = append(b.command.Env, "TROUPE_TEST_CLOCK="+b.clock, "TROUPE_TEST_PLATTER="+b.platter)
		if err := b.setClock(0, 0); err != nil {
			return err
		}
	}
	return nil
}

// setClock puts the clock of a broker of a test build wrong, soon.
func (b *Broker) setClock(ahead time.Duration, ppm int) error {
	fresh := b.clock + ".new"
	if err := os.WriteFile(fresh, fmt.Appendf(nil, "%d %d\n", ahead.Milliseconds(), ppm), 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, b.clock)
}

// cut takes the power from brokers that run, or sleep.
func (n *nemesis) cut(h *hit, victims ...int) error {
	var err error
	for _, v := range victims {
		err = errors.Join(err, n.kill(v))
	}
	for _, v := range victims {
		b := n.cluster.Brokers[v]
		err = errors.Join(err, volatile.Lose(b.Data, b.platter, rand.New(rand.NewPCG(uint64(h.other), uint64(v)))))
	}
	return err
}

// awaitWhole waits until all replicas are in sync. Where something is kept by page caches alone, one of them may be lost only then.
func (n *nemesis) awaitWhole(ctx context.Context) (bool, error) {
	const patience = 10 * time.Second
	for began := time.Now(); time.Since(began) < patience; {
		partitions, _ := n.watcher.state()
		behind := len(partitions) == 0
		for _, p := range partitions {
			behind = behind || len(p.isr) < len(p.replicas) || p.leader < 1
		}
		if !behind {
			return true, nil
		}
		if err := n.pass(ctx, 100*time.Millisecond); err != nil {
			return false, err
		}
	}
	return false, nil
}

const notWhole = "nobody: not all replicas came in sync, and page caches keep a topic"

func powerLoss(ctx context.Context, n *nemesis, h *hit) (string, error) {
	if whole, err := n.awaitWhole(ctx); err != nil || !whole {
		return notWhole, err
	}
	victim, what := n.role(h)
	err := errors.Join(n.cut(h, victim), n.pass(ctx, h.hold), n.launch(victim))
	return what + ", for " + ms(h.hold), err
}

// powerLossAll takes the power from all, whatever state they are in.
func powerLossAll(ctx context.Context, n *nemesis, h *hit) (string, error) {
	all := n.everybody()
	err := errors.Join(n.cut(h, all...), n.pass(ctx, h.hold))
	for _, b := range all {
		err = errors.Join(err, n.launch(b))
	}
	return "all for " + ms(h.hold), err
}

// pausePower lets a leader sleep until another is elected, takes the power from that one, and lets the first go on.
func pausePower(ctx context.Context, n *nemesis, h *hit) (string, error) {
	if whole, err := n.awaitWhole(ctx); err != nil || !whole {
		return notWhole, err
	}
	if err := n.pause(h.leader); err != nil {
		return "", err
	}
	successor, elected, err := n.awaitSuccessor(ctx, h)
	if err != nil {
		return "", err
	}
	if successor == h.leader { // it is alone
		return fmt.Sprintf("broker %d alone", h.leader+1), n.resume(h.leader)
	}
	what := fmt.Sprintf("broker %d, the leader of %v, paused; broker %d, %s, without power after %s; the first resumed after %s", h.leader+1, h.place, successor+1, elected, ms(h.gap), ms(h.hold))
	err = errors.Join(n.pass(ctx, h.gap), n.cut(h, successor), n.pass(ctx, h.hold), n.resume(h.leader), n.pass(ctx, h.gap), n.launch(successor))
	return what, err
}

// clockJump moves a wall clock and leaves it there: forward by hours, back by less than the hour that timestamps may be ahead of a broker.
func clockJump(ctx context.Context, n *nemesis, h *hit) (string, error) {
	victim, what := n.role(h)
	const forwardMax, backMax = 20 * 60, 50 // minutes
	ahead := time.Duration(1+h.other/8%forwardMax) * time.Minute
	if h.other%2 == 0 {
		ahead = -time.Duration(1+h.other/8%backMax) * time.Minute
	}
	return fmt.Sprintf("%s: its wall clock is off by %v", what, ahead), errors.Join(n.cluster.Brokers[victim].setClock(ahead, 0), n.pass(ctx, h.hold))
}

// clockDrift lets all clocks of a broker go too fast or too slow, by up to a twentieth.
func clockDrift(ctx context.Context, n *nemesis, h *hit) (string, error) {
	victim, what := n.role(h)
	ppm := 50_000 - h.other%100_001
	b := n.cluster.Brokers[victim]
	return fmt.Sprintf("%s: its seconds are off by %d millionths for %s", what, ppm, ms(h.hold)), errors.Join(b.setClock(0, ppm), n.pass(ctx, h.hold), b.setClock(0, 0))
}
