package assign

import (
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// subscriptions are who subscribes to what, in numbers: members by their order, topics by the order of their ids. Members with equal lists of topics, which
// is most of them in most groups, share one list, so that the work is done for each list and not for each member.
type subscriptions struct {
	order []int           // members[order[m]] is member m
	ids   []ident.TopicID // all topics of all members, in order
	lists [][]int32       // the different lists, each in order
	of    []int32         // of[m] is the list of member m
}

func subscribe(members []Member) *subscriptions {
	s := &subscriptions{order: order(members), of: make([]int32, len(members))}
	var different [][]ident.TopicID
	known := make(map[listKey][]int32)
	for m, i := range s.order {
		topics := members[i].Topics
		key := keyOf(topics)
		at := slices.IndexFunc(known[key], func(l int32) bool { return identical(different[l], topics) })
		if at < 0 {
			at = len(known[key])
			known[key] = append(known[key], int32(len(different)))
			different = append(different, topics)
			s.ids = union(s.ids, topics)
		}
		s.of[m] = known[key][at]
	}
	s.lists = make([][]int32, len(different))
	for l, topics := range different {
		s.lists[l] = s.number(topics)
	}
	return s
}

// listKey tells most lists apart without a look at all of them.
type listKey struct {
	n           int
	first, last ident.TopicID
}

func keyOf(topics []ident.TopicID) listKey {
	if len(topics) == 0 {
		return listKey{}
	}
	return listKey{len(topics), topics[0], topics[len(topics)-1]}
}

// identical compares lists of one length, at once if they are the same memory.
func identical(a, b []ident.TopicID) bool {
	return len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b)
}

// union merges two ordered lists. It returns the first one if it has all of the second, as it mostly does.
func union(a, b []ident.TopicID) []ident.TopicID {
	i, j := 0, 0
	for i < len(a) && j < len(b) && a[i].Compare(b[j]) <= 0 {
		if a[i] == b[j] {
			j++
		}
		i++
	}
	if j == len(b) {
		return a
	}
	merged := append(make([]ident.TopicID, 0, len(a)+len(b)-j), a[:i]...)
	for i < len(a) && j < len(b) {
		switch c := a[i].Compare(b[j]); {
		case c < 0:
			merged = append(merged, a[i])
			i++
		case c > 0:
			merged = append(merged, b[j])
			j++
		default:
			merged = append(merged, a[i])
			i++
			j++
		}
	}
	return append(append(merged, a[i:]...), b[j:]...)
}

// number gives the numbers of topics, all of which are in s.ids.
func (s *subscriptions) number(topics []ident.TopicID) []int32 {
	numbers := make([]int32, len(topics))
	t := 0
	for i, id := range topics {
		for s.ids[t] != id {
			t++
		}
		numbers[i] = int32(t)
	}
	return numbers
}

// topic finds the number of a topic among those that a member subscribes to.
func (s *subscriptions) topic(m int32, id ident.TopicID) (int32, bool) {
	t, ok := slices.BinarySearchFunc(s.ids, id, ident.TopicID.Compare)
	if !ok {
		return 0, false
	}
	_, ok = slices.BinarySearch(s.lists[s.of[m]], int32(t))
	return int32(t), ok
}

// class is a set of topics with the same subscribers: to balance, they are one big topic.
type class struct {
	topics      []int32 // ascending
	subscribers []int32 // ascending
	partitions  int
	cursor      int32 // the topic from which the next partition moves, if there is a choice
}

// classes puts topics with the same subscribers together, in the order of their first topics. All topics begin as one class; each list splits the classes
// that it cuts in two.
func (s *subscriptions) classes() []*class {
	classOf, n := make([]int32, len(s.ids)), int32(1)
	size := []int32{int32(len(s.ids))}
	inList, split := []int32{0}, []int32{-1} // of each class: how many of its topics are in the list, and the class that these become
	for _, list := range s.lists {
		for _, t := range list {
			inList[classOf[t]]++
		}
		for _, t := range list {
			c := classOf[t]
			if inList[c] == size[c] {
				continue // the list has all of the class
			}
			if split[c] < 0 {
				split[c] = n
				n++
				size, inList, split = append(size, 0), append(inList, 0), append(split, -1)
			}
			classOf[t] = split[c]
			size[split[c]]++
		}
		for c := range inList {
			if to := split[c]; to >= 0 {
				size[c] -= size[to]
			}
			inList[c], split[c] = 0, -1
		}
	}
	return s.collect(classOf, n)
}

// collect makes the classes, given the class of each topic.
func (s *subscriptions) collect(classOf []int32, n int32) []*class {
	var made []*class
	byNumber := make([]*class, n)
	for t, c := range classOf {
		if byNumber[c] == nil {
			byNumber[c] = &class{}
			made = append(made, byNumber[c])
		}
		byNumber[c].topics = append(byNumber[c].topics, int32(t))
	}
	members := make([][]int32, len(s.lists))
	for m, l := range s.of {
		members[l] = append(members[l], int32(m))
	}
	for l, list := range s.lists {
		for _, t := range list {
			if c := byNumber[classOf[t]]; c.topics[0] == t { // a list that has one topic of a class has them all
				c.subscribers = append(c.subscribers, members[l]...)
			}
		}
	}
	for _, c := range made {
		slices.Sort(c.subscribers)
	}
	return made
}
