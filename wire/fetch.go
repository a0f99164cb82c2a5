package wire

import (
	"math"

	"github.com/troupe-broker/troupe/wire/ident"
)

// FetchRequest is a decoded Fetch request, versions 4 to 18. It aliases the body
// and holds nothing else, so it can be decoded into again and again.
type FetchRequest struct {
	Version        int16
	ClusterID      []byte            // nil: null, as below version 12
	ReplicaID      ident.BrokerID    // NoBroker: a consumer asks
	ReplicaEpoch   ident.BrokerEpoch // from version 15, else NoBrokerEpoch
	MaxWaitMillis  int32
	MinBytes       int32
	MaxBytes       int32
	IsolationLevel int8  // 0 read uncommitted, 1 read committed
	SessionID      int32 // 0 below version 7
	SessionEpoch   int32 // -1 below version 7
	RackID         []byte
	TopicCount     int
	PartitionCount int // over all topics
	ForgottenCount int // partitions over all forgotten topics

	topics          []byte // the array's elements, still encoded
	forgotten       []byte
	forgottenTopics int
	flexible        bool
}

// FetchPartition is what a Fetch request asks of one partition.
type FetchPartition struct {
	Partition          int32
	CurrentLeaderEpoch ident.LeaderEpoch // from version 9, else NoLeaderEpoch
	FetchOffset        ident.Offset
	LastFetchedEpoch   ident.LeaderEpoch // from version 12, else NoLeaderEpoch
	LogStartOffset     ident.Offset      // of the follower that asks, from version 5, else NoOffset
	MaxBytes           int32
	ReplicaDirectoryID ident.DirectoryID // from version 17, else zero
	HighWatermark      ident.Offset      // that the follower knows, from version 18; else the greatest offset
}

// Versions that added or moved fields of the request.
const (
	fetchLogStart      = 5
	fetchSessions      = 7
	fetchLeaderEpoch   = 9
	fetchRack          = 11
	fetchLastEpoch     = 12
	fetchTopicIDs      = 13
	fetchReplicaState  = 15
	fetchNodeEndpoints = 16
)

// Decode checks and reads a whole body. It allocates nothing but its error, a
// [ProtocolError].
func (r *FetchRequest) Decode(version int16, body []byte) error {
	api, _ := Lookup(KeyFetch)
	if !api.Serves(version) {
		return &UnsupportedError{Key: KeyFetch, Version: version, API: api}
	}
	in := reader{b: body}
	*r = FetchRequest{
		Version: version, flexible: api.IsFlexible(version),
		ReplicaID: ident.NoBroker, ReplicaEpoch: ident.NoBrokerEpoch, SessionEpoch: -1,
	}
	if version < fetchReplicaState {
		r.ReplicaID = ident.BrokerID(in.int32())
	}
	r.MaxWaitMillis, r.MinBytes, r.MaxBytes = in.int32(), in.int32(), in.int32()
	r.IsolationLevel = in.int8()
	if version >= fetchSessions {
		r.SessionID, r.SessionEpoch = in.int32(), in.int32()
	}
	r.TopicCount = in.array(r.flexible, fetchTopicSizeMin(version))
	r.topics = in.b
	for range r.TopicCount {
		r.skipTopicKey(&in)
		n := in.array(r.flexible, fetchPartitionSizeMin)
		r.PartitionCount += n
		for range n {
			var p FetchPartition
			p.read(&in, version, r.flexible)
		}
		in.skipTags(r.flexible)
		if in.bad {
			break
		}
	}
	if version >= fetchSessions {
		r.readForgotten(&in)
	}
	if version >= fetchRack {
		r.RackID = in.string(r.flexible)
	}
	if r.flexible {
		r.readTags(&in)
	}
	if in.bad {
		return badBody(api, version, len(body))
	}
	return nil
}

// Partitions walks the partitions of all topics in the order of the request, which
// is the order in which they are served. Topics without partitions are passed over.
func (r *FetchRequest) Partitions() FetchIterator {
	return FetchIterator{
		TopicIndex: -1, in: reader{b: r.topics}, topics: r.TopicCount,
		version: r.Version, flexible: r.flexible,
	}
}

// Forgotten walks the partitions that the client drops from its fetch session.
func (r *FetchRequest) Forgotten() ForgottenIterator {
	return ForgottenIterator{
		first: true, in: reader{b: r.forgotten}, topics: r.forgottenTopics,
		version: r.Version, flexible: r.flexible,
	}
}

// fetchPartitionSizeMin is the smallest encoding of a partition, in version 4.
const fetchPartitionSizeMin = 4 + 8 + 4

func fetchTopicSizeMin(version int16) int {
	if version >= fetchTopicIDs {
		return 16 + 1 + 1
	}
	return 1 + 1 + 1
}

func (r *FetchRequest) skipTopicKey(in *reader) {
	if r.Version >= fetchTopicIDs {
		in.span(16)
	} else {
		in.string(r.flexible)
	}
}

func (r *FetchRequest) readForgotten(in *reader) {
	r.forgottenTopics = in.array(r.flexible, fetchTopicSizeMin(r.Version))
	r.forgotten = in.b
	for range r.forgottenTopics {
		r.skipTopicKey(in)
		n := in.array(r.flexible, 4)
		r.ForgottenCount += n
		in.span(4 * n)
		in.skipTags(r.flexible)
		if in.bad {
			return
		}
	}
}

// readTags reads the tagged fields of the request: the cluster's id (0) and the
// replica that asks (1).
func (r *FetchRequest) readTags(in *reader) {
	for n := in.uvarint(); n > 0 && !in.bad; n-- {
		key, value := in.tag()
		field := reader{b: value}
		switch key {
		case 0:
			r.ClusterID = field.nullableString(true)
		case 1:
			r.ReplicaID = ident.BrokerID(field.int32())
			r.ReplicaEpoch = ident.BrokerEpoch(field.int64())
			field.skipTags(true)
		}
		if field.bad {
			in.fail()
		}
	}
}

func (p *FetchPartition) read(in *reader, version int16, flexible bool) {
	*p = FetchPartition{
		Partition:          in.int32(),
		CurrentLeaderEpoch: ident.NoLeaderEpoch,
		LastFetchedEpoch:   ident.NoLeaderEpoch,
		LogStartOffset:     ident.NoOffset,
		HighWatermark:      math.MaxInt64,
	}
	if version >= fetchLeaderEpoch {
		p.CurrentLeaderEpoch = ident.LeaderEpoch(in.int32())
	}
	p.FetchOffset = ident.Offset(in.int64())
	if version >= fetchLastEpoch {
		p.LastFetchedEpoch = ident.LeaderEpoch(in.int32())
	}
	if version >= fetchLogStart {
		p.LogStartOffset = ident.Offset(in.int64())
	}
	p.MaxBytes = in.int32()
	if !flexible {
		return
	}
	for n := in.uvarint(); n > 0 && !in.bad; n-- {
		key, value := in.tag()
		field := reader{b: value}
		switch key {
		case 0:
			p.ReplicaDirectoryID = field.uuid()
		case 1:
			p.HighWatermark = ident.Offset(field.int64())
		}
		if field.bad {
			in.fail()
		}
	}
}

// FetchIterator walks the partitions of a Fetch request:
//
//	for it := req.Partitions(); it.Next(); {
//		use(it.TopicName, it.FetchPartition)
//	}
//
// The body was checked by Decode, so the walk cannot fail. TopicName aliases the
// body.
type FetchIterator struct {
	TopicIndex int           // of the topic in the request, from 0
	TopicName  []byte        // below version 13
	TopicID    ident.TopicID // from version 13
	FetchPartition

	in         reader
	topics     int // not begun yet
	partitions int // left of the current topic
	version    int16
	flexible   bool
}

// Next moves to the next partition and tells whether there is one.
func (it *FetchIterator) Next() bool {
	for it.partitions == 0 {
		if it.TopicIndex >= 0 {
			it.in.skipTags(it.flexible)
		}
		if it.topics == 0 {
			return false
		}
		it.topics--
		it.TopicIndex++
		if it.version >= fetchTopicIDs {
			it.TopicID = it.in.uuid()
		} else {
			it.TopicName = it.in.string(it.flexible)
		}
		it.partitions = it.in.array(it.flexible, fetchPartitionSizeMin)
	}
	it.partitions--
	it.read(&it.in, it.version, it.flexible)
	return true
}

// ForgottenIterator walks the forgotten partitions of a Fetch request, as
// [FetchIterator] does the wanted ones.
type ForgottenIterator struct {
	TopicName []byte        // below version 13
	TopicID   ident.TopicID // from version 13
	Partition int32

	in         reader
	topics     int // not begun yet
	partitions int // left of the current topic
	version    int16
	flexible   bool
	first      bool // no topic was begun
}

// Next moves to the next partition and tells whether there is one.
func (it *ForgottenIterator) Next() bool {
	for it.partitions == 0 {
		if !it.first {
			it.in.skipTags(it.flexible)
		}
		if it.topics == 0 {
			return false
		}
		it.first = false
		it.topics--
		if it.version >= fetchTopicIDs {
			it.TopicID = it.in.uuid()
		} else {
			it.TopicName = it.in.string(it.flexible)
		}
		it.partitions = it.in.array(it.flexible, 4)
	}
	it.partitions--
	it.Partition = it.in.int32()
	return true
}
