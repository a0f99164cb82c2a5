package peer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shell(t *testing.T, script string, grace time.Duration) *Process {
	t.Helper()
	p, err := Start(Command{Path: "/bin/sh", Args: []string{"-c", script}, Output: filepath.Join(t.TempDir(), "log"), Grace: grace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestAProcessThatHeedsTheRequestStopsInOrder(t *testing.T) {
	p := shell(t, `trap 'exit 7' TERM; echo up; while :; do sleep 0.02; done`, time.Minute)
	awaitOutput(t, p, "up")
	if err := p.Err(); err != nil {
		t.Fatalf("it runs, and yet: %v", err)
	}
	if err := p.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if code := p.ExitCode(); code != 7 {
		t.Errorf("exit code %d, want the 7 of its trap", code)
	}
	if !errors.Is(p.Err(), ErrExited) {
		t.Errorf("Err after the end = %v", p.Err())
	}
	if err := p.Stop(context.Background()); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
}

func TestAProcessThatIgnoresTheRequestIsKilledAfterTheGraceTime(t *testing.T) {
	p := shell(t, `trap '' TERM; echo up; while :; do sleep 0.02; done`, 100*time.Millisecond)
	awaitOutput(t, p, "up")
	err := p.Stop(context.Background())
	if err == nil || !strings.Contains(err.Error(), "did not stop within 100ms") {
		t.Fatalf("Stop = %v", err)
	}
	if code := p.ExitCode(); code != -1 {
		t.Errorf("exit code %d of a killed process, want -1", code)
	}
}

func TestNoSignalGoesToAPidThatIsNoLongerOurs(t *testing.T) {
	p := shell(t, `exit 0`, time.Second)
	<-p.Exited()
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, ErrExited) {
		t.Errorf("Signal after the end = %v, want ErrExited", err)
	}
	if _, err := p.Usage(); !errors.Is(err, ErrExited) {
		t.Errorf("Usage after the end = %v, want ErrExited", err)
	}
}

func TestAMissingProgramIsAnErrorOfStart(t *testing.T) {
	if _, err := Start(Command{Path: "/nonexistent/broker", Output: filepath.Join(t.TempDir(), "log")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Start = %v, want a wrapped ErrNotExist", err)
	}
}

func TestUsageSeesTheWorkOfAChild(t *testing.T) {
	p := shell(t, `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; while :; do sleep 0.02; done`, time.Second)
	before, err := p.Usage()
	if err != nil {
		t.Fatal(err)
	}
	awaitOutput(t, p, "done")
	after, err := p.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if spent := after.Sub(before); spent.CPU() <= 0 {
		t.Errorf("a loop of 300,000 turns was charged %v", spent.CPU())
	}
	if after.RssAnonBytes <= 0 || after.Threads != 1 {
		t.Errorf("memory %d bytes, %d threads of a running shell", after.RssAnonBytes, after.Threads)
	}
}

func TestStatIsReadAroundAHostileProcessName(t *testing.T) {
	const line = "42 (a) R (b) 1) S 1 2 3 4 5 6 7 8 9 10 150 25 13 14 15 16 17 18 19 20 21"
	u, err := parseStat([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	want := Usage{User: 1500 * time.Millisecond, System: 250 * time.Millisecond, Threads: 17}
	if u != want {
		t.Errorf("parseStat = %+v, want %+v", u, want)
	}
	for _, bad := range []string{"", "42 no parentheses", "42 (short) S 1 2 3", "42 (x) S 1 2 3 4 5 6 7 8 9 10 many 25 13 14 15 16 17"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("parseStat(%q) gave no error", bad)
		}
	}
}

// awaitOutput waits until the child has printed the word.
func awaitOutput(t *testing.T, p *Process, word string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if strings.Contains(Tail(p.log.Name(), 5), word) {
			return
		}
	}
	t.Fatalf("the child never printed %q", word)
}

func TestUsageCountsWhatWasBurntToTheMicrosecond(t *testing.T) {
	before, err := ReadUsage(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var own, now syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		t.Fatal(err)
	}
	const burn = 3 * time.Millisecond // less than a tick
	for spent := time.Duration(0); spent < burn; {
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &now); err != nil {
			t.Fatal(err)
		}
		spent = time.Duration(now.Utime.Nano() + now.Stime.Nano() - own.Utime.Nano() - own.Stime.Nano())
	}
	after, err := ReadUsage(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if got := after.Sub(before).CPU(); got < burn || got > burn+time.Second {
		t.Errorf("%v of CPU time seen where at least %v was burnt", got, burn)
	}
	if after.User < 0 || after.System < 0 {
		t.Errorf("usage %+v has negative parts", after)
	}
}
