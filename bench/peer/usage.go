package peer

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is what the kernel has charged to one process, all its threads included, the ended ones too.
type Usage struct {
	// User and System are CPU time. Their sum is exact to the microsecond; how it is split is a sample, in steps of one
	// clock tick (10 ms).
	User, System time.Duration
	RssAnonBytes int64 // memory of its own: heap, stacks, private pages
	RssFileBytes int64 // resident pages of mapped files
	Threads      int
}

// CPU is user and system time together.
func (u Usage) CPU() time.Duration { return u.User + u.System }

// Sub is what was used since an earlier reading; memory and threads are those of u.
func (u Usage) Sub(earlier Usage) Usage {
	u.User -= earlier.User
	u.System -= earlier.System
	return u
}

// ticksPerSecond is USER_HZ. Linux fixes it at 100 in the interface to user space on every architecture that Go runs
// on, whatever the kernel's own tick is.
const ticksPerSecond = 100

// Usage reads /proc. It is an error when the child has ended.
func (p *Process) Usage() (Usage, error) {
	if err := p.Err(); err != nil {
		return Usage{}, err
	}
	return ReadUsage(p.pid)
}

// ReadUsage reads what the process pid has used so far.
func ReadUsage(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("usage of pid %d: %w", pid, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("usage of pid %d: %w", pid, err)
	}
	u, err := parseStat(stat)
	if err != nil {
		return Usage{}, fmt.Errorf("usage of pid %d: %w", pid, err)
	}
	exact, err := cpuClock(pid)
	if err != nil {
		return Usage{}, fmt.Errorf("usage of pid %d: %w", pid, err)
	}
	u.System = min(u.System, exact)
	u.User = exact - u.System
	u.RssAnonBytes = kilobytes(status, "RssAnon:")
	u.RssFileBytes = kilobytes(status, "RssFile:")
	return u, nil
}

// cpuClock reads the CPU clock of a process. Its id is made as clock_getcpuclockid(3) makes it: the complement of the
// pid, and 2 for the scheduler's own count.
func cpuClock(pid int) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|2, &ts); err != nil {
		return 0, fmt.Errorf("CPU clock: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}

// parseStat takes CPU times and the thread count out of /proc/PID/stat. The second field, the program's name, is in
// parentheses and may itself hold spaces and parentheses, so the fields are counted from the last one that closes.
func parseStat(stat []byte) (Usage, error) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return Usage{}, fmt.Errorf("no process name in %q", stat)
	}
	fields := bytes.Fields(stat[end+1:])
	// proc(5) numbers from 1 and the state after the name is field 3: utime 14, stime 15, num_threads 20.
	const first, utime, stime, threads = 3, 14, 15, 20
	if len(fields) <= threads-first {
		return Usage{}, fmt.Errorf("only %d fields after the process name in %q", len(fields), stat)
	}
	number := func(field int) (int64, error) { return strconv.ParseInt(string(fields[field-first]), 10, 64) }
	user, err := number(utime)
	if err != nil {
		return Usage{}, fmt.Errorf("utime: %w", err)
	}
	system, err := number(stime)
	if err != nil {
		return Usage{}, fmt.Errorf("stime: %w", err)
	}
	count, err := number(threads)
	if err != nil {
		return Usage{}, fmt.Errorf("num_threads: %w", err)
	}
	const tick = time.Second / ticksPerSecond
	return Usage{User: time.Duration(user) * tick, System: time.Duration(system) * tick, Threads: int(count)}, nil
}

// kilobytes finds one "Name:  123 kB" line of /proc/PID/status, as bytes; 0 when the kernel does not give it.
func kilobytes(status []byte, name string) int64 {
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) >= 2 && string(fields[0]) == name {
			n, err := strconv.ParseInt(string(fields[1]), 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}
