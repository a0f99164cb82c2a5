package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/troupe-broker/troupe/bench/peer"
)

const (
	mebibyte = 1 << 20
	victim   = "victim"
	hostile  = 1000 // connections at a time
)

// swarm is the attackers, in a process of their own and at the lowest priority: what the working client waits for is the
// broker, not our own thousand goroutines beside it.
type swarm struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bytes.Buffer
}

func startSwarm(t *testing.T, addr string) *swarm {
	t.Helper()
	s := &swarm{cmd: exec.CommandContext(t.Context(), os.Args[0]), out: &bytes.Buffer{}}
	s.cmd.Env = append(os.Environ(), "TROUPE_TEST_SWARM="+addr)
	s.cmd.Stdout, s.cmd.Stderr = s.out, os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stdin = stdin
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// stop ends the attackers and returns how many connections they made.
func (s *swarm) stop(t *testing.T) int {
	t.Helper()
	if err := s.stdin.Close(); err != nil {
		t.Error(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Fatalf("the swarm: %v", err)
	}
	made, err := strconv.Atoi(strings.TrimSpace(s.out.String()))
	if err != nil {
		t.Fatalf("the swarm said %q", s.out)
	}
	return made
}

// swarmChild is the main function of that process. It attacks until its input ends.
func swarmChild(addr string) int {
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	attacks := Attacks(victim)
	if only, ok := os.LookupEnv("TROUPE_TEST_ATTACK"); ok { // to find which one hurts
		attacks = slices.DeleteFunc(attacks, func(a Attack) bool { return !strings.Contains(a.Name, only) })
		if len(attacks) == 0 {
			fmt.Fprintf(os.Stderr, "no attack is named like %q\n", only)
			return 1
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // ends with its input, which ends the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fmt.Println(Swarm(ctx, addr, attacks, hostile, 1))
	return 0
}

func TestHostileConnectionsDoNotDisturbAWorkingClient(t *testing.T) {
	seconds := fromEnv(t, "TROUPE_TEST_HOSTILE_SECONDS", 8)
	const (
		interval = 10 * time.Millisecond
		poolSize = 64 * mebibyte
		topic    = victim
	)
	b := startBroker(t, fmt.Sprintf("queued.max.request.bytes=%d", poolSize))
	caching := "true" // the disk's own tail is not what is measured
	if _, err := kadm.NewClient(newClient(t, b.Addr)).CreateTopic(t.Context(), 1, 1, map[string]*string{"write.caching": &caching}, topic); err != nil {
		t.Fatal(err)
	}
	duration := time.Duration(seconds) * time.Second

	alone, err := Behave(t.Context(), b.Addr, topic, interval, duration/2)
	if err != nil {
		t.Fatalf("alone: %v", err)
	}
	before := resources(t, b)

	swarm := startSwarm(t, b.Addr)
	time.Sleep(2 * time.Second) // until all are connected
	among, err := Behave(t.Context(), b.Addr, topic, interval, duration)
	if err != nil {
		t.Errorf("among hostile connections: %v", err)
	}
	during := resources(t, b)
	connections := swarm.stop(t)
	if err := b.Alive(); err != nil {
		t.Fatal(err)
	}

	// Before and after, because the machine's own pace drifts.
	after, err := Behave(t.Context(), b.Addr, topic, interval, duration/2)
	if err != nil {
		t.Fatalf("alone again: %v", err)
	}
	baseline, p99 := max(percentile(alone, 0.99), percentile(after, 0.99)), percentile(among, 0.99)
	t.Logf("%d connections made, %d open; p99 %v alone, %v among them; memory %d MiB before, %d MiB during; descriptors %d before, %d during",
		connections, hostile, baseline, p99, before.memory/mebibyte, during.memory/mebibyte, before.descriptors, during.descriptors)
	if connections < hostile {
		t.Errorf("only %d hostile connections came about", connections)
	}
	// A tail below ten milliseconds is the scheduler's, on a machine that the attackers share. Beside other tests, which
	// take the processors as they like, only starvation shows.
	limit := max(2*baseline, 10*time.Millisecond)
	if _, alone := os.LookupEnv("TROUPE_TEST_ALONE"); !alone {
		limit = max(limit, 2*time.Second)
	}
	if p99 > limit {
		t.Errorf("p99 of the working client is %v, more than %v (alone: %v)", p99, limit, baseline)
	}
	// The pool, its reserved slot (a request of the greatest size), and 64 KiB for each connection.
	if limit := before.memory + poolSize + 100*mebibyte + hostile*64<<10; during.memory > limit {
		t.Errorf("the broker has %d MiB of its own, more than %d", during.memory/mebibyte, limit/mebibyte)
	}
	if !eventually(10*time.Second, func() bool { return resources(t, b).descriptors <= before.descriptors+2 }) {
		t.Errorf("%d descriptors are open, and before there were %d", resources(t, b).descriptors, before.descriptors)
	}
	log, err := os.ReadFile(b.Log)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"panic", "goroutine "} {
		if strings.Contains(string(log), word) {
			t.Errorf("the broker's log has %q:\n%s", word, peer.Tail(b.Log, 40))
		}
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

type resource struct {
	memory      int64
	descriptors int
}

func resources(t *testing.T, b *Broker) resource {
	t.Helper()
	usage, err := peer.ReadUsage(b.PID())
	if err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.PID()))
	if err != nil {
		t.Fatal(err)
	}
	return resource{usage.RssAnonBytes, len(open)}
}

func percentile(times []time.Duration, p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(int(float64(len(sorted))*p), len(sorted)-1)]
}

func eventually(patience time.Duration, holds func() bool) bool {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if holds() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}
