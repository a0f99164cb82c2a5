package group_test

import (
	"hash/fnv"
	"math/rand/v2"
	"testing"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestALoadToleratesWhatNoStepLeaves loads logs that we do not write, as others may have, or an operator who cut one.
func TestALoadToleratesWhatNoStepLeaves(t *testing.T) {
	generation := &records.Generation{ProtocolType: "consumer", Generation: 3, StateTime: 1}
	epoch := &records.GroupEpoch{Epoch: 5}
	for _, c := range []struct {
		name string
		log  []records.Entry
		want string // type and state of the group; empty: there is none
	}{
		{"both types", []records.Entry{&records.GroupMetadata{Group: "g", Value: generation}, &records.ConsumerGroup{Group: "g", Value: epoch}}, "Consumer Empty"},
		{"the tombstone of the old type comes late", []records.Entry{
			&records.GroupMetadata{Group: "g", Value: generation}, &records.ConsumerGroup{Group: "g", Value: epoch}, &records.GroupMetadata{Group: "g"},
		}, "Consumer Empty"},
		{"tombstones only", []records.Entry{
			&records.GroupMetadata{Group: "g"}, &records.ConsumerGroup{Group: "g"}, &records.ConsumerMember{Group: "g", Member: "m"},
			&records.OffsetCommit{Group: "g", Topic: "a"}, &records.PartitionMetadata{Group: "g"},
		}, ""},
		{"a record of the past", []records.Entry{&records.GroupMetadata{Group: "g", Value: generation}, &records.PartitionMetadata{Group: "g"}}, "Classic Empty"},
		{"an offset before its group", []records.Entry{
			&records.OffsetCommit{Group: "g", Topic: "a", Value: &records.Offset{Offset: 1, ExpireTime: -1}}, &records.ConsumerGroup{Group: "g", Value: epoch},
		}, "Consumer Empty"},
	} {
		w := newWorld(coord.DefaultConfig())
		w.shard, w.out = w.fold(c.log), coord.Out{}
		w.shard.Loaded(w.now, &w.out)
		w.log = append(c.log, w.out.Entries...)
		got := ""
		if groups := w.ask(t, &coord.List{}).(*coord.ListReply).Groups; len(groups) > 0 {
			got = groups[0].Type + " " + groups[0].State
		}
		if got != c.want {
			t.Errorf("%s: the group is %q, want %q", c.name, got, c.want)
		}
		w.check(t, w.log)
		w.wait(8 * 24 * 3_600_000)
		if left := w.shard.Entries(); len(left) > 0 {
			t.Errorf("%s: %s is left after eight days", c.name, show(left[0]))
		}
		w.check(t, w.log)
	}
}

// TestALoadToleratesAnyLog loads records in any order and with any values, as no coordinator writes them, and plays on: nothing breaks, the state stays the
// fold of the log, and in the end all is gone.
func TestALoadToleratesAnyLog(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 11))
		m := &model{
			world: newWorld(coord.DefaultConfig()), t: t, seed: seed, rng: rng, lives: map[string]int{"a": 1, "b": 1}, sum: fnv.New64(),
			pending: map[ident.RequestID]func(coord.Answer){}, commits: map[place]*records.Offset{}, reached: new([actions]int),
		}
		m.config.OffsetsRetention = 3_600_000
		m.topics = m.view()
		for range rng.IntN(60) {
			e := anyEntry(rng)
			m.tell(show(e))
			m.log = append(m.log, e)
		}
		m.shard = m.fold(m.log)
		m.out = coord.Out{}
		m.shard.Loaded(m.now, &m.out)
		m.log = append(m.log, m.out.Entries...)
		m.take(m.out.Entries, m.out.Replies, m.out.Notes)
		m.check(t, m.log)
		for range 30 {
			m.anyCommand()
			m.check(t, m.log)
		}
		for range 20 {
			m.wait(1_800_000)
		}
		m.check(t, m.log)
		if left := m.shard.Entries(); len(left) > 0 {
			m.failf("left over: %s", show(left[0]))
		}
	}
}

// anyCommand is one of a member that the log may know, or of an operator.
func (m *model) anyCommand() {
	name, member, n := pick(m.rng, groupNames[:3]), pick(m.rng, []string{"x", "y", "z"}), int32(m.rng.IntN(6)-1)
	ignore := func(coord.Answer) {}
	protocols := []coord.Protocol{{Name: "range", Metadata: subscription([]string{"a"}, nil)}}
	switch m.rng.IntN(12) {
	case 0, 1:
		h := &coord.ConsumerHeartbeat{Group: name, Member: member, MemberEpoch: n, RebalanceTimeout: 60_000, Topics: []string{"a"}, Owned: []coord.TopicPartitions{}}
		m.send(h, ignore)
	case 2:
		m.send(&coord.ConsumerHeartbeat{Group: name, Member: member, MemberEpoch: n, RebalanceTimeout: -1}, ignore)
	case 3:
		m.send(&coord.Join{Group: name, NewMember: "new", ProtocolType: "consumer", SessionTimeout: 10_000, RebalanceTimeout: 10_000, Protocols: protocols}, ignore)
	case 4:
		m.send(&coord.Join{Group: name, Member: member, ProtocolType: "consumer", SessionTimeout: 10_000, RebalanceTimeout: 10_000, Protocols: protocols}, ignore)
	case 5:
		m.send(&coord.Sync{Group: name, Member: member, Generation: n}, ignore)
	case 6:
		m.send(&coord.Heartbeat{Group: name, Member: member, Generation: n}, ignore)
	case 7:
		m.send(&coord.Leave{Group: name, Members: []coord.LeavingMember{{Member: member}}}, ignore)
	case 8:
		m.send(&coord.Describe{Group: name}, ignore)
		m.send(&coord.ConsumerDescribe{Group: name}, ignore)
		m.send(&coord.Inspect{}, ignore)
	case 9:
		m.retopic([]string{"c"})
	case 10:
		m.send(&coord.Commit{Version: 9, Group: name, Member: member, Generation: n, Retention: -1, Topics: []coord.CommitTopic{{
			Name: "a", ID: topicID("a", 1), Partitions: []coord.CommitPartition{{Partition: 1, Offset: 5}},
		}}}, ignore)
	case 11:
		m.wait(m.rng.Int64N(60_000)) // whatever is answered meanwhile
	}
}

// anyEntry is a record with any value, or none.
func anyEntry(rng *rand.Rand) records.Entry {
	name, member, n := pick(rng, groupNames[:3]), pick(rng, []string{"x", "y", "z"}), int32(rng.IntN(7)-2)
	partitions := []records.TopicPartitions{{Topic: topicID(pick(rng, []string{"a", "b", "q"}), 1), Partitions: []int32{int32(rng.IntN(3))}}}
	gone := rng.IntN(3) == 0
	pattern := pick(rng, []string{"a.*", "("})
	switch rng.IntN(9) {
	case 0:
		e := &records.OffsetCommit{Group: name, Topic: pick(rng, []string{"a", "q"}), Partition: n}
		if !gone {
			e.Value = &records.Offset{Offset: ident.Offset(n), LeaderEpoch: -1, CommitTime: ident.Millis(n), ExpireTime: ident.Millis(rng.IntN(3) - 1)}
		}
		return e
	case 1:
		e := &records.GroupMetadata{Group: name}
		if !gone {
			e.Value = &records.Generation{ProtocolType: pick(rng, []string{"", "consumer"}), Generation: n, StateTime: ident.Millis(n), Leader: &member, Protocol: &pattern}
			for range rng.IntN(3) {
				e.Value.Members = append(e.Value.Members, records.ClassicMember{Member: member, SessionTimeout: n, RebalanceTimeout: n, Subscription: []byte(pattern)})
			}
		}
		return e
	case 2:
		e := &records.ConsumerGroup{Group: name}
		if !gone {
			e.Value = &records.GroupEpoch{Epoch: n}
		}
		return e
	case 3:
		return &records.PartitionMetadata{Group: name}
	case 4:
		e := &records.ConsumerMember{Group: name, Member: member}
		if !gone {
			e.Value = &records.Subscription{Topics: []string{"a"}, RebalanceTimeout: n}
			if rng.IntN(2) == 0 {
				e.Value.Instance = &pattern
			}
			if rng.IntN(2) == 0 {
				e.Value.Regex = &pattern
			}
			if rng.IntN(3) == 0 {
				e.Value.Classic = &records.Classic{SessionTimeout: n, Protocols: []records.Protocol{{Name: "range", Metadata: []byte(pattern)}}}
			}
		}
		return e
	case 5:
		e := &records.Target{Group: name}
		if !gone {
			e.Value = &records.TargetEpoch{Epoch: n}
		}
		return e
	case 6:
		e := &records.TargetMember{Group: name, Member: member}
		if !gone {
			e.Value = &records.Partitions{Topics: partitions}
		}
		return e
	case 7:
		e := &records.Current{Group: name, Member: member}
		if !gone {
			e.Value = &records.CurrentAssignment{MemberEpoch: n, PreviousEpoch: n - 1, State: records.MemberState(rng.IntN(4)), Assigned: partitions}
		}
		return e
	}
	e := &records.Regex{Group: name, Pattern: pattern}
	if !gone {
		e.Value = &records.Resolved{Topics: []string{"a"}}
	}
	return e
}
