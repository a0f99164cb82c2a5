package sim_test

import (
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/actors/sim"
)

// TestALieIsSeenWithoutAPowerCut: a sync that does nothing and returns success is found on the platter, although nothing that it was to save is ever lost.
func TestALieIsSeenWithoutAPowerCut(t *testing.T) {
	p, err := sim.ParsePlan(lyingDisk)
	if err != nil {
		t.Fatal(err)
	}
	p.Faults = slices.DeleteFunc(p.Faults, func(f sim.FaultPlan) bool { return f.Kind == sim.Power })
	p.Last = "kill"
	out := sim.Run(p, sim.Options{})
	if out.Failure == nil || out.Failure.Invariant != "what counts as durable is on the platter" {
		t.Errorf("%v", out.Failure)
	}
}
