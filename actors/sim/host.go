package sim

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
)

// dataDir is where the simulated broker keeps its data.
const dataDir = "/data"

// Sizes that a simulation wants small.
const (
	ballastBytes     = 8 << 10
	raftReserveBytes = 16 << 10
	controlSlots     = 1 << 8
)

// host is the machine that the broker runs on: its disk, the process in all its lives, and whoever starts it again.
type host struct {
	run     *run
	id      ident.BrokerID // 0: the only one
	prefix  string         // of its streams
	node    *Node
	disk    *storetest.Disk
	rand    *rand.Rand        // of delays
	looks   *rand.Rand        // of moments to look at the platter
	torn    *rand.Rand        // of what a kill leaves half written
	syncMax time.Duration     // see DiskPlan
	slow    int               // how much slower than usual the disk is; 0: not
	rules   map[string]string // of a broken disk, by the fault that broke it
	order   []string          // of rules

	broker     *broker.Broker
	inspection *broker.Inspection
	injector   *storetest.Injector
	crashed    *runtime.System // to be reclaimed when the step is over
	ports      []*port
	dials      uint64
	lives      int
	frozen     bool // the process stands still
	off        bool // the machine has no power, and refuses nobody
	lost       bool // it has had none, once at least
	serving    bool // this life has served
	stopping   bool
	countdowns []*countdown
	found      [2]found       // on the platter, and in the page cache
	last       *cluster.Image // of the metadata, when it was stopped in order
	refusals   int            // starts that failed since the last that did not
	lastError  error
	noise      uint64 // not 0: the next start finds noise in index files
	noisy      bool   // there was noise
	hits       int    // operations that the broken disk failed
	struck     int    // those of this life, up to the last repair
	repaired   ident.Instant
	folds      *rand.Rand
	unserved   ident.Instant                 // when a coordinator was last seen without its groups
	touched    bool                          // something may have changed in the process since it was looked after: one of its actors had a turn, or a connection brought something
	reloads    map[ident.TopicPartition]bool // coordinators that were seen so since their last fold
}

// countdown ends the process at an operation of the disk.
type countdown struct {
	n        int
	syncs    bool   // only these count
	op, glob string // if set: only such operations on such files count, and the process ends before the last of them is done
	fire     func()
}

// newHost makes the machine of a broker; number 0 is that of the only one.
func newHost(r *run, number int) *host {
	name, prefix := "broker", ""
	if number > 0 {
		name = fmt.Sprintf("b%d", number)
		prefix = name + "/"
	}
	h := &host{
		run: r, id: ident.BrokerID(number), prefix: prefix, node: r.world.NewNode(name), disk: storetest.NewDisk(r.plan.Seed + uint64(number)<<32), rand: r.world.Rand(prefix + "disk"),
		rules: make(map[string]string),
	}
	h.folds, h.reloads = r.world.Rand(prefix+"folds"), make(map[ident.TopicPartition]bool)
	h.disk.Writeback, h.disk.WholeSync, h.disk.Cold = r.plan.Disk.Writeback, r.plan.Disk.WholeSync, r.plan.Disk.Cold
	h.syncMax = r.plan.Disk.SyncMax
	h.disk.OnPoint, h.looks = h.point, r.world.Rand(prefix+"looks")
	h.torn = r.world.Rand(prefix + "torn")
	return h
}

// delays has the actors of all hosts wait as their machines want.
func (r *run) delays() {
	r.world.run.Hold(func(s *runtime.System, actor string) time.Duration { return r.hostOf(s).held(actor) })
	if r.plan.Disk.Late > 0 {
		r.world.run.Late(func(s *runtime.System, _ string) time.Duration { return r.hostOf(s).late() })
	}
}

// hostOf finds the machine on which a process runs.
func (r *run) hostOf(s *runtime.System) *host {
	for _, h := range r.hosts {
		if h.node.Running() == s {
			return h
		}
	}
	return r.host // an actor that is spawned while its process dies
}

// held is how long a blocking actor of the broker takes for what it has to do.
func (h *host) held(actor string) time.Duration {
	most := h.syncMax
	if strings.Contains(actor, "/io-") || strings.Contains(actor, "/recovery-") {
		most /= 4
	}
	if most > 0 {
		most = time.Duration(h.rand.Int64N(int64(most)))
	}
	if h.slow > 0 {
		most = most*time.Duration(h.slow) + time.Duration(h.rand.Int64N(int64(200*time.Millisecond)))
	}
	return most
}

// late is how late another actor gets its turn: seldom much.
func (h *host) late() time.Duration {
	if chance(h.rand, 70) {
		return 0
	}
	return time.Duration(h.rand.Int64N(int64(h.run.plan.Disk.Late)))
}

// point hears of each operation on the disk.
func (h *host) point(p storetest.Point) {
	if n := looks(p); n > 0 && chance(h.looks, n) && (h.id == 0 || chance(h.looks, 100/len(h.run.hosts))) {
		h.checkPlatter()
	}
	h.count(func(c *countdown) bool { return c.op == "" && (!c.syncs || strings.HasPrefix(p.Op, "sync")) }, "in the middle of", p.Op, p.Name)
}

// before hears of each operation on the disk before it is done.
func (h *host) before(op, name string) {
	h.count(func(c *countdown) bool {
		ok, err := path.Match(c.glob, path.Base(name))
		return c.op == op && ok && err == nil
	}, "before", op, name)
}

// count counts an operation, and ends the process if it is the one that was waited for.
func (h *host) count(counts func(*countdown) bool, when, op, name string) {
	if len(h.countdowns) == 0 || h.node.Running() == nil {
		return
	}
	var due *countdown
	for _, c := range h.countdowns {
		if counts(c) {
			if c.n--; c.n <= 0 && due == nil {
				due = c
			}
		}
	}
	if due == nil {
		return
	}
	h.countdowns = slices.DeleteFunc(h.countdowns, func(c *countdown) bool { return c == due })
	h.run.tell("%s %s %s", when, op, path.Base(name))
	due.fire()
}

// start starts the process, and again after a while when it does not.
func (h *host) start() {
	if h.node.Running() != nil {
		return
	}
	h.reclaim()
	if h.noise != 0 {
		h.makeNoise(h.noise)
		h.noise, h.noisy = 0, true
	}
	h.lives++
	h.off = false
	life := h.lives
	_, wall := h.node.Clock.Now()
	h.disk.SetNow(wall)
	sys := h.node.Boot(h.run.log)
	h.injector = storetest.Faults(h.disk.FS())
	for _, name := range h.order {
		h.injector.Add(h.rules[name])
	}
	h.inspection, h.serving, h.stopping = &broker.Inspection{}, false, false
	world := broker.World{
		FS: storetest.Slow(h.injector, h.before), System: sys, Rand: h.run.world.Entropy(fmt.Sprintf("%slife/%d", h.prefix, life)), Log: h.run.log, BuildVersion: "simulated", Parallel: 1,
		Inspection: h.inspection, BallastBytes: ballastBytes, RaftReserveBytes: raftReserveBytes, ControlSlots: controlSlots,
		CheckpointMs: int64(h.run.plan.Disk.Checkpoint / time.Millisecond),
	}
	if h.run.plan.Disk.Later > 0 {
		world.Background = h.background(life)
	}
	if h.id > 0 {
		h.among(&world)
	}
	b, err := broker.Start(broker.Options{Static: h.settings()}, world)
	switch {
	case h.lives != life || h.node.Running() == nil:
		// It died while it started; whoever killed it has seen to the rest.
	case err != nil:
		if h.lastError == nil || err.Error() != h.lastError.Error() {
			h.run.tell("%s does not start: %v", h, err)
		}
		h.refusals++
		h.lastError = err
		h.kill()
		h.run.world.after(100*time.Millisecond, h.start)
	default:
		h.broker, h.touched, h.refusals, h.lastError = b, true, 0, nil
	}
}

// knows tells whether the broker has heard of a topic, not of whatever has its name.
func (h *host) knows(t *ghostTopic) bool {
	if h.inspection == nil {
		return false
	}
	_, known := h.inspection.Image().TopicByID(t.id)
	return known
}

// reclaim takes back what a dead process held in the simulation.
func (h *host) reclaim() {
	if h.crashed != nil {
		h.run.world.run.Reclaim(h.crashed)
		h.crashed = nil
	}
}

// die ends the process, perhaps in the middle of a turn.
func (h *host) die() {
	h.checkPlatter()
	if h.injector != nil {
		h.hits += h.injector.Hits()
		h.injector, h.struck = nil, 0
	}
	h.crashed = h.node.Running()
	h.broker, h.inspection, h.ports, h.frozen = nil, nil, nil, false
	h.node.Crash()
	h.run.ensemble.died(h)
}

// kill ends the process; the page cache stays.
func (h *host) kill() {
	h.die()
	h.disk.Kill()
	h.tearSlots()
	if h.id == 0 {
		h.run.ghost.killed(h.hits > 0)
	}
}

// power ends everything that was not synced.
func (h *host) power(seed uint64) {
	h.die()
	h.off, h.lost = true, true
	h.disk.Crash(seed)
	if h.id == 0 {
		h.run.ghost.powerLost()
	} else {
		h.run.ensemble.cut(h)
	}
}

// again starts the process after a pause.
func (h *host) again(pause time.Duration) { h.run.world.after(pause, h.start) }

// stop stops the broker in order and starts it again.
func (h *host) stop(then func(err error)) {
	if h.broker == nil || h.stopping || h.frozen {
		return
	}
	h.stopping = true
	life := h.lives
	h.broker.Shutdown(func(err error) {
		h.run.world.after(0, func() {
			if h.lives != life || h.node.Running() == nil {
				return // it was killed on the way
			}
			h.run.tell("%s has stopped: %v", h, err)
			if err == nil {
				h.run.ensemble.stopped(h)
			}
			h.last = h.inspection.Image()
			h.die()
			h.disk.Kill()
			if err != nil && h.id == 0 {
				h.run.ghost.killed(false) // what it could not write at its end is as late as after a kill
			}
			then(err)
		})
	})
}

// step looks after the process when something has happened.
func (h *host) step() error {
	if h.node.Running() == nil {
		h.reclaim()
		return nil
	}
	_, wall := h.node.Clock.Now()
	h.disk.SetNow(wall)
	if h.broker == nil || h.frozen || !h.touched {
		return nil
	}
	h.touched = false
	live := h.ports[:0]
	for _, p := range h.ports {
		if !p.over {
			h.touched = p.poll() || h.touched
			live = append(live, p)
		}
	}
	clear(h.ports[len(live):])
	h.ports = live
	h.run.ensemble.turned(h)
	if err := h.inspection.Check(); err != nil {
		return err
	}
	if err := h.checkGroups(); err != nil {
		return err
	}
	select {
	case <-h.broker.Failed():
		err := h.broker.Failure()
		h.run.tell("%s gives up: %v", h, err)
		if h.injector.Hits() == 0 && (h.struck == 0 || h.run.world.Now() > h.repaired+givesUpWithin) {
			h.run.fail("a broker with a sound disk lives", "it gives up: %v", err)
		}
		h.lastError = err
		h.refusals++
		h.kill()
		h.again(100 * time.Millisecond)
		return nil
	default:
	}
	if !h.serving && h.broker.Ready() {
		h.serving = true
		h.run.ensemble.admitted(h)
		h.run.tell("%s serves", h)
	}
	return nil
}

// breakDisk makes operations fail from now on.
func (h *host) breakDisk(name, rule string) {
	h.rules[name] = rule
	h.order = append(h.order, name)
	if h.injector != nil {
		h.injector.Add(rule)
	}
}

// givesUpWithin is how long after a repair a broker may still give up for what it met before.
const givesUpWithin = ident.Instant(5 * time.Second)

// repairDisk ends what breakDisk has begun.
func (h *host) repairDisk() {
	clear(h.rules)
	h.order = h.order[:0]
	if h.injector != nil {
		h.struck += h.injector.Hits()
		h.repaired = h.run.world.Now()
		h.hits += h.injector.Hits()
		h.injector.Clear()
	}
}

// String names the broker in a story.
func (h *host) String() string {
	if h.id == 0 {
		return "the broker"
	}
	return h.node.Name
}
