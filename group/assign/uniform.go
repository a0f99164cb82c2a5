package assign

import (
	"cmp"
	"slices"

	"github.com/troupe-broker/troupe/group/records"
)

// roundsMax bounds how often the classes of a heterogeneous group are levelled against each other. Nearly all groups are done after two; where many
// members subscribe to overlapping sets, balance seeps from class to class and each round brings less. Kafka's bound is the same.
const roundsMax = 16

// Uniform gives each member the same number of partitions, and moves as few as that takes (what Kafka's UniformAssignor.java is for).
//
// In a homogeneous group no two members differ by more than one partition, and nothing moves that balance would let stay. In a heterogeneous one each topic
// is level among its subscribers: none of them could pass a partition of it to another who has two less. (Groups in which that takes more than 16 rounds
// may be left a little less level.)
//
// Beyond what Kafka's does: members that have more than others keep it when there is a remainder to be had, and both what is new and what moves is taken
// from the topics in turn, so that no member gets most of one busy topic.
func Uniform(members []Member, topics Topics) [][]records.TopicPartitions {
	g := newGroup(members, topics)
	for _, c := range g.classes {
		g.fill(c)
	}
	last := -1 // the class that was levelled last: when it comes round again with nothing done since, all are level
	for range roundsMax {
		for i, c := range g.classes {
			if i == last {
				return g.targets()
			}
			if g.level(c) || last < 0 {
				last = i
			}
		}
	}
	return g.targets()
}

// nobody owns a partition that is not assigned.
const nobody = int32(-1)

// group is an assignment in the making. owner has a row for each topic.
type group struct {
	*subscriptions
	members []Member
	owner   [][]int32
	load    []int32 // partitions of each member
	classes []*class
	held    [][]holding // what members can give up, while a class is levelled
}

func newGroup(members []Member, topics Topics) *group {
	g := &group{subscriptions: subscribe(members), members: members, load: make([]int32, len(members)), held: make([][]holding, len(members))}
	g.owner = make([][]int32, len(g.ids))
	for t, id := range g.ids {
		g.owner[t] = slices.Repeat([]int32{nobody}, int(topics.partitionsOf(id)))
	}
	for m := range members {
		g.keep(int32(m))
	}
	g.classes = g.subscriptions.classes()
	for _, c := range g.classes {
		for _, t := range c.topics {
			c.partitions += len(g.owner[t])
		}
	}
	// Those with the most partitions for each subscriber come first, since their subscribers have the least use for other partitions; then those with the
	// fewest subscribers, which have the least choice.
	slices.SortStableFunc(g.classes, func(a, b *class) int {
		return cmp.Or(
			cmp.Compare(b.partitions*len(a.subscribers), a.partitions*len(b.subscribers)),
			cmp.Compare(len(a.subscribers), len(b.subscribers)),
		)
	})
	return g
}

// keep gives a member what is left of its old target: partitions that exist, of topics it subscribes to, that no member before it has.
func (g *group) keep(m int32) {
	for _, old := range g.members[g.order[m]].Target {
		t, subscribes := g.topic(m, old.Topic)
		if !subscribes {
			continue
		}
		row := g.owner[t]
		for _, p := range old.Partitions {
			if p >= 0 && int(p) < len(row) && row[p] == nobody {
				row[p] = m
				g.load[m]++
			}
		}
	}
}

// fill gives what nobody has to the members with the least.
func (g *group) fill(c *class) {
	var least *heap
	for _, t := range c.topics {
		for p, owner := range g.owner[t] {
			if owner != nobody {
				continue
			}
			if least == nil {
				least = newHeap(c.subscribers, g.load, +1)
			}
			m := least.top()
			g.owner[t][p] = m
			g.load[m]++
			least.fix()
		}
	}
}

// level moves partitions of the class from those who have the most to those who have the least until they differ by one. It tells whether anything moved.
func (g *group) level(c *class) bool {
	givers := g.hold(c)
	if len(givers) == 0 {
		return false
	}
	most, least := newHeap(givers, g.load, -1), newHeap(c.subscribers, g.load, +1)
	moved := false
	for most.len() > 0 {
		// Those who give never get to less than those who take, so a load that the other heap has changed is only ever too near to the top.
		from, to := most.settled(), least.settled()
		if g.load[from]-g.load[to] <= 1 {
			break
		}
		t, p := c.pick(&g.held[from])
		g.owner[t][p] = to
		g.load[from]--
		g.load[to]++
		moved = true
		if len(g.held[from]) == 0 {
			most.pop()
		} else {
			most.fix()
		}
		least.fix()
	}
	for _, m := range givers {
		g.held[m] = g.held[m][:0]
	}
	return moved
}

// holding is what one member has of one topic.
type holding struct {
	topic      int32
	partitions []int32 // ascending
}

// hold notes what those subscribers have of the class whom a move could help, and lists them: they have two more than the one with the least.
func (g *group) hold(c *class) []int32 {
	least := g.load[c.subscribers[0]]
	for _, m := range c.subscribers {
		least = min(least, g.load[m])
	}
	var givers []int32
	for _, t := range c.topics {
		for p, m := range g.owner[t] {
			if g.load[m]-least <= 1 {
				continue
			}
			n := len(g.held[m])
			if n == 0 {
				givers = append(givers, m)
			}
			if n == 0 || g.held[m][n-1].topic != t {
				g.held[m] = append(g.held[m], holding{topic: t})
				n++
			}
			h := &g.held[m][n-1]
			h.partitions = append(h.partitions, int32(p))
		}
	}
	return givers
}

// pick takes the partition that a member gives up: the last one of the topic of which it has the most; if several, of the next one in turn.
func (c *class) pick(held *[]holding) (topic, partition int32) {
	best := 0
	for i := 1; i < len(*held); i++ {
		h, b := &(*held)[i], &(*held)[best]
		if n, most := len(h.partitions), len(b.partitions); n > most || n == most && h.topic >= c.cursor && b.topic < c.cursor {
			best = i
		}
	}
	h := &(*held)[best]
	last := len(h.partitions) - 1
	topic, partition = h.topic, h.partitions[last]
	h.partitions = h.partitions[:last]
	if last == 0 {
		*held = slices.Delete(*held, best, best+1)
	}
	c.cursor = topic + 1
	return topic, partition
}

// targets writes the owners down as targets in the order in which the members came.
func (g *group) targets() [][]records.TopicPartitions {
	partitions := make([][]int32, len(g.members)) // one piece of memory for each member, cut into topics
	made := make([][]records.TopicPartitions, len(g.members))
	for t, row := range g.owner {
		for p, m := range row {
			if partitions[m] == nil {
				partitions[m] = make([]int32, 0, g.load[m])
			}
			partitions[m] = append(partitions[m], int32(p))
			end := len(partitions[m])
			if n := len(made[m]); n > 0 && made[m][n-1].Topic == g.ids[t] {
				made[m][n-1].Partitions = partitions[m][end-len(made[m][n-1].Partitions)-1 : end : end]
			} else {
				made[m] = append(made[m], records.TopicPartitions{Topic: g.ids[t], Partitions: partitions[m][end-1 : end : end]})
			}
		}
	}
	result := make([][]records.TopicPartitions, len(g.members))
	for m, i := range g.order {
		if result[i] = made[m]; same(made[m], g.members[i].Target) {
			result[i] = g.members[i].Target
		}
	}
	return result
}
