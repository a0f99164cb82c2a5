package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// The protocol of KIP-848: one heartbeat after the other, by which the coordinator takes partitions and gives them.

func (m *member) beat() {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	if m.id == "" && m.versions[req.Key()] > 0 {
		m.id = fmt.Sprintf("%s-%d-%d", m.name, m.lives, m.rand.IntN(1_000_000))
	}
	req.Group, req.MemberID, req.MemberEpoch, req.InstanceID, req.RebalanceTimeoutMillis = m.ghost.name, m.id, m.epoch, m.instance(), -1
	m.full = m.full || m.epoch < 1
	if m.full {
		req.RebalanceTimeoutMillis = int32(m.plan.Rebalance / time.Millisecond)
		if m.pattern != nil {
			req.SubscribedTopicNames, req.SubscribedTopicRegex = []string{}, &m.plan.Regex
			m.run.counted("member subscribes to a regex")
		} else {
			req.SubscribedTopicNames = m.subscription()
		}
	}
	if m.full || m.reports {
		req.Topics = m.owned()
	}
	m.full, m.reports = false, false
	sent, lives, epoch := m.now(), m.lives, m.epoch
	m.beats = sent + ident.Instant(100*time.Millisecond)
	m.request(req, func(resp kmsg.Response) {
		if m.lives != lives || m.away && m.epoch != epoch {
			return
		}
		r := resp.(*kmsg.ConsumerGroupHeartbeatResponse)
		if !m.heard("ConsumerGroupHeartbeat", r.ErrorCode, wire.UnknownMemberID, wire.FencedMemberEpoch, wire.GroupIDNotFound, wire.FencedInstanceID, wire.UnreleasedInstanceID) {
			m.full = true
			return
		}
		if m.epoch != epoch {
			return // it has left meanwhile
		}
		if r.MemberID != nil {
			m.id = *r.MemberID
		}
		if r.MemberEpoch < epoch {
			m.run.fail("epochs of members do not fall", "%s of group %s has epoch %d after %d", m.name, m.ghost.name, r.MemberEpoch, epoch)
		}
		if epoch == 0 {
			m.run.counted("modern member joins")
		}
		m.epoch = r.MemberEpoch
		m.confirm(sent)
		m.beats = sent + ident.Instant(time.Duration(r.HeartbeatIntervalMillis)*time.Millisecond)
		if r.Assignment != nil {
			m.reconcile(r.Assignment.Topics, sent)
		}
	})
}

// owned lists what the member reads.
func (m *member) owned() []kmsg.ConsumerGroupHeartbeatRequestTopic {
	list := []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	for _, p := range m.parts {
		i := slices.IndexFunc(list, func(t kmsg.ConsumerGroupHeartbeatRequestTopic) bool { return t.TopicID == p.topic.id })
		if i < 0 {
			i = len(list)
			t := kmsg.NewConsumerGroupHeartbeatRequestTopic()
			t.TopicID = p.topic.id
			list = append(list, t)
		}
		list[i].Partitions = append(list[i].Partitions, p.number)
		slices.Sort(list[i].Partitions)
	}
	return list
}

// reconcile gives up what it is not to read any more, after a last commit, and begins to read what is new. It tells so at once.
func (m *member) reconcile(shall []kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic, sent ident.Instant) {
	wanted := func(p *part) bool {
		return slices.ContainsFunc(shall, func(t kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic) bool {
			return t.TopicID == p.topic.id && slices.Contains(t.Partitions, p.number)
		})
	}
	if m.any(func(p *part) bool { return !wanted(p) }) {
		m.commit(false)
		m.release(func(p *part) bool { return !wanted(p) })
		m.run.counted("partitions revoked")
	}
	for _, at := range shall {
		t := m.run.ghost.topics[ident.TopicID(at.TopicID)]
		if t == nil {
			m.looked = false // nobody has seen it yet; the coordinator tells it again until it is reported
			continue
		}
		for _, n := range at.Partitions {
			if !m.any(func(p *part) bool { return p.topic == t && p.number == n }) {
				m.take(t, n, sent, sent)
			}
		}
	}
	m.reports = true
}

func (m *member) leaveModern(id string, epoch int32) {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.InstanceID, req.MemberEpoch, req.RebalanceTimeoutMillis = m.ghost.name, id, m.instance(), -1, -1
	if m.plan.Instance != "" && epoch%2 == 0 {
		req.MemberEpoch = -2 // for a while
	}
	m.request(req, func(resp kmsg.Response) {
		code := resp.(*kmsg.ConsumerGroupHeartbeatResponse).ErrorCode
		m.run.allow(m.name, "ConsumerGroupHeartbeat", code, append(elsewhere, wire.NoError, wire.UnknownMemberID, wire.GroupIDNotFound, wire.FencedInstanceID)...)
	})
}
