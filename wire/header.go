package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// RequestHeader is the header of a request, versions 1 and 2.
type RequestHeader struct {
	Key           Key
	Version       int16 // of the API
	CorrelationID int32
	ClientID      []byte // nil: null. Aliases the frame
	API           *API   // the row of Key
}

// ParseRequestHeader reads the header at the front of a frame's body and returns
// what follows it. It does not allocate.
//
// A key or version that is not served gives an [UnsupportedError]; for a version
// of ApiVersions the header is returned with it, since that request is answered,
// in version 0. Anything else that cannot be read gives a [ProtocolError].
//
// The client id keeps its two-byte length even in the flexible header
// (RequestHeader.json), so that a broker can read it before it knows the version.
func ParseRequestHeader(b []byte) (h RequestHeader, body []byte, err error) {
	r := reader{b: b}
	h.Key, h.Version, h.CorrelationID = Key(r.int16()), r.int16(), r.int32()
	if r.bad {
		return RequestHeader{}, nil, &ProtocolError{CodeHeader, "the request ends inside its header"}
	}
	api, ok := Lookup(h.Key)
	if !ok {
		return RequestHeader{}, nil, &UnsupportedError{Key: h.Key, Version: h.Version}
	}
	h.API = api
	served := api.Serves(h.Version)
	if !served && h.Key != KeyApiVersions {
		return RequestHeader{}, nil, &UnsupportedError{Key: h.Key, Version: h.Version, API: api}
	}
	h.ClientID = r.nullableString(false)
	r.skipTags(api.IsFlexible(h.Version))
	if r.bad {
		return RequestHeader{}, nil, &ProtocolError{CodeHeader, fmt.Sprintf(
			"the header of a %s request does not parse: client id or tagged fields run past its end", api.Name)}
	}
	if !served {
		return h, nil, &UnsupportedError{Key: h.Key, Version: h.Version, API: api}
	}
	return h, r.b, nil
}

// UnsupportedError says that an API, or this version of it, is not served. Kafka
// has no answer for it and closes the connection; only for ApiVersions does it
// answer, with version 0 and error UNSUPPORTED_VERSION (KIP-511).
type UnsupportedError struct {
	Key     Key
	Version int16
	API     *API // the row of Key; nil when the API is not served at all
}

// Error says what was asked for and what is served.
func (e *UnsupportedError) Error() string {
	if e.API == nil {
		return fmt.Sprintf("%s: API key %d is not served; the client ignores what ApiVersions told it, or did not ask", CodeNotServed, e.Key)
	}
	return fmt.Sprintf("%s: version %d of %s is not served, versions %d to %d are", CodeNotServed, e.Version, e.API.Name, e.API.Min, e.API.Max)
}

// BeginResponse appends a length field, still zero, and the response header for a
// version of an API, which is header version 0 for every version of ApiVersions,
// since a client must be able to read it before it knows the broker. Append the
// body and call [EndResponse].
func BeginResponse(dst []byte, api *API, version int16, correlation int32) []byte {
	dst = append(dst, 0, 0, 0, 0)
	dst = appendInt32(dst, correlation)
	return appendNoTags(dst, api.Key != KeyApiVersions && api.IsFlexible(version))
}

// EndResponse fills in the length field that BeginResponse put at dst[at:], the
// response being everything from there to the end of dst. outside is the number of
// bytes that go over the wire with it without being in dst: the regions of a Fetch
// response, see [FetchResponse.AppendTo].
func EndResponse(dst []byte, at int, outside int64) error {
	length := int64(len(dst)-at-LengthSize) + outside
	if length > math.MaxInt32 {
		return &ProtocolError{CodeResponseSize, fmt.Sprintf("a response of %d bytes does not fit a frame", length)}
	}
	binary.BigEndian.PutUint32(dst[at:], uint32(length))
	return nil
}
