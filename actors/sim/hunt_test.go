package sim_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/actors/sim"
)

var huntFlag = flag.Bool("hunt", false, "run stories and seeds until one fails; print it for the one who hunts (bench/mutants)")

// TestHunt plays the stories, and then seeds until one fails, for bench/mutants.
func TestHunt(t *testing.T) {
	if !*huntFlag {
		return
	}
	names, err := filepath.Glob("testdata/stories/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := sim.ParsePlan(string(b))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("story", name)
		if f := sim.Run(p, sim.Options{}).Failure; f != nil {
			fmt.Printf("killed %s (story %s)\n", f.Invariant, strings.TrimSuffix(filepath.Base(name), ".txt"))
			t.Fatal(f)
		}
	}
	for seed := *fromFlag; seed < *fromFlag+int64(*seedsFlag); seed++ {
		fmt.Println("seed", seed)
		if f := sim.Run(sim.NewPlan(uint64(seed)), sim.Options{}).Failure; f != nil {
			fmt.Println("killed", f.Invariant)
			t.Fatal(f)
		}
	}
}
