package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/troupe-broker/troupe/bench/load"
	"github.com/troupe-broker/troupe/bench/report"
)

// trialLine is the outcome of one trial for one client.
type trialLine struct {
	Row        string       `json:"row"`
	Target     string       `json:"target"`
	Class      report.Class `json:"class"`
	Fault      string       `json:"fault"`
	Client     string       `json:"client"`
	Trial      int          `json:"trial"`
	Controller int32        `json:"controller"`
	Leader     int32        `json:"leader"`
	Victim     int32        `json:"victim"`
	At         time.Time    `json:"at"` // of the fault
	// Gap is what counts, Quiet the longest time between two acknowledgements in the second before the fault.
	Gap   time.Duration `json:"gap_ns"`
	Quiet time.Duration `json:"quiet_ns"`
	// Shown is when the first broker named another leader, from the fault on; 0: none did.
	Shown time.Duration `json:"shown_ns,omitempty"`
	// Whole is how long, from when the broker came back, until all replicas were in sync.
	Whole time.Duration `json:"whole_ns"`
}

// The clients.
const (
	clientRaw     = "raw"
	clientPatient = "franz-go"
)

const (
	// steadyFor is how long writes flow before a fault and after it, pauseMax what interrupts them.
	steadyFor = time.Second
	pauseMax  = 150 * time.Millisecond
	// gapMax is when a trial is given up.
	gapMax = 2 * time.Minute
	// chasePause is between an answer and the raw client's next request.
	chasePause = time.Millisecond
)

// failover makes all trials of a target, one cluster for each world.
func (b *bench) failover(ctx context.Context, name string) error {
	for _, w := range []world{{}, {cut: true}, {gossip: true}} {
		var here []fault
		for _, f := range b.faults {
			if f.world() == w && (name == nameTroupe || !f.gossip) {
				here = append(here, f)
			}
		}
		if len(here) == 0 {
			continue
		}
		t, err := b.startTrio(ctx, name, w)
		if err != nil {
			return err
		}
		for _, f := range here {
			for n := range b.trials {
				if err := b.trial(ctx, t, f, n); err != nil {
					return errors.Join(fmt.Errorf("%s, %s, trial %d: %w", name, f.text, n, err), t.stop())
				}
			}
		}
		if err := t.stop(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) trial(ctx context.Context, t *trio, f fault, n int) error {
	controller, err := t.awaitWhole(ctx)
	if err != nil {
		return err
	}
	leader, victim := f.cast(controller, t.Nodes, n)
	b.topics++
	topic, other := fmt.Sprintf("raw-%d", b.topics), fmt.Sprintf("patient-%d", b.topics)
	topics := []string{topic}
	if b.patient {
		topics = append(topics, other)
	}
	for _, name := range topics {
		if err := t.createTopic(ctx, name, 1, leader, b.failoverClass); err != nil {
			return err
		}
	}
	if now, err := t.awaitWhole(ctx, topics...); err != nil || now != controller {
		return errors.Join(fmt.Errorf("the controller has moved from broker %d to %d before the fault", controller, now), err)
	}

	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	writers := b.write(running, cancel, t, topic, other)
	line := trialLine{
		Row: rowFailover, Target: t.name, Class: b.failoverClass, Fault: f.name, Trial: n,
		Controller: controller, Leader: leader, Victim: victim,
	}
	err = b.strike(running, t, f, line, writers, topics)
	cancel(nil)
	writers.running.Wait()
	if err != nil {
		return err
	}
	for _, name := range topics {
		if err := t.deleteTopic(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// writers are the clients of one trial.
type writers struct {
	running      sync.WaitGroup
	raw, patient history
	began        time.Time

	mu  sync.Mutex
	led []load.Leader
}

func (b *bench) write(ctx context.Context, fail context.CancelCauseFunc, t *trio, topic, other string) *writers {
	w := &writers{began: time.Now()}
	w.running.Go(func() {
		fail(load.Chase{
			Addrs: t.Addrs(), Topic: topic, RecordBytes: b.recordBytes, Pause: chasePause, Poll: b.poll,
			Acked: func(a load.Ack) { w.raw.add(a.At) },
			Led: func(l load.Leader) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.led = append(w.led, l)
			},
		}.Run(ctx))
	})
	if b.patient {
		w.running.Go(func() { fail(writePatiently(ctx, t, other, make([]byte, b.recordBytes), &w.patient)) })
	}
	return w
}

// shown is when a broker first named another leader than before, after a fault.
func (w *writers) shown(from time.Time, before int32) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.led {
		if l.At.After(from) && l.Broker >= 0 && l.Broker != before {
			return l.At.Sub(from)
		}
	}
	return 0
}

// strike is the fault with what is before and behind it.
func (b *bench) strike(ctx context.Context, t *trio, f fault, line trialLine, w *writers, topics []string) error {
	clients := map[string]*history{clientRaw: &w.raw}
	if b.patient {
		clients[clientPatient] = &w.patient
	}
	for name, h := range clients {
		if err := awaitFlow(ctx, h, time.Now()); err != nil {
			return fmt.Errorf("%s, before the fault: %w", name, err)
		}
	}
	if b.patient {
		if err := pauseFor(ctx, patientAge-time.Since(w.began)); err != nil {
			return err
		}
	}
	node := t.Node(line.Victim)
	line.At = time.Now()
	if err := f.strike(ctx, t, node); err != nil {
		return err
	}
	lines := map[string]trialLine{}
	for _, name := range []string{clientRaw, clientPatient} {
		h, ok := clients[name]
		if !ok {
			continue
		}
		if err := awaitFlow(ctx, h, line.At); err != nil {
			return errors.Join(fmt.Errorf("%s, after broker %d was lost: %w", name, line.Victim, err), f.heal(ctx, t, node))
		}
		acks := h.copied()
		one := line
		one.Client, one.Gap, one.Quiet = name, gap(acks, line.At, time.Now()), gap(acks, line.At.Add(-steadyFor), line.At)
		lines[name] = one
	}
	back := time.Now()
	if err := f.heal(ctx, t, node); err != nil {
		return err
	}
	if _, err := t.awaitWhole(ctx, topics...); err != nil {
		return err
	}
	for _, name := range []string{clientRaw, clientPatient} {
		one, ok := lines[name]
		if !ok {
			continue
		}
		one.Whole, one.Shown = time.Since(back)-wholeFor, w.shown(line.At, line.Leader)
		fmt.Printf("  %-8s %-11s trial %2d  %-8s gap %8.1f ms  (before %5.1f ms, another leader shown after %7.1f ms, whole after %.1f s)\n", t.name, f.name,
			line.Trial, name, ms(one.Gap), ms(one.Quiet), ms(one.Shown), one.Whole.Seconds())
		if err := b.raw.add(one); err != nil {
			return err
		}
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// awaitFlow waits until acknowledgements have come for steadyFor without a pause, all of them after from.
func awaitFlow(ctx context.Context, h *history, from time.Time) error {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		now := time.Now()
		since := h.flowing(now)
		if !since.IsZero() && since.Before(from) {
			since = from
		}
		if !since.IsZero() && now.Sub(since) >= steadyFor {
			return nil
		}
		if now.Sub(from) > gapMax {
			return fmt.Errorf("no steady acknowledgements within %v", gapMax)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
	}
}
