package sim_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/actors/sim"
)

var huntFlag = flag.Bool("hunt", false, "run stories and seeds until one fails; print it for the one who hunts (bench/mutants)")

// TestHunt plays the stories, and then seeds until one fails, for bench/mutants.
func TestHunt(t *testing.T) { hunt(t, "*.txt", sim.NewPlan) }

// TestHuntSeveral plays the stories of several brokers, and then seeds of several until one fails.
func TestHuntSeveral(t *testing.T) { hunt(t, "several-*.txt", sim.NewClusterPlan) }

func hunt(t *testing.T, stories string, plan func(seed uint64) *sim.Plan) {
	t.Helper()
	if !*huntFlag {
		return
	}
	names, err := filepath.Glob(filepath.Join("testdata/stories", stories))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		p := readPlan(t, name)
		fmt.Println("story", name)
		if f := sim.Run(p, sim.Options{}).Failure; f != nil {
			fmt.Printf("killed %s (story %s)\n", f.Invariant, strings.TrimSuffix(filepath.Base(name), ".txt"))
			t.Fatal(f)
		}
	}
	for seed := *fromFlag; seed < *fromFlag+int64(*seedsFlag); seed++ {
		fmt.Println("seed", seed)
		if f := sim.Run(plan(uint64(seed)), sim.Options{}).Failure; f != nil {
			fmt.Println("killed", f.Invariant)
			t.Fatal(f)
		}
	}
}
