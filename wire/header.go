package wire

import "github.com/twmb/franz-go/pkg/kmsg"

// RequestHeader is the header of a request. ClientID aliases the frame.
type RequestHeader struct {
	Key           Key
	Version       int16
	CorrelationID int32
	ClientID      []byte // nil: null
	API           *API
}

// ParseRequestHeader reads the header of a frame's body and returns what follows
// it. A key or version that is not served gives an *UnsupportedError, together
// with the header as far as it is known.
func ParseRequestHeader(b []byte) (h RequestHeader, body []byte, err error) {
	panic("not written yet")
}

// UnsupportedError says that a key or version is not served. Kafka closes the
// connection, except for ApiVersions, which is answered in version 0.
type UnsupportedError struct {
	Key     Key
	Version int16
	Known   bool // the key is served, in other versions
}

func (e *UnsupportedError) Error() string { panic("not written yet") }

// BeginResponse appends a length field to be filled in and the response header.
func BeginResponse(dst []byte, key Key, version int16, correlation int32) []byte {
	panic("not written yet")
}

// EndResponse fills in the length field at dst[at:], where BeginResponse put it;
// outside is the number of bytes that go over the wire beside those in dst.
func EndResponse(dst []byte, at int, outside int64) error { panic("not written yet") }

// DecodeBody decodes a request's body with kmsg.
func DecodeBody(key Key, version int16, body []byte) (kmsg.Request, error) { panic("not written yet") }
