package peer

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/troupe-broker/troupe/wire"
)

// nestingMax bounds how deep a value that is skipped may nest. Ours nest three deep.
const nestingMax = 16

// reader takes a frame apart from front to back. It knows how many elements of the
// array it is in are left: one that an older writer did not have reads as zero. The
// first thing that is impossible makes it bad; from then on every read gives zero,
// so a decoder reads straight on and asks once, at the end.
type reader struct {
	b      []byte
	left   int // elements of the array that was entered last
	bad    bool
	reason string // a constant; what makes it useful to people is the frame's code
}

func (r *reader) fail(reason string) {
	if !r.bad {
		r.b, r.left, r.bad, r.reason = nil, 0, true, reason
	}
}

// next tells whether the array has one more element, and counts it as read.
func (r *reader) next() bool {
	if r.left <= 0 || r.bad {
		return false
	}
	r.left--
	return true
}

// enter goes into the array that is the next element and returns what leave needs.
func (r *reader) enter() (outer int) {
	if !r.next() {
		return 0
	}
	outer = r.left
	r.left = r.array(1)
	return outer
}

// leave skips what is left of the array and goes back to the one around it.
func (r *reader) leave(outer int) {
	for r.next() {
		r.skip(0)
	}
	r.left = outer
}

// list reads the length of an array of structs and returns what leave needs. A list
// that claims more elements than the frame can hold is bad.
func (r *reader) list() (n, outer int) {
	if !r.next() {
		return 0, 0
	}
	outer = r.left
	n = r.array(elementMin)
	r.left = n
	return n, outer
}

// array reads the length of an array.
func (r *reader) array(sizeMin int) int {
	n := 0
	switch c := r.code(); {
	case c&0xf0 == asFixedArrayLow:
		n = int(c & 0x0f)
	case c == asArray16:
		n = int(r.fixed(2))
	case c == asArray32:
		n = int(r.fixed(4))
	default:
		r.fail("an array is missing")
	}
	if n > len(r.b)/sizeMin {
		r.fail("an array of more elements than there are bytes")
		return 0
	}
	return n
}

// code takes the byte that says what the next value is.
func (r *reader) code() byte {
	if len(r.b) == 0 {
		r.fail("it ends in the middle")
		return asNil
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

// fixed takes a number of 1, 2, 4 or 8 bytes.
func (r *reader) fixed(size int) uint64 {
	if len(r.b) < size {
		r.fail("it ends in the middle")
		return 0
	}
	b := r.b
	r.b = b[size:]
	switch size {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	}
	return binary.BigEndian.Uint64(b)
}

// span takes n bytes, which alias the frame.
func (r *reader) span(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail("a length beyond its end")
		return nil
	}
	s := r.b[:n:n]
	r.b = r.b[n:]
	return s
}

// number takes a whole number in any of msgpack's forms: its bits, and whether it is
// below zero.
func (r *reader) number() (bits uint64, negative bool) {
	c := r.code()
	if c <= asPosFixedNumHigh {
		return uint64(c), false
	}
	if c >= asNegFixedNumLow {
		return uint64(int64(int8(c))), true
	}
	signed := int64(0)
	switch c {
	case asUint8:
		return r.fixed(1), false
	case asUint16:
		return r.fixed(2), false
	case asUint32:
		return r.fixed(4), false
	case asUint64:
		return r.fixed(8), false
	case asInt8:
		signed = int64(int8(r.fixed(1)))
	case asInt16:
		signed = int64(int16(r.fixed(2)))
	case asInt32:
		signed = int64(int32(r.fixed(4)))
	case asInt64:
		signed = int64(r.fixed(8))
	default:
		r.fail("a number is missing")
	}
	return uint64(signed), signed < 0
}

func (r *reader) int64() int64 {
	if !r.next() {
		return 0
	}
	bits, negative := r.number()
	if !negative && bits > math.MaxInt64 {
		r.fail("a number is too large")
		return 0
	}
	return int64(bits)
}

func (r *reader) uint64() uint64 {
	if !r.next() {
		return 0
	}
	bits, negative := r.number()
	if negative {
		r.fail("a number is below zero")
		return 0
	}
	return bits
}

func (r *reader) int32() int32 {
	v := r.int64()
	if v != int64(int32(v)) {
		r.fail("a number is too large")
		return 0
	}
	return int32(v)
}

func (r *reader) int16() int16 {
	v := r.int64()
	if v != int64(int16(v)) {
		r.fail("a number is too large")
		return 0
	}
	return int16(v)
}

func (r *reader) uint8() uint8 {
	v := r.uint64()
	if v > math.MaxUint8 {
		r.fail("a number is too large")
		return 0
	}
	return uint8(v)
}

// bin takes bytes, or text, which alias the frame; nil when there are none.
func (r *reader) bin() []byte {
	if !r.next() {
		return nil
	}
	b, ok := r.bytes(r.code())
	if !ok {
		r.fail("bytes are missing")
	}
	if len(b) == 0 {
		return nil
	}
	return b
}

// bytes takes what a bin or str of this first byte has.
func (r *reader) bytes(c byte) ([]byte, bool) {
	switch {
	case c&0xe0 == asFixedStrLow:
		return r.span(uint64(c & 0x1f)), true
	case c == asBin8 || c == asStr8:
		return r.span(r.fixed(1)), true
	case c == asBin16 || c == asStr16:
		return r.span(r.fixed(2)), true
	case c == asBin32 || c == asStr32:
		return r.span(r.fixed(4)), true
	}
	return nil, false
}

// text copies text of at most textMax bytes.
func (r *reader) text() string {
	b := r.bin()
	if len(b) > textMax {
		r.fail("a text is too long")
		return ""
	}
	return string(b)
}

// id takes an id of sixteen bytes.
func (r *reader) id() (id [16]byte) {
	if !r.next() {
		return id
	}
	b, ok := r.bytes(r.code())
	if !ok || len(b) != len(id) {
		r.fail("an id is not of sixteen bytes")
		return id
	}
	copy(id[:], b)
	return id
}

// mustID takes an id that every writer has written: it is what makes the elements of
// a list cost their sender something.
func (r *reader) mustID() (id [16]byte) {
	if r.left <= 0 {
		r.fail("an element without its id")
		return id
	}
	return r.id()
}

// skip reads over one value of any kind.
func (r *reader) skip(depth int) {
	if depth > nestingMax {
		r.fail("a value nests too deep")
		return
	}
	c := r.code()
	if _, ok := r.bytes(c); ok || r.bad {
		return
	}
	n := uint64(0) // values inside
	switch {
	case c <= asPosFixedNumHigh, c >= asNegFixedNumLow, c == asNil, c == asTrue, c == asFalse:
	case c == asUint8, c == asInt8:
		r.span(1)
	case c == asUint16, c == asInt16:
		r.span(2)
	case c == asUint32, c == asInt32, c == asFloat:
		r.span(4)
	case c == asUint64, c == asInt64, c == asDouble:
		r.span(8)
	case c&0xf0 == asFixedArrayLow:
		n = uint64(c & 0x0f)
	case c == asArray16:
		n = r.fixed(2)
	case c == asArray32:
		n = r.fixed(4)
	case c&0xf0 == asFixedMapLow:
		n = 2 * uint64(c&0x0f)
	case c == asMap16:
		n = 2 * r.fixed(2)
	case c == asMap32:
		n = 2 * r.fixed(4)
	case c == asFixExt1, c == asFixExt2, c == asFixExt4, c == asFixExt8, c == asFixExt16:
		r.span(1 + 1<<(c-asFixExt1))
	case c == asExt8:
		r.span(1 + r.fixed(1))
	case c == asExt16:
		r.span(1 + r.fixed(2))
	case c == asExt32:
		r.span(1 + r.fixed(4))
	default:
		r.fail("a value of no kind")
	}
	for ; n > 0 && !r.bad; n-- {
		r.skip(depth + 1)
	}
}

// err is what the reader found, for the message of this code.
func (r *reader) err(c Code) error {
	if !r.bad {
		return nil
	}
	return &wire.ProtocolError{Code: CodeMalformed, Reason: fmt.Sprintf("a message of another broker does not parse: %v: %s", c, r.reason)}
}
