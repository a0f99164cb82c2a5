// Package wire is what the broker and its clients say to each other: the Kafka
// protocol as Apache Kafka 4.4 speaks it, byte for byte.
//
// # What is promised
//
//   - The table in apis.go is the one statement of what is served. Versions that
//     are not in it are refused the way Kafka refuses them: the connection is
//     closed, except that ApiVersions is answered in version 0, so that a client
//     can ask again ([UnsupportedError]).
//   - No length that a peer declares sizes an allocation. A frame's credit is
//     taken before its body is read ([API.Memory]); Produce and Fetch are decoded
//     without allocating at all, every other body by kmsg within a measured bound
//     ([DecodeBody]).
//   - Input that breaks the protocol gives a [ProtocolError] with a code that
//     docs/errors.md explains, and ends the connection.
//
// # The way of a request
//
// [Scanner] finds the frame at the front of what has arrived and says, as soon as
// eight bytes are there, which API it is for and what it will cost.
// [ParseRequestHeader] reads the header in place. [ProduceRequest] and
// [FetchRequest] decode the two bodies that matter for speed, [DecodeBody] the
// others. A response is begun by [BeginResponse], its body appended (by
// [ProduceResponse], [FetchResponse] or a kmsg response), and its length filled in
// by [EndResponse].
//
// # Who owns the bytes
//
// Everything decoded here aliases the frame: client ids, topic names, records.
// The frame must stay untouched until the request is answered. Encoders append to
// the caller's buffer and keep nothing.
//
// # Glossary
//
//   - Frame: a length of four bytes and that many bytes: one request or response.
//   - Flexible: a version with compact lengths and tagged fields (KIP-482).
//   - Region: records that go to the socket from a log segment, without passing
//     through the encoder; a [Cut] says where in the encoded bytes one belongs.
//   - Amplification: bytes that decoding may allocate for each byte of the body.
package wire
