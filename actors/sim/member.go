package sim

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// member is a process that consumes in a group: it joins, reads the partitions that it is told to, from where the group has committed, and commits where it
// is. It speaks the classic protocol, as the eager consumers of old (memberclassic.go), or that of KIP-848 (membermodern.go). It asks one thing at a time,
// but does not wait for its commits.
type member struct {
	*client
	modern    bool
	ghost     *ghostGroup
	topics    []*ghostTopic  // that exist
	found     bool           // the coordinator
	at        ident.BrokerID // where it is, among several brokers
	source    ident.BrokerID // likewise, who is asked for records
	leaders   leaders        // likewise, of all partitions
	looked    bool           // at the metadata
	busy      int            // requests, without commits
	away      bool           // silent, or dead, or out of its group
	finishing bool

	lives     int           // processes
	id        string        // of the member
	epoch     int32         // of the member, or its generation; below 1: it is none
	beats     ident.Instant // when the next heartbeat is due
	confirmed ident.Instant // when the last request was sent by whose answer the coordinator knows it in its epoch; 0: none
	parts     []*part
	marks     int // commits

	joins   bool                                   // classic and gradual: it joins with what it reads
	since   int32                                  // of these: the generation in which it was told to read that
	syncs   bool                                   // classic: the next step is a Sync
	leads   bool                                   // it watches over the topics
	deals   bool                                   // and assigns them
	crew    []kmsg.JoinGroupResponseMember         // of the leader
	wanted  []string                               // topics that the crew subscribes to
	shares  []kmsg.SyncGroupRequestGroupAssignment // that it deals in this generation; nil: not yet
	unseen  []told                                 // classic: what it was told to read, and has not seen in the metadata yet
	layout  string                                 // of these, as the leader has assigned them
	full    bool                                   // modern: say everything, the coordinator may not know it
	reports bool                                   // say what is read

	pattern *regexp.Regexp // that it subscribes to, when it is modern
}

// part is a partition that a member reads.
type part struct {
	topic  *ghostTopic
	number int32
	hold   *hold
	reader *reader
	asked  bool         // where the group is
	sure   ident.Offset // the newest commit that was acknowledged to this member, or fetched; -1: none
}

func newMember(c *client) *member {
	m := &member{client: c, modern: c.plan.Kind == Modern, ghost: c.run.groups.group(c.plan.Group)}
	commit, fetch := int16(kmsg.OffsetCommit), int16(kmsg.OffsetFetch)
	c.versions[commit] = max(c.versions[commit], 9) // the first with epochs of members; a fault may have it speak either protocol
	c.versions[fetch] = max(c.versions[fetch], 8)
	if c.plan.Regex != "" {
		m.pattern = regexp.MustCompile(`\A(?:` + c.plan.Regex + `)\z`)
		c.versions[int16(kmsg.ConsumerGroupHeartbeat)] = 1
	}
	if join := int16(kmsg.JoinGroup); c.plan.Instance != "" {
		c.versions[join] = 9 // before KIP-814 a static leader that comes back is not told that it leads, and nobody looks after the topics
	}
	return m
}

// begin begins a life.
func (m *member) begin() {
	m.lives++
	m.forget()
	m.id, m.found, m.looked, m.busy = "", false, false, 0
}

func (m *member) connected() {
	connection := m.connection
	var again func()
	again = func() {
		if m.end == nil || m.connection != connection {
			return
		}
		m.act()
		m.after(m.turn(), again)
	}
	again()
}

// turn is how long the member does nothing. An answer brings records of one segment, which may hold a few milliseconds' worth, and a turn that goes to a heartbeat
// reads nothing: who is to come to an end takes shorter ones, or it would not read in time what others wrote while it was away.
func (m *member) turn() time.Duration {
	if m.finishing {
		return m.pause() / 4
	}
	return m.pause()
}

func (m *member) lost()   { m.full = true }
func (m *member) finish() { m.finishing = true }

// done tells whether the group has come to rest, as far as this member has to do with it.
func (m *member) done() bool {
	if m.away || m.epoch < 1 || m.syncs || m.joins {
		return false
	}
	for _, p := range m.parts {
		if p.topic.stable() && (!p.reader.begun || p.reader.stale() || !p.read() || p.sure != p.reader.next) {
			return false
		}
	}
	return m.uncovered() == ""
}

// stateOf tells where a member is, for a story of one that does not come to rest.
func stateOf(s script) string {
	m, ok := s.(*member)
	if !ok {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, ": modern=%v away=%v busy=%d found=%v id=%q epoch=%d joins=%v syncs=%v leads=%v (%s), nobody reads %q", m.modern, m.away, m.busy, m.found, m.id, m.epoch, m.joins, m.syncs, m.leads, m.layout, m.uncovered())
	for _, p := range m.parts {
		fmt.Fprintf(&b, " %s-%d (begun=%v asked=%v at %d of %d, committed %d)", p.topic.name, p.number, p.reader.begun, p.asked, p.reader.next, p.topic.partition(p.number).high, p.sure)
	}
	return b.String()
}

// read tells whether everything was.
func (p *part) read() bool { return p.reader.next >= p.topic.partition(p.number).high }

// uncovered names a partition of a topic that somebody of the group subscribes to, and nobody reads, as far as this member knows the topics; "": there is none.
func (m *member) uncovered() string {
	read := make(map[*ghostPartition]bool)
	var crew []*member
	for _, c := range m.run.clients {
		if o, ok := c.script.(*member); ok && o.ghost == m.ghost {
			crew = append(crew, o)
			for _, p := range o.parts {
				read[p.topic.partition(p.number)] = true
			}
		}
	}
	for _, t := range m.topics {
		if !slices.ContainsFunc(crew, func(o *member) bool { return o.subscribes(t.name) }) || !t.stable() || m.run.ghost.reborn(t.name) {
			continue
		}
		for _, p := range t.partitions {
			if !read[p] {
				return fmt.Sprintf("%s-%d", t.name, p.number)
			}
		}
	}
	return ""
}

func (m *member) subscription() []string { return strings.Split(m.plan.Topics, ",") }

// subscribes tells whether a topic of that name is the member's to read.
func (m *member) subscribes(name string) bool {
	if m.modern && m.pattern != nil {
		return m.pattern.MatchString(name)
	}
	return slices.Contains(m.subscription(), name)
}

func (m *member) instance() *string {
	if m.plan.Instance == "" {
		return nil
	}
	return &m.plan.Instance
}

// session is how long the coordinator goes without hearing of the member.
func (m *member) session() time.Duration {
	if !m.modern {
		return m.plan.Session
	}
	text, _ := m.run.plan.Settings.Get("group.consumer.session.timeout.ms")
	ms, err := strconv.Atoi(text)
	if err != nil {
		ms = 45_000
	}
	session := time.Duration(ms) * time.Millisecond
	if m.ghost.shortest > 0 {
		session = min(session, m.ghost.shortest)
	}
	return session
}

// vouched tells whether the coordinator cannot have given the member up: it granted something a moment ago. Clocks may be wrong by a twentieth.
func (m *member) vouched() bool {
	return m.epoch > 0 && m.confirmed != 0 && m.now()-m.confirmed < ident.Instant(min(m.session(), m.plan.Rebalance)*9/10)
}

// struck lets something befall the member.
func (m *member) struck(f *FaultPlan) {
	if m.away || m.quit {
		return
	}
	m.away = true
	dies := f.Kind == Die || f.Kind == Move
	if dies {
		m.forget()
		m.leave()
	} else if f.Kind == Quit {
		m.resign()
	}
	m.run.lasts(f, func() {
		m.away = false
		if dies {
			m.modern = m.modern != (f.Kind == Move)
			m.quit, m.via = false, nil
			m.begin()
			m.connect()
		} else if f.Kind == Silence { // it goes on where it was, and does not know what has become of that
			m.run.counted("member back from silence")
			m.commit(true)
		}
	})
}

func (m *member) act() {
	switch {
	case m.away || m.busy > 0:
	case !m.found:
		m.find()
	case !m.looked || chance(m.rand, 2):
		m.look()
	case m.modern && (m.epoch < 1 || m.reports || m.now() >= m.beats):
		m.beat()
	case !m.modern && m.syncs:
		m.sync()
	case !m.modern && (m.epoch < 1 || m.joins):
		m.join()
	case !m.modern && m.now() >= m.beats:
		m.heartbeat()
	case m.any(func(p *part) bool { return !p.asked || p.reader.stale() }):
		m.fetchOffsets()
	case m.any(func(p *part) bool { return !p.reader.begun }):
		m.locate()
	case chance(m.rand, 15) || m.finishing && chance(m.rand, 50):
		m.commit(false)
	case len(m.parts) > 0:
		m.fetch()
	}
}

func (m *member) any(is func(*part) bool) bool { return slices.ContainsFunc(m.parts, is) }

// request sends one and remembers that it is under way.
func (m *member) request(req kmsg.Request, answer func(kmsg.Response)) {
	line := m.line(req)
	if line == nil {
		return
	}
	m.busy++
	life := m.lives
	line.ask(req, func(resp kmsg.Response, err error) {
		if m.lives != life {
			return // who asked is dead
		}
		m.busy--
		if err != nil {
			m.broken(req)
			return
		}
		answer(resp)
	})
}

// find asks for the coordinator, which makes the topic of offsets if it is not there.
func (m *member) find() {
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.CoordinatorKey, req.CoordinatorKeys = m.ghost.name, []string{m.ghost.name}
	m.request(req, func(resp kmsg.Response) {
		r := resp.(*kmsg.FindCoordinatorResponse)
		code := r.ErrorCode
		m.at = ident.BrokerID(r.NodeID)
		for _, c := range r.Coordinators {
			code, m.at = c.ErrorCode, ident.BrokerID(c.NodeID)
		}
		if m.found = code == 0; !m.found {
			m.run.allow(m.name, "FindCoordinator", code, wire.CoordinatorNotAvailable, wire.CoordinatorLoadInProgress, wire.RequestTimedOut)
		}
	})
}

func (m *member) look() {
	sent := m.now()
	m.request(kmsg.NewPtrMetadataRequest(), func(resp kmsg.Response) {
		m.looked = true
		m.topics, m.leaders = m.run.topicsOf(resp.(*kmsg.MetadataResponse), sent), leadersOf(resp.(*kmsg.MetadataResponse))
		m.follow(sent)
		if m.leads && m.epoch > 0 && !m.syncs && m.layoutNow() != m.layout {
			m.rejoin() // what it assigned is not what there is
		}
	})
}

// take begins to read a partition that it was told to, or that has the name of one.
func (m *member) take(t *ghostTopic, number int32, sent, began ident.Instant) {
	m.ghost.modern = m.ghost.modern || m.modern
	p := &part{topic: t, number: number, reader: newReader(m.run, t, number), sure: -1}
	p.hold = &hold{member: m, sent: sent, told: m.now(), byName: !m.modern, began: began}
	if m.present() {
		m.ghost.place(t.partition(number)).give(p.hold)
	}
	m.parts = append(m.parts, p)
}

// release ends the reading of some partitions.
func (m *member) release(which func(*part) bool) {
	var left []*part
	for _, p := range m.parts {
		if which(p) {
			p.hold.released = true
		} else {
			left = append(left, p)
		}
	}
	m.parts = left
}

// forget begins anew: it is no member, or does not know. It keeps its id.
func (m *member) forget() {
	m.release(func(*part) bool { return true })
	m.epoch, m.since, m.joins, m.syncs, m.leads, m.deals, m.crew, m.unseen, m.confirmed, m.reports = 0, 0, false, false, false, false, nil, nil, 0, false
	m.full = true
}

// resign leaves the group in order.
func (m *member) resign() {
	if m.end == nil || m.epoch < 1 {
		m.forget()
		m.id = ""
		return
	}
	m.commit(true)
	id, epoch := m.id, m.epoch
	m.forget()
	m.id = ""
	m.run.counted("member leaves")
	if m.modern {
		m.leaveModern(id, epoch)
		return
	}
	m.leaveClassic(id)
}

// Codes by which a coordinator says that it is in trouble, or not the one.
var elsewhere = []wire.ErrorCode{wire.NotCoordinator, wire.CoordinatorNotAvailable, wire.CoordinatorLoadInProgress, wire.RequestTimedOut}

// heard does what a code asks for. It tells whether there was none.
func (m *member) heard(api string, code int16, allowed ...wire.ErrorCode) bool {
	if code == 0 {
		m.run.counted(api + " NONE")
		return true
	}
	m.run.allow(m.name, api, code, slices.Concat(elsewhere, allowed)...)
	m.run.tell("%s (%q, epoch %d of %s): %s is answered %v", m.name, m.id, m.epoch, m.ghost.name, api, wire.ErrorCode(code))
	switch c := wire.ErrorCode(code); c {
	case wire.UnknownMemberID, wire.FencedInstanceID:
		m.forget()
		if !m.modern {
			m.id = ""
		}
	case wire.FencedMemberEpoch, wire.GroupIDNotFound, wire.IllegalGeneration:
		m.forget()
	case wire.RebalanceInProgress:
		m.rejoin()
	case wire.UnreleasedInstanceID, wire.StaleMemberEpoch: // later
	default:
		m.found = !slices.Contains(elsewhere, c)
	}
	return false
}
