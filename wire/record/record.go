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

	headers        []byte // still encoded, HeaderCount of them
	timestampDelta int64
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

// Next moves to the next header and tells whether there is one.
func (h *HeaderIterator) Next() bool {
	if h.left <= 0 {
		return false
	}
	h.left--
	h.key, h.rest, _ = cutBytes(h.rest)
	h.value, h.rest, _ = cutBytes(h.rest)
	return true
}

// Key of the current header; never nil. It is text in UTF-8, by convention.
func (h *HeaderIterator) Key() []byte { return h.key }

// Value of the current header; nil when it has none.
func (h *HeaderIterator) Value() []byte { return h.value }

// cutBytes takes a byte array with its varint length off the front of b: nil for
// a length of -1. ok is false when b does not begin with one.
func cutBytes(b []byte) (field, rest []byte, ok bool) {
	size, n := readVarint(b)
	if n == 0 || size < -1 || int(size) > len(b)-n {
		return nil, nil, false
	}
	if size < 0 {
		return nil, b[n:], true
	}
	end := n + int(size)
	return b[n:end:end], b[end:], true
}

// parse reads the body of one record, which is everything after its length, and
// says what is wrong with it, or "". Offset and Timestamp are left to the caller.
func (r *Record) parse(b []byte) (fault string) {
	if len(b) == 0 {
		return "it is empty"
	}
	r.Attributes = int8(b[0])
	b = b[1:]
	var n int
	if r.timestampDelta, n = readVarlong(b); n == 0 {
		return "its timestamp delta is no varlong"
	}
	b = b[n:]
	if r.OffsetDelta, n = readVarint(b); n == 0 {
		return "its offset delta is no varint"
	}
	b = b[n:]
	var ok bool
	if r.Key, b, ok = cutBytes(b); !ok {
		return "its key runs past its end"
	}
	if r.Value, b, ok = cutBytes(b); !ok {
		return "its value runs past its end"
	}
	if r.HeaderCount, n = readVarint(b); n == 0 || r.HeaderCount < 0 {
		return "its header count is not a count"
	}
	b = b[n:]
	r.headers = b
	for range r.HeaderCount {
		var key []byte
		if key, b, ok = cutBytes(b); !ok || key == nil {
			return "the key of a header is null or runs past the record's end"
		}
		if _, b, ok = cutBytes(b); !ok {
			return "the value of a header runs past the record's end"
		}
	}
	if len(b) > 0 {
		return "bytes follow its last header"
	}
	return ""
}
