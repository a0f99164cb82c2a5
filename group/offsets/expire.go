package offsets

import (
	"maps"
	"slices"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Aging says how the commits of a group age now (Kafka's OffsetExpirationCondition, KIP-211). The zero value: from their commit on.
type Aging struct {
	// Never: none expires, because the group is changing, or nobody knows what it reads.
	Never bool
	// Idle: the group is empty since Since, and commits age from then on, however old they are.
	Idle  bool
	Since ident.Millis
	// Subscribed tells of the topics that members read: their commits do not expire. nil: no topic is read.
	Subscribed func(topic string) bool
	// Gone tells of topics that were deleted while nobody told the shard: between two loads. Their commits go, whatever the group does, when they are
	// older than GoneAfter: a topic may be newer than our view of the topics, but not for long. nil: none.
	Gone      func(id ident.TopicID) bool
	GoneAfter int64 // ms
}

// orphaned tells whether a commit's topic was deleted.
func (a *Aging) orphaned(o *records.Offset, now ident.Millis) bool {
	return a.Gone != nil && !o.TopicID.IsZero() && int64(now-o.CommitTime) >= a.GoneAfter && a.Gone(o.TopicID)
}

// expired tells whether a commit is too old at a time. A commit with an end of its own (old clients) heeds only that.
func (a *Aging) expired(o *records.Offset, now ident.Millis, retention int64) bool {
	if o.ExpireTime >= 0 {
		return now >= o.ExpireTime
	}
	since := o.CommitTime
	if a.Idle {
		since = a.Since
	}
	return int64(now-since) >= retention
}

// Expire removes what is too old, topics in the order of their names from the first name that is not below after. It stops after the topic in which budget
// partitions have been looked at, and says where to go on; done: the whole group has been looked through.
func (g *Group) Expire(now coord.Now, retention int64, a Aging, after string, budget int, out *coord.Out) (next string, seen int, done bool) {
	expired := int64(0)
	defer func() {
		if expired > 0 {
			out.Note(coord.Note{Kind: coord.NoteOffsetExpired, Group: g.name, Count: expired})
		}
	}()
	names := slices.Sorted(maps.Keys(g.topics))
	first, _ := slices.BinarySearch(names, after)
	for _, name := range names[first:] {
		if seen >= budget {
			return name, seen, false
		}
		t := g.topics[name]
		seen += len(t.commits)
		ages := !a.Never && (a.Subscribed == nil || !a.Subscribed(name))
		t.each(func(e *records.OffsetCommit) {
			if ages && a.expired(e.Value, now.Wall, retention) || a.orphaned(e.Value, now.Wall) {
				g.remove(name, e.Partition, out)
				expired++
			}
		})
	}
	return "", seen, true
}
