package cluster

import "github.com/troupe-broker/troupe/wire/ident"

// Out is what one step asks of the shell. Duties are done in field order. The shell owns one Out, hands it to each step and calls Reset between
// steps; slices inside the elements are never touched again by the machine.
type Out struct {
	Persist []Save      // 1. for the raft log writer, in order
	Send    []Letter    // 2. to other voters
	Commit  []Committed // 3. new images, in order; published before any reply below leaves
	Reply   []Reply     // 4. answers
	Note    []Note      // 5. what happened
	Ask     *PullAsk    // 6. to send: this voter doubts that it still is one; what comes back is stepped as Pulled
	Reseat  *Reseat     // 7. the vote is gone: after this there is nothing more
}

// Reset empties the bundle and keeps its memory.
func (o *Out) Reset() {
	clear(o.Persist)
	clear(o.Send)
	clear(o.Commit)
	clear(o.Reply)
	clear(o.Note)
	o.Persist, o.Send, o.Commit, o.Reply, o.Note = o.Persist[:0], o.Send[:0], o.Commit[:0], o.Reply[:0], o.Note[:0]
	o.Ask, o.Reseat = nil, nil
}

// Entry is one entry of the raft log. Data is opaque outside this package.
type Entry struct {
	Index, Term uint64
	Data        []byte
}

// Snapshot is the state of everything up to and including Index. Data is opaque outside this package.
type Snapshot struct {
	Index, Term uint64
	Data        []byte // nil: whoever saves it encodes Image, which takes some 10 ms for 10,000 partitions and is no business of a turn
	Image       *Image // what Data says; it never changes
}

// Bytes returns Data, or encodes Image. It may be called by any goroutine.
func (s *Snapshot) Bytes() []byte {
	if s.Data == nil && s.Image != nil {
		return EncodeSnapshot(s.Image)
	}
	return s.Data
}

// Durable is what a raft log holds: the newest hard state, the newest snapshot, and the entries after it, in order and without a gap.
type Durable struct {
	HardState []byte // opaque; nil: never saved
	Snapshot  *Snapshot
	Entries   []Entry
}

// Save is one write to the raft log. Saves are carried out in order; each is answered with Persisted (one answer may cover several).
type Save struct {
	ID        uint64 // rises by one with each save
	HardState []byte // nil: unchanged
	// Entries replace everything at and above Entries[0].Index.
	Entries []Entry
	// Snapshot, when set, replaces the stored one, before Entries are written. Entries at or below CompactTo may then be dropped. With Reset the
	// whole stored log is dropped: the snapshot came from the leader because this log was too far behind.
	Snapshot  *Snapshot
	CompactTo uint64
	Reset     bool
	Sync      bool // must be on stable storage before Persisted is stepped
}

// Letter is a message to another voter.
type Letter struct {
	To       ident.NodeID
	Data     []byte
	Snapshot bool // carries a snapshot: report its fate with SnapshotSent
}

// Committed is one committed batch, applied.
type Committed struct {
	Image *Image
	Delta *Delta
}

// NoteKind says what a Note tells.
type NoteKind uint8

const (
	NoteElected       NoteKind = iota + 1 // this node is the controller of Term and may act
	NoteDeposed                           // this node is the controller no more
	NoteLeaderChanged                     // another node leads Term now (Node 0: none known)
	NoteRegistered                        // a broker registered
	NoteFenced                            // a broker was fenced
	NoteUnfenced                          // a broker was unfenced
	NoteElection                          // partitions got other leaders; Count of them
	NoteUnclean                           // a partition got a leader that may miss records, because that was allowed
	NotePossibleLoss                      // a partition got a leader that may miss records, because no replica was whole
	NoteSnapshot                          // a snapshot of the image was made at Index
	NoteRestored                          // a snapshot from the controller replaced the image
	NoteSilent                            // a voter did not answer an observer, which turns to another
	NoteDropped                           // a letter or entry could not be used; Text says why
	NoteFailed                            // the raft log could not be written or read; the machine has stopped
	NoteRaft                              // Raft itself warns
	NoteVoters                            // from Index on there are Count voters; Text names them
	NotePromoted                          // this broker has a vote from Index on
	NoteRetired                           // this broker's vote was taken away at Index or before
)

// Note is one thing that happened, for logs, metrics and transcripts. Fields that do not apply are zero.
type Note struct {
	Kind      NoteKind
	Node      ident.NodeID
	Broker    ident.BrokerID
	Term      uint64
	Index     uint64
	Topic     string
	Partition int32
	Count     int
	Text      string
}
