package wire

import (
	"encoding/binary"
	"math"
)

// The append functions put one field of a message at the end of a buffer. A
// message is written in one pass; only the length of a tagged field is needed
// before its value, and each is known from its fields.

func appendInt16(dst []byte, v int16) []byte { return binary.BigEndian.AppendUint16(dst, uint16(v)) }

func appendInt32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }

func appendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

func appendUvarint(dst []byte, v uint32) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}

// uvarintSize is the number of bytes that appendUvarint writes.
func uvarintSize(v uint32) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

func appendArrayLen(dst []byte, n int, flexible bool) []byte {
	if flexible {
		return appendUvarint(dst, uint32(n)+1)
	}
	return appendInt32(dst, int32(n))
}

func appendNullArray(dst []byte, flexible bool) []byte {
	if flexible {
		return append(dst, 0)
	}
	return appendInt32(dst, -1)
}

// appendString cuts a string that is too long for the length field of its
// version: only messages for people can be that long.
func appendString[T []byte | string](dst []byte, s T, flexible bool) []byte {
	if flexible {
		dst = appendUvarint(dst, uint32(len(s))+1)
	} else {
		s = s[:min(len(s), math.MaxInt16)]
		dst = appendInt16(dst, int16(len(s)))
	}
	return append(dst, s...)
}

// appendNullableString writes the empty string as null: none of the fields that
// use it tells the two apart.
func appendNullableString(dst []byte, s string, flexible bool) []byte {
	switch {
	case s != "":
		return appendString(dst, s, flexible)
	case flexible:
		return append(dst, 0)
	}
	return appendInt16(dst, -1)
}

// appendNoTags ends a structure without tagged fields.
func appendNoTags(dst []byte, flexible bool) []byte {
	if flexible {
		return append(dst, 0)
	}
	return dst
}

// appendCurrentLeader writes a tagged field with a leader and its epoch.
func appendCurrentLeader(dst []byte, tag byte, l CurrentLeader) []byte {
	const size = 4 + 4 + 1
	dst = append(dst, tag, size)
	dst = appendInt32(dst, int32(l.Leader))
	dst = appendInt32(dst, int32(l.Epoch))
	return append(dst, 0)
}

// appendNodeEndpoints writes the tagged field 0 with where brokers are reached.
func appendNodeEndpoints(dst []byte, nodes []NodeEndpoint) []byte {
	size := uvarintSize(uint32(len(nodes)) + 1)
	for i := range nodes {
		n := &nodes[i]
		size += 4 + uvarintSize(uint32(len(n.Host))+1) + len(n.Host) + 4
		if n.Rack == "" {
			size++
		} else {
			size += uvarintSize(uint32(len(n.Rack))+1) + len(n.Rack)
		}
		size++
	}
	dst = append(dst, 0)
	dst = appendUvarint(dst, uint32(size))
	dst = appendArrayLen(dst, len(nodes), true)
	for i := range nodes {
		n := &nodes[i]
		dst = appendInt32(dst, int32(n.Node))
		dst = appendString(dst, n.Host, true)
		dst = appendInt32(dst, n.Port)
		dst = appendNullableString(dst, n.Rack, true)
		dst = append(dst, 0)
	}
	return dst
}
