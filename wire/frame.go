package wire

import (
	"encoding/binary"
	"fmt"
)

// LengthSize is the size of a frame's length field.
const LengthSize = 4

// frameMin is the smallest frame after its length field: the header of version 1
// with a null client id.
const frameMin = 2 + 2 + 4 + 2

// Codes of input that breaks the protocol or a limit; docs/errors.md explains
// each.
const (
	CodeFrameLength   = "TRP-3001" // negative, or too short for a header
	CodeFrameTooLarge = "TRP-3002" // above socket.request.max.bytes
	CodeFrameEarly    = "TRP-3003" // above the limit before authentication
	CodeFrameOfAPI    = "TRP-3004" // above what the API's requests may have
	CodeNotServed     = "TRP-3005" // an API or version that is not served
	CodeHeader        = "TRP-3006" // the request header does not parse
	CodeBody          = "TRP-3007" // the request body does not parse
	CodeResponseSize  = "TRP-3008" // a response that does not fit a frame
)

// ProtocolError is input that breaks the protocol or a limit of it. The connection
// it came from is closed: what follows cannot be trusted to be a frame.
type ProtocolError struct {
	Code   string // TRP-3nnn
	Reason string // what was seen, what is allowed
}

// Error prints the code and the reason.
func (e *ProtocolError) Error() string { return e.Code + ": " + e.Reason }

// Scanner finds frames in the bytes of one connection. It holds no bytes itself:
// the owner of the buffer calls Scan with what has arrived and has not been
// consumed.
type Scanner struct {
	// Limit is the greatest frame, in bytes after its length field:
	// socket.request.max.bytes, or less before authentication.
	Limit int32
	// Early says that the peer has not authenticated yet, for the error's words.
	Early bool
}

// Frame is what is known of the frame at the front of a buffer.
type Frame struct {
	Size     int    // on the wire, length field included; 0: it has not arrived
	API      *API   // nil until eight bytes have arrived
	Version  int16  // of the API, valid with it
	Complete bool   // all of it is there
	Body     []byte // header and body of the request, all of it when Complete; aliases the buffer
}

// Scan looks at the frame at the front of b. It can be called again with more
// bytes until the frame is complete; the caller then drops Size bytes from the
// front. As soon as Size is known, a length that is impossible or above the limit
// gives a [ProtocolError]; as soon as API is, so does a frame above the API's own
// limit, and a key or version that is not served gives an [UnsupportedError]. No
// error gets better with more bytes: the connection is to be closed.
func (s *Scanner) Scan(b []byte) (Frame, error) {
	if len(b) < LengthSize {
		return Frame{}, nil
	}
	length := int32(binary.BigEndian.Uint32(b))
	if length < frameMin {
		return Frame{}, &ProtocolError{CodeFrameLength, fmt.Sprintf(
			"a frame of %d bytes: a request has at least %d; the peer may not speak the Kafka protocol, or speaks TLS to a plaintext port", length, frameMin)}
	}
	if length > s.Limit {
		return Frame{}, s.tooLarge(length)
	}
	f := Frame{Size: LengthSize + int(length)}
	if len(b) < LengthSize+4 {
		return f, nil
	}
	key, version := Key(binary.BigEndian.Uint16(b[4:])), int16(binary.BigEndian.Uint16(b[6:]))
	api, ok := Lookup(key)
	if !ok || !api.Serves(version) && key != KeyApiVersions {
		return f, &UnsupportedError{Key: key, Version: version, API: api}
	}
	if api.BodyMax > 0 && length > api.BodyMax {
		return f, &ProtocolError{CodeFrameOfAPI, fmt.Sprintf(
			"a frame of %d bytes with a %s request: the limit is %d; ask for fewer things at a time", length, api.Name, api.BodyMax)}
	}
	f.API, f.Version = api, version
	f.Complete = len(b) >= f.Size
	f.Body = b[LengthSize:min(len(b), f.Size)]
	return f, nil
}

func (s *Scanner) tooLarge(length int32) error {
	if s.Early {
		return &ProtocolError{CodeFrameEarly, fmt.Sprintf(
			"a frame of %d bytes before authentication: the limit is %d", length, s.Limit)}
	}
	return &ProtocolError{CodeFrameTooLarge, fmt.Sprintf(
		"a frame of %d bytes: the limit is %d (socket.request.max.bytes); send smaller batches, or raise the limit", length, s.Limit)}
}
