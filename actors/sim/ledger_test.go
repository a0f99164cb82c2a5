package sim_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors/sim"
)

var (
	ledgerFlag = flag.String("ledger", "", "run -seeds seeds from -from on, of one broker (one), of several (several), of several that are long at work (long) or whose power fails (power), and append a line to -results; with -seed: that one only, as others do")
	commitFlag = flag.String("commit", "unknown", "with -ledger: the commit that is run")
	resultFlag = flag.String("results", "", "with -ledger: the file that gets the line")
)

// planners make the plans of the kinds of seeds that ledgers are kept of.
var planners = map[string]func(seed uint64) *sim.Plan{"one": sim.NewPlan, "several": sim.NewClusterPlan, "long": sim.NewLongClusterPlan, "power": sim.NewPowerPlan}

// TestLedger runs a range of seeds and writes down what came of it, when it is asked to (make seeds).
func TestLedger(t *testing.T) {
	if *ledgerFlag == "" {
		return
	}
	plan, known := planners[*ledgerFlag]
	if !known {
		t.Fatalf("-ledger=%s: one of %s", *ledgerFlag, slices.Sorted(maps.Keys(planners)))
	}
	if *seedFlag >= 0 {
		replay(t, plan(uint64(*seedFlag)))
		return
	}
	began, failed := cpu(t), []int64{}
	for seed := *fromFlag; seed < *fromFlag+int64(*seedsFlag); seed++ {
		p := plan(uint64(seed))
		out := sim.Run(p, sim.Options{})
		if out.Failure == nil {
			continue
		}
		failed = append(failed, seed)
		t.Errorf("seed %d: %v", seed, out.Failure)
		if *shrinkFlag == 0 {
			continue
		}
		small, runs := sim.Shrink(p, out.Failure.Invariant, *shrinkFlag)
		t.Logf("the smallest plan of seed %d that breaks this, after %d runs (save it, then -plan=FILE tells its story):\n%v", seed, runs, small)
	}
	line := fmt.Sprintf("%s %-7s seeds %d to %d: %d failed %v, %.0f CPU s, %s\n", *commitFlag, *ledgerFlag, *fromFlag, *fromFlag+int64(*seedsFlag)-1,
		len(failed), failed, (cpu(t) - began).Seconds(), time.Now().UTC().Format(time.DateOnly))
	t.Log(line)
	if *resultFlag == "" {
		return
	}
	f, err := os.OpenFile(*resultFlag, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(line); errors.Join(err, f.Close()) != nil {
		t.Fatal(err)
	}
}

// cpu is the time that the process has used of its cores.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestALongPlanHasMoreOfTheSame: eight times the work, the faults of the short plan first, and others up to the end.
func TestALongPlanHasMoreOfTheSame(t *testing.T) {
	late := 0
	for seed := range uint64(20) {
		short, long := sim.NewClusterPlan(seed), sim.NewLongClusterPlan(seed)
		if long.Duration != 8*short.Duration || len(long.Clients) != len(short.Clients) || long.Brokers != short.Brokers {
			t.Errorf("seed %d: %v\n%v", seed, short, long)
		}
		if n := len(short.Faults); len(long.Faults) < n || !slices.Equal(long.Faults[:n], short.Faults) {
			t.Errorf("seed %d: %v\n%v", seed, short, long)
		}
		for _, f := range long.Faults {
			if f.At > 7*short.Duration {
				late++
			}
		}
		if back, err := sim.ParsePlan(long.String()); err != nil || back.String() != long.String() {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	if late == 0 {
		t.Error("nothing goes wrong in the last part")
	}
}
