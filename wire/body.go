package wire

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DecodeBody decodes the body of a request with kmsg, for every API but Produce
// and Fetch, which have decoders of their own. Strings are copied; byte fields
// alias body.
//
// # Why this is bounded
//
// kmsg sizes slices by the lengths that a peer declares, after checking that the
// rest of the body could hold that many elements of their smallest encoding; a
// map holds the tagged fields that it does not know. So what it allocates is at
// most a constant times the body's size. The constant belongs to the API: how
// large the structs are and how short their encodings. It cannot be made smaller
// from outside, since a scan that knows no schema cannot tell a length from a
// name. It can be measured: a test decodes bodies made to cost most (long arrays
// of the shortest elements, tagged fields in every struct, one struct with all the
// tags, arrays that lie about their length) in every version and keeps
// [API.Amplification] above the worst. [API.Memory] reserves that much credit
// before the body is read, and [API.BodyMax] keeps it affordable.
func DecodeBody(key Key, version int16, body []byte) (kmsg.Request, error) {
	api, ok := Lookup(key)
	if !ok || !api.Serves(version) {
		return nil, &UnsupportedError{Key: key, Version: version, API: api}
	}
	req := kmsg.RequestForKey(int16(key))
	req.SetVersion(version)
	if err := req.ReadFrom(body); err != nil {
		return nil, badBody(api, version, len(body))
	}
	if !stringsFit(req, len(body)) {
		return nil, &ProtocolError{CodeBody, fmt.Sprintf("the body of a %s request of version %d has a string of more than %d bytes", api.Name, version, StringMax)}
	}
	return req, nil
}

// badBody is the error of a body that does not parse. What the decoder says about
// it would not help: it knows only that bytes are missing.
func badBody(api *API, version int16, size int) error {
	return &ProtocolError{CodeBody, fmt.Sprintf(
		"the body of a %s request of version %d, %d bytes, does not parse: a length in it runs past its end", api.Name, version, size)}
}
