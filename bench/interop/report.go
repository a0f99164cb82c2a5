package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// checkTimeout bounds one check. It is generous: the machine may be busy, and a check that fails by time says little.
const checkTimeout = 60 * time.Second

// report prints one line a check and counts.
type report struct {
	mu      sync.Mutex // groups of different clients are checked at the same time
	out     io.Writer
	strict  bool // a skip counts as a failure: CI
	passed  int
	failed  int
	skipped int
	started time.Time
}

func newReport(out io.Writer) *report {
	return &report{out: out, strict: os.Getenv("CI") == "true", started: time.Now()}
}

// who names the client in the report's lines.
type who struct{ client, version string }

// check runs one check and reports it; it says whether the check passed, so that what depends on it can be left out.
func (r *report) check(ctx context.Context, w who, name string, run func(ctx context.Context) error) bool {
	return r.checkWithin(ctx, checkTimeout, w, name, run)
}

// checkWithin is check with a bound of its own. Checks may run at the same time; each is reported when it ends.
func (r *report) checkWithin(ctx context.Context, limit time.Duration, w who, name string, run func(ctx context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start := time.Now()
	err := run(ctx)
	took := time.Since(start)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed++
		r.line("FAIL", w, name, took)
		for line := range strings.Lines(strings.TrimRight(err.Error(), "\n")) {
			r.printf("      | %s", strings.TrimRight(line, "\n")+"\n")
		}
		return false
	}
	r.passed++
	r.line("ok", w, name, took)
	return true
}

// eventually tries until it succeeds, for at most five seconds.
func eventually(ctx context.Context, try func() error) error { return within(ctx, 5*time.Second, try) }

// within tries until it succeeds, for at most that long.
func within(ctx context.Context, atMost time.Duration, try func() error) error {
	limit := time.NewTimer(atMost)
	defer limit.Stop()
	retry := time.NewTicker(100 * time.Millisecond)
	defer retry.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-limit.C:
			return err
		case <-ctx.Done():
			return err
		case <-retry.C:
		}
	}
}

// skip reports what cannot be checked here. When the report is strict that is a failure.
func (r *report) skip(w who, name, reason string) {
	if r.strict {
		r.failed++
		r.line("FAIL", w, name, 0)
		r.printf("      | skipped, and CI=true wants it run: %s\n", reason)
		return
	}
	r.skipped++
	r.printf("skip  %-13s %-18s %s: %s\n", w.client, w.version, name, reason)
}

// deviates reports a check that Troupe answers otherwise than Kafka, on purpose. It is neither passed nor failed.
func (r *report) deviates(w who, name string, d deviation) {
	r.printf("dev   %-13s %-18s %s: %s\n", w.client, w.version, name, d)
}

func (r *report) line(verdict string, w who, name string, took time.Duration) {
	r.printf("%-5s %-13s %-18s %-60s %6d ms\n", verdict, w.client, w.version, name, took.Milliseconds())
}

// remark prints a fact that is no verdict.
func (r *report) remark(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.printf("      "+format+"\n", args...)
}

func (r *report) section(name string) {
	r.printf("\n=== %s\n", name)
}

func (r *report) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(r.out, format, args...); err != nil {
		// The verdict cannot be told: that is not a run that passed.
		r.failed++
	}
}

// summary is the last line, in the form that CI counts.
func (r *report) summary() bool {
	r.printf("\n%d s\n%d passed, %d failed", int(time.Since(r.started).Seconds()), r.passed, r.failed)
	if r.skipped > 0 {
		r.printf(", %d skipped", r.skipped)
	}
	r.printf("\n")
	return r.failed == 0 && r.passed > 0
}
