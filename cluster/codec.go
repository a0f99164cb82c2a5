package cluster

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// Errors of reading metadata. All decoding errors wrap one of them.
var (
	ErrMalformed   = errors.New("malformed metadata")
	ErrUnknownCode = errors.New("TRP-4002: metadata record of a newer version")
)

// nestingMax bounds how deep a value that is skipped may nest; ours nest three deep.
const nestingMax = 16

// writer writes msgpack into memory. Writing into memory cannot fail, so a failure is a bug here and panics.
type writer struct {
	buf bytes.Buffer
	enc *msgpack.Encoder
}

func newWriter() *writer {
	w := &writer{}
	w.enc = msgpack.NewEncoder(&w.buf)
	return w
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("cluster: writing msgpack into memory failed: %v", err))
	}
}

func (w *writer) array(n int)     { must(w.enc.EncodeArrayLen(n)) }
func (w *writer) int(n int64)     { must(w.enc.EncodeInt(n)) }
func (w *writer) uint(n uint64)   { must(w.enc.EncodeUint(n)) }
func (w *writer) string(s string) { must(w.enc.EncodeString(s)) }
func (w *writer) bool(b bool)     { must(w.enc.EncodeBool(b)) }
func (w *writer) nil()            { must(w.enc.EncodeNil()) }

// bytes writes a bin, and an empty one for nil.
func (w *writer) bytes(b []byte) {
	must(w.enc.EncodeBytesLen(len(b)))
	if _, err := w.buf.Write(b); err != nil {
		must(err)
	}
}

// reader reads msgpack that somebody else wrote. The first problem sticks; reading goes on harmlessly and the caller looks at err once at the end.
// No allocation is sized by a length that the input declares beyond what the input can hold.
type reader struct {
	src *bytes.Reader
	dec *msgpack.Decoder
	err error
}

func newReader(b []byte) *reader {
	r := &reader{src: bytes.NewReader(b)}
	r.dec = msgpack.NewDecoder(r.src)
	return r
}

func (r *reader) fail(err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("%w at byte %d: %w", ErrMalformed, int(r.src.Size())-r.src.Len(), err)
	}
}

// left is how many bytes have not been read.
func (r *reader) left() int { return r.src.Len() }

// array reads the length of an array. Each element takes a byte at least, so a length beyond what is left is a lie. Nil counts as absent: -1.
func (r *reader) array() int {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeArrayLen()
	if err == nil && n > r.left() {
		err = fmt.Errorf("an array of %d elements in %d bytes", n, r.left())
	}
	if err != nil {
		r.fail(err)
		return 0
	}
	return n
}

func (r *reader) int() int64 {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeInt64()
	r.fail(err)
	return n
}

// ranged reads a whole number that must fit.
func (r *reader) ranged(low, high int64) int64 {
	n := r.int()
	if r.err == nil && (n < low || n > high) {
		r.fail(fmt.Errorf("%d is not from %d to %d", n, low, high))
		return 0
	}
	return n
}

func (r *reader) uint() uint64 {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeUint64()
	r.fail(err)
	return n
}

func (r *reader) bool() bool {
	if r.err != nil {
		return false
	}
	b, err := r.dec.DecodeBool()
	r.fail(err)
	return b
}

func (r *reader) string() string {
	n := r.length()
	if n <= 0 {
		return ""
	}
	b := make([]byte, n)
	r.fail(r.dec.ReadFull(b))
	return string(b)
}

// id reads a 16 byte id.
func (r *reader) id() (id [16]byte) {
	n := r.length()
	if r.err == nil && n != len(id) {
		r.fail(fmt.Errorf("an id of %d bytes", n))
	}
	if r.err == nil {
		r.fail(r.dec.ReadFull(id[:]))
	}
	return id
}

// length reads the length of a bin or str and holds it against what is left.
func (r *reader) length() int {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeBytesLen()
	if err == nil && n > r.left() {
		err = fmt.Errorf("a string of %d bytes in %d", n, r.left())
	}
	if err != nil {
		r.fail(err)
		return 0
	}
	return n
}

// null tells whether a nil comes next, and takes it if so.
func (r *reader) null() bool {
	if r.err != nil {
		return false
	}
	c, err := r.dec.PeekCode()
	if err != nil {
		r.fail(err)
		return false
	}
	if c != msgpcode.Nil {
		return false
	}
	r.fail(r.dec.DecodeNil())
	return true
}

// skip reads over one value of any kind.
func (r *reader) skip(depth int) {
	if r.err != nil {
		return
	}
	if depth > nestingMax {
		r.fail(fmt.Errorf("a value nested deeper than %d", nestingMax))
		return
	}
	c, err := r.dec.PeekCode()
	if err != nil {
		r.fail(err)
		return
	}
	switch {
	case msgpcode.IsFixedArray(c) || c == msgpcode.Array16 || c == msgpcode.Array32:
		for n := r.array(); n > 0 && r.err == nil; n-- {
			r.skip(depth + 1)
		}
	case msgpcode.IsFixedMap(c) || c == msgpcode.Map16 || c == msgpcode.Map32:
		n, err := r.dec.DecodeMapLen()
		r.fail(err)
		for n *= 2; n > 0 && r.err == nil; n-- {
			r.skip(depth + 1)
		}
	case msgpcode.IsFixedString(c) || c == msgpcode.Str8 || c == msgpcode.Str16 || c == msgpcode.Str32 ||
		c == msgpcode.Bin8 || c == msgpcode.Bin16 || c == msgpcode.Bin32:
		n := r.length()
		if r.err == nil {
			_, err := r.src.Seek(int64(n), 1)
			r.fail(err)
		}
	default:
		r.fail(r.dec.Skip())
	}
}

// fields reads a msgpack array whose first fields the caller knows. next tells before each field whether it is there: one that an older writer did not
// know is not, and keeps its zero value. close skips what a newer writer added.
type fields struct {
	r    *reader
	left int
}

func (r *reader) fields() fields { return fields{r: r, left: max(r.array(), 0)} }

func (f *fields) next() bool {
	if f.left <= 0 || f.r.err != nil {
		return false
	}
	f.left--
	return true
}

func (f *fields) close() {
	for f.next() {
		f.r.skip(0)
	}
}
