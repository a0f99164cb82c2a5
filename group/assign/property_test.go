package assign_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-broker/troupe/group/assign"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// cluster is a set of topics.
type cluster map[ident.TopicID]int32

func (c cluster) byID(id ident.TopicID) (coord.Topic, bool) {
	n, ok := c[id]
	return coord.Topic{ID: id, Partitions: n}, ok
}

func (c cluster) ids() []ident.TopicID {
	ids := make([]ident.TopicID, 0, len(c))
	for id := range c {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, ident.TopicID.Compare)
	return ids
}

func topicID(n int) ident.TopicID { return ident.TopicID{0: byte(n >> 8), 1: byte(n), 15: 1} }

// drawCluster draws a few topics, some of them without partitions.
func drawCluster(t *rapid.T) cluster {
	c := make(cluster)
	for n := range rapid.IntRange(1, 6).Draw(t, "topics") {
		c[topicID(n)] = rapid.Int32Range(0, 12).Draw(t, "partitions")
	}
	return c
}

func memberID(n int) string { return fmt.Sprintf("m%03d", n) }

// drawMember draws a member that subscribes to all topics, or to some and perhaps one that does not exist.
func drawMember(t *rapid.T, c cluster, homogeneous bool, n int) assign.Member {
	m := assign.Member{ID: memberID(n), Topics: c.ids()}
	if rapid.IntRange(0, 3).Draw(t, "static") == 0 {
		m.Instance = fmt.Sprintf("i%03d", (n*7)%1000)
	}
	if !homogeneous {
		m.Topics = slices.DeleteFunc(m.Topics, func(ident.TopicID) bool { return rapid.Bool().Draw(t, "left out") })
		if rapid.IntRange(0, 9).Draw(t, "ghost") == 0 {
			m.Topics = append(m.Topics, ident.TopicID{0: 0xff})
		}
	}
	return m
}

func drawGroup(t *rapid.T) (cluster, []assign.Member, bool) {
	c := drawCluster(t)
	homogeneous := rapid.Bool().Draw(t, "homogeneous")
	var members []assign.Member
	for n := range rapid.IntRange(0, 8).Draw(t, "members") {
		members = append(members, drawMember(t, c, homogeneous, n))
	}
	return c, members, homogeneous
}

func adopt(members []assign.Member, targets [][]records.TopicPartitions) {
	for i := range members {
		members[i].Target = targets[i]
	}
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// check verifies what every assignor promises, and returns who owns what and how many partitions each member has.
func check(t fataler, c cluster, members []assign.Member, targets [][]records.TopicPartitions) (owners map[partition]int, loads []int) {
	t.Helper()
	if len(targets) != len(members) {
		t.Fatalf("%d targets for %d members", len(targets), len(members))
	}
	owners, loads = make(map[partition]int), make([]int, len(members))
	due := make(map[partition]bool)
	for i, m := range members {
		for _, id := range m.Topics {
			for p := range c[id] {
				due[partition{id, p}] = true
			}
		}
		if !slices.IsSortedFunc(targets[i], func(a, b records.TopicPartitions) int { return a.Topic.Compare(b.Topic) }) {
			t.Fatalf("topics of %s out of order: %v", m.ID, targets[i])
		}
		for j, tp := range targets[i] {
			if len(tp.Partitions) == 0 || !slices.Contains(m.Topics, tp.Topic) || j > 0 && targets[i][j-1].Topic == tp.Topic {
				t.Fatalf("%s, which wants %v, has %v", m.ID, m.Topics, targets[i])
			}
			if !slices.IsSorted(tp.Partitions) {
				t.Fatalf("partitions of %s out of order: %v", m.ID, targets[i])
			}
			for _, p := range tp.Partitions {
				at := partition{tp.Topic, p}
				if before, twice := owners[at]; twice {
					t.Fatalf("%v belongs to %s and %s", at, members[before].ID, m.ID)
				}
				owners[at] = i
				loads[i]++
			}
		}
	}
	for at := range due {
		if _, ok := owners[at]; !ok {
			t.Fatalf("nobody has %v", at)
		}
	}
	if len(owners) != len(due) {
		t.Fatalf("%d partitions assigned, %d are there", len(owners), len(due))
	}
	return owners, loads
}

type partition struct {
	topic     ident.TopicID
	partition int32
}

// TestPromises: any group through a few changes, by both assignors: complete, unique, subscribed, deterministic, independent of order, and at rest when
// nothing changed.
func TestPromises(t *testing.T) {
	for _, name := range assign.Names() {
		assignor, ok := assign.Lookup(name)
		if !ok {
			t.Fatalf("no assignor %q", name)
		}
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			c, members, homogeneous := drawGroup(t)
			for range rapid.IntRange(1, 4).Draw(t, "changes") {
				targets := assignor(members, c.byID)
				check(t, c, members, targets)
				again := assignor(members, c.byID)
				shuffled := slices.Clone(members)
				rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "shuffle"))).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
				others := assignor(shuffled, c.byID)
				for i := range members {
					j := slices.IndexFunc(shuffled, func(m assign.Member) bool { return m.ID == members[i].ID })
					if !equal(targets[i], again[i]) || !equal(targets[i], others[j]) {
						t.Fatalf("%s: %v, again %v, in another order %v", members[i].ID, targets[i], again[i], others[j])
					}
				}
				adopt(members, targets)
				rest := assignor(members, c.byID)
				for i := range members {
					if !equal(rest[i], targets[i]) {
						t.Fatalf("nothing changed and %s went from %v to %v", members[i].ID, targets[i], rest[i])
					}
					if len(rest[i]) > 0 && &rest[i][0] != &targets[i][0] {
						t.Fatalf("the unchanged target of %s was made again", members[i].ID)
					}
				}
				members = change(t, c, members, homogeneous)
			}
		}))
	}
}

// change lets members come and go, and topics grow, vanish or lose partitions.
func change(t *rapid.T, c cluster, members []assign.Member, homogeneous bool) []assign.Member {
	t.Helper()
	switch rapid.IntRange(0, 3).Draw(t, "change") {
	case 0:
		n := rapid.IntRange(0, 300).Filter(func(n int) bool {
			return !slices.ContainsFunc(members, func(m assign.Member) bool { return m.ID == memberID(n) })
		}).Draw(t, "joins")
		return append(members, drawMember(t, c, homogeneous, n))
	case 1:
		if len(members) > 0 {
			gone := rapid.IntRange(0, len(members)-1).Draw(t, "leaves")
			return slices.Delete(slices.Clone(members), gone, gone+1)
		}
	case 2:
		c[rapid.SampledFrom(c.ids()).Draw(t, "resized")] = rapid.Int32Range(0, 15).Draw(t, "partitions")
	case 3:
		if len(members) > 0 && !homogeneous {
			i := rapid.IntRange(0, len(members)-1).Draw(t, "resubscribes")
			id, instance, target := members[i].ID, members[i].Instance, members[i].Target
			members[i] = drawMember(t, c, false, i)
			members[i].ID, members[i].Instance, members[i].Target = id, instance, target
		}
	}
	return members
}

func equal(a, b []records.TopicPartitions) bool {
	return slices.EqualFunc(a, b, func(x, y records.TopicPartitions) bool {
		return x.Topic == y.Topic && slices.Equal(x.Partitions, y.Partitions)
	})
}
