package peer_test

import (
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

var (
	topicA = ident.TopicID{0: 1, 15: 0xaa}
	topicB = ident.TopicID{0: 2, 15: 0xbb}
	self   = peer.Identity{
		Cluster: "c3VwZXItc2VjcmV0LWlkIQ", Broker: 1, Epoch: 4711, Directory: ident.DirectoryID{0: 7, 15: 7}, Node: 0xfeedfacecafebeef,
		Incarnation: [16]byte{0: 9, 15: 9},
	}
)

// samples are messages of every code, each with numbers of every size, full and empty.
func samples() []peer.Message {
	newcomer := self
	newcomer.Cluster, newcomer.Epoch = "", ident.NoBrokerEpoch
	return []peer.Message{
		&peer.Hello{VersionMin: 1, VersionMax: 1, Purpose: peer.Control, Expect: 2, Identity: self},
		&peer.Hello{VersionMin: 1, VersionMax: 200, Purpose: peer.Data, Expect: ident.NoBroker, Identity: newcomer},
		&peer.Welcome{Version: 1, Identity: self},
		&peer.Refuse{Reason: "TRP-3202", Text: "a text for people, which says what they can do"},
		&peer.Refuse{},
		&peer.Ping{Number: 1},
		&peer.Pong{Number: 1 << 63},
		&peer.Letter{To: 0xfeedfacecafebeef, From: 3, Seq: 70_000, Offset: 1 << 20, Total: 1<<20 + 5, Data: []byte("piece")},
		&peer.Letter{},
		&peer.Request{ID: 300, DeadlineMs: 500, Total: 4, Body: []byte{0x93, 1, 2, 3}},
		&peer.Request{ID: 301, DeadlineMs: 500, Offset: 1 << 20, Total: 1<<20 + 3, Body: []byte{1, 2, 3}},
		&peer.Response{ID: 300, Result: wire.NotController, Text: "the controller is broker 2", Body: []byte{0x90}},
		&peer.Response{Result: wire.UnknownServerError},
		&peer.Progress{Epoch: 4711, List: []peer.Position{
			{Topic: topicA, Partition: 0, LeaderEpoch: 5, Generation: 1, End: 100, Flushed: 90, Start: 0},
			{Topic: topicB, Partition: 1 << 20, LeaderEpoch: ident.NoLeaderEpoch, Generation: 1 << 50, End: 1 << 62, Flushed: -1, Start: -129},
		}},
		&peer.Progress{Epoch: ident.NoBrokerEpoch},
		&peer.Watermarks{Epoch: 4711, List: []peer.Watermark{
			{Topic: topicA, Partition: 7, LeaderEpoch: 5, Generation: 300, High: 65_536, Start: 255},
			{Topic: topicB, Partition: 128, LeaderEpoch: 1 << 30, Generation: 2, High: 1 << 32, Start: 32_768},
		}},
		&peer.Asks{Epoch: 4711, List: []peer.Ask{
			{Topic: topicA, Partition: 3, LeaderEpoch: 9, Generation: 12, From: 1_000, End: 900, Flushed: 800, LastEpoch: 8, BytesMax: 1 << 20, Start: 5},
			{Topic: topicB, Partition: 0, LeaderEpoch: 0, Generation: 1, From: 0, End: 0, Flushed: 0, LastEpoch: ident.NoLeaderEpoch, BytesMax: 0, Start: -32_769},
		}},
		&peer.Answer{
			Topic: topicA, Partition: 3, LeaderEpoch: 9, Generation: 12, From: 1_000, High: 950, Start: 5, DivergingEpoch: ident.NoLeaderEpoch,
			DivergingEnd: ident.NoOffset, Payload: []byte("whole batches"),
		},
		&peer.Answer{Topic: topicB, Result: wire.FencedLeaderEpoch, From: 1 << 40, High: -1, Start: -1, DivergingEpoch: 4, DivergingEnd: 77},
		&peer.Withdraw{Epoch: 4711, List: []peer.Withdrawn{{Topic: topicA, Partition: 3, LeaderEpoch: 9, Generation: 12}}},
		&peer.Announcement{Body: []byte("found")},
		&peer.RangeAsk{Topic: topicA, Partition: 3, LeaderEpoch: 9, Ticket: 1 << 40, From: 1_000, To: 1 << 33, BytesMax: 1 << 20, Copies: true},
		&peer.RangeAnswer{Topic: topicA, Partition: 3, LeaderEpoch: 9, Ticket: 12, From: 1_000, Next: 1_100, High: 5_000, Payload: []byte("whole batches")},
		&peer.RangeAnswer{Topic: topicB, Result: wire.CorruptMessage, From: 7, Next: 7, High: -1},
		&peer.DigestAsk{Topic: topicA, Partition: 3, LeaderEpoch: 9, Ticket: 1 << 40, From: 1_000, To: 1 << 33, BytesMax: 1 << 20},
		&peer.DigestAnswer{
			Topic: topicA, Partition: 3, LeaderEpoch: 9, Ticket: 12, From: 1_000, Next: 1_100, High: 5_000, Start: 40, Clean: 900, Bytes: 1 << 20,
			Digest: [16]byte{0: 1, 15: 0xff},
		},
		&peer.DigestAnswer{Topic: topicB, Result: wire.OffsetOutOfRange, From: 7, Next: 7, High: -1, Start: 1 << 40},
	}
}

// body opens a frame and fails the test when it is none.
func body(t interface {
	Helper()
	Fatalf(string, ...any)
}, frame []byte,
) peer.Body {
	t.Helper()
	size, complete, err := peer.Scan(frame, len(frame))
	if err != nil || !complete || size != len(frame) {
		t.Fatalf("a frame of %d bytes: size %d, complete %v, %v", len(frame), size, complete, err)
	}
	b, err := peer.Open(frame)
	if err != nil {
		t.Fatalf("%x: %v", frame, err)
	}
	return b
}
