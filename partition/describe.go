package partition

import (
	"fmt"
	"strings"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// The values below draw themselves, for transcripts and debugging. None of this
// runs in a turn.

var roleNames = [...]string{"unassigned", "leading", "following", "stopped"}

// String names the role.
func (r Role) String() string { return name(roleNames[:], int(r)) }

var writeNames = [...]string{
	"", "batch", "epoch", "start", "strict-confirmed", "strict-cleared", "replica", "epochs-cut", "truncate", "restart", "room",
}

// String draws the write.
func (w Write) String() string {
	s := fmt.Sprintf("persist %s offset=%d epoch=%d", name(writeNames[:], int(w.Kind)), w.Offset, w.LeaderEpoch)
	if w.Kind == WriteBatch {
		s += fmt.Sprintf(" request=%d", w.Request)
	}
	if w.Kind == WriteRoom {
		s += fmt.Sprintf(" bytes=%d", w.Bytes)
	}
	if w.Rebuild {
		s += " rebuild-producers"
	}
	return s
}

// String draws the proposal.
func (p Proposal) String() string {
	ids := make([]ident.BrokerID, len(p.ISR))
	for i := range p.ISR {
		ids[i] = p.ISR[i].Broker
	}
	if p.Resign {
		return fmt.Sprintf("propose to resign epoch=%d partition-epoch=%d", p.LeaderEpoch, p.PartitionEpoch)
	}
	return fmt.Sprintf("propose isr=%v epoch=%d partition-epoch=%d", ids, p.LeaderEpoch, p.PartitionEpoch)
}

// String draws the condition.
func (c Condition) String() string { return fmt.Sprintf("condition full=%v", c.Full) }

// String draws the ask.
func (i Inquiry) String() string {
	return fmt.Sprintf("ask from=%d epoch=%d generation=%d end=%d flushed=%d last-epoch=%d max=%d",
		i.From, i.LeaderEpoch, i.Generation, i.LogEnd, i.Flushed, i.LastBatchEpoch, i.BytesMax)
}

// String draws the withdrawal.
func (w Withdrawal) String() string {
	return fmt.Sprintf("withdraw epoch=%d generation=%d", w.LeaderEpoch, w.Generation)
}

// String draws the report.
func (r Report) String() string {
	return fmt.Sprintf("report epoch=%d generation=%d end=%d flushed=%d start=%d", r.LeaderEpoch, r.Generation, r.End, r.Flushed, r.LogStart)
}

// String draws the letter.
func (w WatermarkLetter) String() string {
	return fmt.Sprintf("watermark broker=%d broker-epoch=%d epoch=%d generation=%d hw=%d start=%d",
		w.Broker, w.BrokerEpoch, w.Says.LeaderEpoch, w.Says.Generation, w.Says.HighWatermark, w.Says.LogStart)
}

var replyNames = [...]string{"", "append", "fetch", "delete-records", "list-offsets", "epoch-end", "producers", "ask"}

// String draws the reply: its code if it is a refusal, else what it says.
func (r Reply) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "reply request=%d %s", r.Request, name(replyNames[:], int(r.Kind)))
	if r.Silent {
		b.WriteString(" silent")
		return b.String()
	}
	if r.Kind == ReplyAsk && r.Code == wire.OffsetOutOfRange {
		fmt.Fprintf(&b, " %v hw=%d start=%d", r.Code, r.Fetch.HighWatermark, r.Fetch.LogStart)
		return b.String()
	}
	if r.Code != wire.NoError {
		fmt.Fprintf(&b, " %v", r.Code)
		if r.Kind == ReplyAppend && r.Append.BaseOffset != ident.NoOffset {
			fmt.Fprintf(&b, " base=%d", r.Append.BaseOffset)
		}
		if r.Code == wire.NotLeaderOrFollower {
			fmt.Fprintf(&b, " leader=%d epoch=%d", r.Leader, r.LeaderEpoch)
		}
		return b.String()
	}
	switch r.Kind {
	case ReplyAppend:
		fmt.Fprintf(&b, " base=%d start=%d", r.Append.BaseOffset, r.Append.LogStart)
		if r.Append.LogAppendTime != ident.NoTimestamp {
			fmt.Fprintf(&b, " time=%d", r.Append.LogAppendTime)
		}
		if r.Append.Duplicate {
			b.WriteString(" duplicate")
		}
	case ReplyFetch:
		f := &r.Fetch
		fmt.Fprintf(&b, " [%d,%d) max=%d hw=%d lso=%d start=%d", f.From, f.UpTo, f.BytesMax, f.HighWatermark, f.LastStable, f.LogStart)
		if f.Diverging {
			fmt.Fprintf(&b, " diverging epoch=%d end=%d", f.DivergingEpoch, f.DivergingEnd)
		}
		if f.Preferred != ident.NoBroker {
			fmt.Fprintf(&b, " preferred=%d", f.Preferred)
		}
	case ReplyAsk:
		f := &r.Fetch
		fmt.Fprintf(&b, " [%d,%d) max=%d hw=%d start=%d", f.From, f.UpTo, f.BytesMax, f.HighWatermark, f.LogStart)
		if f.Diverging {
			fmt.Fprintf(&b, " diverging epoch=%d end=%d", f.DivergingEpoch, f.DivergingEnd)
		}
	case ReplyDeleteRecords:
		fmt.Fprintf(&b, " low=%d", r.DeleteRecords.LowWatermark)
	case ReplyListOffsets:
		l := &r.ListOffsets
		if l.Search {
			fmt.Fprintf(&b, " search below %d, else %v", l.UpTo, l.SearchFailed)
		} else {
			fmt.Fprintf(&b, " offset=%d epoch=%d", l.Offset, l.LeaderEpoch)
		}
	case ReplyEpochEnd:
		fmt.Fprintf(&b, " epoch=%d end=%d", r.EpochEnd.Epoch, r.EpochEnd.End)
	case ReplyDescribeProducers:
		for _, p := range r.Producers.Producers {
			fmt.Fprintf(&b, " (%d epoch=%d seq=%d time=%d)", p.ProducerID, p.ProducerEpoch, p.LastSequence, p.LastTimestamp)
		}
	}
	return b.String()
}

var alarmNames = [...]string{"", "produce", "flush", "producers", "lag", "sync", "propose", "ask", "delete", "resign", "room"}

// String names the alarm.
func (k AlarmKey) String() string { return name(alarmNames[:], int(k)) }

var noteNames = [...]string{
	"", "became-leader", "became-follower", "stopped", "isr-changed", "log-start", "timed-out",
	"produce-full", "fetch-full", "producers-expired", "producer-evicted", "stale-flush", "stale-become",
	"stale-progress", "strict-confirmed", "stale-ask", "stale-answer", "bad-answer", "diverged", "truncating",
	"truncated-committed", "starting-anew", "isr-shrinks", "isr-expands", "sync-hung", "full", "room",
}

// String names the kind of note; logs and metrics use it.
func (k NoteKind) String() string { return name(noteNames[:], int(k)) }

// String draws the note with the fields that mean something.
func (n Note) String() string {
	s := "note " + n.Kind.String()
	switch n.Kind {
	case NoteBecameLeader, NoteStrictConfirmed, NoteDiverged, NoteTruncating, NoteTruncatedCommitted, NoteStartingAnew, NoteFull, NoteRoom:
		s += fmt.Sprintf(" offset=%d epoch=%d", n.Offset, n.LeaderEpoch)
	case NoteBecameFollower, NoteStaleBecome, NoteStaleProgress, NoteStaleAsk, NoteStaleAnswer, NoteBadAnswer, NoteSyncHung:
		s += fmt.Sprintf(" epoch=%d", n.LeaderEpoch)
	case NoteISRChanged, NoteISRShrinks, NoteISRExpands:
		s += fmt.Sprintf(" members=%d epoch=%d", n.Count, n.LeaderEpoch)
	case NoteLogStart, NoteStaleFlush:
		s += fmt.Sprintf(" offset=%d", n.Offset)
	case NoteTimedOut, NoteProducersExpired:
		s += fmt.Sprintf(" count=%d", n.Count)
	case NoteProducerEvicted:
		s += fmt.Sprintf(" producer=%d", n.Producer)
	case NoteStopped, NoteProduceFull, NoteFetchFull:
	}
	return s
}

// name picks from a table; a number outside of it prints as itself.
func name(names []string, i int) string {
	if i < 0 || i >= len(names) || names[i] == "" && i != 0 {
		return fmt.Sprintf("#%d", i)
	}
	return names[i]
}
