package coord

import (
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Out is what one step asks of the shell.
type Out struct {
	Entries []records.Entry // to append to the shard's partition, in order; the state has them already
	Replies []Reply
	Notes   []Note
	Timers  *Timers // the shard's; machines set and cancel, the shell asks for the next

	// Worked is how much this step has done of what can be put off, as those count who do it. Groups share one bound: many of them may be due together.
	Worked int64

	proposed uint64 // entries this shard has proposed since it was made
}

// Reply is an answer on its way. It must not leave before the first After entries of this shard are committed.
type Reply struct {
	Request ident.RequestID
	After   uint64
	Answer  Answer
}

// Note is something that happened, for the log and the metrics.
type Note struct {
	Kind   NoteKind
	Group  string
	Member string
	Text   string
	Count  int64
}

// NoteKind says what a note is about.
type NoteKind int8

// The kinds of notes.
const (
	NoteRebalance     NoteKind = iota + 1 // a classic group begins one; Text says why
	NoteStable                            // a classic group is stable again, with Count members
	NoteMemberFenced                      // a member was removed; Text says why
	NoteEmpty                             // the last member has gone
	NoteOffsetExpired                     // Count offsets expired
	NoteCommitted                         // Count offsets were committed
	NoteJump                              // a consumer jumped over Count records; Text says where and why
	NoteConverted                         // a group changed its protocol; Text is the new type
)

// Propose takes an entry that the state has already applied.
func (o *Out) Propose(e records.Entry) {
	o.Entries = append(o.Entries, e)
	o.proposed++
}

// Reply answers a request. The answer waits for what was proposed before.
func (o *Out) Reply(to ident.RequestID, a Answer) {
	o.Replies = append(o.Replies, Reply{Request: to, After: o.proposed, Answer: a})
}

// Note notes.
func (o *Out) Note(n Note) { o.Notes = append(o.Notes, n) }

// Proposed is how many entries the shard has proposed.
func (o *Out) Proposed() uint64 { return o.proposed }

// Reset empties the bundle and keeps its memory and its count.
func (o *Out) Reset() {
	clear(o.Entries)
	clear(o.Replies)
	clear(o.Notes)
	o.Entries, o.Replies, o.Notes, o.Worked = o.Entries[:0], o.Replies[:0], o.Notes[:0], 0
}
