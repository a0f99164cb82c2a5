package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// buildOnce compiles the binary for the tests that need a process, or takes the one that TROUPE_TEST_BINARY names.
var buildOnce = sync.OnceValues(func() (string, error) {
	if given, ok := os.LookupEnv("TROUPE_TEST_BINARY"); ok {
		return filepath.Abs(given)
	}
	binary := filepath.Join(scratch, "troupe")
	out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", binary, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the binary: %w\n%s", err, out)
	}
	return binary, nil
})

// scratch is where the binary goes.
var scratch string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if scratch, err = os.MkdirTemp("", "troupe-cmd-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() {
			if err := os.RemoveAll(scratch); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
		return m.Run()
	}())
}

func builtBinary(t *testing.T) string {
	t.Helper()
	path, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// process is one `troupe serve` with what it said when it was ready.
type process struct {
	served
	cmd    *exec.Cmd
	began  time.Time
	stderr string // file
	exited chan struct{}
}

// environment is this process's own without our variables, which would set keys.
func environment(add ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TROUPE_") {
			env = append(env, v)
		}
	}
	return append(env, add...)
}

// launch starts `troupe serve` with arguments. It does not wait.
func launch(t *testing.T, args ...string) (*process, *bufio.Reader) {
	t.Helper()
	p := &process{stderr: filepath.Join(t.TempDir(), "stderr"), exited: make(chan struct{})}
	log, err := os.Create(p.stderr)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(builtBinary(t), append([]string{"serve", "-o", "json"}, args...)...)
	p.cmd.Env = environment()
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(out)
	t.Cleanup(func() {
		select {
		case <-p.exited:
		default:
			p.kill(t)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the broker printed:\n%s", p.log(t))
		}
	})
	return p, reader
}

// start launches a broker on free ports and waits until it says that it is ready.
func start(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p, out := launch(t, append([]string{"--listen", "127.0.0.1:0", "--data-dir", dir, "-X", "metrics.listen=127.0.0.1:0"}, args...)...)
	line, err := out.ReadBytes('\n')
	if err != nil {
		p.wait(t)
		t.Fatalf("the broker said nothing: %v\n%s", err, p.log(t))
	}
	if err := json.Unmarshal(line, &p.served); err != nil {
		t.Fatalf("the broker said %q: %v", line, err)
	}
	return p
}

func (p *process) addr() string { return p.Listeners[0] }

func (p *process) log(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(p.stderr)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// wait reaps the process and returns its exit code, -1 when a signal ended it.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	err := p.cmd.Wait()
	close(p.exited)
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// stop ends the broker in order and wants exit code 0.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	late := time.AfterFunc(30*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	if code := p.wait(t); code != exitDone {
		t.Fatalf("the broker exited with %d\n%s", code, p.log(t))
	}
}

func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	p.wait(t)
}

// status reads a number of kilobytes from /proc.
func (p *process) status(t *testing.T, name string) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s in the process's status", name)
	return 0
}

// cli runs a command line against the broker and wants it to succeed.
func (p *process) cli(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	r := troupe(t, stdin, nil, append(args, "--bootstrap", p.addr())...)
	if r.code != exitDone {
		t.Fatalf("troupe %s: exit %d\n%s", strings.Join(args, " "), r.code, r.err)
	}
	return r.out
}

// bounded gives a test's network calls an end.
func bounded(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// launchCLI runs another command of the binary and gives its output as it comes.
func launchCLI(t *testing.T, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), builtBinary(t), args...)
	cmd.Env = environment()
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}
