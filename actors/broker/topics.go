package broker

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// topicTable tells sessions where partitions are. It is immutable; Root publishes another one when the metadata changes, before the image that says so,
// so that whatever a client reads in the metadata can be reached.
type topicTable struct {
	byName map[string]*topicEntry
	byID   map[ident.TopicID]*topicEntry
}

// topicEntry is one topic with what this broker hosts of it.
type topicEntry struct {
	name     string
	id       ident.TopicID
	rules    *record.Rules
	replicas []*replica // the index is the partition; nil: no replica here
	image    *cluster.Topic
	internal bool // one of Kafka's internal topics: clients do not write to it
}

// replica is one partition hosted here, as others see it.
type replica struct {
	ref   *runtime.Ref
	tp    ident.TopicPartition
	id    ident.TopicID
	dir   *dataDir
	lane  *runtime.Ref // its flusher
	flush flushLink
	stats replicaStats

	coordinator *runtime.Ref // of the groups that hash to it; nil but for a partition of the offsets topic

	following ident.BrokerID // its leader, if that is another broker; Root's
	checks    int64          // that were begun; the scrubber's
}

// replicaStats are the counters of one replica, written in its turns and read by anybody.
type replicaStats struct {
	appendedBytes   atomic.Int64
	appendedBatches atomic.Int64
	appendedRecords atomic.Int64
	fetchedBytes    atomic.Int64
	refused         atomic.Int64
	damagedReads    atomic.Int64
	repaired        atomic.Int64 // damaged ranges
	repliedBytes    atomic.Int64 // to followers
	replicatedBytes atomic.Int64 // from leaders
	damagedAnswers  atomic.Int64 // of leaders

	sizeBytes atomic.Int64
	start     atomic.Int64
	end       atomic.Int64
	high      atomic.Int64
	flushed   atomic.Int64
	segments  atomic.Int64
	damaged   atomic.Int64
	differing atomic.Int64
	leading   atomic.Bool
	offline   atomic.Bool
}

var emptyTable = &topicTable{}

// find returns the topic that a request names: by name, or by id when the name is empty. It does not allocate.
func (t *topicTable) find(name []byte, id ident.TopicID) *topicEntry {
	if len(name) == 0 {
		return t.byID[id]
	}
	return t.byName[string(name)]
}

// place returns the topic of a handler's question.
func (t *topicTable) place(name string, id ident.TopicID) *topicEntry {
	if name == "" {
		return t.byID[id]
	}
	return t.byName[name]
}

// edit returns a copy that can be changed until it is published.
func (t *topicTable) edit() *topicTable {
	e := &topicTable{byName: maps.Clone(t.byName), byID: maps.Clone(t.byID)}
	if e.byName == nil {
		e.byName, e.byID = make(map[string]*topicEntry), make(map[ident.TopicID]*topicEntry)
	}
	return e
}

// all lists the topics by name: what is told to many is told in an order that a simulation can repeat.
func (t *topicTable) all() []*topicEntry {
	return slices.SortedFunc(maps.Values(t.byID), func(a, b *topicEntry) int {
		return cmp.Or(cmp.Compare(a.name, b.name), bytes.Compare(a.id[:], b.id[:]))
	})
}

func (t *topicTable) put(e *topicEntry) {
	t.byName[e.name], t.byID[e.id] = e, e
}

func (t *topicTable) remove(e *topicEntry) {
	if t.byName[e.name] == e {
		delete(t.byName, e.name)
	}
	delete(t.byID, e.id)
}

// unknownTopic is the code for a topic that does not exist.
func unknownTopic(byID bool) wire.ErrorCode {
	if byID {
		return wire.UnknownTopicID
	}
	return wire.UnknownTopicOrPartition
}

// absence says why a partition of a topic that exists is not served here.
type absence struct {
	code   wire.ErrorCode
	leader ident.BrokerID // who leads it, as far as the image says
	epoch  ident.LeaderEpoch
}

// replica returns the replica of a partition that this broker hosts, or why it does not.
func (e *topicEntry) replica(partition int32) (*replica, absence) {
	if partition < 0 || int(partition) >= len(e.replicas) {
		return nil, absence{wire.UnknownTopicOrPartition, ident.NoBroker, ident.NoLeaderEpoch}
	}
	if r := e.replicas[partition]; r != nil {
		return r, absence{}
	}
	p := e.image.Partitions[partition]
	return nil, absence{wire.NotLeaderOrFollower, p.Leader, p.LeaderEpoch}
}
