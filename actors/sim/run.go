package sim

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Options of a run.
type Options struct {
	// Trace, when set, is told every event.
	Trace func(event string)
	// Log gets the log lines of the brokers. The zero Logger is silent.
	Log zerolog.Logger
}

// Outcome is what came of a run.
type Outcome struct {
	Plan    *Plan
	Hash    uint64
	Steps   uint64
	Took    time.Duration   // of simulated time
	Lives   int             // of the broker
	Acks    int             // batches that were acknowledged
	Counts  map[string]int  // what was reached, and how often
	Failure *ViolationError // nil: everything held
	Story   []string        // the last things that happened
}

// ViolationError is an invariant that was found broken.
type ViolationError struct {
	Invariant string
	Detail    string
	At        time.Duration
}

// Error names the invariant and tells what was seen.
func (v *ViolationError) Error() string {
	return fmt.Sprintf("at %v: %s: %s", v.At, v.Invariant, v.Detail)
}

// run is one run of one plan.
type run struct {
	plan     *Plan
	world    *World
	host     *host     // the first, or the only one
	hosts    []*host   // all
	ensemble *ensemble // what is looked at when there are several; nil: there is one
	ghost    *ghost
	groups   *ghostGroups
	clients  []*client
	log      zerolog.Logger

	batches   uint64
	sent      map[uint64]*batch
	pids      map[int64]bool
	gaps      map[gapKey]bool // producers, and of which partition, with batches of a wrong time, which are refused for good, or whose first one was refused where nobody waits for it
	acks      int
	counts    map[string]int
	healed    bool
	forgets   bool // unsynced records may have been lost, and with them what the broker knew of producers
	violation *ViolationError
	story     []string
}

// storyMax is how much of the story is kept.
const storyMax = 400

// Run carries out a plan.
func Run(p *Plan, o Options) *Outcome {
	r := &run{plan: p, world: NewWorld(p.Seed), log: o.Log, sent: make(map[uint64]*batch), pids: make(map[int64]bool), gaps: make(map[gapKey]bool), counts: make(map[string]int)}
	if o.Log.GetLevel() == zerolog.TraceLevel {
		r.log = zerolog.New(io.Discard).Level(zerolog.Disabled)
	}
	r.world.Trace = o.Trace
	r.world.Net.Weather = p.Weather
	r.ghost = newGhost(r)
	r.groups = newGhostGroups(r)
	defer r.build()()
	if r.ensemble == nil {
		r.live()
	} else {
		r.liveTogether()
	}
	return &Outcome{
		Plan: p, Hash: r.world.Hash(), Steps: r.world.Steps(), Took: time.Duration(r.world.Now()), Lives: r.lives(), Acks: r.acks,
		Counts: r.counts, Failure: r.violation, Story: r.story,
	}
}

// build makes the machines. What it returns ends what is only for this run.
func (r *run) build() func() {
	over := func() {}
	if n := r.plan.Brokers; n > 1 {
		over = pinRaft(r.world.Entropy("raft"))
		for i := range n {
			r.hosts = append(r.hosts, newHost(r, i+1))
		}
		r.ensemble = newEnsemble(r)
	} else {
		r.hosts = append(r.hosts, newHost(r, 0))
	}
	r.host = r.hosts[0]
	r.delays()
	return over
}

// pinRaft has Raft draw the times of its elections from the seed. It takes them from the reader of crypto/rand, and from nowhere else, and nobody else in a
// simulated broker takes anything from there. testing/cryptotest would pin it too, for the whole process, the library of actors included, which draws names.
func pinRaft(from io.Reader) (over func()) {
	before := rand.Reader
	rand.Reader = from
	return func() { rand.Reader = before }
}

// lives is how often processes of brokers were started.
func (r *run) lives() (n int) {
	for _, h := range r.hosts {
		n += h.lives
	}
	return n
}

// tell makes something that happened part of the story, and of the hash.
func (r *run) tell(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	r.world.Note(line)
	if len(r.story) == storyMax {
		r.story = slices.Delete(r.story, 0, storyMax/4)
	}
	r.story = append(r.story, fmt.Sprintf("%12v  %s", time.Duration(r.world.Now()).Round(time.Microsecond), line))
}

// counted notes that something worth reaching was reached.
func (r *run) counted(what string) { r.counts[what]++ }

// fail notes a broken invariant. The first one ends the run.
func (r *run) fail(invariant, format string, args ...any) {
	if r.violation == nil {
		r.violation = &ViolationError{Invariant: invariant, Detail: fmt.Sprintf(format, args...), At: time.Duration(r.world.Now())}
		r.tell("VIOLATION %v", r.violation)
	}
}

// allow fails unless a code is one of those that an honest broker may answer.
func (r *run) allow(who, api string, code int16, codes ...wire.ErrorCode) {
	r.counted(api + " " + wire.ErrorCode(code).String())
	if !slices.Contains(codes, wire.ErrorCode(code)) {
		r.fail("errors are those of the protocol", "%s: %s was answered %v", who, api, wire.ErrorCode(code))
	}
}

// refusedForGood notes that a batch will never be there.
func (r *run) refusedForGood(who string, b *batch, code wire.ErrorCode) {
	if b.result != nil || b.attempts > 1 {
		return // an earlier try may have been taken
	}
	b.refused = true
	if code == wire.InvalidTimestamp && slices.ContainsFunc(r.plan.Faults, func(f FaultPlan) bool { return f.Kind == WallJump }) {
		r.gaps[b.gap()] = true
		return // the broker's clock is wrong by hours
	}
	r.fail("good batches are taken", "%s: batch %d is refused: %v", who, b.id, code)
}

// inOrder lists batches by their ids.
func (r *run) inOrder(m map[*batch]ident.Offset) []*batch {
	out := make([]*batch, 0, len(m))
	for b := range m {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b *batch) int { return int(a.id) - int(b.id) })
	return out
}

// readersInOrder lists readers by topic and partition.
func (r *run) readersInOrder(m map[*reader]ident.Offset) []*reader {
	out := make([]*reader, 0, len(m))
	for d := range m {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b *reader) int {
		if c := strings.Compare(a.topic.id.String(), b.topic.id.String()); c != 0 {
			return c
		}
		return int(a.partition - b.partition)
	})
	return out
}

// Bounds of simulated time for the phases after the work.
const (
	healMax   = time.Minute
	finishMax = 90 * time.Second

	syncMaxHealed = 20 * time.Millisecond // a disk that is healed
)

// live lets everything happen: work under faults, healing, finishing, reading everything, and all of that again after
// the last restart.
func (r *run) live() {
	r.host.start()
	r.work()
	r.heal()
	r.finish(Admin, Told)
	r.finish(Idempotent, Plain, Curious, Hostile, Committer, Operator, Keyed)
	r.finish(Consumer)
	r.finish(Classic, Modern)
	r.verify(1)
	r.leave()
	r.rest()
	r.restart()
	r.verify(2)
	r.leave()
	r.rest()
	r.inspectDisks()
}

// work lets the clients work and the faults happen.
func (r *run) work() {
	for _, p := range r.plan.Clients {
		c := newClient(r, p)
		r.clients = append(r.clients, c)
		r.world.after(between(c.rand, 0, 200*time.Millisecond), c.start)
	}
	for i := range r.plan.Faults {
		r.schedule(&r.plan.Faults[i])
	}
	r.until("work", r.plan.Duration, nil)
}

// finish has the clients of some kinds bring to an end what they have begun.
func (r *run) finish(kinds ...ClientKind) {
	var left []*client
	for _, c := range r.clients {
		if slices.Contains(kinds, c.plan.Kind) {
			c.script.finish()
			left = append(left, c)
		}
	}
	r.until("finishing", finishMax, func() bool {
		return !slices.ContainsFunc(left, func(c *client) bool { return !c.script.done() })
	})
	for _, c := range left {
		if r.violation != nil && !c.script.done() {
			r.tell("%s is not done%s", c.name, stateOf(c.script))
		}
	}
}

// until steps until done says so, or for the whole of limit when there is no done. Not being done in time is a
// violation: something that should happen does not.
func (r *run) until(what string, limit time.Duration, done func() bool) {
	end := r.world.Now() + ident.Instant(limit)
	for r.violation == nil && r.world.Now() < end && (done == nil || !done()) {
		if next, set := r.world.clock.Earliest(); r.world.run.Ready() == 0 && (!set || r.world.Now()+ident.Instant(next) > end) {
			r.world.clock.Advance(time.Duration(end - r.world.Now()))
			break
		}
		r.step()
	}
	if r.violation == nil && done != nil && !done() {
		r.fail("everything comes to an end", "%s is not over after %v; starts that failed: %d, the last because of: %v", what, limit, r.host.refusals, r.host.lastError)
	}
}

func (r *run) step() {
	err := r.world.Step()
	if err != nil && !errors.Is(err, ErrStill) {
		stack := ""
		if blames := r.world.run.Blames(); len(blames) > 0 {
			stack = "\n" + blames[0].Stack
		}
		r.fail("no actor fails", "%v%s", err, stack)
		return
	}
	if s := r.world.run.Ran(); s != nil {
		r.hostOf(s).touched = true
	}
	for _, h := range r.hosts {
		if err := h.step(); err != nil {
			r.fail("the machines are sound", "%s: %v", h, err)
		}
	}
	if blames := r.world.run.Blames(); len(blames) > 0 {
		r.fail("no actor fails", "%v\n%s", blames[0], blames[0].Stack)
	}
}

// heal ends all faults and lets the broker serve.
func (r *run) heal() {
	r.tell("everything is healed")
	r.healed = true
	r.host.repairDisk()
	r.host.disk.Capacity, r.host.slow, r.host.countdowns = 0, 0, nil
	r.host.syncMax = min(r.host.syncMax, syncMaxHealed)
	r.groups.jumped(func() { r.host.node.Clock.Jump(-r.host.node.Clock.offset) }) // a time server
	r.world.Net.Weather = FairWeather
	for _, c := range r.clients {
		r.world.Net.Hold(c.name, r.host.node.Name, false)
		c.plan.Patience = max(c.plan.Patience, 20*time.Second)
	}
	for _, p := range r.host.ports {
		p.lose = false
	}
	r.world.after(0, r.host.start)
	r.until("healing", healMax, func() bool { return r.host.broker != nil && r.host.serving && r.host.broker.Ready() })
}

// leave ends all connections and verifies that the broker has its memory back.
func (r *run) leave() {
	if r.violation != nil {
		return
	}
	for _, c := range r.clients {
		c.leave()
	}
	r.until("hanging up", time.Minute, func() bool { return !slices.ContainsFunc(r.hosts, (*host).used) })
	for _, h := range r.hosts {
		if r.violation != nil && h.inspection != nil {
			r.violation.Detail += fmt.Sprintf("; left at %s: %+v", h, h.inspection.Usage())
		}
	}
}

// used tells whether clients take anything of a broker. What followers wait for stays.
func (h *host) used() bool {
	u := h.inspection.Usage()
	return u.Connections > 0 || u.CreditBytes > 0 || u.CreditWaiting > 0 || u.SlotBusy || u.Parked > 0 && h.id == 0
}
