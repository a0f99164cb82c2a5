package relay

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// Ports are the addresses of one broker: where it listens, and where others are told that it does. They are IPv4. A pair that is zero is not relayed: a broker
// alone has no peers, and clients may go straight to it.
type Ports struct {
	ClientFront, ClientBack netip.AddrPort
	PeerFront, PeerBack     netip.AddrPort
}

// Net is the network of brokers 1 to n and their clients. Its methods may be called by several goroutines.
type Net struct {
	clock  runtime.Clock
	faults atomic.Pointer[[]*Fault]
	closed chan struct{}
	work   sync.WaitGroup

	mu      sync.Mutex
	change  sync.Cond // of faults and closed
	ended   bool
	pid     []int // by broker; 0: it does not run
	backs   map[netip.AddrPort]int
	doors   [][]*door // by broker
	streams map[*stream]struct{}
}

// New makes the network of brokers at those ports. The fronts of a broker open when it does (Up). clock times what is late. Close ends the Net.
func New(clock runtime.Clock, ports []Ports) *Net {
	n := &Net{clock: clock, closed: make(chan struct{}), pid: make([]int, len(ports)+1), backs: map[netip.AddrPort]int{}, doors: make([][]*door, len(ports)+1), streams: map[*stream]struct{}{}}
	n.change.L = &n.mu
	n.faults.Store(&[]*Fault{})
	for i, p := range ports {
		if p.ClientFront.IsValid() {
			n.doors[i+1] = append(n.doors[i+1], &door{net: n, broker: i + 1, client: true, front: p.ClientFront, back: p.ClientBack})
		}
		if p.PeerFront.IsValid() {
			n.doors[i+1] = append(n.doors[i+1], &door{net: n, broker: i + 1, front: p.PeerFront, back: p.PeerBack})
			n.backs[p.PeerBack] = i + 1
		}
	}
	return n
}

// Up opens the fronts of a broker, whose process has started. Fronts that are open stay.
func (n *Net) Up(broker, pid int) error {
	n.mu.Lock()
	n.pid[broker] = pid
	n.mu.Unlock()
	for _, d := range n.doors[broker] {
		if err := d.open(); err != nil {
			return fmt.Errorf("open the front of broker %d: %w", broker, err)
		}
	}
	return nil
}

// Down closes the fronts of a broker whose process is gone: connects to it are refused from now on. Its connections end as those of any process that dies.
func (n *Net) Down(broker int) {
	n.mu.Lock()
	n.pid[broker] = 0
	n.mu.Unlock()
	for _, d := range n.doors[broker] {
		d.shut()
	}
}

// Add begins faults.
func (n *Net) Add(faults ...*Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := slices.Concat(*n.faults.Load(), faults)
	n.faults.Store(&all)
	n.change.Broadcast()
}

// Remove ends faults. Connections that lost something by them are reset.
func (n *Net) Remove(faults ...*Fault) {
	n.mu.Lock()
	left := slices.DeleteFunc(slices.Clone(*n.faults.Load()), func(f *Fault) bool { return slices.Contains(faults, f) })
	n.faults.Store(&left)
	n.change.Broadcast()
	var torn []*stream
	for s := range n.streams {
		if lost := s.lost.Load(); lost != nil && slices.Contains(faults, lost) {
			torn = append(torn, s)
		}
	}
	n.mu.Unlock()
	for _, s := range torn {
		s.reset()
	}
}

// Heal ends all faults.
func (n *Net) Heal() { n.Remove(*n.faults.Load()...) }

// Reset resets the connections of some kinds that go one of the ways, at both ends, and says how many there were.
func (n *Net) Reset(kinds Kind, ways []Way) int {
	hit := n.find(kinds, ways)
	for _, s := range hit {
		s.reset()
	}
	return len(hit)
}

// Forget lets broker (0: the clients) lose its connections of some kinds with others. It hears of it, and they do not. It says how many there were.
func (n *Net) Forget(kinds Kind, broker int, others ...int) int {
	hit := n.find(kinds, Between(broker, others...))
	for _, s := range hit {
		s.forget(broker)
	}
	return len(hit)
}

func (n *Net) find(kinds Kind, ways []Way) []*stream {
	n.mu.Lock()
	defer n.mu.Unlock()
	var hit []*stream
	for s := range n.streams {
		if s.kind&kinds != 0 && (slices.Contains(ways, s.way) || slices.Contains(ways, s.back())) {
			hit = append(hit, s)
		}
	}
	return hit
}

// Open counts the connections.
func (n *Net) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.streams)
}

// Close ends everything and waits for what it runs on.
func (n *Net) Close() {
	n.mu.Lock()
	if !n.ended {
		n.ended = true
		close(n.closed)
	}
	n.change.Broadcast()
	all := make([]*stream, 0, len(n.streams))
	for s := range n.streams {
		all = append(all, s)
	}
	n.mu.Unlock()
	for _, doors := range n.doors {
		for _, d := range doors {
			d.shut()
		}
	}
	for _, s := range all {
		s.reset()
	}
	n.work.Wait()
}

func (n *Net) effect(k Kind, w Way) effect { return effectOf(*n.faults.Load(), k, w) }

// await returns what is done to a piece once it is not held any more; false: the Net, or what over tells of, has ended.
func (n *Net) await(k Kind, w Way, over *atomic.Bool) (effect, bool) {
	e := n.effect(k, w)
	if e.cut {
		n.mu.Lock()
		for e.cut && !n.ended && !over.Load() {
			n.change.Wait()
			e = n.effect(k, w)
		}
		n.mu.Unlock()
	}
	return e, !e.cut && !over.Load()
}

// pause waits for d; false: the Net is closed.
func (n *Net) pause(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	rings := make(chan struct{})
	alarm := n.clock.NewAlarm(func() { close(rings) })
	alarm.Set(d)
	defer alarm.Cancel()
	select {
	case <-rings:
		return true
	case <-n.closed:
		return false
	}
}

// late is how long a piece of so many bytes takes.
func (e *effect) late(bytes int) time.Duration {
	d := e.delay
	if e.most > 0 {
		d += time.Duration(rand.Int64N(int64(e.most)))
	}
	if e.rate > 0 {
		d += time.Duration(bytes) * time.Second / time.Duration(e.rate)
	}
	return d
}

// keep counts a connection in; false: the Net is closed.
func (n *Net) keep(s *stream) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended {
		return false
	}
	n.streams[s] = struct{}{}
	return true
}

func (n *Net) drop(s *stream) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.streams, s)
}
