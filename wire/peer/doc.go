// Package peer is what brokers say to each other: the frames of the links between
// them, in msgpack, written and read by hand.
//
// # Frames
//
// Each side of a connection begins with [Preface]. Then come frames: a length of
// four bytes, big-endian, and that many bytes, which are one msgpack array. Its
// first element is the [Code], which says what the others are.
//
//	TROU | 00 00 00 4a | 9x 01 ... | 00 00 00 07 | 93 04 ... | ...
//
// A payload of records is the last element of its frame, as bin, so that a sender
// writes a short head and lets the bytes follow from a file, and a receiver finds
// them in one piece.
//
// # How messages evolve
//
//   - Arrays grow at the end. A reader skips elements behind those it knows, and
//     takes zero for those that are not there. What follows a payload could not be
//     written behind it, so the fields beside a payload are an array of their own.
//   - A new meaning is a new code. Codes are never used again, and stay in the
//     ledger below when nobody sends them any more.
//   - A frame of an unknown code below [Required] is skipped. One from Required on
//     must be understood: it ends the connection ([Code.MustKnow]).
//   - What the two sides may send is what came with the version that the handshake
//     has found in both ranges ([Code.Since]), and with the level at which the cluster
//     has finalised the feature troupe.peer.version. A cluster is founded at the newest
//     that its founder speaks; others promise it only if they do, too. An operator raises
//     it when every registered broker speaks the next, and from then on a broker that
//     does not is refused; until then old and new ones are one cluster, and no one is
//     sent what it cannot read. The same level gates what the records of the metadata
//     log say and commands carry: the ledgers of the cluster package tell which.
//
// # What is promised
//
// No length that a peer declares sizes an allocation: elements are held against
// the bytes that are there, each of which costs at most [Amplification] bytes when
// decoded. Decoding into a message that was used before allocates nothing once its
// lists have grown; encoding appends to the caller's buffer. What is decoded
// aliases the frame, and so do its Data, Body and Payload; numbers and ids do not.
// Input that is no frame gives a wire.ProtocolError with a code.
//
// # The ledger
//
//	| code | message        | on      | from, to                      | since |
//	|------|----------------|---------|-------------------------------|-------|
//	|    1 | Hello          | both    | who dialled, first            | 1     |
//	|    2 | Welcome        | both    | the other, first              | 1     |
//	|    3 | Refuse         | both    | either, last                  | 1     |
//	|    4 | Ping           | both    | either                        | 1     |
//	|    5 | Pong           | both    | answers a Ping                | 1     |
//	|    6 | Letter         | control | voter to voter                | 1     |
//	|    7 | Request        | control | broker to controller          | 1     |
//	|    8 | Response       | control | answers a Request             | 1     |
//	|  9,10| retired        |         | observers pull by Request     | 1     |
//	|   11 | Progress       | control | follower to leader            | 1     |
//	|   12 | Watermarks     | control | leader to follower            | 1     |
//	|   13 | Asks           | data    | follower to leader            | 1     |
//	|   14 | Answer         | data    | leader to follower            | 1     |
//	|   15 | Withdraw       | data    | follower to leader            | 1     |
//	|   16 | Announcement   | control | broker to broker, to found    | 1     |
//	|   17 | RangeAsk       | data    | follower to leader            | 2     |
//	|   18 | RangeAnswer    | data    | leader to follower            | 2     |
//	|   19 | DigestAsk      | data    | follower to leader            | 3     |
//	|   20 | DigestAnswer   | data    | leader to follower            | 3     |
//
// # Glossary
//
//   - Hello, Welcome: who either side is, of which cluster, in which run, and what
//     the connection is for. Refuse says in words why there will be none.
//   - Ping, Pong: an echo. The number comes back.
//   - Letter: a message of the metadata quorum, or a piece of one.
//   - Request, Response: a command for the controller, or a piece of one, and what it
//     says, tied by their id; the bodies are the cluster package's.
//   - Asks: what a follower wants of some partitions, and how far it is there. An
//     ask stays with the leader until there is something.
//   - Answer: records of one partition, or why there are none.
//   - Withdraw: asks that are not wanted any more.
//   - Progress: how far a follower is where its ask is still unanswered. Watermarks:
//     the same from the leader's side.
//   - RangeAsk, RangeAnswer: batches that a replica has had and are damaged there.
//   - DigestAsk, DigestAnswer: what the batches of a range sum up to, for a follower that compares.
//   - Announcement: what brokers without a cluster tell each other to found one.
package peer
