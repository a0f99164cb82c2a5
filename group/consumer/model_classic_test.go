package consumer_test

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// actClassic is a cooperative client: it joins with what it uses, and syncs. Its answers come at once.
func (m *model) actClassic(c *client) {
	m.begin()
	switch {
	case c.epoch <= 0 || !c.synced && c.changed:
		s := subscriptionOf(int16(1+m.r.IntN(3)), c.topics)
		for _, p := range partsOf(c.used) {
			if t, ok := m.topics.ByID(p.topic); ok {
				s.own(t.Name, p.index)
			}
		}
		m.g.ClassicJoin(m.now, &m.config, m.topics, 1, &coord.Join{
			Group: "g", Member: c.id, Instance: c.instance, NewMember: m.fresh(), ProtocolType: "consumer", SessionTimeout: 30_000, RebalanceTimeout: 30_000,
			Protocols: []coord.Protocol{{Name: "range", Metadata: s.encode()}},
		}, &m.out)
		m.end()
		m.committed = len(m.log)
		r := m.out.Replies[len(m.out.Replies)-1].Answer.(*coord.JoinReply)
		switch r.Code {
		case wire.NoError:
			c.id, c.epoch, c.synced, c.changed = r.Member, r.Generation, false, false
			m.heard = max(m.heard, r.Generation)
		case wire.UnknownMemberID, wire.FencedInstanceID:
			c.id, c.epoch, c.used = "", 0, nil
			c.gone = r.Code == wire.FencedInstanceID
		default:
			m.fail("a classic join of %s was answered %v", c.id, r.Code)
		}
	case !c.synced:
		m.g.ClassicSync(m.now, &m.config, m.topics, 1, &coord.Sync{Group: "g", Member: c.id, Instance: c.instance, Generation: c.epoch}, &m.out)
		m.end()
		r := m.out.Replies[len(m.out.Replies)-1].Answer.(*coord.SyncReply)
		if m.fenced(c, r.Code) {
			return
		}
		was := c.used
		c.used, c.synced = m.read(r.Assignment), true
		if !within(was, c.used) { // it gave something up: a cooperative client joins again at once
			c.synced, c.changed = false, true
		}
	default:
		m.g.ClassicHeartbeat(m.now, &m.config, m.topics, 1, &coord.Heartbeat{Group: "g", Member: c.id, Instance: c.instance, Generation: c.epoch}, &m.out)
		m.end()
		m.fenced(c, m.out.Replies[len(m.out.Replies)-1].Answer.(*coord.HeartbeatReply).Code)
	}
}

// fenced takes an error of a classic answer.
func (m *model) fenced(c *client, code wire.ErrorCode) bool {
	switch code {
	case wire.NoError:
		return false
	case wire.RebalanceInProgress:
		c.synced, c.changed = false, true
	case wire.UnknownMemberID, wire.IllegalGeneration:
		c.epoch, c.used, c.synced = 0, nil, false
		if c.instance != "" || code == wire.UnknownMemberID {
			c.id = ""
		}
	case wire.FencedInstanceID:
		c.gone, c.used = true, nil
	default:
		m.fail("a classic client was answered %v", code)
	}
	return true
}

func (m *model) read(assignment []byte) map[part]bool {
	a := kmsg.NewConsumerMemberAssignment()
	if err := a.ReadFrom(assignment); err != nil {
		m.fail("a bad assignment: %v", err)
	}
	set := map[part]bool{}
	for _, t := range a.Topics {
		topic, ok := m.topics.ByName(t.Topic)
		if !ok {
			m.fail("an assignment has topic %s, which is gone", t.Topic)
		}
		for _, p := range t.Partitions {
			set[part{topic.ID, p}] = true
		}
	}
	return set
}
