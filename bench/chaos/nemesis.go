package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-broker/troupe/bench/chaos/check"
	"github.com/troupe-broker/troupe/bench/peer"
)

// nemesis carries out a schedule, one fault after the other, some with a second one beside it, and heals.
type nemesis struct {
	cluster  *Cluster
	watcher  *watcher
	rec      *recorder
	places   []place
	down     map[int]bool // which it killed or stopped
	paused   map[int]bool
	rot      rot
	patience time.Duration // with earlier damage, before bits are turned again
	tool     string        // the product's binary
	next     string        // what brokers run after a rolling restart; empty: the same as before
	emptied  bool          // a disk was replaced
	moved    atomic.Bool   // replicas may be elsewhere
}

// run carries out steps, counted from began, until length has passed. An error is one that keeps it from going on; what a broker does wrong goes into the history.
func (n *nemesis) run(ctx context.Context, began time.Time, steps []step, length time.Duration) error {
	for _, s := range steps {
		if time.Since(began) > length { // some took longer than was drawn
			return nil
		}
		if !wait(ctx, time.Until(began.Add(s.at))) {
			return ctx.Err()
		}
		if err := n.lookForDead(); err != nil {
			return err
		}
		var beside sync.WaitGroup
		var failed error
		if s.beside != "" {
			companion := s
			companion.nemesis, companion.hold, companion.other = s.beside, s.hold+s.gap, s.other>>2
			beside.Go(func() { failed = n.note(ctx, companion) })
		}
		err := n.note(ctx, s)
		beside.Wait()
		if err := errors.Join(err, failed); err != nil {
			return fmt.Errorf("%v: %w", s, err)
		}
	}
	return nil
}

// note does one fault and writes it down.
func (n *nemesis) note(ctx context.Context, s step) error {
	t0 := n.rec.now()
	what, err := n.strike(ctx, s)
	n.rec.write(check.Event{Kind: check.Fault, Worker: s.nemesis, T0: t0, T1: n.rec.now(), Text: what})
	return err
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// lookForDead tells of brokers that ended without being killed, and starts them again.
func (n *nemesis) lookForDead() error {
	for i, b := range n.cluster.Brokers {
		if n.down[i] || b.process.Err() == nil {
			continue
		}
		n.rec.fatal(fmt.Sprint("broker-", i+1), "", "it ended by itself: "+b.process.Err().Error()+"; its log ends with: "+peer.Tail(b.Log, 8))
		if err := b.Launch(); err != nil {
			return err
		}
	}
	return nil
}

// strike does one fault and returns when its victims run again and nothing lies between them any more, which does not mean that they serve. The text says
// whom it met.
func (n *nemesis) strike(ctx context.Context, s step) (string, error) {
	p := n.places[s.partition]
	partitions, controller := n.watcher.state()
	h := &hit{step: s, place: p, leader: n.index(partitions[p].leader, s.other), controller: n.index(controller, s.other)}
	for _, f := range nemeses() {
		if f.name == s.nemesis {
			return f.strike(ctx, n, h)
		}
	}
	return "", fmt.Errorf("there is no fault %q", s.nemesis)
}

// index is where a broker is; one that nobody knows is replaced by any.
func (n *nemesis) index(id int32, other int) int {
	if i := int(id) - 1; i >= 0 && i < len(n.cluster.Brokers) {
		return i
	}
	return other % len(n.cluster.Brokers)
}

// another is a broker beside i; of one alone, itself.
func (n *nemesis) another(i, other int) int {
	count := len(n.cluster.Brokers)
	if count == 1 {
		return i
	}
	return (i + 1 + other%(count-1)) % count
}

func (n *nemesis) everybody() []int {
	all := make([]int, len(n.cluster.Brokers))
	for i := range all {
		all[i] = i
	}
	return all
}

// pass waits, and says whether it may go on.
func (n *nemesis) pass(ctx context.Context, d time.Duration) error {
	if !wait(ctx, d) {
		return ctx.Err()
	}
	return nil
}

func (n *nemesis) kill(i int) error {
	n.down[i] = true
	delete(n.paused, i)
	return n.cluster.Brokers[i].Kill()
}

func (n *nemesis) launch(i int) error {
	delete(n.down, i)
	return n.cluster.Brokers[i].Launch()
}

func (n *nemesis) killFor(ctx context.Context, hold time.Duration, victims ...int) error {
	var err error
	for _, v := range victims {
		err = errors.Join(err, n.kill(v))
	}
	err = errors.Join(err, n.pass(ctx, hold))
	for _, v := range victims {
		err = errors.Join(err, n.launch(v))
	}
	return err
}

func (n *nemesis) pauseFor(ctx context.Context, hold time.Duration, victims ...int) error {
	var err error
	for _, v := range victims {
		err = errors.Join(err, n.pause(v))
	}
	err = errors.Join(err, n.pass(ctx, hold))
	for _, v := range victims {
		err = errors.Join(err, n.resume(v))
	}
	return err
}

// pause stops a broker; one that has ended by itself is left to lookForDead.
func (n *nemesis) pause(i int) error {
	if err := n.cluster.Brokers[i].Pause(); err != nil {
		return ignoreEnded(err)
	}
	n.paused[i] = true
	return nil
}

func (n *nemesis) resume(i int) error {
	delete(n.paused, i)
	return ignoreEnded(n.cluster.Brokers[i].Resume())
}

func ignoreEnded(err error) error {
	if errors.Is(err, peer.ErrExited) {
		return nil
	}
	return err
}

// heal lets all run again and waits until all serve.
func (n *nemesis) heal(ctx context.Context) error {
	if err := n.lookForDead(); err != nil {
		return err
	}
	n.cluster.Net.Heal()
	for _, b := range n.cluster.Brokers {
		if b.clock == "" {
			continue
		}
		if err := b.setClock(0, 0); err != nil {
			return err
		}
	}
	for i := range n.cluster.Brokers {
		if n.paused[i] {
			if err := n.resume(i); err != nil {
				return err
			}
		}
		if n.down[i] {
			if err := n.launch(i); err != nil {
				return err
			}
		}
	}
	return n.cluster.all(func(b *Broker) error { return b.Await(ctx) })
}

// lookForMoves puts all replicas back.
func (n *nemesis) lookForMoves(ctx context.Context) {
	if !n.moved.Load() {
		return
	}
	if err := n.settle(ctx); err != nil {
		n.rec.fatal("cluster", "", err.Error())
	}
}

// lookForPanics tells of what no log of a broker may hold.
func (n *nemesis) lookForPanics() {
	for i, b := range n.cluster.Brokers {
		text := peer.Tail(b.Log, 1<<30)
		for _, word := range []string{"panic:", "fatal error:", "WARNING: DATA RACE"} {
			if at := strings.Index(text, word); at >= 0 {
				n.rec.fatal(fmt.Sprint("broker-", i+1), "", "its log says: "+text[at:min(len(text), at+600)])
			}
		}
	}
}
