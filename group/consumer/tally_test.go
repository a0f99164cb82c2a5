package consumer_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/group/consumer"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
)

// TestWhatTheGroupReadsFollowsItsMembers changes subscriptions at random, and asks each time who subscribes to what.
func TestWhatTheGroupReadsFollowsItsMembers(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	g := consumer.New("g")
	subs := map[string]*records.Subscription{}
	matches := map[string][]string{"a.*": {"a0", "a1"}, ".*1": {"a1", "b1"}}
	for pattern, topics := range matches {
		g.Apply(&records.Regex{Group: "g", Pattern: pattern, Value: &records.Resolved{Topics: topics}})
	}
	topics := []string{"a0", "a1", "b0", "b1", "c0"}
	for step := range 5000 {
		member := fmt.Sprintf("m-%d", random.IntN(6))
		var sub *records.Subscription
		if random.IntN(3) > 0 {
			sub = &records.Subscription{RebalanceTimeout: 1}
			for _, topic := range topics {
				if random.IntN(6) == 0 {
					sub.Topics = append(sub.Topics, topic)
				}
			}
			if pattern := []string{"", "a.*", ".*1", "unresolved"}[random.IntN(4)]; pattern != "" {
				sub.Regex = &pattern
			}
		}
		subs[member] = sub
		g.Apply(&records.ConsumerMember{Group: "g", Member: member, Value: sub})
		for _, topic := range topics {
			want := false
			for _, s := range subs {
				want = want || s != nil && (slices.Contains(s.Topics, topic) || s.Regex != nil && slices.Contains(matches[*s.Regex], topic))
			}
			if got := g.Subscribed(topic); got != want {
				t.Fatalf("step %d: subscribed to %s is %v, want %v", step, topic, got, want)
			}
		}
	}
}

// One more member joins a group of ten thousand, and leaves; the next target has to wait.
func BenchmarkJoinACrowd(b *testing.B) {
	w, _ := crowd(b, 100, 400)
	for i := range 10_000 {
		w.g.Apply(&records.ConsumerMember{Group: "g", Member: fmt.Sprintf("more-%d", i), Value: &records.Subscription{RebalanceTimeout: 60_000, Topics: []string{"t"}}})
	}
	join := &coord.ConsumerHeartbeat{Group: "g", Member: "one-more", RebalanceTimeout: 60_000, Topics: []string{"t"}, Owned: []coord.TopicPartitions{}}
	leave := &coord.ConsumerHeartbeat{Group: "g", Member: "one-more", MemberEpoch: -1, RebalanceTimeout: -1}
	w.config.Consumer.AssignmentInterval = 1 << 30
	b.ReportAllocs()
	for b.Loop() {
		for _, c := range []*coord.ConsumerHeartbeat{join, leave} {
			w.out.Reset()
			w.g.Heartbeat(w.now, &w.config, w.topics, 1, c, &w.out)
		}
	}
}
