package group_test

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// client is a process that consumes in a group, by the classic protocol or the new one. It forgets, repeats and lies about its generation as real ones do
// after pauses.
type client struct {
	name     string
	modern   bool
	group    string
	instance string

	member     string
	generation int32
	leader     bool
	members    []string // of the leader
	waiting    bool     // a Join or Sync is parked
	owned      []coord.TopicPartitions
	topics     []string
}

func newClient(i int) *client {
	c := &client{name: fmt.Sprintf("c%d", i), modern: i%2 == 0, group: groupNames[1+i%3], topics: []string{"a", "b"}}
	if i > 6 {
		c.instance = c.name
	}
	return c
}

func (c *client) who() coord.Client { return coord.Client{ID: c.name, Host: "/10.0.0.1"} }

// act does what the client may do next, or what it should not.
func (c *client) act(m *model) {
	switch n := m.rng.IntN(20); {
	case n == 0: // the process dies: nobody waits for its answers
		c.forget()
		if m.rng.IntN(3) == 0 {
			c.modern = !c.modern
		}
	case n == 1:
		c.leave(m)
	case n < 6:
		c.commit(m)
	case n < 8:
		c.ask(m)
	case c.modern:
		c.beat(m)
	case c.waiting:
	case c.member == "" || c.generation == 0 || n < 11:
		c.join(m)
	case n < 16:
		c.sync(m)
	default:
		m.send(&coord.Heartbeat{Group: c.group, Member: c.member, Instance: c.instance, Generation: c.generation}, func(a coord.Answer) {
			c.heard(a.(*coord.HeartbeatReply).Code)
		})
	}
}

func (c *client) forget() {
	c.member, c.generation, c.leader, c.members, c.waiting, c.owned = "", 0, false, nil, false, nil
}

// heard follows an error as clients do.
func (c *client) heard(code wire.ErrorCode) {
	switch code {
	case wire.UnknownMemberID, wire.FencedInstanceID, wire.FencedMemberEpoch, wire.GroupIDNotFound, wire.InconsistentGroupProtocol:
		c.forget()
	case wire.RebalanceInProgress, wire.IllegalGeneration:
		c.generation = 0
	default:
	}
}

func (c *client) join(m *model) {
	m.ids++
	c.topics = pick(m.rng, [][]string{{"a"}, {"a", "b"}, {"b", "c"}})
	j := &coord.Join{
		Group: c.group, Member: c.member, Instance: c.instance, NewMember: fmt.Sprintf("%s-%d", c.name, m.ids), Client: c.who(), ProtocolType: "consumer",
		SessionTimeout: 10_000 + 1_000*int32(m.rng.IntN(50)), RebalanceTimeout: 60_000, RequireKnownMember: m.rng.IntN(2) == 0,
		Protocols: []coord.Protocol{{Name: "range", Metadata: subscription(c.topics, nil)}, {Name: "other", Metadata: subscription(c.topics, nil)}},
	}
	c.waiting = true
	incarnation := j.NewMember
	c.members = []string{incarnation}
	m.send(j, func(a coord.Answer) {
		if !slices.Equal(c.members, []string{incarnation}) {
			return // the process that asked is gone
		}
		r := a.(*coord.JoinReply)
		c.waiting = false
		switch r.Code {
		case wire.NoError:
			c.member, c.generation, c.leader, c.members = r.Member, r.Generation, r.Leader == r.Member, nil
			for _, other := range r.Members {
				c.members = append(c.members, other.Member)
			}
		case wire.MemberIDRequired:
			c.member = r.Member
		default:
			c.heard(r.Code)
		}
	})
}

func (c *client) sync(m *model) {
	s := &coord.Sync{Group: c.group, Member: c.member, Instance: c.instance, Generation: c.generation}
	if c.leader {
		for i, member := range c.members {
			s.Assignments = append(s.Assignments, coord.MemberAssignment{Member: member, Assignment: assignmentBytes(c.topics, int32(i))})
		}
	}
	member := c.member
	c.waiting = true
	m.send(s, func(a coord.Answer) {
		if c.member == member {
			c.waiting = false
			c.heard(a.(*coord.SyncReply).Code)
		}
	})
}

func (c *client) leave(m *model) {
	if c.member == "" {
		return
	}
	member := c.member
	c.forget()
	if c.modern {
		h := &coord.ConsumerHeartbeat{Group: c.group, Member: member, Client: c.who(), MemberEpoch: -1, RebalanceTimeout: -1}
		if c.instance != "" {
			h.Instance = &c.instance
			h.MemberEpoch = int32(-1 - m.rng.IntN(2))
		}
		m.send(h, func(coord.Answer) {})
		return
	}
	m.send(&coord.Leave{Group: c.group, Members: []coord.LeavingMember{{Member: member, Instance: c.instance}}}, func(coord.Answer) {})
}

// beat sends a ConsumerGroupHeartbeat.
func (c *client) beat(m *model) {
	h := &coord.ConsumerHeartbeat{Group: c.group, Member: c.member, Client: c.who(), MemberEpoch: c.generation, RebalanceTimeout: -1, Owned: c.owned}
	if c.instance != "" {
		h.Instance = &c.instance
	}
	if c.member == "" || c.generation == 0 {
		m.ids++
		h.Member, h.MemberEpoch, h.RebalanceTimeout, h.Owned = fmt.Sprintf("%s-%d", c.name, m.ids), 0, 60_000, []coord.TopicPartitions{}
		h.Topics = pick(m.rng, [][]string{{"a"}, {"a", "b"}, {"b", "c"}})
	}
	m.send(h, func(a coord.Answer) {
		r := a.(*coord.ConsumerHeartbeatReply)
		if r.Code != wire.NoError {
			c.heard(r.Code)
			return
		}
		c.member, c.generation = r.Member, r.MemberEpoch
		if r.Assigned {
			c.owned = r.Assignment
		}
	})
}

// ask reads where to go on, as a consumer does that has been given a partition; then it asks for the end of the log, or its start.
func (c *client) ask(m *model) {
	topic, p := pick(m.rng, []string{"a", "b", "c"}), int32(m.rng.IntN(3))
	start := ident.Offset(m.rng.IntN(50))
	f := &coord.FetchOffsets{
		Version: 9, Group: c.group, MemberEpoch: -1, Client: c.who(),
		Topics: []coord.FetchTopic{{Name: topic, Partitions: []coord.FetchPartition{{Partition: p, LogStart: start, HighWatermark: 100}}}},
	}
	m.send(f, func(a coord.Answer) {
		if r := a.(*coord.FetchOffsetsReply); r.Code != wire.NoError {
			m.failf("the fetch is refused: %v", r.Code)
		}
	})
	if m.rng.IntN(2) == 0 {
		target := pick(m.rng, []ident.Offset{start, 100})
		m.send(&coord.Jumped{Client: c.who(), Topic: topic, Partition: p, Timestamp: -1, Target: target, At: m.now.Wall}, nil)
	}
}

// commit commits, sometimes in a generation that is over or not yet there.
func (c *client) commit(m *model) {
	generation := c.generation
	switch m.rng.IntN(6) {
	case 0:
		generation--
	case 1:
		generation++
	}
	member := c.member
	if generation < 0 {
		member = ""
	}
	m.commit(&coord.Commit{Version: int16(8 + m.rng.IntN(2)), Group: c.group, Member: member, Generation: generation, Retention: -1, Client: c.who()})
}

// commit sends a commit of one topic that exists, and follows what becomes of it.
func (m *model) commit(c *coord.Commit) {
	topic := pick(m.rng, []string{"a", "b", "c"})
	if m.lives[topic] == 0 {
		return
	}
	t := coord.CommitTopic{Name: topic, ID: topicID(topic, m.lives[topic])}
	for p := range int32(3) {
		if m.rng.IntN(2) == 0 {
			t.Partitions = append(t.Partitions, coord.CommitPartition{Partition: p, Offset: ident.Offset(m.rng.IntN(1000)), LeaderEpoch: ident.LeaderEpoch(m.rng.IntN(3) - 1), Metadata: "x"})
		}
	}
	c.Topics = []coord.CommitTopic{t}
	before, held := m.states()[c.Group], m.current(c.Group, c.Member)
	m.send(c, func(a coord.Answer) {
		for i, p := range a.(*coord.CommitReply).Topics[0].Partitions {
			if p.Code != wire.NoError {
				m.reached[staleCommit]++
				continue
			}
			m.reached[acceptedCommit]++
			m.mayCommit(c, t.Partitions[i], before, held)
			o := &records.Offset{
				Offset: t.Partitions[i].Offset, LeaderEpoch: t.Partitions[i].LeaderEpoch, Metadata: t.Partitions[i].Metadata, CommitTime: m.now.Wall, ExpireTime: -1, TopicID: t.ID,
			}
			if c.Retention >= 0 { // its record has no place for the topic's id, nor for the leader epoch
				o.ExpireTime, o.TopicID, o.LeaderEpoch = m.now.Wall+ident.Millis(c.Retention), ident.TopicID{}, ident.NoLeaderEpoch
			}
			m.commits[place{c.Group, topic, p.Partition}] = o
		}
	})
}

// mayCommit checks an accepted commit against the log: a member's generation is not below the one that was written last. One that was never written is
// known to those only whom it was told, and they may commit while the next is prepared.
func (m *model) mayCommit(c *coord.Commit, p coord.CommitPartition, before coord.ListedGroup, held *records.CurrentAssignment) {
	switch {
	case c.Generation < 0:
		if before.State != "" && before.State != "Empty" {
			m.failf("invariant 35: a simple commit is accepted in state %s", before.State)
		}
	case before.Type == "Consumer":
		if held == nil || c.Generation > held.MemberEpoch {
			m.failf("invariant 35: a commit with epoch %d is accepted of %+v", c.Generation, held)
		}
		if c.Generation < held.MemberEpoch && !holds(held, c.Topics[0].ID, p.Partition, c.Generation) {
			m.failf("invariant 35: a commit with epoch %d is accepted for partition %d of %+v", c.Generation, p.Partition, held)
		}
	default:
		last, ok := m.last(c.Group).(*records.GroupMetadata)
		written := ok && last.Value != nil
		if before.State != "Stable" && before.State != "PreparingRebalance" || before.State == "Stable" && !written || written && c.Generation < last.Value.Generation {
			m.failf("invariant 35: a commit in generation %d is accepted in state %s, the log has %+v", c.Generation, before.State, last)
		}
	}
}

// current is what a member of a consumer group has, as the state says.
func (m *model) current(group, member string) *records.CurrentAssignment {
	for _, e := range m.shard.Entries() {
		if c, ok := e.(*records.Current); ok && c.Group == group && c.Member == member {
			return c.Value
		}
	}
	return nil
}

func holds(held *records.CurrentAssignment, topic ident.TopicID, partition, epoch int32) bool {
	for _, list := range [][]records.TopicPartitions{held.Assigned, held.Revoking} {
		for _, t := range list {
			i := slices.Index(t.Partitions, partition)
			if t.Topic == topic && i >= 0 && t.Epochs != nil && t.Epochs[i] <= epoch {
				return true
			}
		}
	}
	return false
}

// assignmentBytes is a ConsumerProtocolAssignment that gives one partition of each topic.
func assignmentBytes(topics []string, partition int32) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(len(topics)))
	for _, t := range topics {
		b = binary.BigEndian.AppendUint16(b, uint16(len(t)))
		b = append(b, t...)
		b = binary.BigEndian.AppendUint32(b, 1)
		b = binary.BigEndian.AppendUint32(b, uint32(partition))
	}
	return append(b, 0xff, 0xff, 0xff, 0xff)
}
