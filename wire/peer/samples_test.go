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
		&peer.Request{ID: 300, DeadlineMs: 500, Body: []byte{0x93, 1, 2, 3}},
		&peer.Response{ID: 300, Result: wire.NotController, Text: "the controller is broker 2", Body: []byte{0x90}},
		&peer.Response{Result: wire.UnknownServerError},
		&peer.MetadataAsk{ID: 1, From: 1 << 40, Term: 7, Snapshot: 200, Offset: 65_536, WaitMs: 500, BytesMax: 1 << 20},
		&peer.MetadataAnswer{ID: 1, Committed: 1 << 40, Index: 200, Term: 7, Snapshot: true, Offset: 128, Total: 1 << 33, Data: []byte("entries")},
		&peer.MetadataAnswer{ID: 2, Result: wire.NotLeaderOrFollower},
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
