package peer

import (
	"encoding/binary"
	"fmt"

	"github.com/troupe-broker/troupe/wire"
)

// Preface is what each side of a link sends first. Its first byte tells a link from
// TLS and from gossip on the same port.
const Preface = "TROU"

// The range of versions that this build speaks. With 2 came records of metadata that a build of 1 does not know, and the asks for damaged ranges. With 3 came those for
// digests.
const (
	VersionMin = 1
	VersionMax = 3
)

// Limits of frames, in bytes after the length field.
const (
	// HelloMax bounds the frames of a handshake.
	HelloMax = 4 << 10
	// ControlMax bounds a frame on a control connection. Larger things are cut.
	ControlMax = 2 << 20
	// PieceMax is the size of the pieces that a letter, a request or a snapshot is cut
	// into.
	PieceMax = 1 << 20
	// AnswerHeadMax is what an Answer has beside its payload, at most, when this
	// version writes it; a data connection allows more, for fields to come.
	AnswerHeadMax = 1 << 10
	// LetterMax bounds a letter that is put together from pieces.
	LetterMax = 64 << 20
	// RequestMax bounds a request that is put together from pieces: the registration of
	// a broker with half a million replicas.
	RequestMax = 16 << 20
	// textMax bounds a text.
	textMax = 1 << 10
)

// Amplification is how many bytes decoding may allocate for each byte of a frame.
const Amplification = 5

// Codes of input that is no frame, or no message; docs/errors.md explains each.
const (
	CodeNotAPeer   = "TRP-3201" // the other side does not speak this protocol
	CodeTooLarge   = "TRP-3202" // a frame above the limit of its connection
	CodeMalformed  = "TRP-3203" // a frame that does not parse
	CodeUnknown    = "TRP-3204" // a message that must be understood, and is not
	CodeMisplaced  = "TRP-3205" // a message that has no place on this connection, or now
	CodeLetterSize = "TRP-3206" // a letter whose pieces do not fit together
)

// LengthSize is the size of a frame's length field.
const LengthSize = 4

// Scan looks at the frame at the front of b: its size with the length field, or 0 when
// that has not arrived, and whether all of it is there. A frame of more than limit
// bytes, or of none, gives a wire.ProtocolError.
func Scan(b []byte, limit int) (size int, complete bool, err error) {
	if len(b) < LengthSize {
		return 0, false, nil
	}
	n := binary.BigEndian.Uint32(b)
	switch {
	case n == 0:
		return 0, false, &wire.ProtocolError{Code: CodeMalformed, Reason: "an empty frame of another broker"}
	case uint64(n) > uint64(limit):
		return 0, false, &wire.ProtocolError{Code: CodeTooLarge, Reason: fmt.Sprintf("a frame of %d bytes of another broker: the limit of this connection is %d", n, limit)}
	}
	size = LengthSize + int(n)
	return size, len(b) >= size, nil
}

// Body is a frame without its length and code.
type Body struct {
	code Code
	r    reader
}

// Code says what the frame is.
func (b *Body) Code() Code { return b.code }

// done skips what a newer broker has written behind the fields that were read, and says
// whether all of them made sense.
func (b *Body) done(r *reader) error {
	r.leave(0)
	return r.err(b.code)
}

// Open reads the code of a whole frame, its length field included.
func Open(frame []byte) (Body, error) {
	b := Body{r: reader{b: frame[LengthSize:]}}
	b.r.left = b.r.array(1)
	code := b.r.uint64()
	if code == 0 || code > codeMax {
		b.r.fail("a code from 1 to 127 is missing")
	}
	b.code = Code(code)
	return b, b.r.err(b.code)
}

// begin appends what stands before the fields of a message.
func begin(dst []byte, c Code, fields int) []byte {
	dst = append(dst, 0, 0, 0, 0)
	return append(appendArray(dst, 1+fields), byte(c))
}

// end fills in the length of the frame that begins at dst[at:] and that so many more
// bytes will follow.
func end(dst []byte, at, more int) []byte {
	n := len(dst) - at - LengthSize + more
	binary.BigEndian.PutUint32(dst[at:], uint32(n))
	return dst
}
