package store

import (
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// LogOptions says which log to open and what the log may use. FS, Path, Partition,
// Topic and Generations are required.
type LogOptions struct {
	FS          FS
	Path        string // of the partition's directory, <data dir>/<topic>-<partition>
	Partition   ident.TopicPartition
	Topic       ident.TopicID
	Config      LogConfig
	Generations *Generations
	Hint        RecoveryHint
	Now         ident.Millis // wall clock of the opening

	// Background runs a job off the caller's goroutine: reserving space,
	// unlinking files. Nil runs it in place, as simulations want.
	Background func(job func())
	// Producers is asked, in the owner's turn, whenever a segment is rolled: it
	// appends the producers' state as of the log end to dst. Nil: no snapshots.
	Producers func(dst []record.ProducerEntry) []record.ProducerEntry
	// OnSnapshot receives the producer snapshot that recovery starts from, before
	// any OnBatch. It is not called when there is none.
	OnSnapshot func(at ident.Offset, producers []record.ProducerEntry)
	// OnBatch receives every batch at or above the snapshot's offset in order, so
	// that the owner rebuilds producer state. The view is valid during the call.
	// Control batches are whole; of others the records may be missing (the view
	// is then record.HeaderSize long).
	OnBatch func(v record.View)

	// Set by Directory.OpenLog; a log opened alone does without.
	health   *health
	standing *standing
	slot     *slot
	scans    *scans
	persist  func() error // makes mark and start durable, raised or lowered
	onClose  func(l *Log, clean bool)
}

// RecoveryMode is how much of a log can be believed when it is opened.
type RecoveryMode uint8

const (
	// RecoverVerify: another boot. Everything from the durable mark on is checked
	// and the first batch that is not sound ends the log. The zero value.
	RecoverVerify RecoveryMode = iota
	// RecoverClean: the clean marker was present; the files end where the log ends.
	RecoverClean
	// RecoverSameBoot: the control block is sound and of this boot, no error
	// happened: the block's end is the end, nothing is scanned for damage.
	RecoverSameBoot
	// RecoverCopy: same boot, but the block is void, lost or unreadable: a failed
	// sync may have left clean pages that are not on disk. Everything above the
	// durable mark is copied into new files and synced before it counts.
	RecoverCopy
)

// String says in a word or two what is believed, for the log.
func (m RecoveryMode) String() string {
	switch m {
	case RecoverVerify:
		return "another boot"
	case RecoverClean:
		return "clean stop"
	case RecoverSameBoot:
		return "same boot"
	case RecoverCopy:
		return "same boot, unconfirmed"
	}
	return "unknown"
}

// RecoveryHint is what the directory knows about a log before it is opened.
type RecoveryHint struct {
	Mode   RecoveryMode
	Mark   ident.Offset // durable mark; NoOffset: unknown
	Start  ident.Offset // from log-start-offset-checkpoint; NoOffset: not known
	Untold bool         // of the directory, when it was opened: the log was not called whole
}

// Recovery tells what opening a log found.
type Recovery struct {
	Mode RecoveryMode
	// Created: the directory did not exist before.
	Created bool
	// Start, End of the log; Flushed is what is known to be on disk (the durable
	// mark until a sync has returned).
	Start, End, Flushed ident.Offset
	// Whole: everything up to the durable mark was there; in the same boot, all there was.
	Whole bool
	// CutBytes were behind the last sound batch and are gone: a torn tail.
	CutBytes int64
	// Damage lists ranges below the durable mark that are unreadable.
	Damage []OffsetRange
	// Batches and Bytes that were read.
	Batches, Bytes int64
	// IndexesRebuilt counts segments whose index files were missing, short or noise. A
	// segment that is too small for an entry has none to miss.
	IndexesRebuilt int
}
