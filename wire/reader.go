package wire

import "encoding/binary"

// reader takes a message apart from front to back. The first thing that is
// missing or impossible makes it bad; from then on every read gives zero, so a
// decoder reads straight on and asks once, at the end.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() {
	r.b = nil
	r.bad = true
}

// span takes n bytes, which alias the message.
func (r *reader) span(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail()
		return nil
	}
	s := r.b[:n:n]
	r.b = r.b[n:]
	return s
}

func (r *reader) int8() int8 {
	if len(r.b) < 1 {
		r.fail()
		return 0
	}
	v := int8(r.b[0])
	r.b = r.b[1:]
	return v
}

func (r *reader) int16() int16 {
	if len(r.b) < 2 {
		r.fail()
		return 0
	}
	v := int16(binary.BigEndian.Uint16(r.b))
	r.b = r.b[2:]
	return v
}

func (r *reader) int32() int32 {
	if len(r.b) < 4 {
		r.fail()
		return 0
	}
	v := int32(binary.BigEndian.Uint32(r.b))
	r.b = r.b[4:]
	return v
}

func (r *reader) int64() int64 {
	if len(r.b) < 8 {
		r.fail()
		return 0
	}
	v := int64(binary.BigEndian.Uint64(r.b))
	r.b = r.b[8:]
	return v
}

func (r *reader) uuid() (id [16]byte) {
	copy(id[:], r.span(16))
	return id
}

// uvarint reads an unsigned varint of at most 32 bits.
func (r *reader) uvarint() uint32 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := uint32(r.b[0])
		r.b = r.b[1:]
		return v
	}
	return r.uvarintLong()
}

func (r *reader) uvarintLong() uint32 {
	var v uint32
	for i := 0; i < len(r.b) && i < 5; i++ {
		c := r.b[i]
		if i == 4 && c > 0x0f {
			break // more than 32 bits
		}
		v |= uint32(c&0x7f) << (7 * i)
		if c < 0x80 {
			r.b = r.b[i+1:]
			return v
		}
	}
	r.fail()
	return 0
}

// length reads the length of a string, either form: -1 for null.
func (r *reader) length(flexible bool) int {
	if flexible {
		return int(r.uvarint()) - 1
	}
	return int(r.int16())
}

// nullableString reads a string, nil for null.
func (r *reader) nullableString(flexible bool) []byte {
	n := r.length(flexible)
	if n < 0 {
		return nil
	}
	return r.text(n)
}

// string reads a string that must not be null.
func (r *reader) string(flexible bool) []byte { return r.text(r.length(flexible)) }

// text takes the bytes of a string, which no message has longer than StringMax.
func (r *reader) text(n int) []byte {
	if n > StringMax {
		r.fail()
		return nil
	}
	return r.span(n)
}

// nullableBytes reads a byte array, nil for null.
func (r *reader) nullableBytes(flexible bool) []byte {
	var n int
	if flexible {
		n = int(r.uvarint()) - 1
	} else {
		n = int(r.int32())
	}
	if n < 0 {
		return nil
	}
	return r.span(n)
}

// array reads the length of an array, 0 for null. An array that claims more
// elements than the rest of the message can hold, at sizeMin bytes each, is bad:
// so a count that array returns is paid for by bytes that are there.
func (r *reader) array(flexible bool, sizeMin int) int {
	var n int
	if flexible {
		n = int(r.uvarint()) - 1
	} else {
		n = int(r.int32())
	}
	if n > 0 && n > len(r.b)/sizeMin {
		r.fail()
	}
	if n < 0 || r.bad {
		return 0
	}
	return n
}

// tag reads the key and the bytes of one tagged field.
func (r *reader) tag() (key uint32, value []byte) {
	key = r.uvarint()
	return key, r.span(int(r.uvarint()))
}

// skipTags reads over a section of tagged fields, none of which is known.
func (r *reader) skipTags(flexible bool) {
	if !flexible {
		return
	}
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		r.tag()
	}
}
