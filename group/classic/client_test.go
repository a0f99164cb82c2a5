package classic_test

import (
	"fmt"

	"github.com/troupe-broker/troupe/group/classic"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

var topicNames = []string{"t", "u", "v"}

// phase is what a client is doing.
type phase int8

const (
	out phase = iota
	joining
	syncing
	active
	gone
)

func (p phase) String() string { return [...]string{"out", "joining", "syncing", "active", "gone"}[p] }

// client behaves as Kafka's Java consumer does, but for the errors its model makes it commit.
type client struct {
	m                *model
	name, instance   string
	version          int16
	topics           []string
	protocols        []string
	session, rebound int32
	busy             bool // it sends heartbeats, and does not rejoin for as long as it may

	phase      phase
	member     string
	generation int32
	protocol   string
	attempt    int // answers to earlier attempts are not listened to
	beating    bool
}

// decide makes up the client's mind.
func (c *client) decide() {
	r := c.m.rng
	c.topics = topicNames[:1+r.IntN(len(topicNames))]
	c.protocols = [][]string{{"range"}, {"range", "sticky"}, {"sticky", "range"}}[r.IntN(3)]
	switch r.IntN(40) {
	case 0:
		c.protocols = []string{"own"}
	case 1, 2:
		c.protocols = []string{"sticky"} // others may have it, and not all
	}
	c.session = int32(1000 + r.IntN(5000))
	c.rebound = int32(1000 + r.IntN(5000))
	if c.busy {
		c.rebound = 600_000
	}
}

func (c *client) start() {
	if c.phase == out {
		c.join()
	}
}

// die ends the process: nothing is said any more, nothing listened to.
func (c *client) die() {
	if c.phase == joining || c.phase == syncing {
		c.m.seen.other["request parked for ever by a dead client"]++
	}
	c.phase = gone
	c.attempt++
}

// ask sends a request: send gives it to the group that lives when it arrives. It may be lost, doubled, or come again much later.
func (c *client) ask(send func(l *life), hear func(coord.Answer)) {
	m := c.m
	c.attempt++
	attempt := c.attempt
	deliver := func(listen bool) func() {
		return func() {
			l := m.life
			l.last++
			id := l.last
			l.open[id] = func(a coord.Answer) {
				if listen && c.attempt == attempt {
					hear(a)
				}
			}
			send(l)
		}
	}
	wild := !m.calm
	if !wild || !m.chance(2) {
		m.after(int64(m.rng.IntN(20)), deliver(true))
	}
	if wild && m.chance(3) {
		m.after(int64(m.rng.IntN(50)), deliver(false))
	}
	if wild && m.chance(3) {
		m.zombies = append(m.zombies, deliver(false))
	}
	// A client that hears nothing asks again, on another connection.
	m.after(int64(c.rebound)+5000, func() {
		if c.attempt == attempt && (c.phase == joining || c.phase == syncing) {
			c.join()
		}
	})
}

func (c *client) join() {
	if c.phase == gone {
		return
	}
	c.phase = joining
	m := c.m
	m.ids++
	req := &coord.Join{
		Group: "g", Member: c.member, Instance: c.instance, NewMember: fmt.Sprintf("%s%d", c.name, m.ids), Client: coord.Client{ID: c.name, Host: "/h"},
		ProtocolType: classic.ConsumerProtocol, SessionTimeout: c.session, RebalanceTimeout: c.rebound,
		RequireKnownMember: c.version >= 4, SkipAssignment: c.version >= 9,
	}
	for _, p := range c.protocols {
		req.Protocols = append(req.Protocols, coord.Protocol{Name: p, Metadata: subscription(c.topics...)})
	}
	c.ask(func(l *life) {
		r := *req
		if r.Member == "" { // each request that arrives is given an id of its own
			m.ids++
			r.NewMember = fmt.Sprintf("%s%d", c.name, m.ids)
		}
		m.say("%d: %s joins as %q/%s, new %s, %v %v", l.last, c.name, r.Member, r.Instance, r.NewMember, c.protocols, c.topics)
		entries := len(l.out.Entries)
		l.g.Join(m.clock(), &m.cfg, l.last, &r, &l.out)
		if r.Instance != "" && len(l.out.Entries) > entries && l.g.State() == classic.Stable {
			m.seen.other["static member replaced silently"]++
		}
	}, c.joined)
}

func (c *client) joined(a coord.Answer) {
	r, ok := a.(*coord.JoinReply)
	if !ok {
		c.again()
		return
	}
	switch r.Code {
	case wire.NoError:
		c.member, c.generation, c.protocol = r.Member, r.Generation, r.Protocol
		c.sync(r)
	case wire.MemberIDRequired:
		c.member = r.Member
		if c.m.chance(5) && !c.m.calm {
			c.phase = out // it changes its mind, the group need not know
			c.member = ""
			c.m.after(8000, c.start)
			return
		}
		c.join()
	case wire.UnknownMemberID:
		c.member = ""
		c.join()
	case wire.FencedInstanceID, wire.InconsistentGroupProtocol, wire.GroupMaxSizeReached:
		c.die()
	default:
		c.again()
	}
}

// again joins again after a while.
func (c *client) again() { c.m.after(50, c.join) }

func (c *client) sync(joined *coord.JoinReply) {
	c.phase = syncing
	m := c.m
	req := &coord.Sync{Group: "g", Member: c.member, Instance: c.instance, Generation: c.generation, ProtocolType: joined.ProtocolType, Protocol: joined.Protocol}
	if !joined.SkipAssignment {
		for i, other := range joined.Members { // one partition each, but for those it forgets
			if !m.chance(10) {
				req.Assignments = append(req.Assignments, coord.MemberAssignment{Member: other.Member, Assignment: []byte{'0' + byte(i)}})
			}
		}
	}
	if m.chance(3) && !m.calm {
		m.say("%s does not sync", c.name)
		c.beat()
		m.after(int64(c.rebound)+2000, c.join)
		return
	}
	c.ask(func(l *life) {
		m.say("%d: %s syncs as %s in %d", l.last, c.name, c.member, req.Generation)
		generation, replies := l.g.Generation(), len(l.out.Replies)
		l.g.Sync(m.clock(), &m.cfg, l.last, req, &l.out)
		refused := len(l.out.Replies) > replies && l.out.Replies[replies].Request == l.last && l.out.Replies[replies].Answer.(*coord.SyncReply).Code != wire.NoError
		if !refused && req.Generation != generation {
			panic(fmt.Sprintf("a Sync of generation %d is taken in %s", req.Generation, l.g.Draw()))
		}
	}, c.synced)
	c.beat()
}

func (c *client) synced(a coord.Answer) {
	r, ok := a.(*coord.SyncReply)
	switch {
	case !ok:
		c.again()
	case r.Code == wire.NoError:
		c.phase = active
		c.beat()
	case r.Code == wire.FencedInstanceID:
		c.die()
	case r.Code == wire.UnknownMemberID:
		c.member = ""
		c.join()
	default:
		c.join()
	}
}

// beat sends heartbeats for as long as the client is in a generation.
func (c *client) beat() {
	if c.beating {
		return
	}
	c.beating = true
	c.m.after(int64(c.session)/4, func() {
		c.beating = false
		if c.phase != active && c.phase != syncing {
			return
		}
		c.heartbeat()
		c.beat()
	})
}

func (c *client) heartbeat() {
	m := c.m
	attempt := c.attempt
	req := &coord.Heartbeat{Group: "g", Member: c.member, Instance: c.instance, Generation: c.generation}
	send := func() {
		l := m.life
		l.last++
		id := l.last
		l.open[id] = func(a coord.Answer) {
			if c.attempt != attempt || c.phase != active {
				return
			}
			r, ok := a.(*coord.HeartbeatReply)
			switch {
			case !ok || r.Code == wire.NoError:
			case r.Code == wire.FencedInstanceID:
				c.die()
			case r.Code == wire.UnknownMemberID:
				c.member = ""
				c.join()
			case c.busy:
				m.after(int64(c.rebound)-10_000, func() {
					if c.attempt == attempt {
						c.join()
					}
				})
			default:
				c.join()
			}
		}
		l.g.Heartbeat(m.clock(), &m.cfg, id, req, &l.out)
		code := l.out.Replies[len(l.out.Replies)-1].Answer.(*coord.HeartbeatReply).Code
		m.expectFenced(req.Generation, code)
		if code == wire.NoError || code == wire.RebalanceInProgress {
			m.expectAlive(req.Member)
		}
	}
	m.after(int64(m.rng.IntN(20)), send)
	if m.chance(5) && !m.calm {
		m.zombies = append(m.zombies, send)
	}
	if m.chance(30) {
		commit := func() {
			m.commit(&coord.Commit{Group: "g", Member: req.Member, Instance: req.Instance, Generation: req.Generation})
		}
		m.after(int64(m.rng.IntN(20)), commit)
		if m.chance(10) && !m.calm {
			m.zombies = append(m.zombies, commit)
		}
	}
}

// expectFenced: only the current generation is served (invariant 35).
func (m *model) expectFenced(generation int32, code wire.ErrorCode) {
	if code == wire.NoError && generation != m.life.g.Generation() {
		panic(fmt.Sprintf("invariant 35: generation %d is served, it is %d", generation, m.life.g.Generation()))
	}
}

// expectAlive: who was just heard of has a whole session timeout.
func (m *model) expectAlive(member string) {
	for _, other := range m.life.g.Members() {
		if left := m.life.g.Deadline(member) - m.clock().Mono; other.ID == member && left != ident.Instant(other.SessionTimeout)*millisecond {
			panic(fmt.Sprintf("%s has %d ms after a heartbeat", member, left/millisecond))
		}
	}
}

// commit commits, and expects of the answer what invariant 35 says.
func (m *model) commit(c *coord.Commit) {
	g := m.life.g
	code := g.CheckCommit(m.clock(), &m.cfg, c, &m.life.out)
	m.seen.other["commit "+code.String()]++
	m.expectFenced(c.Generation, code)
	if code != wire.NoError {
		return
	}
	for _, other := range g.Members() {
		if other.ID == c.Member && other.Instance == c.Instance && g.State() != classic.CompletingRebalance {
			return
		}
	}
	panic(fmt.Sprintf("invariant 35: %s commits in %s", c.Member, g.Draw()))
}

// leave says farewell. A static member says nothing.
func (c *client) leave() {
	m, req := c.m, &coord.Leave{Group: "g", Members: []coord.LeavingMember{{Member: c.member, Instance: c.instance}}}
	if c.member == "" {
		return
	}
	if m.chance(30) {
		req.Members = append(req.Members, coord.LeavingMember{Instance: "ia"}, coord.LeavingMember{Member: "stranger"})
	}
	m.after(int64(m.rng.IntN(20)), func() {
		l := m.life
		l.last++
		l.open[l.last] = func(coord.Answer) {}
		m.say("%d: %v leave", l.last, req.Members)
		l.g.Leave(m.clock(), &m.cfg, l.last, req, &l.out)
	})
}

// churn is what people and machines do to clients.
func (m *model) churn() {
	if m.calm {
		return
	}
	c := m.clients[m.rng.IntN(len(m.clients))]
	switch m.rng.IntN(9) {
	case 0:
		m.say("%s dies", c.name)
		c.die()
	case 1, 2: // it is started, or restarted
		m.say("%s is started again", c.name)
		c.attempt++
		c.member, c.generation, c.phase = "", 0, out
		m.after(int64(m.rng.IntN(300)), c.start)
	case 3: // it leaves, and comes back
		if c.instance == "" {
			c.leave()
		}
		c.die()
		c.member, c.phase = "", out
		m.after(int64(m.rng.IntN(3000)), c.start)
	case 4: // it wants something else
		c.decide()
		if c.phase == active {
			c.join()
		}
	case 5:
		if c.phase == active {
			c.join()
		}
	case 6: // an operator removes it
		c.leave()
	case 7: // a long pause: the process is stopped, its requests come later
		if c.phase == active {
			c.phase = out
			m.after(int64(c.session)+int64(m.rng.IntN(4000)), c.start)
		}
	case 8:
		for _, again := range m.zombies {
			m.after(int64(m.rng.IntN(100)), again)
		}
		m.zombies = m.zombies[:0]
	}
	m.after(int64(m.rng.IntN(1500)), m.churn)
}
