package peer

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Machine is one reading of the whole machine's CPU counters.
type Machine struct{ busy, steal, total float64 } // in ticks

// ReadMachine reads /proc.
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
	for i, s := range f[1:9] { // user nice system idle iowait irq softirq steal
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return Machine{}, err
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

// Since is the CPU time that all processes have used since an earlier reading, and the share of the machine's time that the hypervisor gave to others.
func (m Machine) Since(earlier Machine) (busy time.Duration, steal float64) {
	return time.Duration(m.busy-earlier.busy) * time.Second / ticksPerSecond, (m.steal - earlier.steal) / max(1, m.total-earlier.total)
}

// Facts describe the machine for a report.
func Facts() [][2]string {
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
