package group_test

import (
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// stable makes a world with groups of one classic member each.
func stable(tb testing.TB, groups int) *world {
	tb.Helper()
	config := coord.DefaultConfig()
	config.InitialRebalanceDelay = 0
	w := newWorld(config)
	for i := range groups {
		name := fmt.Sprintf("group-%d", i)
		w.step(&coord.Join{
			Group: name, NewMember: "member", ProtocolType: "consumer", SessionTimeout: 45_000, RebalanceTimeout: 300_000,
			Protocols: []coord.Protocol{{Name: "range", Metadata: subscription([]string{"topic"}, nil)}},
		})
		w.wait(1)
		answer := w.ask(tb, &coord.Sync{Group: name, Member: "member", Generation: 1})
		if code := answer.(*coord.SyncReply).Code; code != wire.NoError {
			tb.Fatalf("the member is not in: %v", code)
		}
	}
	w.log = nil
	return w
}

// BenchmarkCommit is a request of 10 partitions of a member, as consumers with commits by time send them. One operation is one partition.
func BenchmarkCommit(b *testing.B) {
	const groups, partitions = 100, 10
	w := stable(b, groups)
	var commands [groups]*coord.Commit
	for i := range commands {
		t := coord.CommitTopic{Name: "topic", ID: topicID("topic", 1)}
		for p := range int32(partitions) {
			t.Partitions = append(t.Partitions, coord.CommitPartition{Partition: p, LeaderEpoch: 3})
		}
		commands[i] = &coord.Commit{
			Version: 9, Group: fmt.Sprintf("group-%d", i), Member: "member", Generation: 1, Retention: -1, Topics: []coord.CommitTopic{t},
			Client: coord.Client{ID: "app", Host: "/10.0.0.1"},
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += partitions {
		c := commands[i/partitions%groups]
		for p := range c.Topics[0].Partitions {
			c.Topics[0].Partitions[p].Offset = ident.Offset(i)
		}
		w.out.Reset()
		w.shard.Step(w.now, 1, c, &w.out)
	}
	b.StopTimer()
	if code := w.out.Replies[0].Answer.(*coord.CommitReply).Topics[0].Partitions[9].Code; code != wire.NoError || len(w.out.Entries) != partitions {
		b.Fatalf("the last commit is answered %v with %d entries", code, len(w.out.Entries))
	}
	if want := ident.Offset((b.N - 1) / partitions * partitions); w.committed(b, commands[(b.N-1)/partitions%groups].Group) != want {
		b.Fatalf("the last commit was not stored")
	}
}

// committed reads topic-0 of a group.
func (w *world) committed(tb testing.TB, name string) ident.Offset {
	tb.Helper()
	c := &coord.FetchOffsets{Group: name, MemberEpoch: -1, Topics: []coord.FetchTopic{{Name: "topic", Partitions: []coord.FetchPartition{{LogStart: -1}}}}}
	return w.ask(tb, c).(*coord.FetchOffsetsReply).Topics[0].Partitions[0].Offset
}

// BenchmarkHeartbeat is a heartbeat of a classic member.
func BenchmarkHeartbeat(b *testing.B) {
	w := stable(b, 100)
	c := &coord.Heartbeat{Group: "group-7", Member: "member", Generation: 1}
	b.ReportAllocs()
	for range b.N {
		w.now.Mono += millisecond
		w.out.Reset()
		w.shard.Step(w.now, 1, c, &w.out)
	}
	if code := w.out.Replies[0].Answer.(*coord.HeartbeatReply).Code; code != wire.NoError {
		b.Fatalf("the heartbeat is answered %v", code)
	}
}

func TestHeartbeatsAllocateNothing(t *testing.T) {
	w := stable(t, 3)
	for want, c := range map[wire.ErrorCode]*coord.Heartbeat{
		wire.NoError:           {Group: "group-1", Member: "member", Generation: 1},
		wire.IllegalGeneration: {Group: "group-1", Member: "member", Generation: 2},
		wire.UnknownMemberID:   {Group: "nobody", Member: "member", Generation: 1},
		wire.InvalidGroupID:    {Member: "member", Generation: 1},
	} {
		allocs := testing.AllocsPerRun(100, func() {
			w.now.Mono += millisecond
			w.out.Reset()
			w.shard.Step(w.now, 1, c, &w.out)
		})
		if got := w.out.Replies[0].Answer.(*coord.HeartbeatReply).Code; got != want {
			t.Errorf("the heartbeat %+v is answered %v, want %v", c, got, want)
		}
		if allocs != 0 {
			t.Errorf("a heartbeat answered %v allocates %v times", want, allocs)
		}
	}
}

// TestCommitsAllocateLittle bounds what a request of 10 partitions costs: an entry for each, and the answer.
func TestCommitsAllocateLittle(t *testing.T) {
	w := stable(t, 1)
	topic := coord.CommitTopic{Name: "topic", ID: topicID("topic", 1), Partitions: make([]coord.CommitPartition, 10)}
	for p := range topic.Partitions {
		topic.Partitions[p] = coord.CommitPartition{Partition: int32(p), Offset: 7}
	}
	c := &coord.Commit{Version: 9, Group: "group-0", Member: "member", Generation: 1, Retention: -1, Topics: []coord.CommitTopic{topic}}
	allocs := testing.AllocsPerRun(100, func() {
		w.out.Reset()
		w.shard.Step(w.now, 1, c, &w.out)
	})
	if len(w.out.Entries) != 10 || allocs > 15 {
		t.Errorf("%d entries cost %v allocations", len(w.out.Entries), allocs)
	}
}
