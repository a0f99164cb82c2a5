package sim_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/sim"
)

var (
	seedFlag   = flag.Int64("seed", -1, "run this seed only, and print its plan and its story")
	seedsFlag  = flag.Int("seeds", seedsByDefault, "how many seeds to run")
	fromFlag   = flag.Int64("from", 0, "the first of them")
	shrinkFlag = flag.Int("shrink", 300, "spend so many runs on making the plan of a seed that failed smaller")
	logFlag    = flag.Bool("log", false, "with -seed: print the log lines of the broker")
)

// replay runs one plan, and prints it and its story; one that breaks something is made small.
func replay(t *testing.T, p *sim.Plan) {
	t.Helper()
	o := sim.Options{}
	if *trace {
		o.Trace = func(e string) { t.Log(e) }
	}
	if *logFlag {
		o.Log = zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.DebugLevel)
	}
	out := sim.Run(p, o)
	t.Logf("%v\n%s\nhash %x, %d steps, %v, %d lives, %d acks\n%v", p, strings.Join(out.Story, "\n"), out.Hash, out.Steps, out.Took, out.Lives, out.Acks, out.Counts)
	if out.Failure != nil {
		small, runs := sim.Shrink(p, out.Failure.Invariant, *shrinkFlag)
		t.Fatalf("%v\nthe smallest plan that breaks this, after %d runs (save it, then -plan=FILE tells its story):\n%v", out.Failure, runs, small)
	}
}

func TestSeeds(t *testing.T) {
	if *seedFlag >= 0 {
		replay(t, sim.NewPlan(uint64(*seedFlag)))
		return
	}
	began := time.Now()
	steps, acks, shrunk := uint64(0), 0, false
	for seed := *fromFlag; seed < *fromFlag+int64(*seedsFlag); seed++ {
		out := sim.Run(sim.NewPlan(uint64(seed)), sim.Options{})
		steps += out.Steps
		acks += out.Acks
		if out.Failure == nil {
			continue
		}
		t.Errorf("seed %d: %v", seed, out.Failure)
		if !shrunk && *shrinkFlag > 0 { // one is enough to look at
			shrunk = true
			small, runs := sim.Shrink(sim.NewPlan(uint64(seed)), out.Failure.Invariant, *shrinkFlag)
			t.Logf("the smallest plan that breaks this, after %d runs (save it, then -plan=FILE tells its story):\n%v", runs, small)
		}
	}
	t.Logf("%d seeds, %d steps, %d acks, %v", *seedsFlag, steps, acks, time.Since(began))
}

// TestASeedIsTheSameRunEachTime runs a few seeds twice. Whatever the broker takes from anywhere but its World, a map's
// order included, shows here.
func TestASeedIsTheSameRunEachTime(t *testing.T) {
	for seed := range uint64(12) {
		one, two := sim.Run(sim.NewPlan(seed), sim.Options{}), sim.Run(sim.NewPlan(seed), sim.Options{})
		if one.Hash != two.Hash || one.Steps != two.Steps {
			t.Errorf("seed %d: hash %x after %d steps, and %x after %d\n%s", seed, one.Hash, one.Steps, two.Hash, two.Steps, parting(sim.NewPlan(seed), sim.Options{}))
		}
	}
}

// parting finds where two runs of a plan part.
func parting(p *sim.Plan, o sim.Options) string {
	var traces [2][]string
	for i := range traces {
		o.Trace = func(e string) { traces[i] = append(traces[i], e) }
		sim.Run(p, o)
	}
	for i := range min(len(traces[0]), len(traces[1])) {
		if traces[0][i] != traces[1][i] {
			return "after " + strings.Join(traces[0][max(0, i-5):i], "\n      ") + "\none  " + traces[0][i] + "\ntwo  " + traces[1][i]
		}
	}
	return "their events are the same"
}
