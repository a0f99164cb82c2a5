// Package target runs the servers that the benchmarks compare, each as a process of its
// own, and reads from outside what they used: CPU time and memory are the kernel's
// figures, taken the same way for every server.
package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// AnyCPU leaves a process where the scheduler puts it.
const AnyCPU = -1

// Process is a running server.
type Process struct {
	cmd    *exec.Cmd
	log    *os.File
	exited chan struct{}
	err    error // of Wait, valid once exited is closed
}

// Start runs cmd with its output in logFile and all its threads on the given CPU (or
// AnyCPU). The process must be stopped with Stop.
func Start(cmd *exec.Cmd, cpu int, logFile string) (*Process, error) {
	if err := os.MkdirAll(filepath.Dir(logFile), 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := startOn(cmd, cpu); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", cmd.Path, err), log.Close())
	}
	p := &Process{cmd: cmd, log: log, exited: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// startOn starts cmd from a thread that may only run on cpu; the child inherits that.
// The thread is the child's parent for the parent-death signal, so it must outlive the
// child: it is one that the Go runtime keeps, locked only while it forks.
func startOn(cmd *exec.Cmd, cpu int) error {
	if cpu == AnyCPU {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("pin to CPU %d: %w", cpu, err)
	}
	return errors.Join(cmd.Start(), unix.SchedSetaffinity(0, &before))
}

// PinSelf keeps every thread of this process, present and future, on one CPU.
func PinSelf(cpu int) error {
	var one unix.CPUSet
	one.Set(cpu)
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, &one); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("pin thread %d to CPU %d: %w", tid, cpu, err)
		}
	}
	return nil
}

// PID of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended by itself or by Stop.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Stop sends SIGTERM, after grace SIGKILL, and waits for the end.
func (p *Process) Stop(grace time.Duration) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.exited:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	return p.log.Close()
}

// Kill ends the process as kill -9 does, and waits for the end.
func (p *Process) Kill() error {
	_ = p.cmd.Process.Kill()
	<-p.exited
	return p.log.Close()
}

// WaitFor polls ready until it succeeds; a process that ends first gives its last
// output as the error.
func (p *Process) WaitFor(ctx context.Context, ready func() error) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		if last = ready(); last == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.exited:
			return fmt.Errorf("process ended (%v): %s", p.err, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%w: %w: %s", ctx.Err(), last, p.tail())
		}
	}
}

func (p *Process) tail() string {
	f, err := os.Open(p.log.Name())
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-2000):])
}

// CPU is the processor time a process and its threads have used since its start.
type CPU struct{ User, System time.Duration }

// Total is user and system time.
func (c CPU) Total() time.Duration { return c.User + c.System }

// Sub is what was used since earlier.
func (c CPU) Sub(earlier CPU) CPU { return CPU{c.User - earlier.User, c.System - earlier.System} }

// CPU reads /proc/PID/stat; its unit is the kernel's tick, 10 ms.
func (p *Process) CPU() (CPU, error) { return ReadCPU(p.PID()) }

// ReadCPU is CPU for any process.
func ReadCPU(pid int) (CPU, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return CPU{}, err
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 13 {
		return CPU{}, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(f))
	}
	const tick = 10 * time.Millisecond
	user, err := strconv.ParseInt(f[11], 10, 64)
	if err != nil {
		return CPU{}, err
	}
	system, err := strconv.ParseInt(f[12], 10, 64)
	return CPU{time.Duration(user) * tick, time.Duration(system) * tick}, err
}

// RssAnon is the process's resident anonymous memory in bytes: what it allocated.
// Mapped file pages are the kernel's to keep or drop, and do not count.
func (p *Process) RssAnon() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("no RssAnon in /proc status")
}

// Machine is one reading of the whole machine's CPU counters, in ticks.
type Machine struct{ busy, steal, total float64 }

// ReadMachine reads the machine's CPU counters.
func ReadMachine() (Machine, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Machine{}, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	if len(f) < 9 {
		return Machine{}, fmt.Errorf("/proc/stat begins %q", line)
	}
	var m Machine
	for i, s := range f[1:9] {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return Machine{}, err
		}
		m.total += v
		switch i {
		case 3, 4: // idle, waiting for the disk
		case 7:
			m.steal = v
		default:
			m.busy += v
		}
	}
	return m, nil
}

// Since is the share of the machine's time between two readings that was busy, and the
// share that the hypervisor gave to others.
func (m Machine) Since(earlier Machine) (busy, steal float64) {
	total := max(1, m.total-earlier.total)
	return (m.busy - earlier.busy) / total, (m.steal - earlier.steal) / total
}

// FreeAddr finds a loopback address that nothing listens on.
func FreeAddr() (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", err
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("127.0.0.1:%d", sa.(*unix.SockaddrInet4).Port), nil
}
