package consumer

import (
	"slices"

	"github.com/troupe-broker/troupe/group/records"
)

// tally counts what the members want, so that one member more does not mean to look at all of them. Words that nobody uses are not in it.
type tally struct {
	topics    map[string]int // how many members name a topic
	regexes   map[string]int // and a regular expression
	assignors map[string]int
}

func newTally() tally {
	return tally{topics: make(map[string]int), regexes: make(map[string]int), assignors: make(map[string]int)}
}

// add counts n members with a subscription.
func (t *tally) add(sub *records.Subscription, n int) {
	for i, topic := range sub.Topics {
		if i == 0 || sub.Topics[i-1] != topic {
			count(t.topics, topic, n)
		}
	}
	if sub.Regex != nil {
		count(t.regexes, *sub.Regex, n)
	}
	if sub.Assignor != nil {
		count(t.assignors, *sub.Assignor, n)
	}
}

func count(counts map[string]int, word string, n int) {
	if counts[word] += n; counts[word] == 0 {
		delete(counts, word)
	}
}

// Subscribed tells whether a member subscribes to the topic, by name or by a regular expression.
func (g *Group) Subscribed(topic string) bool {
	if g.tally.topics[topic] > 0 {
		return true
	}
	for pattern := range g.tally.regexes {
		if resolved := g.regexes[pattern]; resolved != nil {
			if _, ok := slices.BinarySearch(resolved.Topics, topic); ok {
				return true
			}
		}
	}
	return false
}
