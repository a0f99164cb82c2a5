package sim_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/sim"
)

var planFlag = flag.String("plan", "", "run the plan in this file, and print its story")

// readPlan reads the plan in a file.
func readPlan(t *testing.T, name string) *sim.Plan {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := sim.ParsePlan(string(b))
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", name, err))
	}
	return p
}

// TestStories plays the plans in testdata/stories: interleavings that the design has an answer to, each small enough to be
// read. A story holds when no invariant breaks and everything that it expects was seen, so that it is known to have
// happened.
func TestStories(t *testing.T) {
	names, err := filepath.Glob("testdata/stories/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	if *planFlag != "" {
		names = []string{*planFlag}
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			p := readPlan(t, name)
			out, log := runLogged(p)
			told := strings.Join(out.Story, "\n")
			if *planFlag != "" {
				t.Logf("%s\n%s\n%v", log, told, out.Counts)
			}
			if out.Failure != nil {
				t.Fatalf("%v\n%s", out.Failure, told)
			}
			for _, e := range p.Expect {
				n := out.Counts[e.Reached]
				if e.Logged != "" {
					n = strings.Count(log, e.Logged)
				}
				if n < max(e.Times, 1) && !e.Never || n > 0 && e.Never {
					t.Errorf("%+v: seen %d times\n%s\n%v", e, n, told, out.Counts)
				}
			}
		})
	}
}

// runLogged runs a plan and returns what the broker logged, too.
func runLogged(p *sim.Plan) (*sim.Outcome, string) {
	var log bytes.Buffer
	out := sim.Run(p, sim.Options{Log: zerolog.New(&log).Level(zerolog.DebugLevel)})
	return out, log.String()
}

// TestSeedsThatOnceFailed runs the seeds in testdata/seeds.txt.
func TestSeedsThatOnceFailed(t *testing.T) {
	f, err := os.Open("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(f)
	n := 0
	for lines.Scan() {
		if line := lines.Text(); line != "" && line[0] != '#' {
			number, why, _ := strings.Cut(line, " ")
			seed, err := strconv.ParseUint(number, 10, 64)
			if err != nil || why == "" {
				t.Fatalf("%q is no seed with words: %v", line, err)
			}
			n++
			if out := sim.Run(sim.NewPlan(seed), sim.Options{}); out.Failure != nil {
				t.Errorf("seed %d (%s): %v", seed, why, out.Failure)
			}
		}
	}
	if err := lines.Err(); err != nil || n == 0 {
		t.Error(n, err)
	}
}

// TestAPlanIsItsText: what a plan's text says is the whole plan.
func TestAPlanIsItsText(t *testing.T) {
	for seed := range uint64(300) {
		p := sim.NewPlan(seed)
		q, err := sim.ParsePlan(p.String())
		if err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, p)
		}
		if q.String() != p.String() {
			t.Fatalf("seed %d:\n%v\ncame back as\n%v", seed, p, q)
		}
		if seed > 5 {
			continue
		}
		if a, b := sim.Run(p, sim.Options{}), sim.Run(q, sim.Options{}); a.Hash != b.Hash {
			t.Errorf("seed %d: the plan runs as %x, its text as %x", seed, a.Hash, b.Hash)
		}
	}
}

func TestABadPlanIsRefusedWithWords(t *testing.T) {
	for text, want := range map[string]string{
		"tree green":                        `line 1: nobody knows "tree"`,
		"seed 1\nfault fire at=1s":          `line 2: "fire" is none of`,
		"client admin colour=red":           `nobody knows "colour"`,
		"work for=soon":                     `for: time: invalid duration`,
		"topic t0 partitions=many":          `invalid syntax`,
		`fault kill before="sync`:           `before: invalid syntax`,
		"fault kill at":                     `"at" is no name=value`,
		"client idempotent acks=1000000000": `value out of range`,
	} {
		if _, err := sim.ParsePlan(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// lyingDisk is a world with a bug of its own, in the disk: a sync returns and has done nothing, and the power fails later.
const lyingDisk = `seed 5
promise synced
work for=800ms segment=1500
disk writeback=3
broker log.dir=/data
broker listeners=PLAINTEXT://broker.example:9092
broker metrics.listen=""
broker log.segment.bytes=1500
broker log.index.interval.bytes=0
broker validation.depth=full
broker broker.heartbeat.interval.ms=500
topic t0 partitions=2 write.caching=false flush.messages=1
topic t1 partitions=1 write.caching=false retention.ms=500
client told number=0 pause=50ms patience=2s
client idempotent number=1 pause=15ms patience=2s acks=-1 inflight=3 size=300
client idempotent number=2 pause=30ms patience=2s acks=-1 inflight=2 size=300 codec=1
client plain number=3 pause=50ms patience=2s acks=-1 inflight=1 size=300
client consumer number=4 pause=50ms patience=2s sessions=true
client curious number=5 pause=100ms patience=2s
client hostile number=6 pause=100ms patience=2s
fault cut number=0 at=100ms seed=1
fault lose-answer number=1 at=200ms seed=2
fault kill number=2 at=250ms pause=5ms
fault slow-disk number=3 at=300ms for=100ms
fault broken-disk number=4 at=100ms for=2s rule="sync *.log from 1: lie"
fault hold number=5 at=400ms for=50ms seed=3
fault power number=6 at=700ms pause=5ms seed=3
fault noise number=7 at=500ms seed=4
`

// TestAFailureIsMadeSmall: a failing world with many clients, faults and settings shrinks to the few that it takes.
func TestAFailureIsMadeSmall(t *testing.T) {
	p, err := sim.ParsePlan(lyingDisk)
	if err != nil {
		t.Fatal(err)
	}
	broken := sim.Run(p, sim.Options{}).Failure
	if broken == nil {
		t.Fatalf("nothing breaks on a disk that lies:\n%v", p)
	}
	small, runs := sim.Shrink(p, broken.Invariant, 300)
	again := sim.Run(small, sim.Options{})
	if again.Failure == nil || again.Failure.Invariant != broken.Invariant {
		t.Fatalf("the small plan gives %v, not %v\n%v", again.Failure, broken, small)
	}
	t.Logf("%v, after %d runs:\n%v\n%s\n%v", broken.Invariant, runs, small, strings.Join(again.Story, "\n"), again.Failure)
	// Nothing that is left can go, but for the first client, which creates the topics.
	lines := strings.SplitAfter(small.String(), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "fault ") && !strings.HasPrefix(line, "client ") || strings.HasPrefix(line, "client told ") {
			continue
		}
		q, err := sim.ParsePlan(strings.Join(slices.Delete(slices.Clone(lines), i, i+1), ""))
		if err != nil {
			t.Fatal(err)
		}
		if o := sim.Run(q, sim.Options{}); o.Failure != nil && o.Failure.Invariant == broken.Invariant {
			t.Errorf("it breaks without this, too: %s", line)
		}
	}
	if len(small.Faults) > 3 || len(small.Clients) > 4 || len(small.Topics) != 1 || strings.Count(small.String(), "\n") > 18 {
		t.Errorf("it could be smaller:\n%v", small)
	}
	if q, err := sim.ParsePlan(small.String()); err != nil || q.String() != small.String() {
		t.Errorf("the small plan is not its text: %v", err)
	}
}
