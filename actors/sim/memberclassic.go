package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// The classic protocol: whoever hears of a rebalance commits, gives up everything, and joins; the leader deals the partitions out in turn. Gradual members
// (KIP-429) keep what they read, and say so when they join; the leader gives nobody what another one has, and who gives something up joins again.

const consumerType = "consumer"

// assignor is the name of the only assignor of a member.
func (m *member) assignor() string {
	if m.plan.Gradual {
		return "cooperative-sticky"
	}
	return "range"
}

// rejoin joins again under its id, having given everything up, or with what it has.
func (m *member) rejoin() {
	if m.joins {
		return // it is about to
	}
	m.commit(false)
	if m.plan.Gradual && !m.modern && m.epoch > 0 {
		m.joins, m.syncs = true, false
		return
	}
	m.forget()
}

func (m *member) join() {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.ProtocolType = m.ghost.name, m.id, m.instance(), consumerType
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(m.plan.Session/time.Millisecond), int32(m.plan.Rebalance/time.Millisecond)
	wants := kmsg.NewConsumerMemberMetadata()
	wants.Version, wants.Topics, wants.Generation = 1, m.subscription(), -1
	if m.plan.Gradual && m.since > 0 {
		wants.Version, wants.Generation, wants.OwnedPartitions = 2, m.since, m.reads()
	}
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Name, p.Metadata = m.assignor(), wants.AppendTo(nil)
	req.Protocols = append(req.Protocols, p)
	lives := m.lives
	m.unseen = nil // it does not say that it has them, so that somebody else may get them
	m.request(req, func(resp kmsg.Response) {
		r := resp.(*kmsg.JoinGroupResponse)
		if m.lives != lives || m.away {
			return
		}
		if wire.ErrorCode(r.ErrorCode) == wire.MemberIDRequired {
			m.id = r.MemberID
			return
		}
		if !m.heard("JoinGroup", r.ErrorCode, wire.UnknownMemberID, wire.FencedInstanceID, wire.RebalanceInProgress, wire.GroupMaxSizeReached) {
			return
		}
		m.id, m.epoch, m.joins, m.syncs = r.MemberID, r.Generation, false, true
		m.leads, m.crew, m.layout = r.LeaderID == r.MemberID, r.Members, "unknown"
		m.deals, m.shares = m.leads && !r.SkipAssignment, nil
		m.run.counted("member joins")
	})
}

func (m *member) sync() {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.Generation, req.MemberID, req.InstanceID = m.ghost.name, m.epoch, m.id, m.instance()
	req.ProtocolType, req.Protocol = new(consumerType), new(m.assignor())
	if m.deals && m.shares == nil { // a client deals once in a generation, however often it has to say so: the coordinator keeps what it heard first
		m.shares = m.deal()
	}
	if m.deals {
		req.GroupAssignment = m.shares
	}
	sent, lives := m.now(), m.lives
	m.request(req, func(resp kmsg.Response) {
		r := resp.(*kmsg.SyncGroupResponse)
		if m.lives != lives || m.away || !m.syncs {
			return
		}
		if !m.heard("SyncGroup", r.ErrorCode, wire.UnknownMemberID, wire.FencedInstanceID, wire.RebalanceInProgress, wire.IllegalGeneration) {
			return
		}
		m.syncs, m.beats = false, m.now()+m.beatPause()
		m.confirm(sent)
		m.assigned(r.MemberAssignment, sent)
	})
}

// assigned takes in what the leader has dealt it.
func (m *member) assigned(b []byte, sent ident.Instant) {
	a := kmsg.NewConsumerMemberAssignment() // no bytes: nothing is to be read
	if err := a.ReadFrom(b); err != nil && len(b) > 0 {
		m.run.fail("assignments are what the leader dealt", "%s: %v", m.name, err)
		return
	}
	m.since, m.unseen = m.epoch, nil
	m.giveUp(&a)
	for _, at := range a.Topics {
		i := slices.IndexFunc(m.topics, func(t *ghostTopic) bool { return t.name == at.Topic })
		if i < 0 {
			m.looked = false // it does not know the topic yet, and joins again when it does
			m.forget()
			return
		}
		for _, n := range at.Partitions {
			has := slices.IndexFunc(m.parts, func(p *part) bool { return p.topic == m.topics[i] && p.number == n })
			switch {
			case has >= 0:
				m.parts[has].hold.began = sent // it is told the name anew
			case int(n) < len(m.topics[i].partitions):
				m.take(m.topics[i], n, sent, sent)
			default: // the topic has grown, and whose metadata are older does not know it; or the leader's topic is one that is gone
				m.unseen = append(m.unseen, told{at.Topic, n, sent})
			}
		}
	}
}

// told is a partition that a classic member was told to read by the answer to a request.
type told struct {
	topic  string
	number int32
	sent   ident.Instant
}

// follow lets a classic member read the topic that has the name of the one it read: it is assigned names, and had the partition from metadata that were old. It
// begins to read what it was told and had not seen, too.
func (m *member) follow(sent ident.Instant) {
	if m.modern {
		return // it is assigned ids
	}
	named := func(topic string, number int32) *ghostTopic {
		i := slices.IndexFunc(m.topics, func(t *ghostTopic) bool { return t.name == topic })
		if i < 0 || int(number) >= len(m.topics[i].partitions) {
			return nil
		}
		return m.topics[i]
	}
	moved := func(p *part) bool {
		t := named(p.topic.name, p.number)
		return t != nil && t != p.topic
	}
	old := slices.DeleteFunc(slices.Clone(m.parts), func(p *part) bool { return !moved(p) })
	m.release(moved)
	for _, p := range old {
		m.claim(named(p.topic.name, p.number), p.number, sent, p.hold.began)
		m.run.counted("member follows a name to another topic")
	}
	m.unseen = slices.DeleteFunc(m.unseen, func(u told) bool {
		t := named(u.topic, u.number)
		if t != nil {
			m.claim(t, u.number, sent, u.sent)
			m.run.counted("member reads what it had not seen when it was told")
		}
		return t != nil
	})
}

// claim begins to read a partition that has the name of one that the member was told to read. One that the coordinator may have given up since, as after a
// silence, still believes what it was told then: it reads beside who was told later until its next heartbeat, and its commits are refused.
func (m *member) claim(t *ghostTopic, number int32, sent, began ident.Instant) {
	if !m.vouched() {
		sent = began
	}
	m.take(t, number, sent, began)
}

// deal gives each member its share of the topics that it subscribes to.
func (m *member) deal() []kmsg.SyncGroupRequestGroupAssignment {
	subscribed := make([][]string, len(m.crew))
	m.wanted = nil
	if m.plan.Gradual { // the next generation is to have the same in mind
		slices.SortFunc(m.crew, func(a, b kmsg.JoinGroupResponseMember) int { return strings.Compare(a.MemberID, b.MemberID) })
	}
	for i := range m.crew {
		wants := m.metadataOf(i)
		subscribed[i] = wants.Topics
		m.wanted = append(m.wanted, wants.Topics...)
	}
	shares := make([]kmsg.ConsumerMemberAssignment, len(m.crew))
	turn := 0
	for _, t := range m.topics {
		var who []int
		for i := range m.crew {
			if slices.Contains(subscribed[i], t.name) {
				who = append(who, i)
			}
		}
		for n := range t.partitions {
			if len(who) == 0 {
				break
			}
			s := &shares[who[turn%len(who)]]
			turn++
			if k := len(s.Topics); k == 0 || s.Topics[k-1].Topic != t.name {
				at := kmsg.NewConsumerMemberAssignmentTopic()
				at.Topic = t.name
				s.Topics = append(s.Topics, at)
			}
			last := &s.Topics[len(s.Topics)-1]
			last.Partitions = append(last.Partitions, int32(n))
		}
	}
	if m.plan.Gradual {
		m.spare(shares)
	}
	out := make([]kmsg.SyncGroupRequestGroupAssignment, len(m.crew))
	var told []string
	m.layout = m.layoutNow()
	for i := range m.crew {
		out[i] = kmsg.NewSyncGroupRequestGroupAssignment()
		out[i].MemberID, out[i].MemberAssignment = m.crew[i].MemberID, shares[i].AppendTo(nil)
		told = append(told, fmt.Sprintf("%s %v", m.crew[i].MemberID, shares[i].Topics))
	}
	m.run.tell("%s leads generation %d of %s: %s", m.name, m.epoch, m.ghost.name, strings.Join(told, ", "))
	return out
}

// metadataOf is what a member of the crew said.
func (m *member) metadataOf(i int) kmsg.ConsumerMemberMetadata {
	wants := kmsg.NewConsumerMemberMetadata()
	if err := wants.ReadFrom(m.crew[i].ProtocolMetadata); err != nil {
		m.run.fail("the leader is told what members say", "%s: %v", m.name, err)
	}
	return wants
}

// layoutNow tells what there is to deal.
func (m *member) layoutNow() string {
	var b strings.Builder
	for _, t := range m.topics {
		if slices.Contains(m.wanted, t.name) {
			fmt.Fprintf(&b, "%s:%d ", t.id, len(t.partitions))
		}
	}
	return b.String()
}

// beatPause is how long a classic member waits before its next heartbeat, from which it learns of a rebalance. Some learn of one when it is over, and are out; while
// everything comes to an end none does, since two of those can keep each other out for ever.
func (m *member) beatPause() ident.Instant {
	if m.finishing {
		return ident.Instant(min(m.plan.Session, m.plan.Rebalance) / 5)
	}
	return ident.Instant(m.plan.Session / 5)
}

func (m *member) heartbeat() {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.Generation, req.MemberID, req.InstanceID = m.ghost.name, m.epoch, m.id, m.instance()
	sent, lives, epoch := m.now(), m.lives, m.epoch
	m.beats = sent + m.beatPause()
	m.request(req, func(resp kmsg.Response) {
		if m.lives != lives || m.epoch != epoch {
			return
		}
		code := resp.(*kmsg.HeartbeatResponse).ErrorCode
		if m.heard("Heartbeat", code, wire.UnknownMemberID, wire.FencedInstanceID, wire.RebalanceInProgress, wire.IllegalGeneration) {
			m.confirm(sent)
		}
	})
}

func (m *member) leaveClassic(id string) {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = m.ghost.name, id
	l := kmsg.NewLeaveGroupRequestMember()
	l.MemberID, l.InstanceID = id, m.instance()
	req.Members = append(req.Members, l)
	m.request(req, func(resp kmsg.Response) {
		r := resp.(*kmsg.LeaveGroupResponse)
		m.run.allow(m.name, "LeaveGroup", r.ErrorCode, append(elsewhere, wire.NoError, wire.UnknownMemberID)...)
		for _, l := range r.Members {
			m.run.allow(m.name, "LeaveGroup", l.ErrorCode, wire.NoError, wire.UnknownMemberID, wire.FencedInstanceID)
		}
	})
}
