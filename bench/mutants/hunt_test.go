package mutants

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	mutantsFlag = flag.String("mutants", "", "hunt the mutants whose names match")
	suiteFlag   = flag.String("suite", "", "only those of this suite: actors/sim, several or group")
	seedsFlag   = flag.Int("seeds", 10_000, "give a mutant up after so many seeds")
	resultsFlag = flag.String("results", "", "append a line for each mutant hunted to this file")
	playedFlag  = flag.Bool("played", false, "ask stories and seeds only, also of mutants that have a test of their own")
)

// TestMutants hunts mutants, when it is asked to.
func TestMutants(t *testing.T) {
	if *mutantsFlag == "" {
		return // `make mutants` does, for hours
	}
	want := regexp.MustCompile(*mutantsFlag)
	for i := range suites {
		s := &suites[i]
		list, err := s.read()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			if want.MatchString(m.name) && (*suiteFlag == "" || *suiteFlag == s.called()) {
				hunt(t, s, m)
			}
		}
	}
}

func hunt(t *testing.T, s *suite, m *mutant) {
	t.Helper()
	began := time.Now()
	k, err := s.hunt(t, m)
	if err != nil {
		t.Errorf("%s: %v", m.name, err)
		return
	}
	line := fmt.Sprintf("| %s | %d | %s | %s |", m.name, m.bug, m.why, k)
	t.Logf("%s %v", line, time.Since(began).Round(time.Second))
	if !k.killed {
		t.Errorf("%s survives %d seeds", m.name, k.seeds)
	}
	if *resultsFlag == "" {
		return
	}
	f, err := os.OpenFile(*resultsFlag, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(f, line); errors.Join(err, f.Close()) != nil {
		t.Fatal(err)
	}
}

// kill is what became of a mutant.
type kill struct {
	killed bool
	began  bool
	where  string // the folder whose tests killed it
	seeds  int    // it took; 0: a story or a conversation was enough
	by     string
}

// String is the last three columns of the table.
func (k kill) String() string {
	switch {
	case !k.killed:
		return fmt.Sprintf("**survives** | | %d", k.seeds)
	case k.seeds == 0 && strings.Contains(k.by, "(story "): // TestHunt's
		return fmt.Sprintf("%s | %s | story", k.by, k.where)
	case k.seeds == 0:
		return fmt.Sprintf("%s | %s | conversation", k.by, k.where)
	}
	return fmt.Sprintf("%s | %s | %d", k.by, k.where, k.seeds)
}

// hunt builds the mutant and runs it: seed by seed, and then with all other tests.
func (s *suite) hunt(t *testing.T, m *mutant) (kill, error) {
	t.Helper()
	dir := t.TempDir()
	overlay, err := m.overlay(dir)
	if err != nil {
		return kill{}, err
	}
	build := func(dir string) (string, error) {
		binary := filepath.Join(t.TempDir(), "mutant.test")
		cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, ".")
		cmd.Dir = filepath.Join(root, dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("it does not compile: %w\n%s", err, out)
		}
		return binary, nil
	}
	if m.test != "" && !*playedFlag {
		binary, err := build(m.dir)
		if err != nil {
			return kill{}, err
		}
		return others(t.Context(), m.dir, binary, "-test.run=^"+m.test+"$")
	}
	hunters, last := s.hunters(m), kill{}
	binaries := make([]string, len(hunters))
	for i, dir := range hunters {
		if binaries[i], err = build(dir); err != nil {
			return kill{}, err
		}
		k, err := seeds(t.Context(), dir, binaries[i], s.tests[dir])
		if err != nil || k.killed {
			return k, err
		}
		last.seeds += k.seeds
	}
	if *playedFlag {
		return last, nil
	}
	if dir := path.Dir(m.changes[0].file); !slices.Contains(hunters, dir) {
		// The storey below has models and twins of its own.
		binary, err := build(dir)
		if err != nil {
			return kill{}, err
		}
		if k, err := others(t.Context(), dir, binary, "-test.run=."); err != nil || k.killed {
			return k, err
		}
	}
	for i, dir := range hunters {
		k, err := others(t.Context(), dir, binaries[i], "-test.skip=^"+s.tests[dir]+"$")
		if err != nil || k.killed {
			return k, err
		}
	}
	return last, nil
}

// stuckAfter is how long one seed may take.
const stuckAfter = 5 * time.Minute

var (
	subtest = regexp.MustCompile(`^=== RUN +\w+/[^/]+$`)
	said    = regexp.MustCompile(`^ +\w+_test\.go:\d+: (.*)`)
	failed  = regexp.MustCompile(`^ *--- FAIL: (\S+)`)
)

// seeds runs a mutant's binary until it fails, dies or is stuck. A seed is a subtest, or a line of TestHunt; what is said last tells the rule that broke.
func seeds(ctx context.Context, dir, binary, test string) (kill, error) {
	args := []string{"-test.run=^" + test + "$", "-test.timeout=0", "-test.v", "-test.failfast", fmt.Sprint("-seeds=", *seedsFlag)}
	if strings.HasPrefix(test, "TestHunt") {
		args = append(args, "-hunt")
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = filepath.Join(root, dir)
	// A world is one goroutine, and garbage before long: to collect it costs more than the world itself.
	cmd.Env = append(os.Environ(), "GOGC=off", "GOMEMLIMIT=2GiB")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return kill{}, err
	}
	if err := cmd.Start(); err != nil {
		return kill{}, err
	}
	k, words := kill{where: dir}, ""
	stuck := false
	watch := time.AfterFunc(stuckAfter, func() {
		stuck = true
		_ = cmd.Process.Kill() // it may have ended
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch {
		case word == "story":
			k.began = true
			watch.Reset(stuckAfter)
		case word == "seed" || subtest.MatchString(lines.Text()):
			k.began = true
			k.seeds++
			watch.Reset(stuckAfter)
		case word == "killed":
			k.killed, k.by = true, rest
		case failed.MatchString(lines.Text()):
			k.killed = true
		case strings.HasPrefix(word, "panic:"): // testing prints a failed test's panic here
			words = "the process lives: " + rest
		default:
			if m := said.FindStringSubmatch(lines.Text()); m != nil {
				words = m[1]
			}
		}
	}
	err = cmd.Wait()
	watch.Stop()
	if i := strings.Index(errs.String(), "panic: "); i >= 0 {
		line, _, _ := strings.Cut(errs.String()[i:], "\n")
		words = "the process lives: " + line
	}
	switch {
	case k.killed && k.by != "":
	case stuck:
		k.killed, k.by = true, "a seed comes to an end"
	case err != nil && k.began:
		k.killed, k.by = true, brief(words)
	case err != nil:
		return k, fmt.Errorf("%w: %s", err, errs.String())
	}
	return k, nil
}

var (
	place  = regexp.MustCompile(`^(seed \d+( step \d+)?: |at \d+ ms: |consumer group \S+ )+`)
	rule   = regexp.MustCompile(`(invariant|bug) \d+: `)
	number = regexp.MustCompile(`\d+`)
)

// brief is what a failure says without what is special to one.
func brief(words string) string {
	words = place.ReplaceAllString(words, "")
	name := ""
	if at := rule.FindStringIndex(words); at != nil {
		name, words = words[at[0]:at[1]], words[at[1]:]
	}
	words = strings.ReplaceAll(number.ReplaceAllString(words, "N"), "|", "/")
	if len(words) > 70 {
		words = words[:strings.LastIndexByte(words[:70], ' ')] + " …"
	}
	return name + words
}

// others runs the tests that are not played by seeds.
func others(ctx context.Context, dir, binary, which string) (kill, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*stuckAfter)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, which, "-test.failfast", "-test.short")
	cmd.Dir = filepath.Join(root, dir)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return kill{}, nil
	}
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		return kill{}, err
	}
	by := "the tests come to an end"
	for line := range strings.SplitSeq(string(out), "\n") {
		if m := failed.FindStringSubmatch(line); m != nil {
			by = m[1] // the innermost comes last
		}
	}
	return kill{killed: true, where: dir, by: by}, nil
}
