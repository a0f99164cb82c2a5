package sim_test

import (
	"flag"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors/sim"
)

var powersFlag = flag.Int("powers", powersByDefault, "at how many instants the power of all brokers fails")

// TestPowerOfAll cuts the power of all three brokers of a cluster in the strict mode, each time at another instant: nothing that was acknowledged is lost.
//
//	go test ./actors/sim -run TestPowerOfAll -args -powers=1000
func TestPowerOfAll(t *testing.T) {
	if *seedFlag >= 0 {
		replay(t, sim.NewPowerPlan(uint64(*seedFlag)))
		return
	}
	began := time.Now()
	acks, cuts, dark := 0, 0, 0
	for seed := *fromFlag; seed < *fromFlag+int64(*powersFlag); seed++ {
		out := sim.Run(sim.NewPowerPlan(uint64(seed)), sim.Options{})
		if out.Failure != nil {
			t.Errorf("seed %d: %v", seed, out.Failure)
		}
		n := out.Counts["power of all lost"]
		acks, cuts = acks+out.Acks, cuts+n
		if n > 0 && out.Counts["acknowledged before the power failed"] > 0 {
			dark++
		}
	}
	if dark < *powersFlag/2 {
		t.Errorf("in %d of %d worlds something was acknowledged before the power failed", dark, *powersFlag)
	}
	t.Logf("%d worlds, %d cuts, %d of the worlds had acknowledged something before, %d acks, %v", *powersFlag, cuts, dark, acks, time.Since(began))
}
