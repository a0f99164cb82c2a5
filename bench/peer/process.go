package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Command says what a Process runs.
type Command struct {
	// Path and Args are the program and its arguments, without the program's name.
	Path string
	Args []string
	// Dir is the working directory, Env what is added to this process's environment.
	Dir string
	Env []string
	// Output is the file that receives standard output and standard error; it is created or appended to.
	Output string
	// Stdin, Stdout: when set, the child's standard input or output; Output then receives standard error alone.
	Stdin  io.Reader
	Stdout io.Writer
	// CPUs keeps the child and all its threads on these processors; empty leaves them to the scheduler.
	CPUs []int
	// Namespace is the name of the network namespace that the child lives in; empty: that of this process. See Network.
	Namespace string
	// Grace is how long Stop waits between asking and killing; 0 means 20 s.
	Grace time.Duration
}

// Process is one child that this process started. It is stopped by its pid and by nothing broader, and the kernel
// kills it when its parent dies, so that a bench that crashed leaves no broker behind.
type Process struct {
	name  string
	pid   int
	grace time.Duration
	log   *os.File

	exited chan struct{} // closed after exit and log are settled
	state  *os.ProcessState
	err    error

	stop sync.Once
}

// ErrExited is wrapped by every error that says the child ended on its own.
var ErrExited = errors.New("process has ended")

// Start runs c. The returned process is running, which says nothing of whether it serves yet.
func Start(c Command) (*Process, error) {
	log, err := os.OpenFile(c.Output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", c.Path, err)
	}
	grace := c.Grace
	if grace == 0 {
		grace = 20 * time.Second
	}
	cmd := exec.Command(c.Path, c.Args...) //nolint:noctx // its end is Stop's business, which asks before it kills
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdin = c.Stdin
	cmd.Stdout, cmd.Stderr = log, log
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	// A group of its own: an interrupt typed at the terminal reaches this process, which then stops the child in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}

	p := &Process{name: c.Path, grace: grace, log: log, exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel sends Pdeathsig when the thread that forked ends, so this thread is held as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := startIn(cmd, c.Namespace, c.CPUs); err != nil {
			started <- errors.Join(err, log.Close())
			return
		}
		p.pid = cmd.Process.Pid
		started <- nil
		err := cmd.Wait()
		if _, ok := errors.AsType[*exec.ExitError](err); ok {
			err = nil // how it ended is in the state; an error is what kept us from knowing
		}
		p.state, p.err = cmd.ProcessState, errors.Join(err, log.Close())
		close(p.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	return p, nil
}

// PID is the child's process id. It stays the same after the child has ended.
func (p *Process) PID() int { return p.pid }

// Exited is closed when the child has ended and has been waited for.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// ExitCode is the child's exit code once it has ended: -1 while it runs or when a signal ended it.
func (p *Process) ExitCode() int {
	select {
	case <-p.exited:
		return p.state.ExitCode()
	default:
		return -1
	}
}

// Err says why the child is not running: nil while it runs.
func (p *Process) Err() error {
	select {
	case <-p.exited:
		return errors.Join(fmt.Errorf("%s (pid %d): %w: %s", p.name, p.pid, ErrExited, p.state), p.err)
	default:
		return nil
	}
}

// Signal sends one signal to the child alone. It is an error when the child has ended.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.Err(); err != nil {
		return err
	}
	// Between the check and the kill the child may have ended; its pid is not reused before Wait has returned it to the
	// kernel, and then the answer is ESRCH.
	if err := syscall.Kill(p.pid, s); err != nil {
		return fmt.Errorf("signal %v to %s (pid %d): %w", s, p.name, p.pid, err)
	}
	return nil
}

// Kill ends the child as a crash would, with SIGKILL, and waits for its end.
func (p *Process) Kill() error {
	p.stop.Do(func() {})
	err := p.Signal(syscall.SIGKILL)
	if errors.Is(err, ErrExited) || errors.Is(err, syscall.ESRCH) {
		err = nil
	}
	<-p.exited
	return err
}

// Stop asks the child to end (SIGTERM), waits for the grace time or for ctx, then kills it. It returns when the child
// has ended. A second Stop only waits.
func (p *Process) Stop(ctx context.Context) error {
	var err error
	p.stop.Do(func() {
		err = p.Signal(syscall.SIGTERM)
		if errors.Is(err, ErrExited) || errors.Is(err, syscall.ESRCH) {
			err = nil
			return
		}
		grace := time.NewTimer(p.grace)
		defer grace.Stop()
		select {
		case <-p.exited:
			return
		case <-grace.C:
			err = fmt.Errorf("%s (pid %d) did not stop within %v and was killed", p.name, p.pid, p.grace)
		case <-ctx.Done():
			err = fmt.Errorf("%s (pid %d) was killed: %w", p.name, p.pid, ctx.Err())
		}
		if kill := p.Signal(syscall.SIGKILL); kill != nil && !errors.Is(kill, ErrExited) && !errors.Is(kill, syscall.ESRCH) {
			err = errors.Join(err, kill)
		}
	})
	<-p.exited
	return err
}

// startIn starts cmd in a network namespace, which the child inherits from the calling thread. The caller has locked the thread.
func startIn(cmd *exec.Cmd, namespace string, cpus []int) (err error) {
	if namespace == "" {
		return startOn(cmd, cpus)
	}
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return fmt.Errorf("network namespace of this thread: %w", err)
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	there, err := os.Open(filepath.Join(namespaces, namespace))
	if err != nil {
		return fmt.Errorf("network namespace %s: %w", namespace, err)
	}
	defer func() { err = errors.Join(err, there.Close()) }()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering network namespace %s: %w", namespace, err)
	}
	return errors.Join(startOn(cmd, cpus), unix.Setns(int(home.Fd()), unix.CLONE_NEWNET))
}

// startOn starts cmd with the calling thread's affinity set to cpus, which the child inherits. The caller has locked
// the thread.
func startOn(cmd *exec.Cmd, cpus []int) error {
	if len(cpus) == 0 {
		return cmd.Start()
	}
	var before, during unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("reading the thread's processors: %w", err)
	}
	for _, cpu := range cpus {
		during.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &during); err != nil {
		return fmt.Errorf("pinning to processors %v: %w", cpus, err)
	}
	return errors.Join(cmd.Start(), unix.SchedSetaffinity(0, &before))
}
