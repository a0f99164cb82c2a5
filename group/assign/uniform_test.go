package assign_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-broker/troupe/group/assign"
	"github.com/troupe-broker/troupe/group/records"
)

// TestUniformBalanceAndStickiness: through changes of members, topics and subscriptions, a homogeneous group is level and moves as little as that allows; a
// heterogeneous one has no partition that could go to a subscriber with two less.
func TestUniformBalanceAndStickiness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, members, homogeneous := drawGroup(t)
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			if homogeneous { // also of topics that came since
				for i := range members {
					members[i].Topics = c.ids()
				}
			}
			before, held := holders(c, members)
			targets := assign.Uniform(members, c.byID)
			owners, loads := check(t, c, members, targets)
			for at, owner := range owners {
				for i, m := range members {
					if slices.Contains(m.Topics, at.topic) && loads[owner]-loads[i] > 1 {
						t.Fatalf("%v is with %s, which has %d; %s has %d", at, members[owner].ID, loads[owner], m.ID, loads[i])
					}
				}
			}
			if homogeneous && len(members) > 0 {
				kept := 0
				for at, owner := range owners {
					if was, ok := before[at]; ok && was == owner {
						kept++
					}
				}
				if best := keepable(held, len(owners)); kept != best {
					t.Fatalf("%d partitions stayed, %d could: %v had %v", kept, best, loads, held)
				}
			}
			adopt(members, targets)
			members = change(t, c, members, homogeneous)
		}
	})
}

// holders lists what members still have of their targets, first come first served, and how much that is.
func holders(c cluster, members []assign.Member) (before map[partition]int, held []int) {
	before, held = make(map[partition]int), make([]int, len(members))
	for i, m := range members {
		for _, tp := range m.Target {
			for _, p := range tp.Partitions {
				if at := (partition{tp.Topic, p}); p < c[tp.Topic] && slices.Contains(m.Topics, tp.Topic) {
					before[at] = i
					held[i]++
				}
			}
		}
	}
	return before, held
}

// keepable is how many partitions can stay when members that have so many become level: those with the most keep the one that is left over.
func keepable(held []int, total int) int {
	held = slices.Clone(held)
	slices.SortFunc(held, func(a, b int) int { return cmp.Compare(b, a) })
	sum := 0
	for i, n := range held {
		quota := total / len(held)
		if i < total%len(held) {
			quota++
		}
		sum += min(n, quota)
	}
	return sum
}

// group makes members that want all topics of a cluster.
func group(c cluster, ids ...string) []assign.Member {
	members := make([]assign.Member, len(ids))
	for i, id := range ids {
		members[i] = assign.Member{ID: id, Topics: c.ids()}
	}
	return members
}

// TestUniformSpreadsTopics: neither a new group nor a new member has several partitions of one topic while others have none.
func TestUniformSpreadsTopics(t *testing.T) {
	c := make(cluster)
	for n := range 10 {
		c[topicID(n)] = 10
	}
	members := group(c, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
	alike := func(targets [][]records.TopicPartitions) {
		t.Helper()
		for i, target := range targets {
			for _, tp := range target {
				if len(tp.Partitions) > 1 {
					t.Errorf("member %d has partitions %v of one topic", i, tp.Partitions)
				}
			}
		}
	}
	targets := assign.Uniform(members, c.byID)
	alike(targets)
	adopt(members, targets)
	members = append(members, group(c, "k")...)
	targets = assign.Uniform(members, c.byID)
	alike(targets)
	if n := len(targets[10]); n != 9 {
		t.Errorf("the new member has %d partitions", n)
	}
}

// TestUniformChain: balance that takes two moves, from topic to topic.
func TestUniformChain(t *testing.T) {
	c := cluster{topicID(0): 4, topicID(1): 12}
	ids := c.ids()
	members := []assign.Member{{ID: "a", Topics: ids[:1]}, {ID: "b", Topics: ids}, {ID: "c", Topics: ids[1:]}}
	members[1].Target = []records.TopicPartitions{{Topic: ids[0], Partitions: []int32{0, 1, 2, 3}}, {Topic: ids[1], Partitions: []int32{0, 1}}}
	_, loads := check(t, c, members, assign.Uniform(members, c.byID))
	if !slices.Equal(loads, []int{4, 6, 6}) {
		t.Errorf("loads %v", loads)
	}
}

// TestUniformOldTargets: what old targets say wrongly does no harm: partitions and topics that are gone, doubles, disorder, as another coordinator may have
// written them.
func TestUniformOldTargets(t *testing.T) {
	c := cluster{topicID(0): 4, topicID(1): 2}
	ids := c.ids()
	members := group(c, "a", "b")
	members[0].Target = []records.TopicPartitions{{Topic: ids[1], Partitions: []int32{1, 9, -1}}, {Topic: topicID(77), Partitions: []int32{0}}, {Topic: ids[0], Partitions: []int32{3, 0, 0}}}
	members[1].Target = []records.TopicPartitions{{Topic: ids[0], Partitions: []int32{0, 1}}}
	targets := assign.Uniform(members, c.byID)
	check(t, c, members, targets)
	want := [][]records.TopicPartitions{
		{{Topic: ids[0], Partitions: []int32{0, 3}}, {Topic: ids[1], Partitions: []int32{1}}},
		{{Topic: ids[0], Partitions: []int32{1, 2}}, {Topic: ids[1], Partitions: []int32{0}}},
	}
	for i := range want {
		if !equal(targets[i], want[i]) {
			t.Errorf("%s has %v, want %v", members[i].ID, targets[i], want[i])
		}
	}
}

// TestInputStaysWhole: an assignor writes into nothing that it was given, and targets share no memory in which an append to one could harm another.
func TestInputStaysWhole(t *testing.T) {
	for _, name := range assign.Names() {
		assignor, _ := assign.Lookup(name)
		c := cluster{topicID(0): 7, topicID(1): 5}
		members := group(c, "a", "b")
		adopt(members, assignor(members, c.byID))
		copies := [][]records.TopicPartitions{clone(members[0].Target), clone(members[1].Target)}
		members = append(members, group(c, "c")...)
		targets := assignor(members, c.byID)
		for i, want := range copies {
			if !equal(members[i].Target, want) {
				t.Errorf("%s: the target of %s was changed from %v to %v", name, members[i].ID, want, members[i].Target)
			}
		}
		for i := range targets {
			for j := range targets[i] {
				if p := targets[i][j].Partitions; cap(p) > len(p) && len(targets[i]) > j+1 && &p[:len(p)+1][len(p)] == &targets[i][j+1].Partitions[0] {
					t.Errorf("%s: an append to topic %d of member %d would overwrite the next", name, j, i)
				}
			}
		}
	}
}

func clone(target []records.TopicPartitions) []records.TopicPartitions {
	c := slices.Clone(target)
	for i := range c {
		c[i].Partitions = slices.Clone(c[i].Partitions)
	}
	return c
}

// TestLookup: Kafka's names, and no others.
func TestLookup(t *testing.T) {
	if names := assign.Names(); !slices.Equal(names, []string{"uniform", "range"}) {
		t.Errorf("names %v", names)
	}
	if _, ok := assign.Lookup("sticky"); ok {
		t.Error("an assignor that Kafka does not have")
	}
}
