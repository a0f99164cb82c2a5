package consumer_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

var (
	fromFlag  = flag.Uint64("from", 1, "the first seed of TestModel")
	seedsFlag = flag.Uint64("seeds", 50, "how many seeds TestModel plays")
)

// TestModel lets clients of both protocols come and go against one group: their answers are delayed and lost, they stall past their sessions, topics change,
// entries that were not committed are lost with the coordinator. After every step:
//
//   - the group's own invariants hold (Check), and the live state is the fold of the log, whatever a compaction left of it;
//   - no client that the group counts as a member uses a partition that another member has;
//   - nobody has heard of an epoch above the group's;
//   - a commit is accepted only from a member with its epoch, or for what it has had since.
//
// When the churn ends, every member gets to the group epoch, and together they have each partition once.
func TestModel(t *testing.T) {
	for seed := *fromFlag; seed < *fromFlag+*seedsFlag; seed++ {
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { runModel(t, seed, 300) }) {
			return
		}
	}
}

// TestDamagedLog takes any entries out of a log, not only those that a compaction may. What is left makes a group that is whole, and settles.
func TestDamagedLog(t *testing.T) {
	for seed := uint64(1); seed <= 60; seed++ {
		m := newModel(t, seed)
		for m.step = range 100 {
			m.churn()
		}
		m.log = slices.DeleteFunc(m.log, func(records.Entry) bool { return m.r.IntN(5) == 0 })
		m.held = nil
		m.reload(m.log)
		if err := m.g.Check(); err != nil {
			m.fail("%v", err)
		}
		m.lost, m.committed, m.heard = m.out.Proposed()-uint64(len(m.log)), len(m.log), 0
		for _, c := range m.clients {
			c.waits, c.full = false, true
		}
		m.quiesce()
	}
}

func runModel(t *testing.T, seed uint64, steps int) {
	t.Helper()
	m := newModel(t, seed)
	for m.step = range steps {
		m.churn()
		m.verify()
	}
	m.quiesce()
}

// part names a partition.
type part struct {
	topic ident.TopicID
	index int32
}

// client is a consumer that believes what it was told.
type client struct {
	id, instance string
	classic      bool
	topics       []string
	regex        *string
	assignor     *string
	epoch        int32 // or generation; 0: it has to join
	told, used   map[part]bool
	changed      bool // what it uses is not what it reported last
	full         bool // its next request says everything
	synced       bool // classic: its assignment is that of its generation
	waits        bool // for reply
	reply        *coord.ConsumerHeartbeatReply
	after        uint64
	gone         bool
}

type model struct {
	*world
	t       *testing.T
	seed    uint64
	step    int
	r       *rand.Rand
	clients []*client
	named   int
	lives   map[string]int
	lossy   bool // answers are lost, and nobody says everything again

	committed int    // entries of the log that cannot be lost; always the end of a step
	lost      uint64 // how many entries were counted and lost
	heard     int32  // greatest epoch that a client was told

	held     map[string]*records.CurrentAssignment // what members have, as the log says; nil: as it is found next
	followed int                                   // entries of the log that held has followed
}

func newModel(t *testing.T, seed uint64) *model {
	t.Helper()
	config := coord.DefaultConfig()
	config.Consumer.AssignmentInterval = []int32{0, 1000, 3000}[seed%3]
	if seed%2 == 1 {
		config.Assignors = []string{"range", "uniform"}
	}
	m := &model{world: newWorld(config), t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 7)), lives: map[string]int{}}
	m.grow("t1", 4)
	m.grow("t2", 3)
	return m
}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("seed %d step %d: %s\n%s", m.seed, m.step, fmt.Sprintf(format, args...), showAll(m.g.Entries()))
}

func (m *model) grow(name string, partitions int32) {
	i := slices.IndexFunc(m.topics, func(t coord.Topic) bool { return t.Name == name })
	next := slices.Clone(m.topics)
	switch {
	case i >= 0 && partitions == 0:
		next = slices.Delete(next, i, i+1)
	case i >= 0:
		next[i].Partitions = max(next[i].Partitions, partitions)
	case partitions > 0:
		m.lives[name]++
		next = append(next, coord.Topic{Name: name, ID: topicID(name, m.lives[name]), Partitions: partitions})
		slices.SortFunc(next, func(a, b coord.Topic) int { return strings.Compare(a.Name, b.Name) })
	}
	m.topics = next
	m.begin()
	m.g.TopicsChanged(m.now, &m.config, m.topics, &m.out)
	m.finish()
}

// finish ends a step of the group; now and then what is there is committed.
func (m *model) finish() {
	m.end()
	if m.r.IntN(2) == 0 {
		m.committed = len(m.log)
	}
}

// committedCount is the shard's count of entries up to the committed end.
func (m *model) committedCount() uint64 { return m.lost + uint64(m.committed) }

func (m *model) alive() []*client {
	return slices.DeleteFunc(slices.Clone(m.clients), func(c *client) bool { return c.gone })
}

func (m *model) churn() {
	switch n := m.r.IntN(100); {
	case n < 8:
		m.arrive()
	case n < 12:
		m.depart()
	case n < 14:
		m.restart()
	case n < 18:
		m.resubscribe()
	case n < 22:
		m.grow(fmt.Sprintf("t%d", 1+m.r.IntN(4)), int32(m.r.IntN(7)))
	case n < 30:
		m.pass([]int64{100, 1000, 5000, 20_000, 46_000}[m.r.IntN(5)])
	case n < 34:
		m.failover()
	case n < 36:
		m.commit()
	case n < 37:
		m.forget()
	case n < 38:
		m.late()
	default:
		if live := m.alive(); len(live) > 0 {
			m.act(live[m.r.IntN(len(live))], true)
		}
	}
}

func (m *model) pass(ms int64) {
	m.wait(ms, func() {})
}

func (m *model) fresh() string { m.named++; return fmt.Sprintf("m%d", m.named) }

func (m *model) arrive() {
	if len(m.alive()) >= 7 {
		return
	}
	c := &client{id: m.fresh(), classic: m.r.IntN(4) == 0}
	if c.classic && m.r.IntN(2) == 0 {
		c.id = ""
	}
	if m.r.IntN(3) == 0 {
		c.instance = fmt.Sprintf("i%d", m.r.IntN(3))
		if c.classic {
			c.id = ""
		}
	}
	m.choose(c)
	m.clients = append(m.clients, c)
}

func (m *model) choose(c *client) {
	c.topics = nil
	for i := 1; i <= 4; i++ {
		if m.r.IntN(2) == 0 {
			c.topics = append(c.topics, fmt.Sprintf("t%d", i))
		}
	}
	c.regex = nil
	if !c.classic && m.r.IntN(3) == 0 {
		c.regex = &[]string{"t[12]", "t.*", "nothing"}[m.r.IntN(3)]
	}
	c.assignor = nil
	if !c.classic && m.r.IntN(4) == 0 {
		c.assignor = &m.config.Assignors[m.r.IntN(2)]
	}
}

func (m *model) resubscribe() {
	if live := m.alive(); len(live) > 0 {
		c := live[m.r.IntN(len(live))]
		m.choose(c)
		c.full = true
		if c.classic {
			c.synced = false
		}
	}
}

// depart makes a client leave, or vanish without a word.
func (m *model) depart() {
	live := m.alive()
	if len(live) == 0 {
		return
	}
	c := live[m.r.IntN(len(live))]
	c.gone, c.used = true, nil
	if c.waits || c.epoch <= 0 || m.r.IntN(2) == 0 {
		return
	}
	if c.classic {
		m.begin()
		m.g.ClassicLeave(m.now, &m.config, m.topics, 1, &coord.Leave{Group: "g", Members: []coord.LeavingMember{{Member: c.id, Instance: c.instance}}}, &m.out)
		m.finish()
		return
	}
	request := &coord.ConsumerHeartbeat{Group: "g", Member: c.id, MemberEpoch: -1, RebalanceTimeout: -1}
	if c.instance != "" {
		request.Instance = &c.instance
	}
	m.heartbeat(request)
}

// forget has a client give up everything, as after a pause, and join again with the id it has.
func (m *model) forget() {
	live := m.alive()
	if len(live) == 0 {
		return
	}
	if c := live[m.r.IntN(len(live))]; !c.classic && !c.waits && c.epoch > 0 {
		c.epoch, c.used, c.told = 0, nil, nil
	}
}

// restart stops a static client, and starts it under another id, sometimes with the other protocol.
func (m *model) restart() {
	for _, c := range m.alive() {
		if c.instance == "" || c.waits || c.epoch <= 0 {
			continue
		}
		if c.classic { // without a word: it has none that says it will come back
			c.gone, c.used = true, nil
			m.clients = append(m.clients, &client{id: m.fresh(), instance: c.instance, topics: c.topics})
			return
		}
		m.heartbeat(&coord.ConsumerHeartbeat{Group: "g", Member: c.id, MemberEpoch: -2, RebalanceTimeout: -1, Instance: &c.instance})
		c.gone, c.used = true, nil
		next := &client{id: m.fresh(), instance: c.instance, topics: c.topics, regex: c.regex, classic: m.r.IntN(4) == 0}
		if next.classic {
			next.id, next.regex = "", nil
		}
		m.clients = append(m.clients, next)
		return
	}
}

// failover loses the coordinator, with what was not committed, and every answer that is under way.
func (m *model) failover() {
	if m.r.IntN(2) == 0 {
		m.committed = len(m.log)
	}
	for _, c := range m.clients {
		if c.waits && (c.after > m.committedCount() || m.r.IntN(2) == 0) {
			c.waits, c.full = false, true
		}
		c.after = 0
	}
	m.held = nil
	m.lost = m.out.Proposed() - uint64(m.committed)
	m.log = m.log[:m.committed]
	m.reload(compact(m.log, m.r, m.r.Float64()))
}

// act lets a client take its next step. faults may delay or lose its answer, and delay its giving up.
func (m *model) act(c *client, faults bool) {
	switch {
	case c.classic:
		m.actClassic(c)
	case c.waits && (c.after > m.committedCount() || faults && m.r.IntN(3) == 0):
		if faults && m.r.IntN(8) == 0 {
			c.waits, c.full = false, m.r.IntN(2) == 0 // it gave up waiting, and librdkafka does not say everything then
		}
	case c.waits:
		c.waits = false
		m.hear(c, c.reply)
	case !within(c.used, c.told) && (!faults || m.r.IntN(2) == 0):
		// It has finished with what it had to give up, and starts with what it may use.
		c.used, c.changed = copyOf(c.told), true
	default:
		m.send(c)
	}
}

func (m *model) send(c *client) {
	request := &coord.ConsumerHeartbeat{Group: "g", Member: c.id, MemberEpoch: max(0, c.epoch), RebalanceTimeout: -1, Client: coord.Client{ID: "c", Host: "/127.0.0.1"}}
	if c.instance != "" {
		request.Instance = &c.instance
	}
	if c.epoch <= 0 {
		c.used, c.told = nil, nil
	}
	if c.epoch <= 0 || c.full {
		request.RebalanceTimeout, request.Topics, request.Assignor = 30_000, append([]string{}, c.topics...), c.assignor
		empty := ""
		if request.Regex = c.regex; c.regex == nil {
			request.Regex = &empty
		}
	}
	if c.epoch <= 0 || c.full || c.changed || m.r.IntN(3) == 0 {
		request.Owned = ownedOf(c.used)
	}
	c.reply, c.full, c.changed = m.heartbeat(request), false, false
	if c.reply.Code == wire.FencedMemberEpoch && request.MemberEpoch == 0 {
		m.fail("bug 163: %s cannot join: %s", c.id, c.reply.Message)
	}
	if owner := m.static(c.instance); c.reply.Code == wire.UnreleasedInstanceID && owner.Value.Classic != nil {
		m.fail("bug 166: %s cannot take the place of %s, which speaks the classic protocol", c.id, owner.Member)
	}
	if c.reply.Code == wire.NoError {
		m.waitsForSomebody(request)
	}
	if m.r.IntN(2) == 0 {
		m.committed = len(m.log)
	}
	c.waits, c.after = true, m.out.Proposed()
}

func (m *model) hear(c *client, r *coord.ConsumerHeartbeatReply) {
	switch r.Code {
	case wire.NoError:
		c.epoch = r.MemberEpoch
		m.heard = max(m.heard, r.MemberEpoch)
		if !r.Assigned {
			return
		}
		c.told = map[part]bool{}
		for _, t := range r.Assignment {
			for _, p := range t.Partitions {
				c.told[part{t.Topic, p}] = true
			}
		}
		if within(c.used, c.told) {
			c.used, c.changed = copyOf(c.told), true
		}
	case wire.FencedMemberEpoch, wire.UnknownMemberID, wire.FencedInstanceID, wire.GroupIDNotFound:
		c.epoch, c.used, c.told = 0, nil, nil
		if r.Code == wire.FencedInstanceID {
			c.gone = true
		}
	case wire.UnreleasedInstanceID:
		c.epoch = 0
	default:
		m.fail("%s was answered %v %s", c.id, r.Code, r.Message)
	}
}

// commit has a client commit all it uses, sometimes with an epoch of before.
func (m *model) commit() {
	live := m.alive()
	if len(live) == 0 {
		return
	}
	c := live[m.r.IntN(len(live))]
	request := &coord.Commit{Version: 9, Group: "g", Member: c.id, Generation: c.epoch - int32(m.r.IntN(2))}
	for _, p := range partsOf(c.used) {
		request.Topics = append(request.Topics, coord.CommitTopic{ID: p.topic, Partitions: []coord.CommitPartition{{Partition: p.index}}})
	}
	m.begin()
	if m.g.CheckCommit(m.now, &m.config, request, &m.out) != wire.NoError {
		return
	}
	current, member := m.currents()[c.id], m.g.Has(c.id)
	switch {
	case !member && m.g.Empty() && request.Generation < 0:
	case !member || current == nil:
		m.fail("invariant 35: a commit of %s, who is no member, was accepted", c.id)
	case current.MemberEpoch == request.Generation:
	default:
		for _, p := range partsOf(c.used) {
			if epoch, ok := epochOf(current, p); !ok || epoch > request.Generation {
				m.fail("invariant 35: a commit of %s with epoch %d was accepted for %v", c.id, request.Generation, p)
			}
		}
	}
}

func (m *model) currents() map[string]*records.CurrentAssignment {
	all := map[string]*records.CurrentAssignment{}
	for _, e := range m.g.Entries() {
		if e, ok := e.(*records.Current); ok {
			all[e.Member] = e.Value
		}
	}
	return all
}

func epochOf(c *records.CurrentAssignment, p part) (int32, bool) {
	for _, t := range append(slices.Clone(c.Assigned), c.Revoking...) {
		if i := slices.Index(t.Partitions, p.index); t.Topic == p.topic && i >= 0 {
			return t.Epochs[i], true
		}
	}
	return 0, false
}

func (m *model) verify() {
	if err := m.g.Check(); err != nil {
		m.fail("%v", err)
	}
	if m.r.IntN(4) == 0 {
		m.check(m.t, m.r)
	}
	m.follow()
	currents := m.currents()
	for _, c := range m.clients {
		if c.gone || !m.g.Has(c.id) || c.epoch <= 0 {
			continue
		}
		for p := range c.used {
			if _, ok := m.topics.ByID(p.topic); !ok {
				continue // nobody can use what is gone, and a client cannot say that it does (seed 1251 of d2a1f9d)
			}
			for id, current := range currents {
				if _, ok := epochOf(current, p); ok && id != c.id {
					m.fail("invariant 33: %s uses partition %s-%d, which %s has", c.id, nameOf(p.topic), p.index, id)
				}
			}
		}
	}
	if m.heard > m.g.Epoch() {
		m.fail("invariant 34: somebody was told epoch %d, the group epoch is %d", m.heard, m.g.Epoch())
	}
}

// quiesce ends the churn: nobody comes, nothing is lost. Everybody has to get to the end of it.
func (m *model) quiesce() {
	m.grow("t1", 5)
	// Of two with the same instance one gives up: the group will not have both.
	instances := map[string]*client{}
	for _, c := range m.alive() {
		other := instances[c.instance]
		switch {
		case c.instance == "":
		case other == nil:
			instances[c.instance] = c
		case m.g.Has(other.id) && other.epoch > 0:
			c.gone, c.used = true, nil
		default:
			other.gone, other.used = true, nil
			instances[c.instance] = c
		}
	}
	m.settle()
	// A settled group follows its topics, and then stays as it is while its members heartbeat.
	m.grow("t1", 7)
	m.lossy = true
	for range 15 { // patterns are resolved again within ten seconds
		m.round()
	}
	m.lossy = false
	m.settle()
	epoch := m.g.Epoch()
	for range 60 {
		m.round()
	}
	if m.g.Epoch() != epoch || m.settled() != "" {
		m.fail("a quiet group went from epoch %d to %d: %s", epoch, m.g.Epoch(), m.settled())
	}
	m.verify()
}

func (m *model) settle() {
	for range 200 {
		m.round()
		if m.settled() == "" {
			m.verify()
			return
		}
	}
	m.fail("the group did not settle: %s", m.settled())
}

// round lets every client heartbeat, and hear of it, within a second.
func (m *model) round() {
	for _, c := range m.alive() {
		m.committed = len(m.log)
		m.act(c, false)
		m.committed = len(m.log)
		if c.waits && m.lossy && m.r.IntN(4) == 0 {
			c.waits = false
		}
		if c.waits {
			m.act(c, false)
		}
	}
	m.pass(1000)
}

// settled tells what is missing to a settled group.
func (m *model) settled() string {
	if m.g.Empty() {
		if n := len(m.alive()); n > 0 {
			return fmt.Sprintf("no members, %d clients", n)
		}
		return ""
	}
	if m.g.State() != "Stable" || m.g.Len() != len(m.alive()) {
		return fmt.Sprintf("%s, %d members of %d clients", m.g.State(), m.g.Len(), len(m.alive()))
	}
	owners := map[part]string{}
	for id, current := range m.currents() {
		if current.MemberEpoch != m.g.Epoch() {
			return fmt.Sprintf("%s has epoch %d", id, current.MemberEpoch)
		}
		for _, t := range current.Assigned {
			for _, p := range t.Partitions {
				owners[part{t.Topic, p}] = id
			}
		}
	}
	for _, t := range m.topics {
		for p := range t.Partitions {
			if _, ok := owners[part{t.ID, p}]; ok != m.g.Subscribed(t.Name) {
				return fmt.Sprintf("%s-%d: subscribed %v, assigned %v", t.Name, p, m.g.Subscribed(t.Name), ok)
			}
		}
	}
	for _, c := range m.alive() {
		current := m.currents()[c.id]
		if current == nil || c.waits {
			return fmt.Sprintf("client %s is no member, or waits", c.id)
		}
		for p := range c.used {
			if owners[p] != c.id {
				return fmt.Sprintf("%s uses %v of %q", c.id, p, owners[p])
			}
		}
		n := 0
		for _, id := range owners {
			if id == c.id {
				n++
			}
		}
		if n != len(c.used) {
			return fmt.Sprintf("%s uses %d of its %d partitions", c.id, len(c.used), n)
		}
	}
	return ""
}
