package record

import "github.com/troupe-broker/troupe/wire/ident"

// Record is one record of a batch. Key, Value and the headers alias the batch, or
// for a compressed one the Iterator's buffer, where they last until the next call
// of [Iterator.Next].
type Record struct {
	Offset      ident.Offset
	Timestamp   ident.Millis // LogAppendTime batches: the batch's maxTimestamp
	OffsetDelta int32
	Attributes  int8   // unused by Kafka
	Key         []byte // nil: no key
	Value       []byte // nil: no value, a tombstone on a compacted topic
	HeaderCount int32
	headers     []byte // still encoded
}

// Headers returns an iterator over the record's headers.
func (r *Record) Headers() HeaderIterator {
	return HeaderIterator{rest: r.headers, left: r.HeaderCount}
}

// HeaderIterator walks the headers of one record:
//
//	for h := r.Headers(); h.Next(); {
//		use(h.Key(), h.Value())
//	}
//
// The bytes were checked when the record was read, so the walk cannot fail.
type HeaderIterator struct {
	rest       []byte
	left       int32
	key, value []byte
}

// Key of the current header; never nil.
func (h *HeaderIterator) Key() []byte { return h.key }

// Value of the current header; nil when it has none.
func (h *HeaderIterator) Value() []byte { return h.value }
