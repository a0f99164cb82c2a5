package assign

import (
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Member is a member of a group as an assignor sees it. An assignor changes nothing in it.
type Member struct {
	ID       string
	Instance string // group.instance.id; empty: a dynamic member
	Rack     string // client.rack; no assignor uses it today
	// Topics are those the member subscribes to, in the order of their ids, without doubles.
	Topics []ident.TopicID
	// Target is what the member shall have until now, as an assignor returned it: topics in the order of their ids, partitions ascending. What is no longer
	// true in it (a topic that is gone, a partition that another member has as well) does no harm.
	Target []records.TopicPartitions
}

// Topics finds a topic by its id: the ByID of a [coord.Topics]. A topic that it does not find has no partitions.
type Topics func(ident.TopicID) (coord.Topic, bool)

// Assignor makes a target for each member: the result has the length and the order of members. A target has its topics in the order of their ids, each with
// at least one partition, partitions ascending; nil is the empty one. A target that stays as it was is the member's own slice again; targets are shared, so
// the caller must not write into one. No two members may have the same ID.
type Assignor func(members []Member, topics Topics) [][]records.TopicPartitions

// Names lists the assignors by Kafka's names, the default first.
func Names() []string { return []string{"uniform", "range"} }

// Lookup finds an assignor by its name.
func Lookup(name string) (Assignor, bool) {
	switch name {
	case "uniform":
		return Uniform, true
	case "range":
		return Range, true
	}
	return nil, false
}

// order lists the indexes of the members: static ones by their instance, then dynamic ones by their id. A static member that comes back under another id
// has its old place.
func order(members []Member) []int {
	o := make([]int, len(members))
	for i := range o {
		o[i] = i
	}
	slices.SortFunc(o, func(a, b int) int {
		m, n := &members[a], &members[b]
		switch {
		case m.Instance != "" && n.Instance != "":
			if c := strings.Compare(m.Instance, n.Instance); c != 0 {
				return c
			}
		case m.Instance != "":
			return -1
		case n.Instance != "":
			return 1
		}
		return strings.Compare(m.ID, n.ID)
	})
	return o
}

// partitionsOf is how many partitions a topic has, 0 for one that is not there.
func (t Topics) partitionsOf(id ident.TopicID) int32 {
	topic, ok := t(id)
	if !ok {
		return 0
	}
	return max(0, topic.Partitions)
}

// same tells whether two targets are equal.
func same(a, b []records.TopicPartitions) bool {
	return slices.EqualFunc(a, b, func(x, y records.TopicPartitions) bool {
		return x.Topic == y.Topic && slices.Equal(x.Partitions, y.Partitions)
	})
}
