package offsets

import (
	"maps"
	"slices"

	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Group has the committed offsets of one group.
type Group struct {
	name   string
	topics map[string]*topic
	count  int
}

// topic has the commits of one topic. A topic without commits does not stay.
type topic struct {
	name    string // shared by all entries of the topic
	commits map[int32]*records.OffsetCommit
}

// New makes the offsets of a group that has none.
func New(name string) *Group { return &Group{name: name, topics: make(map[string]*topic)} }

// Len is how many partitions have a committed offset.
func (g *Group) Len() int { return g.count }

// Apply changes the hard state by an entry of this group. A tombstone of what is not there changes nothing. The names of the entry are not kept: a log has
// them anew in every record, and a shard many records.
func (g *Group) Apply(e *records.OffsetCommit) {
	t := g.topics[e.Topic]
	if e.Value == nil {
		if t == nil {
			return
		}
		if _, ok := t.commits[e.Partition]; ok {
			delete(t.commits, e.Partition)
			g.count--
		}
		if len(t.commits) == 0 {
			delete(g.topics, e.Topic)
		}
		return
	}
	t = g.topic(e.Topic)
	g.put(t, &records.OffsetCommit{Group: g.name, Topic: t.name, Partition: e.Partition, Value: e.Value})
}

// topic finds a topic or makes it; who makes it puts a commit there.
func (g *Group) topic(name string) *topic {
	t := g.topics[name]
	if t == nil {
		t = &topic{name: name, commits: make(map[int32]*records.OffsetCommit)}
		g.topics[name] = t
	}
	return t
}

func (g *Group) put(t *topic, e *records.OffsetCommit) {
	before := len(t.commits)
	t.commits[e.Partition] = e
	g.count += len(t.commits) - before
}

// Get returns what is committed for a partition; nil: nothing. The value is not to be changed.
func (g *Group) Get(topic string, partition int32) *records.Offset {
	t := g.topics[topic]
	if t == nil {
		return nil
	}
	e := t.commits[partition]
	if e == nil {
		return nil
	}
	return e.Value
}

// Each visits all commits, topics by name and partitions by number.
func (g *Group) Each(visit func(*records.OffsetCommit)) {
	for _, name := range slices.Sorted(maps.Keys(g.topics)) {
		g.topics[name].each(visit)
	}
}

func (t *topic) each(visit func(*records.OffsetCommit)) {
	for _, p := range slices.Sorted(maps.Keys(t.commits)) {
		visit(t.commits[p])
	}
}

// usable tells whether a commit was made for the topic that is asked for. A topic that was deleted and made again has another id, and what was committed
// for the old one says nothing about it. An unknown id on either side leaves the name to decide.
func usable(o *records.Offset, id ident.TopicID) bool {
	return o != nil && (id.IsZero() || o.TopicID.IsZero() || o.TopicID == id)
}
