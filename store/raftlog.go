package store

// RaftEntry is one entry of the metadata quorum's log. Kind and Data are opaque
// here.
type RaftEntry struct {
	Index, Term uint64
	Kind        int32
	Data        []byte
}

// RaftSnapshot replaces all entries up to Index. Data is opaque here.
type RaftSnapshot struct {
	Index, Term uint64
	Data        []byte
}

// RaftSave is what one turn of Raft wants durable. Parts that are empty are left
// as they are.
type RaftSave struct {
	Hard     []byte // the hard state (term, vote, commit), opaque
	Entries  []RaftEntry
	Snapshot *RaftSnapshot // received from a leader: replaces everything before
}

// RaftState is what a Raft log held when it was opened.
type RaftState struct {
	Created  bool // there was none: this is a new node
	Hard     []byte
	Snapshot RaftSnapshot
	Entries  []RaftEntry // contiguous, after Snapshot.Index
	Torn     int64       // bytes of an unfinished save that were ignored
}

// RaftLog keeps the metadata quorum's hard state, entries and snapshot. One owner;
// every method blocks on the disk.
type RaftLog struct{}

// OpenRaftLog opens or creates the Raft log in the directory dir. Damage other than
// an unfinished last save is an *Error with CodeRaft.
func (d *Directory) OpenRaftLog() (*RaftLog, RaftState, error) { panic("not written yet") }

// Save makes s durable before it returns. An entry whose index exists replaces it
// and all that follow. On ErrNoSpace nothing changed.
func (r *RaftLog) Save(s RaftSave) error { panic("not written yet") }

// Size is the number of bytes in use: a measure of when to compact.
func (r *RaftLog) Size() int64 { panic("not written yet") }

// Compact writes snapshot, hard state and the entries after the snapshot into a
// fresh file and switches to it, durably.
func (r *RaftLog) Compact(hard []byte, s RaftSnapshot, entries []RaftEntry) error {
	panic("not written yet")
}

// Close closes the files.
func (r *RaftLog) Close() error { panic("not written yet") }
