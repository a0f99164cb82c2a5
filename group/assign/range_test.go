package assign_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-broker/troupe/group/assign"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestRangeAsKafka has what RangeAssignor of Apache Kafka 4.4.0 computed for the same groups.
func TestRangeAsKafka(t *testing.T) {
	c := cluster{topicID(0): 7, topicID(1): 7, topicID(2): 2}
	a := func(topics ...[]int32) []records.TopicPartitions {
		var target []records.TopicPartitions
		for n, partitions := range topics {
			if partitions != nil {
				target = append(target, records.TopicPartitions{Topic: topicID(n), Partitions: partitions})
			}
		}
		return target
	}
	wants := func(topics ...int) (ids []ident.TopicID) {
		for _, n := range topics {
			ids = append(ids, topicID(n))
		}
		return ids
	}
	type row struct {
		member assign.Member
		want   []records.TopicPartitions
	}
	for name, rows := range map[string][]row{
		"homogeneous": {
			{assign.Member{ID: "m-c", Topics: wants(0, 1, 2)}, a([]int32{6}, []int32{6})},
			{assign.Member{ID: "m-a", Topics: wants(0, 1, 2)}, a([]int32{4, 5}, []int32{4, 5})},
			{assign.Member{ID: "m-d", Instance: "i-2", Topics: wants(0, 1, 2)}, a([]int32{2, 3}, []int32{2, 3}, []int32{1})},
			{assign.Member{ID: "m-z", Instance: "i-1", Topics: wants(0, 1, 2)}, a([]int32{0, 1}, []int32{0, 1}, []int32{0})},
		},
		"heterogeneous": {
			{assign.Member{ID: "m-c", Topics: wants(0, 1)}, a([]int32{5, 6}, []int32{5, 6})},
			{assign.Member{ID: "m-a", Topics: wants(0, 1, 2)}, a([]int32{3, 4}, []int32{3, 4}, []int32{1})},
			{assign.Member{ID: "m-d", Instance: "i-2", Topics: wants(0, 2)}, a([]int32{0, 1, 2}, nil, []int32{0})},
			{assign.Member{ID: "m-z", Instance: "i-1", Topics: wants(1)}, a(nil, []int32{0, 1, 2})},
		},
		"more members than partitions": {
			{assign.Member{ID: "a", Topics: wants(2)}, a(nil, nil, []int32{0})},
			{assign.Member{ID: "b", Topics: wants(2)}, a(nil, nil, []int32{1})},
			{assign.Member{ID: "c", Topics: wants(2)}, nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var members []assign.Member
			for _, r := range rows {
				members = append(members, r.member)
			}
			targets := assign.Range(members, c.byID)
			check(t, c, members, targets)
			for i, r := range rows {
				if !equal(targets[i], r.want) {
					t.Errorf("%s has %v, want %v", r.member.ID, targets[i], r.want)
				}
			}
		})
	}
}

// TestRangeCutsAlike: runs without a gap, at most one partition apart, and the same ones of topics with the same subscribers and as many partitions.
func TestRangeCutsAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, members, _ := drawGroup(t)
		targets := assign.Range(members, c.byID)
		subscribers, runs := make(map[ident.TopicID][]int), make(map[ident.TopicID]map[int][]int32)
		for i, m := range members {
			for _, id := range m.Topics {
				subscribers[id] = append(subscribers[id], i)
			}
			for _, tp := range targets[i] {
				if runs[tp.Topic] == nil {
					runs[tp.Topic] = make(map[int][]int32)
				}
				runs[tp.Topic][i] = tp.Partitions
				if n := len(tp.Partitions); int(tp.Partitions[n-1]-tp.Partitions[0]) != n-1 {
					t.Fatalf("a run with a gap: %v", tp)
				}
			}
		}
		for id, who := range subscribers {
			least, most := len(runs[id][who[0]]), 0
			for _, i := range who {
				least, most = min(least, len(runs[id][i])), max(most, len(runs[id][i]))
			}
			if most-least > 1 {
				t.Fatalf("topic %v is cut into runs of %d to %d", id, least, most)
			}
			for other, others := range subscribers {
				if c[id] != c[other] || !slices.Equal(who, others) {
					continue
				}
				for _, i := range who {
					if !slices.Equal(runs[id][i], runs[other][i]) {
						t.Fatalf("%s has %v of %v and %v of %v", members[i].ID, runs[id][i], id, runs[other][i], other)
					}
				}
			}
		}
	})
}

// TestStaticMembersKeepTheirPlace: a static member that comes back under another id has its old partitions, by either assignor, if it brings its target
// along as the group hands it over.
func TestStaticMembersKeepTheirPlace(t *testing.T) {
	for _, name := range assign.Names() {
		assignor, _ := assign.Lookup(name)
		c := cluster{topicID(0): 10, topicID(1): 3}
		members := group(c, "m1", "m2", "m3", "m4")
		members[0].Instance, members[1].Instance, members[2].Instance = "i1", "i2", "i3"
		adopt(members, assignor(members, c.byID))
		again := slices.Clone(members)
		again[0].ID, again[1].ID, again[2].ID = "z", "a", "m0"
		slices.Reverse(again)
		targets := assignor(again, c.byID)
		for i := range again {
			if !equal(targets[i], again[i].Target) {
				t.Errorf("%s: %s went from %v to %v", name, again[i].ID, again[i].Target, targets[i])
			}
		}
	}
}
