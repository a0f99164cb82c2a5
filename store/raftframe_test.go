package store

import "testing"

// A Raft log's file is reserved in megabytes. What was read of it lives as long as the entries do, so it must not be all of it.
func TestWhatARaftLogRemembersDoesNotHoldItsFile(t *testing.T) {
	const generation = 7
	frame := appendRecord(beginFrame(nil), recordHard, []byte("hard"))
	frame = appendEntry(frame, &RaftEntry{Index: 1, Term: 1, Data: []byte("entry")})
	frame, err := endFrame(frame, generation)
	if err != nil {
		t.Fatal(err)
	}
	file := append(make([]byte, raftHead), frame...)
	s, _, err := decodeRaftFile(append(file, make([]byte, 1<<20)...), generation)
	if err != nil {
		t.Fatal(err)
	}
	if string(s.Hard) != "hard" || len(s.Entries) != 1 || string(s.Entries[0].Data) != "entry" {
		t.Fatalf("decoded %+v", s)
	}
	if kept := cap(s.Entries[0].Data); kept > len(frame) {
		t.Errorf("an entry of %d bytes holds %d", len(s.Entries[0].Data), kept)
	}
}
