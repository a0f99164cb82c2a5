package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machine is one reading of the whole machine's CPU counters, in ticks.
type machine struct{ busy, steal, total float64 }

func readMachine() (machine, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return machine{}, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	if len(f) < 9 {
		return machine{}, fmt.Errorf("/proc/stat begins %q", line)
	}
	var m machine
	for i, s := range f[1:9] { // user nice system idle iowait irq softirq steal
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return machine{}, err
		}
		m.total += v
		switch i {
		case 3, 4:
		case 7:
			m.steal = v
		default:
			m.busy += v
		}
	}
	return m, nil
}

// busyTicks is the CPU time since earlier in ticks of 10 ms, steal the share of the
// machine's time that the hypervisor gave to others.
func (m machine) since(earlier machine) (busyTicks, steal float64) {
	return m.busy - earlier.busy, (m.steal - earlier.steal) / max(1, m.total-earlier.total)
}

// touch uses n bytes of memory and gives them back. A virtual machine whose host takes free memory away gets it again page by page, at many times the price of a
// page that is there; a run that writes n bytes into the page cache right behind a touch finds them there, whichever run was before it.
func touch(n int64) error {
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return fmt.Errorf("touching %d bytes of memory: %w", n, err)
	}
	for i := 0; i < len(b); i += os.Getpagesize() {
		b[i] = 1
	}
	return unix.Munmap(b)
}

// pinSelf keeps every thread of this process, present and future, on one CPU.
func pinSelf(cpu int) error {
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

// facts describe the machine for the report.
func facts() [][2]string {
	read := func(path, key string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			return err.Error()
		}
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, key); ok {
				return strings.TrimSpace(strings.TrimLeft(v, "\t :"))
			}
		}
		return "unknown"
	}
	return [][2]string{
		{"CPU", read("/proc/cpuinfo", "model name")},
		{"memory", read("/proc/meminfo", "MemTotal")},
		{"kernel", read("/proc/sys/kernel/osrelease", "")},
	}
}
