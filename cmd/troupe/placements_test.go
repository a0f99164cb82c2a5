package main

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func at(topic string, partition int32, on ...int32) placement {
	return placement{Topic: topic, Partition: partition, Replicas: on}
}

func TestADrainedBrokerHoldsNothing(t *testing.T) {
	s := seats{1: "a", 2: "a", 3: "b", 4: "b"}
	parts := []placement{at("t", 0, 1, 3), at("t", 1, 3, 2), at("t", 2, 2, 4), at("u", 0, 3), at("all", 0, 1, 2, 3, 4)}
	moves, stuck := drained(parts, s, 3, false)
	want := []placement{at("t", 0, 1, 4), at("t", 1, 4, 2), at("u", 0, 1)}
	if fmt.Sprint(moves) != fmt.Sprint(want) || fmt.Sprint(stuck) != fmt.Sprint([]placement{at("all", 0, 1, 2, 3, 4)}) {
		t.Errorf("moves %v, stuck %v", moves, stuck)
	}
	moves, stuck = drained(parts, s, 3, true)
	if len(stuck) != 0 || fmt.Sprint(moves[3]) != fmt.Sprint(at("all", 0, 1, 2, 4)) {
		t.Errorf("moves %v, stuck %v", moves, stuck)
	}
	// The last replica is given up by nobody.
	if moves, stuck = drained([]placement{at("t", 0, 1)}, seats{1: ""}, 1, true); len(moves) != 0 || len(stuck) != 1 {
		t.Errorf("moves %v, stuck %v", moves, stuck)
	}
}

// A move that is under way is neither made again nor mistaken for a larger replication factor.
func TestAMoveUnderWayIsNotMovedAgain(t *testing.T) {
	c := kmsg.NewPtrDescribeClusterResponse()
	for id := range int32(5) {
		c.Brokers = append(c.Brokers, kmsg.DescribeClusterResponseBroker{NodeID: id + 1})
	}
	m, moves := kmsg.NewPtrMetadataResponse(), kmsg.NewPtrListPartitionReassignmentsResponse()
	topic := kmsg.NewMetadataResponseTopic()
	topic.Topic = new("t")
	topic.Partitions = []kmsg.MetadataResponseTopicPartition{{Partition: 0, Leader: 1, Replicas: []int32{4, 2, 1}}, {Partition: 1, Leader: 1, Replicas: []int32{1, 2}}}
	m.Topics = append(m.Topics, topic)
	moves.Topics = []kmsg.ListPartitionReassignmentsResponseTopic{{Topic: "t", Partitions: []kmsg.ListPartitionReassignmentsResponseTopicPartition{
		{Partition: 0, Replicas: []int32{4, 2, 1}, AddingReplicas: []int32{4}, RemovingReplicas: []int32{1}},
	}}}
	l := layoutFrom(c, m, moves)
	if got, stuck := drained(l.parts, l.seats, 1, false); len(stuck) != 0 || fmt.Sprint(got) != fmt.Sprint([]placement{at("t", 1, 3, 2)}) {
		t.Errorf("moves %v, stuck %v", got, stuck)
	}
	if got, _ := drained(l.parts, l.seats, 4, false); fmt.Sprint(got) != fmt.Sprint([]placement{at("t", 0, 3, 2)}) {
		t.Errorf("moves away from a broker that is being added: %v", got)
	}
	if got := l.leaving[1]; fmt.Sprint(got) != fmt.Sprint([]placement{at("t", 0, 4, 2)}) || l.leaving[2] != nil {
		t.Errorf("what is leaving broker 1: %v of %v", got, l.leaving)
	}
}

func TestReplicasAreEvened(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for round := range 300 {
		s := seats{}
		for id := range int32(2 + rng.Intn(6)) {
			s[id+1] = ""
		}
		var parts []placement
		for i := range int32(rng.Intn(40)) {
			var on []int32
			for _, b := range rng.Perm(len(s))[:1+rng.Intn(min(3, len(s)))] {
				on = append(on, int32(b/2+1)) // uneven
			}
			slices.Sort(on)
			parts = append(parts, at("t", i, slices.Compact(on)...))
		}
		moves := evened(parts, s)
		after := slices.Clone(parts)
		for _, m := range moves {
			if len(m.Replicas) != len(parts[m.Partition].Replicas) || slices.Equal(m.Replicas, parts[m.Partition].Replicas) {
				t.Fatalf("round %d: %v becomes %v", round, parts[m.Partition], m)
			}
			after[m.Partition] = m
		}
		n := s.loads(after)
		least, most := 1<<30, 0
		for _, c := range n {
			least, most = min(least, c), max(most, c)
		}
		if most-least > 1 {
			t.Fatalf("round %d: %v of %v", round, n, after)
		}
		if again := evened(after, s); len(again) != 0 {
			t.Fatalf("round %d: even replicas are moved: %v", round, again)
		}
	}
}

func TestEveningRespectsRacks(t *testing.T) {
	s := seats{1: "a", 2: "b", 3: "b"}
	// Broker 3 could take replicas of broker 1 only beside broker 2, in the same rack.
	parts := []placement{at("t", 0, 1, 2), at("t", 1, 1, 2), at("t", 2, 1, 2)}
	for _, m := range evened(parts, s) {
		if !slices.Contains(m.Replicas, 1) {
			t.Errorf("%v is in one rack", m)
		}
	}
}

func TestOnePartitionWasMoved(t *testing.T) {
	for n, want := range map[int]string{0: "0 partitions were moved", 1: "1 partition was moved", 2: "2 partitions were moved"} {
		var text strings.Builder
		(&balance{Moves: make([]placement, n), Repaired: true}).text(&text)
		if !strings.Contains(text.String(), "; "+want+"\n") {
			t.Errorf("%q", text.String())
		}
	}
}
