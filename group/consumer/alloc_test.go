package consumer_test

import (
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// crowd is a stable group of members, each with the same number of partitions of one topic.
func crowd(tb testing.TB, members, partitions int) (*world, []*coord.ConsumerHeartbeat) {
	tb.Helper()
	w := newWorld(coord.DefaultConfig())
	w.topics = topicView{{Name: "t", ID: topicID("t", 1), Partitions: int32(partitions)}}
	beats := make([]*coord.ConsumerHeartbeat, members)
	for i := range beats {
		beats[i] = &coord.ConsumerHeartbeat{
			Group: "g", Member: fmt.Sprintf("member-%03d", i), RebalanceTimeout: 60_000, Topics: []string{"t"}, Owned: []coord.TopicPartitions{},
		}
	}
	for round := 0; round < 5 || w.g.State() != "Stable"; round++ {
		if round == 50 {
			tb.Fatalf("the group is %s", w.g.State())
		}
		for _, c := range beats {
			r := w.heartbeat(c)
			if r.Code != wire.NoError {
				tb.Fatalf("%s is answered %v", c.Member, r.Code)
			}
			c.MemberEpoch, c.RebalanceTimeout, c.Topics = r.MemberEpoch, -1, nil
			if r.Assigned {
				c.Owned = r.Assignment
			}
		}
		w.wait(1000, func() {})
	}
	for _, c := range beats {
		c.Owned = nil
	}
	return w, beats
}

// A heartbeat of a settled member allocates its answer and nothing else.
func TestSteadyHeartbeatAllocatesItsAnswer(t *testing.T) {
	w, beats := crowd(t, 20, 80)
	var topics coord.Topics = w.topics
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		w.now.Mono += 250 * millisecond / 20
		w.out.Reset()
		w.g.Heartbeat(w.now, &w.config, topics, 1, beats[i%len(beats)], &w.out)
		i++
		if len(w.out.Entries) != 0 || len(w.out.Replies) != 1 {
			t.Fatalf("a settled member's heartbeat wrote %v", w.out.Entries)
		}
	}); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkHeartbeatSteady(b *testing.B) {
	w, beats := crowd(b, 100, 400)
	var topics coord.Topics = w.topics
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		w.out.Reset()
		w.g.Heartbeat(w.now, &w.config, topics, 1, beats[i%len(beats)], &w.out)
	}
}

// One member of a hundred leaves, and comes back: two targets, and what is moved for them.
func BenchmarkLeaveAndJoin(b *testing.B) {
	w, _ := crowd(b, 100, 400)
	w.config.Consumer.AssignmentInterval = 0
	join := &coord.ConsumerHeartbeat{Group: "g", Member: "member-050", RebalanceTimeout: 60_000, Topics: []string{"t"}, Owned: []coord.TopicPartitions{}}
	leave := &coord.ConsumerHeartbeat{Group: "g", Member: "member-050", MemberEpoch: -1, RebalanceTimeout: -1}
	b.ReportAllocs()
	for b.Loop() {
		for _, c := range []*coord.ConsumerHeartbeat{leave, join} {
			w.out.Reset()
			w.g.Heartbeat(w.now, &w.config, w.topics, 1, c, &w.out)
		}
	}
}
