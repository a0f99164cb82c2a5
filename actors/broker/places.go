package broker

import (
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// The parts of the process's file descriptors, in percent, that connections may use and that logs may keep while they rest (of its mappings as well). What is left is for what
// comes and goes: segments that are read, indexes, flush rounds.
const (
	descriptorShare = 80
	logShare        = 10
	logsMin         = 64 // of the logs that may stay open, whatever the limit
)

// descriptorLimit is how many descriptors the process may have.
func descriptorLimit() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<30 {
		return 1 << 30
	}
	return int(limit.Cur)
}

// mappingLimit is how many mappings the kernel lets a process have (vm.max_map_count); one that cannot be read is taken for the kernel's default.
func mappingLimit() int {
	const usual = 65530
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		return usual
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n <= 0 {
		return usual
	}
	return n
}

// openLogsMax is how many logs may keep a file open, and mapped, while nobody writes to them. The heap needs mappings too, and a process that gets none for it
// ends.
func openLogsMax(descriptors, mappings int) int {
	return max(min(descriptors, mappings)*logShare/100, logsMin)
}

// places counts the connections of a broker, all listeners together.
type places struct {
	descriptors int // that connections may use

	mu      sync.Mutex
	changed *sync.Cond
	taken   int
	byIP    map[netip.Addr]int

	sessions atomic.Uint64
}

func newPlaces() *places {
	p := &places{descriptors: max(descriptorLimit()*descriptorShare/100, 1), byIP: make(map[netip.Addr]int)}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// await waits for a place and takes it; false: stop was closed. At the limit nobody is turned away: who connects waits in the kernel's queue.
func (p *places) await(stop <-chan struct{}, connectionsMax func() int32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		select {
		case <-stop:
			return false
		default:
		}
		if p.taken < min(int(connectionsMax()), p.descriptors) {
			p.taken++
			return true
		}
		p.changed.Wait()
	}
}

// try takes a place if there is one.
func (p *places) try(connectionsMax int32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= min(int(connectionsMax), p.descriptors) {
		return false
	}
	p.taken++
	return true
}

// wake makes await look again. The lock is taken so that no await that has looked and does not wait yet misses it.
func (p *places) wake() {
	p.mu.Lock()
	p.changed.Broadcast()
	p.mu.Unlock()
}

// leave gives a place back.
func (p *places) leave() {
	p.mu.Lock()
	p.taken--
	p.mu.Unlock()
	p.changed.Broadcast()
}

// enter counts a connection of an address; false: the address has as many as it may.
func (p *places) enter(ip netip.Addr, perIPMax int32) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byIP[ip] >= int(perIPMax) {
		return false
	}
	p.byIP[ip]++
	return true
}

// exit is the opposite of enter.
func (p *places) exit(ip netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byIP[ip]--; p.byIP[ip] <= 0 {
		delete(p.byIP, ip)
	}
}

// number names a session, uniquely in this process as far as 32 bits go.
func (p *places) number() uint64 { return p.sessions.Add(1) & 0xffffffff }
