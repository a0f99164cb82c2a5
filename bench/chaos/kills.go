package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// killTwo kills a leader, then another, and lets both come back in any order.
func killTwo(ctx context.Context, n *nemesis, h *hit) (string, error) {
	s, first, second := h.step, h.leader, n.another(h.leader, h.other)
	what := fmt.Sprintf("broker %d, the leader of %v, and after %s broker %d, for %s", first+1, h.place, ms(s.gap), second+1, ms(s.hold))
	err := errors.Join(n.kill(first), n.pass(ctx, s.gap))
	if second != first {
		err = errors.Join(err, n.kill(second))
	}
	err = errors.Join(err, n.pass(ctx, s.hold))
	back := []int{first, second}
	if s.other/2%2 == 0 {
		slices.Reverse(back)
	}
	err = errors.Join(err, n.launch(back[0]), n.pass(ctx, s.gap))
	if second != first {
		err = errors.Join(err, n.launch(back[1]))
	}
	return what, err
}

// pauseKill lets a leader sleep while its successor comes and dies.
func pauseKill(ctx context.Context, n *nemesis, h *hit) (string, error) {
	s, sleeper := h.step, h.leader
	if err := n.pause(sleeper); err != nil {
		return "", err
	}
	successor, elected, err := n.awaitSuccessor(ctx, h)
	if err != nil {
		return "", err
	}
	what := fmt.Sprintf("broker %d, the leader of %v, paused; broker %d, %s, killed after %v; the first resumed after %v", sleeper+1, h.place, successor+1, elected,
		ms(s.gap), ms(s.hold))
	err = n.pass(ctx, s.gap)
	if successor != sleeper {
		err = errors.Join(err, n.kill(successor))
	}
	err = errors.Join(err, n.pass(ctx, s.hold), n.resume(sleeper), n.pass(ctx, s.gap))
	if successor != sleeper {
		err = errors.Join(err, n.launch(successor))
	}
	return what, err
}

// awaitSuccessor waits until somebody else leads. Where nobody comes it is any other.
func (n *nemesis) awaitSuccessor(ctx context.Context, h *hit) (successor int, how string, err error) {
	for began := time.Now(); time.Since(began) < 9*time.Second; {
		if err := n.pass(ctx, 50*time.Millisecond); err != nil {
			return 0, "", err
		}
		partitions, _ := n.watcher.state()
		if l := int(partitions[h.place].leader) - 1; l >= 0 && l != h.leader {
			return l, "its successor", nil
		}
	}
	return n.another(h.leader, h.other), "nobody was elected", nil
}

// restart stops in order. What a broker says to that is part of the history. One that was launched a moment ago gets the time to hear signals; that it
// serves is not asked for.
func (n *nemesis) restart(ctx context.Context, hold time.Duration, i int) error {
	started, cancel := context.WithTimeout(ctx, 2*time.Second)
	_ = n.cluster.Brokers[i].Await(started)
	cancel()
	n.down[i] = true
	if err := n.cluster.Brokers[i].Stop(ctx); err != nil {
		n.rec.fatal(fmt.Sprint("broker-", i+1), "", "it did not stop in order: "+err.Error())
	}
	return errors.Join(n.pass(ctx, hold), n.launch(i))
}
