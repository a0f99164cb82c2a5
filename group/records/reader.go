package records

import (
	"encoding/binary"
	"fmt"
)

// reader takes a key or a value apart from front to back. The first thing that is missing or impossible is its error; from then on every read gives zero,
// so a decoder reads straight on and asks once, at the end. Names of fields are those of Kafka's schemas.
type reader struct {
	b        []byte
	flexible bool
	err      error
}

// fail keeps the first error and empties the reader.
func (r *reader) fail(field, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...))
	}
	r.b = nil
}

// span takes n bytes, which alias the record.
func (r *reader) span(field string, n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail(field, "%d bytes where %d are needed", len(r.b), n)
		return nil
	}
	s := r.b[:n:n]
	r.b = r.b[n:]
	return s
}

func (r *reader) int8(field string) int8 {
	if s := r.span(field, 1); s != nil {
		return int8(s[0])
	}
	return 0
}

func (r *reader) int16(field string) int16 {
	if s := r.span(field, 2); s != nil {
		return int16(binary.BigEndian.Uint16(s))
	}
	return 0
}

func (r *reader) int32(field string) int32 {
	if s := r.span(field, 4); s != nil {
		return int32(binary.BigEndian.Uint32(s))
	}
	return 0
}

func (r *reader) int64(field string) int64 {
	if s := r.span(field, 8); s != nil {
		return int64(binary.BigEndian.Uint64(s))
	}
	return 0
}

func (r *reader) uuid(field string) (id [16]byte) {
	copy(id[:], r.span(field, 16))
	return id
}

// uvarint reads an unsigned varint of at most 32 bits.
func (r *reader) uvarint(field string) uint32 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 5 || v > 1<<32-1 {
		if n == 0 {
			r.fail(field, "an unsigned varint ends too early")
		} else {
			r.fail(field, "an unsigned varint of more than 32 bits")
		}
		return 0
	}
	r.b = r.b[n:]
	return uint32(v)
}

// length reads the length of a string, -1 for null.
func (r *reader) length(field string) int {
	if r.flexible {
		return int(r.uvarint(field)) - 1
	}
	n := int(r.int16(field))
	if n < -1 {
		r.fail(field, "a length of %d", n)
	}
	return n
}

// length32 reads the length of an array or of bytes, -1 for null.
func (r *reader) length32(field string) int {
	if r.flexible {
		return int(r.uvarint(field)) - 1
	}
	n := int(r.int32(field))
	if n < -1 {
		r.fail(field, "a length of %d", n)
	}
	return n
}

// string reads a string that must not be null, and copies it.
func (r *reader) string(field string) string {
	n := r.length(field)
	if n < 0 {
		r.fail(field, "null")
		return ""
	}
	return string(r.span(field, n))
}

// nullableString reads a string, nil for null, and copies it.
func (r *reader) nullableString(field string) *string {
	n := r.length(field)
	if n < 0 {
		return nil
	}
	s := string(r.span(field, n))
	return &s
}

// bytes reads bytes that must not be null, and copies them; nil for none.
func (r *reader) bytes(field string) []byte {
	n := r.length32(field)
	if n < 0 {
		r.fail(field, "null")
		return nil
	}
	return append([]byte(nil), r.span(field, n)...)
}

// array reads the length of an array that must not be null. One that claims more elements than the rest of the record can hold, at sizeMin bytes each, is
// bad: so a count that array returns is paid for by bytes that are there.
func (r *reader) array(field string, sizeMin int) int {
	n := r.length32(field)
	if n < 0 {
		r.fail(field, "null")
		return 0
	}
	if !r.holds(field, n, sizeMin) {
		return 0
	}
	return n
}

// holds tells whether n elements can be in the rest of the record, at sizeMin bytes each, and fails if not.
func (r *reader) holds(field string, n, sizeMin int) bool {
	if n > len(r.b)/sizeMin {
		r.fail(field, "%d elements in %d bytes", n, len(r.b))
	}
	return r.err == nil
}

// strings reads an array of strings; nil for none.
func (r *reader) strings(field string) []string {
	n := r.array(field, 1)
	if n == 0 {
		return nil
	}
	s := make([]string, n)
	for i := range s {
		s[i] = r.string(field)
	}
	return s
}

// int32s reads an array of int32; nil for none.
func (r *reader) int32s(field string) []int32 {
	n := r.array(field, 4)
	if n == 0 {
		return nil
	}
	s := make([]int32, n)
	for i := range s {
		s[i] = r.int32(field)
	}
	return s
}

// nullableInt32s reads an array of int32, nil for null only.
func (r *reader) nullableInt32s(field string) []int32 {
	n := r.length32(field)
	if n < 0 || !r.holds(field, n, 4) {
		return nil
	}
	s := make([]int32, n)
	for i := range s {
		s[i] = r.int32(field)
	}
	return s
}

// tags reads the tagged fields at the end of a structure, each in a reader of its own. field returns false for a tag it does not know, which is passed over
// (KIP-915). Tags rise (KIP-482). A message that is not flexible has none.
func (r *reader) tags(field func(tag uint32, r *reader) bool) {
	if !r.flexible || r.err != nil {
		return
	}
	const name = "tagged fields"
	next := uint64(0)
	for n := r.uvarint(name); n > 0 && r.err == nil; n-- {
		tag := r.uvarint(name)
		if uint64(tag) < next && r.err == nil {
			r.fail(name, "tag %d out of order", tag)
			return
		}
		next = uint64(tag) + 1
		size := r.uvarint(name)
		inside := reader{b: r.span(name, int(size)), flexible: true}
		if r.err != nil || field == nil || !field(tag, &inside) {
			continue
		}
		if inside.err == nil && len(inside.b) > 0 {
			inside.fail(name, "%d bytes too many in tag %d", len(inside.b), tag)
		}
		if inside.err != nil {
			r.err, r.b = inside.err, nil
		}
	}
}
