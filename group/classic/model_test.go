package classic_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/group/classic"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

var (
	fromFlag  = flag.Int("from", 0, "the first seed of TestRandomGroups")
	seedsFlag = flag.Int("seeds", 300, "how many seeds TestRandomGroups plays")
)

// TestRandomGroups lets random clients live in one group: they join, sync, send heartbeats, commit, change their minds, leave, restart, die, and come back
// as zombies; requests and answers are delayed, lost and doubled; entries are committed late, and a failover may lose those that were not. After every step
// the invariants of [model.check] hold; in the end, when the clients have calmed down or died, the group is Stable with all of them, or Empty.
//
// -args -from=N -seeds=1 plays one seed again.
func TestRandomGroups(t *testing.T) {
	var seen census
	for seed := *fromFlag; seed < *fromFlag+*seedsFlag; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			m := newModel(uint64(seed))
			if err := m.run(); err != nil {
				t.Fatalf("at %d ms: %v\n%s\n%s", m.now, err, m.life.g.Draw(), strings.Join(m.story[max(0, len(m.story)-40):], "\n"))
			}
			seen.add(&m.seen)
		})
	}
	if !t.Failed() && *seedsFlag >= 300 {
		seen.complete(t)
	}
}

// model is the group, its log, its clients, and what is on its way.
type model struct {
	rng     *rand.Rand
	now     int64 // ms
	cfg     coord.Config
	life    *life
	log     []records.Entry // committed
	clients []*client
	events  []event // in their order
	ids     int
	calm    bool
	timer   bool // this step is a timer's
	story   []string
	seen    census
	zombies []func() // requests of before, to be sent again
}

// life is one coordinator of the group, from load to failover.
type life struct {
	g         *classic.Group
	out       coord.Out
	base      int             // entries in the log at the load
	proposed  []records.Entry // since
	committed int             // of these
	open      map[ident.RequestID]func(coord.Answer)
	held      []coord.Reply
	last      ident.RequestID
	leaders   map[int32]string // by generation
	told      map[string]int32 // which generation a member was told of last
	gen       int32
}

// event is something that happens later.
type event struct {
	at int64
	do func()
}

func newModel(seed uint64) *model {
	m := &model{rng: rand.New(rand.NewPCG(seed, 7)), cfg: coord.DefaultConfig()}
	m.seen = census{map[string]int{}, map[string]int{}, map[string]int{}}
	m.cfg.SessionTimeoutMin = 500
	m.cfg.InitialRebalanceDelay = []int32{0, 50, 300, 3000}[m.rng.IntN(4)]
	if m.chance(30) {
		m.cfg.ClassicSizeMax = int32(2 + m.rng.IntN(4))
	}
	m.load(nil)
	for i := range 2 + m.rng.IntN(6) {
		c := &client{m: m, name: string(rune('a' + i)), version: []int16{3, 4, 8, 9}[m.rng.IntN(4)]}
		if c.version > 4 && m.chance(50) {
			c.instance = "i" + c.name
		}
		c.busy = i == 0 && seed%16 == 5
		c.decide()
		m.clients = append(m.clients, c)
		m.after(int64(m.rng.IntN(500)), c.start)
	}
	return m
}

func (m *model) chance(percent int) bool { return m.rng.IntN(100) < percent }

func (m *model) after(ms int64, do func()) {
	e := event{m.now + ms, do}
	i, _ := slices.BinarySearchFunc(m.events, e, func(a, b event) int {
		if a.at <= b.at {
			return -1 // events of one time happen in the order in which they were made
		}
		return 1
	})
	m.events = slices.Insert(m.events, i, e)
}

func (m *model) say(format string, a ...any) {
	m.story = append(m.story, fmt.Sprintf("%7d ", m.now)+fmt.Sprintf(format, a...))
}

func (m *model) clock() coord.Now {
	return coord.Now{Mono: ident.Instant(m.now) * millisecond, Wall: ident.Millis(m.now) + 1_000_000}
}

// load begins a life with what the log says.
func (m *model) load(log []records.Entry) {
	l := &life{g: classic.New("g"), base: len(log), open: map[ident.RequestID]func(coord.Answer){}, leaders: map[int32]string{}, told: map[string]int32{}}
	if m.life != nil {
		l.last = m.life.last
	}
	l.out.Timers = coord.NewTimers()
	if len(log) > 0 {
		l.g.Apply(log[len(log)-1].(*records.GroupMetadata).Value)
	}
	l.gen = l.g.Generation()
	m.life, m.log = l, log
	l.g.Loaded(m.clock(), &m.cfg, &l.out)
}

// failover ends the life: some of the entries that were not committed are lost, the others are found in the log.
func (m *model) failover() {
	l := m.life
	kept := l.committed + m.rng.IntN(len(l.proposed)-l.committed+1)
	m.seen.other["failover"]++
	m.seen.other["entry lost"] += len(l.proposed) - kept
	m.say("failover, %d of %d entries kept", kept, len(l.proposed))
	log := slices.Concat(m.log, l.proposed[l.committed:kept])
	for _, id := range slices.Sorted(maps.Keys(l.open)) {
		answer := l.open[id]
		m.after(int64(m.rng.IntN(20)), func() { answer(&coord.ErrorReply{Code: wire.NotCoordinator}) })
	}
	m.load(log)
}

// run plays one history: a wild part and a calm end.
func (m *model) run() error {
	end := int64(20_000 + m.rng.IntN(40_000))
	if m.chance(70) {
		m.after(end/2, m.failover)
	}
	m.after(int64(m.rng.IntN(2000)), m.churn)
	if err := m.until(end); err != nil {
		return err
	}
	m.calm = true
	m.say("calm")
	if m.chance(30) {
		for _, c := range m.clients {
			c.die()
		}
	}
	// Nothing may take longer than the five minutes of a fresh member whose client died, and the rounds that follow; a busy one holds up rounds for longer.
	var err error
	for m.now < end+700_000 || m.clients[0].busy && m.now < end+3_000_000 {
		if err := m.until(m.now + 5000); err != nil {
			return err
		}
		if err = m.settled(); err == nil {
			break
		}
	}
	return err
}

// until runs everything that happens before a time, each timer when it is due.
func (m *model) until(end int64) error {
	for {
		due, isSet := m.life.out.Timers.Next()
		timer := int64(due / millisecond)
		m.timer = false
		if len(m.events) > 0 && m.events[0].at <= end && (!isSet || m.events[0].at <= timer) {
			e := m.events[0]
			m.events = m.events[1:]
			m.now = max(m.now, e.at)
			e.do()
		} else if isSet && timer <= end {
			m.now, m.timer = max(m.now, timer), true
			key, ok := m.life.out.Timers.Pop(m.clock().Mono)
			if !ok {
				return errors.New("a timer that is due does not come out")
			}
			m.life.g.Timer(m.clock(), &m.cfg, key, &m.life.out)
			if key.Kind == coord.TimerPending {
				m.seen.other["pending forgotten"]++
			}
		} else {
			m.now = end
			return nil
		}
		if err := m.step(); err != nil {
			return err
		}
	}
}

// step takes what a step asked for, and checks.
func (m *model) step() error {
	l := m.life
	for _, e := range l.out.Entries {
		l.proposed = append(l.proposed, e)
		m.say("%s", strings.TrimSpace(drawEntry(e)))
		if !m.calm && m.chance(3) {
			m.after(int64(m.rng.IntN(5)), m.failover)
		}
		m.after(int64(m.rng.IntN(30)), func() {
			if m.life == l { // a later life has another log
				l.committed++
				m.log = append(m.log, l.proposed[l.committed-1])
				m.release()
			}
		})
	}
	changed := len(l.out.Entries) > 0 || len(l.out.Notes) > 0
	for _, r := range l.out.Replies {
		if _, beat := r.Answer.(*coord.HeartbeatReply); !beat {
			changed = true
		}
		if l.open[r.Request] == nil {
			return fmt.Errorf("request %d is answered without having been asked, or twice", r.Request)
		}
		if err := m.fair(&r); err != nil {
			return err
		}
		l.held = append(l.held, r)
		if changed {
			m.say("%d: %s", r.Request, drawAnswer(r.Answer))
		}
	}
	for _, n := range l.out.Notes {
		if err := m.removed(&n); err != nil {
			return err
		}
	}
	err := l.g.Check(l.out.Timers)
	if changed && err == nil {
		err = m.check()
	}
	l.out.Reset()
	m.release()
	return err
}

// release sends the answers that need not wait for the log.
func (m *model) release() {
	l := m.life
	kept := l.held[:0]
	for _, r := range l.held {
		if int(r.After) > l.committed {
			kept = append(kept, r)
			continue
		}
		answer := l.open[r.Request]
		delete(l.open, r.Request)
		if m.chance(2) && !m.calm {
			m.say("answer %d is lost", r.Request)
			continue
		}
		m.after(int64(m.rng.IntN(20)), func() { answer(r.Answer) })
	}
	l.held = kept
}

// removed: a static member is never removed for being late (bug 157), and who is for not syncing was told of the generation.
func (m *model) removed(n *coord.Note) error {
	if n.Kind != coord.NoteMemberFenced {
		return nil
	}
	m.seen.notes[n.Text]++
	static := slices.ContainsFunc(m.clients, func(c *client) bool { return c.instance != "" && strings.HasPrefix(n.Member, c.name) })
	switch {
	case n.Text == "it did not join in time" && static:
		return fmt.Errorf("the static member %s was removed: %s", n.Member, n.Text)
	case n.Text == "it did not sync in time" && m.life.told[n.Member] < m.life.gen:
		return fmt.Errorf("%s was removed from generation %d, and told of %d only", n.Member, m.life.gen, m.life.told[n.Member])
	}
	return nil
}

// fair checks an answer against the state it was decided in.
func (m *model) fair(r *coord.Reply) error {
	g, l := m.life.g, m.life
	late := r.After < l.out.Proposed() // it may leave before something is committed that the same step proposed
	switch a := any(r.Answer).(type) {
	case *coord.JoinReply:
		m.seen.codes["JoinReply "+a.Code.String()]++
		if a.Code != wire.NoError {
			return nil
		}
		if late {
			return errors.New("a Join is answered before its entry is committed")
		}
		if a.Generation > l.gen && g.Pending() > 0 && !m.timer {
			return fmt.Errorf("a round ended, and %d are pending", g.Pending())
		}
		l.told[a.Member] = a.Generation
		if a.Generation != g.Generation() && g.State() != classic.PreparingRebalance {
			return fmt.Errorf("joined generation %d, it is %d", a.Generation, g.Generation())
		}
		if a.SkipAssignment {
			m.seen.other["skipped assignment"]++
		}
		if (len(a.Members) > 0) != (a.Leader == a.Member) {
			return fmt.Errorf("%s got %d members, the leader is %s", a.Member, len(a.Members), a.Leader)
		}
		if a.Leader == a.Member && !a.SkipAssignment {
			if other, ok := l.leaders[a.Generation]; ok && other != a.Member {
				return fmt.Errorf("generation %d is led by %s and %s", a.Generation, other, a.Member)
			}
			l.leaders[a.Generation] = a.Member
		}
	case *coord.SyncReply:
		m.seen.codes["SyncReply "+a.Code.String()]++
		if a.Code == wire.NoError && late {
			return errors.New("a Sync is answered before its generation is committed")
		}
	case *coord.HeartbeatReply:
		m.seen.codes["HeartbeatReply "+a.Code.String()]++
	case *coord.LeaveReply:
		m.seen.codes["LeaveReply "+a.Code.String()]++
		if late {
			return errors.New("a Leave is answered before its entry is committed")
		}
	}
	return nil
}

// check has the invariants of every step that changed something.
func (m *model) check() error {
	l := m.life
	if l.g.Generation() < l.gen {
		return fmt.Errorf("invariant 34: generation %d after %d", l.g.Generation(), l.gen)
	}
	l.gen = l.g.Generation()
	return errors.Join(m.answered(), m.folds(), m.lawful(), m.disjoint())
}

// answered: whoever was not answered is parked, and only they are.
func (m *model) answered() error {
	parked := m.life.g.Parked()
	held := map[ident.RequestID]bool{}
	for _, r := range m.life.held {
		held[r.Request] = true
	}
	for id := range m.life.open {
		if !parked[id] && !held[id] {
			return fmt.Errorf("request %d is not answered and not parked", id)
		}
		if parked[id] && held[id] {
			return fmt.Errorf("request %d is answered and parked", id)
		}
	}
	for id := range parked {
		if m.life.open[id] == nil {
			return fmt.Errorf("request %d is parked, and was answered before", id)
		}
	}
	return nil
}

// folds: the hard state is what the entries fold into, and at rest there is nothing else.
func (m *model) folds() error {
	l := m.life
	var v *records.Generation
	for _, log := range [][]records.Entry{m.log[:l.base], l.proposed} {
		for _, e := range log {
			next := e.(*records.GroupMetadata).Value
			if v != nil && next.Generation < v.Generation {
				return fmt.Errorf("invariant 34: the log says generation %d after %d", next.Generation, v.Generation)
			}
			if v != nil && len(next.Members) == 0 && len(v.Members) > 0 && next.Generation == v.Generation {
				return fmt.Errorf("invariant 34: the members of generation %d are gone, and it is not over", v.Generation)
			}
			v = next
		}
	}
	if !reflect.DeepEqual(v, l.g.Entry()) {
		return fmt.Errorf("invariant 32: the log says %v, the group %v", v, l.g.Entry())
	}
	if state := l.g.State(); v == nil || state != classic.Stable && state != classic.Empty {
		return nil
	}
	again := classic.New("g")
	again.Apply(v)
	if a, b := again.Describe(), l.g.Describe(); !reflect.DeepEqual(a, b) {
		return fmt.Errorf("invariant 32: loaded it is %v, living %v", a, b)
	}
	if a, b := again.EmptySince(), l.g.EmptySince(); a != b {
		return fmt.Errorf("invariant 32: loaded it is empty since %d, living since %d", a, b)
	}
	if again.Expiry() != l.g.Expiry() || again.Generation() != l.g.Generation() || again.Leader() != l.g.Leader() {
		return errors.New("invariant 32: loaded and living differ")
	}
	for _, topic := range topicNames {
		if again.Subscribed(topic) != l.g.Subscribed(topic) {
			return fmt.Errorf("invariant 32: loaded and living differ in the subscription to %s", topic)
		}
	}
	return nil
}

// lawful: offsets of a group with members do not expire by the rule of empty ones, and such a group is not deleted (bugs 149 and 151).
func (m *model) lawful() error {
	g := m.life.g
	if g.Len() > 0 && (g.Expiry() == classic.ExpireAll || g.Expiry() == classic.ExpireSimple || g.CheckDelete() == wire.NoError) {
		return fmt.Errorf("%v with %d members: expiry %v, delete %v", g.State(), g.Len(), g.Expiry(), g.CheckDelete())
	}
	if g.Len() > 0 && g.State() != classic.Stable && g.Expiry() != classic.ExpireNever {
		return fmt.Errorf("%v: expiry %v", g.State(), g.Expiry())
	}
	return nil
}

// disjoint: no partition is in the assignment of two members (invariant 33).
func (m *model) disjoint() error {
	if m.life.g.Entry() == nil {
		return nil
	}
	owner := map[byte]string{}
	for _, v := range m.life.g.Entry().Members {
		for _, p := range v.Assignment {
			if other, ok := owner[p]; ok {
				return fmt.Errorf("invariant 33: partition %c has %s and %s", p, other, v.Member)
			}
			owner[p] = v.Member
		}
	}
	return nil
}

// settled: nobody waits, and whoever lives has a place and the current generation.
func (m *model) settled() error {
	g := m.life.g
	living := 0
	for _, c := range m.clients {
		if c.phase == gone {
			continue
		}
		living++
		if c.phase != active || c.generation != g.Generation() {
			return fmt.Errorf("client %s is %v with member %q in generation %d, after all this time", c.name, c.phase, c.member, c.generation)
		}
	}
	switch {
	case living == 0 && g.State() == classic.Empty:
		m.seen.other["ended Empty"]++
	case living > 0 && g.State() == classic.Stable && g.Len() == living:
		m.seen.other["ended Stable"]++
	default:
		return fmt.Errorf("%d clients live, and the group is %v with %d members", living, g.State(), g.Len())
	}
	if n := len(g.Parked()); n > 0 {
		return fmt.Errorf("%d requests are parked in the end", n)
	}
	if living == 0 && m.life.out.Timers.Len() > 0 {
		return fmt.Errorf("%d timers in the end", m.life.out.Timers.Len())
	}
	return nil
}
