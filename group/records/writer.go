package records

import (
	"encoding/binary"
	"fmt"
)

// StringMax is how many bytes a string of an entry may have. Kafka reads no longer ones, in requests or records, in either encoding. A key cannot hold one
// at all, and [Entry.AppendKey] panics: group, topic, member and pattern must be checked before they become an entry. A value holds it, for us alone.
const StringMax = 1<<15 - 1

// Fits tells whether strings from outside may become parts of an entry: none is longer than [StringMax].
func Fits(strings ...string) bool {
	for _, s := range strings {
		if len(s) > StringMax {
			return false
		}
	}
	return true
}

// Appending in the two encodings of Kafka's protocol. Messages that are not flexible give a string an int16 of length and an array an int32; flexible ones
// give both an unsigned varint of the length plus one, 0 for null.

func appendInt16(dst []byte, v int16) []byte { return binary.BigEndian.AppendUint16(dst, uint16(v)) }

func appendInt32(dst []byte, v int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(v)) }

func appendInt64(dst []byte, v int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(v)) }

func appendString(dst []byte, s string) []byte {
	if !Fits(s) {
		panic(fmt.Sprintf("records: a string of %d bytes, which Kafka's schema cannot hold, got past its check", len(s)))
	}
	return append(appendInt16(dst, int16(len(s))), s...)
}

func appendNullableString(dst []byte, s *string) []byte {
	if s == nil {
		return appendInt16(dst, -1)
	}
	return appendString(dst, *s)
}

func appendBytes(dst, b []byte) []byte { return append(appendInt32(dst, int32(len(b))), b...) }

func appendCompact[S string | []byte](dst []byte, s S) []byte {
	return append(appendLength(dst, len(s)), s...)
}

func appendNullableCompact(dst []byte, s *string) []byte {
	if s == nil {
		return append(dst, 0)
	}
	return appendCompact(dst, *s)
}

// appendLength appends the length of a compact string or array.
func appendLength(dst []byte, n int) []byte { return binary.AppendUvarint(dst, uint64(n)+1) }

func appendCompactStrings(dst []byte, s []string) []byte {
	dst = appendLength(dst, len(s))
	for _, e := range s {
		dst = appendCompact(dst, e)
	}
	return dst
}

func appendCompactInt32s(dst []byte, s []int32) []byte {
	dst = appendLength(dst, len(s))
	for _, e := range s {
		dst = appendInt32(dst, e)
	}
	return dst
}

// appendTag appends the head of a tagged field: its tag and the size of what follows.
func appendTag(dst []byte, tag uint64, size int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, tag), uint64(size))
}

// noTags ends a flexible structure without tagged fields.
const noTags = 0

// lengthSize is how many bytes appendLength writes.
func lengthSize(n int) int {
	size := 1
	for u := uint64(n) + 1; u >= 0x80; u >>= 7 {
		size++
	}
	return size
}
