package sim_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors/sim"
)

var (
	mutantsFlag     = flag.String("mutants", "", "hunt the mutants whose names match")
	mutantSeedsFlag = flag.Int("mutant-seeds", 10_000, "give a mutant up after so many seeds")
	mutantLogFlag   = flag.String("mutant-results", "", "append a line for each mutant hunted to this file")
	huntFlag        = flag.Bool("hunt", false, "run seeds until one fails; print it for the one who hunts")
)

// mutant is a bug that is put into the broker; see testdata/mutants.txt.
type mutant struct {
	name, why string
	bug       int
	changes   []change
}

// change replaces text of one file.
type change struct{ file, before, after string }

// root is the top of the tree, from here.
const root = "../.."

func readMutants(t *testing.T) []*mutant {
	t.Helper()
	b, err := os.ReadFile("testdata/mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	var list []*mutant
	for i, line := range strings.Split(string(b), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		var m *mutant
		if len(list) > 0 {
			m = list[len(list)-1]
		}
		switch {
		case line == "" || line[0] == '#':
		case word == "mutant":
			list = append(list, &mutant{name: rest})
		case m == nil:
			t.Fatalf("line %d: no mutant before %q", i+1, line)
		case word == "why":
			m.why = rest
		case word == "bug":
			if m.bug, err = strconv.Atoi(rest); err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			}
		case word == "file":
			m.changes = append(m.changes, change{file: rest})
		case len(m.changes) > 0 && strings.ContainsRune("-+|", rune(line[0])):
			c := &m.changes[len(m.changes)-1]
			if line[0] != '+' {
				c.before += line[1:] + "\n"
			}
			if line[0] != '-' {
				c.after += line[1:] + "\n"
			}
		default:
			t.Fatalf("line %d: nobody knows %q", i+1, line)
		}
	}
	return list
}

// apply returns the changed text. The last line of before may be the beginning of one.
func (c change) apply(text string) (string, error) {
	before, after := strings.TrimSuffix(c.before, "\n"), strings.TrimSuffix(c.after, "\n")
	if n := strings.Count(text, before); n != 1 || before == "" {
		return "", fmt.Errorf("%s has this %d times, and should once:\n%s", c.file, n, before)
	}
	return strings.Replace(text, before, after, 1), nil
}

// TestMutantsStillApply keeps testdata/mutants.txt true: what a mutant changes is there, once.
func TestMutantsStillApply(t *testing.T) {
	names := map[string]bool{}
	for _, m := range readMutants(t) {
		if names[m.name] || m.why == "" || len(m.changes) == 0 {
			t.Errorf("%s: a second one of that name, or without words, or without a change", m.name)
		}
		names[m.name] = true
		for _, c := range m.changes {
			b, err := os.ReadFile(filepath.Join(root, c.file))
			if err != nil {
				t.Error(m.name, err)
				continue
			}
			if _, err := c.apply(string(b)); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	}
	if len(names) < 12 {
		t.Errorf("%d mutants", len(names))
	}
}

// TestMutants hunts mutants, when it is asked to.
func TestMutants(t *testing.T) {
	if *mutantsFlag == "" {
		return // `make mutants` does, for hours
	}
	want := regexp.MustCompile(*mutantsFlag)
	for _, m := range readMutants(t) {
		if !want.MatchString(m.name) {
			continue
		}
		began := time.Now()
		k, err := m.hunt(t)
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		line := fmt.Sprintf("| %s | %d | %s | %s |", m.name, m.bug, m.why, k)
		t.Logf("%s %v", line, time.Since(began).Round(time.Second))
		if !k.killed {
			t.Errorf("%s survives %d seeds", m.name, k.seeds)
		}
		if *mutantLogFlag == "" {
			continue
		}
		f, err := os.OpenFile(*mutantLogFlag, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintln(f, line); errors.Join(err, f.Close()) != nil {
			t.Fatal(err)
		}
	}
}

// kill is what became of a mutant.
type kill struct {
	killed bool
	began  bool
	seeds  int // it took; 0: a story was enough
	by     string
}

// String is the last two columns of the table.
func (k kill) String() string {
	if !k.killed {
		return fmt.Sprintf("**survives** | %d", k.seeds)
	}
	return fmt.Sprintf("%s | %d", k.by, k.seeds)
}

// hunt builds the mutant and runs it, seed by seed.
func (m *mutant) hunt(t *testing.T) (kill, error) {
	t.Helper()
	dir := t.TempDir()
	top, err := filepath.Abs(root)
	if err != nil {
		return kill{}, err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for i, c := range m.changes {
		name := filepath.Join(top, c.file)
		from := name
		if earlier, ok := overlay.Replace[name]; ok {
			from = earlier
		}
		b, err := os.ReadFile(from)
		if err != nil {
			return kill{}, err
		}
		text, err := c.apply(string(b))
		if err != nil {
			return kill{}, err
		}
		changed := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			return kill{}, err
		}
		overlay.Replace[name] = changed
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		return kill{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), b, 0o600); err != nil {
		return kill{}, err
	}
	binary := filepath.Join(dir, "sim.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".").CombinedOutput(); err != nil {
		return kill{}, fmt.Errorf("it does not compile: %w\n%s", err, out)
	}
	return runHunt(t, binary)
}

// stuckAfter is how long one seed may take.
const stuckAfter = 5 * time.Minute

// runHunt runs a mutant's binary until it fails, dies or is stuck.
func runHunt(t *testing.T, binary string) (kill, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^TestHunt$", "-test.timeout=0", "-hunt", fmt.Sprint("-seeds=", *mutantSeedsFlag))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return kill{}, err
	}
	if err := cmd.Start(); err != nil {
		return kill{}, err
	}
	k := kill{}
	stuck := false
	watch := time.AfterFunc(stuckAfter, func() {
		stuck = true
		_ = cmd.Process.Kill() // it may have ended
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "story":
			k.began = true
			watch.Reset(stuckAfter)
		case "seed":
			k.seeds++
			watch.Reset(stuckAfter)
		case "killed":
			k.killed, k.by = true, rest
		}
	}
	err = cmd.Wait()
	watch.Stop()
	switch {
	case k.killed:
	case stuck:
		k.killed, k.by = true, "a world comes to an end"
	case err != nil && k.began:
		k.killed, k.by = true, "the process lives"
		if line, _, ok := strings.Cut(errs.String()[max(0, strings.Index(errs.String(), "panic: ")):], "\n"); ok {
			k.by += ": " + line
		}
	case err != nil:
		return k, fmt.Errorf("%w: %s", err, errs.String())
	}
	return k, nil
}

// TestHunt plays the stories, and then seeds until one fails, for TestMutants.
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
