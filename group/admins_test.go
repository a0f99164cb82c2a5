package group_test

import (
	"slices"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
)

// retopic makes topics again that are gone, and tells of it.
func (m *model) retopic(names []string) {
	for _, name := range names {
		if m.lives[name] == 0 {
			m.lives[name] = 2 + m.rng.IntN(200)
		}
	}
	m.topics = m.view()
	m.send(&coord.TopicsChanged{Topics: m.topics}, nil)
}

// view is the topics as they are.
func (m *model) view() *topicView {
	var all []coord.Topic
	for _, name := range []string{"a", "b", "c"} {
		if life := m.lives[name]; life > 0 {
			all = append(all, coord.Topic{Name: name, ID: topicID(name, life), Partitions: int32(2 + m.rng.IntN(3))})
		}
	}
	return newTopics(all...)
}

func (m *model) deleteTopic() {
	name := pick(m.rng, []string{"a", "b", "c"})
	life := m.lives[name]
	if life == 0 {
		return
	}
	m.reached[topicGone]++
	m.lives[name] = 0
	m.retopic(nil)
	for at, o := range m.commits {
		if at.topic == name && (o.TopicID.IsZero() || o.TopicID == topicID(name, life)) {
			delete(m.commits, at)
		}
	}
	m.send(&coord.TopicsDeleted{Topics: []coord.DeletedTopic{{Name: name, ID: topicID(name, life)}}}, nil)
}

func (m *model) configure() {
	m.config.MigrationUp, m.config.MigrationDown = m.rng.IntN(4) > 0, m.rng.IntN(4) > 0
	m.config.ClassicSizeMax, m.config.ConsumerSizeMax = int32(1+m.rng.IntN(5)), int32(1+m.rng.IntN(5))
	m.config.InitialRebalanceDelay = int32(m.rng.IntN(3)) * 1000
	m.send(&coord.Configure{Config: m.config}, nil)
}

// deleteGroup deletes a group if it is empty, and then all its commits are gone.
func (m *model) deleteGroup() {
	name := pick(m.rng, groupNames)
	before, known := m.states()[name]
	m.send(&coord.Delete{Group: name}, func(a coord.Answer) {
		want := wire.NoError
		switch {
		case !known:
			want = wire.GroupIDNotFound
		case before.State != "Empty":
			want = wire.NonEmptyGroup
		}
		if got := a.(*coord.CodeReply).Code; got != want {
			m.failf("deleting %q in state %q is answered %v, want %v", name, before.State, got, want)
		}
		if want != wire.NoError {
			return
		}
		m.reached[deletedGroup]++
		for at := range m.commits {
			if at.group == name {
				delete(m.commits, at)
			}
		}
		if _, known := m.states()[name]; known {
			m.failf("the deleted group %q is listed", name)
		}
	})
}

func (m *model) deleteOffsets() {
	c := &coord.DeleteOffsets{Group: pick(m.rng, groupNames), Topics: []coord.DeleteTopic{{Name: pick(m.rng, []string{"a", "b", "c"}), Partitions: []int32{0, 1}}}}
	m.send(c, func(a coord.Answer) {
		r := a.(*coord.DeleteOffsetsReply)
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				if r.Code == wire.NoError && p.Code == wire.NoError {
					delete(m.commits, place{c.Group, t.Name, p.Partition})
				}
			}
		}
	})
}

// simpleCommit commits as an operator does, or a consumer without membership that asked before where to begin.
func (m *model) simpleCommit() {
	name, who := pick(m.rng, groupNames), coord.Client{ID: "admin", Host: "/h"}
	if topic := pick(m.rng, []string{"a", "b", "c"}); m.rng.IntN(2) == 0 {
		m.send(&coord.FetchOffsets{Version: 8, Group: name, MemberEpoch: -1, Client: who, Topics: []coord.FetchTopic{{
			Name: topic, Partitions: []coord.FetchPartition{{Partition: 0, LogStart: 50, HighWatermark: 100}, {Partition: 1, LogStart: 50, HighWatermark: 100}},
		}}}, func(coord.Answer) {})
		m.send(&coord.Jumped{Client: who, Topic: topic, Partition: 0, Timestamp: -1, Target: 100, At: m.now.Wall}, nil)
	}
	retention := int64(-1)
	if m.rng.IntN(4) == 0 { // an old client
		retention = m.rng.Int64N(2 * 3_600_000)
	}
	m.commit(&coord.Commit{Version: 4, Group: name, Generation: -1, Retention: retention, Client: who})
}

// conversions counts how groups changed their type, by what the log says of them.
func (m *model) conversions(entries []records.Entry, notes []coord.Note) {
	for _, n := range notes {
		if n.Kind != coord.NoteConverted {
			continue
		}
		members := slices.ContainsFunc(entries, func(e records.Entry) bool {
			if c, ok := e.(*records.ConsumerMember); ok {
				return c.Value != nil && c.Value.Classic != nil
			}
			c, ok := e.(*records.GroupMetadata)
			return ok && c.Value != nil && len(c.Value.Members) > 0
		})
		switch {
		case !members:
			m.reached[emptyConverted]++
		case n.Text == "Consumer":
			m.reached[upgraded]++
		default:
			m.reached[downgraded]++
		}
	}
}
