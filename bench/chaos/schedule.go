package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// step is one fault of a schedule.
type step struct {
	at        time.Duration // since the load began
	nemesis   string
	beside    string        // another one that comes with it; empty: none
	partition int           // whose leader or follower it is, by index
	other     int           // a random number for whoever else takes part
	hold      time.Duration // how long a victim stays down or paused
	gap       time.Duration // between two acts of a fault that has several
}

func (s step) String() string {
	if s.beside != "" {
		return fmt.Sprintf("%s beside %s (partition %d, held %v, gap %v)", s.nemesis, s.beside, s.partition, s.hold, s.gap)
	}
	return fmt.Sprintf("%s (partition %d, held %v, gap %v)", s.nemesis, s.partition, s.hold, s.gap)
}

// plan says what comes in the run of a seed, and with which build.
func (o options) plan(seed uint64) (steps []step, with need) {
	names, with := o.deal(seed)
	return schedule(seed, names, 2*o.partitions, o.length), with
}

// schedule draws the faults of one run. The seed decides all of it; whom a fault meets is decided when it comes, by who leads then.
func schedule(seed uint64, names []string, partitions int, length time.Duration) []step {
	random := rand.New(rand.NewPCG(seed, 4))
	known := map[string]fault{}
	for _, f := range nemeses() {
		known[f.name] = f
	}
	between := func(low, high time.Duration) time.Duration {
		return low + time.Duration(random.Int64N(int64(high-low)))
	}
	var companions []string
	for _, name := range names {
		if known[name].beside {
			companions = append(companions, name)
		}
	}
	var steps []step
	var deck []string
	at := between(500*time.Millisecond, 2*time.Second)
	for at < length-2*time.Second {
		if random.IntN(6) == 0 { // a quiet time
			at += between(time.Second, 4*time.Second)
			continue
		}
		if len(deck) == 0 { // each comes before one comes again
			deck = slices.Clone(names)
			random.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		s := step{at: at, nemesis: deck[0], partition: random.IntN(partitions), other: random.IntN(1 << 16), gap: between(0, time.Second)}
		deck = deck[1:]
		switch {
		case known[s.nemesis].lasts == long && random.IntN(2) == 0: // longer than a session
			s.hold = between(6*time.Second, 15*time.Second)
		case known[s.nemesis].lasts == session:
			s.hold = between(7*time.Second, 12*time.Second)
		case known[s.nemesis].lasts == blink:
			s.hold = between(100*time.Millisecond, time.Second)
		case known[s.nemesis].lasts == while || known[s.nemesis].lasts == long:
			s.hold = between(time.Second, 5*time.Second)
		case random.IntN(3) == 0:
			s.hold = between(2*time.Second, 8*time.Second)
		default:
			s.hold = between(0, 2*time.Second)
		}
		if s.nemesis == "restart" {
			s.hold /= 4
		}
		s.hold = min(s.hold, length/4, max(length-at-time.Second, time.Second))
		if len(companions) > 0 && random.IntN(3) == 0 {
			if c := companions[random.IntN(len(companions))]; c != s.nemesis {
				s.beside = c
			}
		}
		steps = append(steps, s)
		at += s.hold + s.gap + between(500*time.Millisecond, 3*time.Second)
	}
	return steps
}
