package sim_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors/sim"
)

// manyClusters is how many seeds of several brokers are enough to reach everything that they are to reach; a few may miss some of it.
const manyClusters = 200

var clustersFlag = flag.Int("clusters", clustersByDefault, "how many seeds of several brokers to run")

// TestClusterSeeds lets several brokers live through seeds.
func TestClusterSeeds(t *testing.T) {
	if *seedFlag >= 0 {
		replay(t, sim.NewClusterPlan(uint64(*seedFlag)))
		return
	}
	began := time.Now()
	steps, acks := uint64(0), 0
	reached := make(map[string]int)
	for seed := *fromFlag; seed < *fromFlag+int64(*clustersFlag); seed++ {
		out := sim.Run(sim.NewClusterPlan(uint64(seed)), sim.Options{})
		steps += out.Steps
		acks += out.Acks
		for what, n := range out.Counts {
			reached[what] += n
		}
		if out.Failure != nil {
			t.Errorf("seed %d: %v", seed, out.Failure)
		}
	}
	for _, what := range []string{"asked a leader for the end", "a follower told its end", "compacted replicas compared", "key written"} {
		if *clustersFlag >= manyClusters && reached[what] == 0 {
			t.Errorf("nobody has reached: %s", what) // what is held of that holds nothing
		}
	}
	var lines []string
	for what, n := range reached {
		lines = append(lines, fmt.Sprint(what, " ", n))
	}
	slices.Sort(lines)
	t.Logf("%d seeds, %d steps, %d acks, %v\n%s", *clustersFlag, steps, acks, time.Since(began), strings.Join(lines, "\n"))
}

// TestASeedOfSeveralBrokersIsTheSameRunEachTime runs a few seeds twice.
func TestASeedOfSeveralBrokersIsTheSameRunEachTime(t *testing.T) {
	o := sim.Options{}
	for seed := range uint64(6) {
		one, two := sim.Run(sim.NewClusterPlan(seed), o), sim.Run(sim.NewClusterPlan(seed), o)
		if one.Hash != two.Hash || one.Steps != two.Steps {
			t.Errorf("seed %d: hash %x after %d steps, and %x after %d\n%s", seed, one.Hash, one.Steps, two.Hash, two.Steps, parting(sim.NewClusterPlan(seed), o))
		}
	}
}
