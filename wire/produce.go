package wire

import (
	"fmt"

	"github.com/troupe-broker/troupe/wire/ident"
)

// ProduceRequest is a decoded Produce request, versions 3 to 13. It aliases the
// body and holds nothing else, so it can be decoded into again and again.
type ProduceRequest struct {
	Version         int16
	TransactionalID []byte // nil: null
	Acks            int16
	TimeoutMillis   int32
	TopicCount      int
	PartitionCount  int // over all topics; at most 64 more than the body's bytes over 61

	topics   []byte // the array's elements, still encoded
	flexible bool
}

// A produce request may name more partitions than it brings batches for, but not
// many more: what answering costs is counted in partitions, and must be paid for
// by the request's bytes.
const (
	produceEmptyPartitions = 64
	produceBatchSizeMin    = 61
)

// Decode checks and reads a whole body. It allocates nothing but its error, a
// [ProtocolError].
func (r *ProduceRequest) Decode(version int16, body []byte) error {
	api, _ := Lookup(KeyProduce)
	if !api.Serves(version) {
		return &UnsupportedError{Key: KeyProduce, Version: version, API: api}
	}
	in := reader{b: body}
	*r = ProduceRequest{Version: version, flexible: api.IsFlexible(version)}
	r.TransactionalID = in.nullableString(r.flexible)
	r.Acks = in.int16()
	r.TimeoutMillis = in.int32()
	r.TopicCount = in.array(r.flexible, produceTopicSizeMin(version))
	r.topics = in.b
	for range r.TopicCount {
		skipTopicKey(&in, version, r.flexible)
		n := in.array(r.flexible, producePartitionSizeMin)
		r.PartitionCount += n
		for range n {
			in.int32()
			in.nullableBytes(r.flexible)
			in.skipTags(r.flexible)
		}
		in.skipTags(r.flexible)
		if in.bad {
			break
		}
	}
	in.skipTags(r.flexible)
	if in.bad {
		return badBody(api, version, len(body))
	}
	if limit := produceEmptyPartitions + len(body)/produceBatchSizeMin; r.PartitionCount > limit {
		return &ProtocolError{CodeBody, fmt.Sprintf(
			"a Produce request of %d bytes names %d partitions: it cannot bring a batch for more than %d", len(body), r.PartitionCount, limit)}
	}
	return nil
}

// producePartitionSizeMin is the smallest encoding of a partition: its number,
// null records, no tags.
const producePartitionSizeMin = 6

func produceTopicSizeMin(version int16) int {
	if version >= produceTopicIDs {
		return 16 + 1 + 1
	}
	return 1 + 1 + 1
}

// produceTopicIDs is the first version that names topics by id (KIP-516).
const produceTopicIDs = 13

// skipTopicKey reads over the name or id of a topic in a Produce request.
func skipTopicKey(in *reader, version int16, flexible bool) {
	if version >= produceTopicIDs {
		in.span(16)
	} else {
		in.string(flexible)
	}
}

// Partitions walks the partitions of all topics in the order of the request.
// Topics without partitions are passed over.
func (r *ProduceRequest) Partitions() ProduceIterator {
	return ProduceIterator{
		TopicIndex: -1, in: reader{b: r.topics}, topics: r.TopicCount,
		flexible: r.flexible, ids: r.Version >= produceTopicIDs,
	}
}

// ProduceIterator walks the partitions of a Produce request:
//
//	for it := req.Partitions(); it.Next(); {
//		use(it.TopicName, it.Partition, it.Records)
//	}
//
// The body was checked by Decode, so the walk cannot fail. Byte slices alias the
// body.
type ProduceIterator struct {
	TopicIndex int           // of the topic in the request, from 0
	TopicName  []byte        // below version 13
	TopicID    ident.TopicID // from version 13
	Partition  int32
	Records    []byte // nil: null

	in         reader
	topics     int // not begun yet
	partitions int // left of the current topic
	flexible   bool
	ids        bool
}

// Next moves to the next partition and tells whether there is one.
func (it *ProduceIterator) Next() bool {
	for it.partitions == 0 {
		if it.TopicIndex >= 0 {
			it.in.skipTags(it.flexible)
		}
		if it.topics == 0 {
			return false
		}
		it.topics--
		it.TopicIndex++
		if it.ids {
			it.TopicID = it.in.uuid()
		} else {
			it.TopicName = it.in.string(it.flexible)
		}
		it.partitions = it.in.array(it.flexible, producePartitionSizeMin)
	}
	it.partitions--
	it.Partition = it.in.int32()
	it.Records = it.in.nullableBytes(it.flexible)
	it.in.skipTags(it.flexible)
	return true
}
