package store

import (
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// Generations hands out generations; one for a process, shared by its logs.
// Safe for concurrent use.
type Generations struct{}

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

	// Background runs a job off the caller's goroutine: populating pages,
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

// RecoveryHint is what the directory knows about a log before it is opened.
type RecoveryHint struct {
	Mode  RecoveryMode
	Mark  ident.Offset // durable mark; NoOffset: unknown
	Start ident.Offset // from log-start-offset-checkpoint; NoOffset: none
	slot  *slot
}

// Recovery tells what opening a log found.
type Recovery struct {
	Mode RecoveryMode
	// Created: the directory did not exist before.
	Created bool
	// Start, End of the log; Flushed is what is known to be on disk (the durable
	// mark until a sync has returned).
	Start, End, Flushed ident.Offset
	// Whole: everything up to the durable mark was there.
	Whole bool
	// CutBytes were behind the last sound batch and are gone: a torn tail.
	CutBytes int64
	// Damage lists ranges below the durable mark that are unreadable.
	Damage []OffsetRange
	// Batches and Bytes that were read.
	Batches, Bytes int64
	// IndexesRebuilt counts index files that were missing, short or noise.
	IndexesRebuilt int
}

// OffsetRange is [From, To).
type OffsetRange struct{ From, To ident.Offset }

// Log is one partition's log. It has one owner; see the package comment.
type Log struct{}

// OpenLog opens or creates a log. Errors: ErrStray, ErrNewerFormat, ErrNoSpace,
// or the file system's. On an error nothing is left open.
func OpenLog(o LogOptions) (*Log, Recovery, error) { panic("not written yet") }

// Append adds one batch, stamped with its base offset (at or above End) and
// leader epoch, whose length and checksum the caller has checked. The bytes are
// copied. It rolls the segment when size, time, index or offset range say so; now
// is the wall clock. All or nothing: on ErrNoSpace or any other error the log is
// as before. A base offset below End, or an epoch below the last one, panics.
func (l *Log) Append(v record.View, now ident.Millis) error { panic("not written yet") }

// Read finds the batches from offset from on, below upTo, at most bytesMax bytes
// of one segment; the first batch is the one that holds from. With minOne the
// first batch is returned whatever its size. It is empty when from is at or above
// upTo, or the first batch is larger than bytesMax. The caller must Release it.
// Errors: *OffsetError, ErrDamaged, ErrDirectoryOffline.
func (l *Log) Read(from, upTo ident.Offset, bytesMax int, minOne bool) (Region, error) {
	panic("not written yet")
}

// Start is the first offset that may be read.
func (l *Log) Start() ident.Offset { panic("not written yet") }

// End is the offset that the next batch gets.
func (l *Log) End() ident.Offset { panic("not written yet") }

// Flushed is the offset below which everything is on disk.
func (l *Log) Flushed() ident.Offset { panic("not written yet") }

// Generation is the current generation.
func (l *Log) Generation() ident.Generation { panic("not written yet") }

// Size is the number of bytes of batches in the log, between start and end.
func (l *Log) Size() int64 { panic("not written yet") }

// Segments is the number of segments.
func (l *Log) Segments() int { panic("not written yet") }

// LastEpoch is the epoch of the last batch or assignment, NoLeaderEpoch when none.
func (l *Log) LastEpoch() ident.LeaderEpoch { panic("not written yet") }

// Configure changes the settings from the next append on.
func (l *Log) Configure(c LogConfig) { panic("not written yet") }

// SetStart moves the log start up to o (DeleteRecords, or a leader's start told
// to a follower); a lower o does nothing. o must not be above End. It is durable
// when a sync that began afterwards has returned.
func (l *Log) SetStart(o ident.Offset, now ident.Millis) error { panic("not written yet") }

// Trimmed is what retention did.
type Trimmed struct {
	Start    ident.Offset // the log start now
	Segments int          // how many were closed to readers and renamed
	Bytes    int64        // their size
}

// ApplyRetention drops closed segments wholly below hw that are too old, beyond
// the size limit, or below the log start, and unlinks files whose delay is over.
// Call it every log.retention.check.interval.ms.
func (l *Log) ApplyRetention(now ident.Millis, hw ident.Offset) (Trimmed, error) {
	panic("not written yet")
}

// Roll closes the active segment, unless it is empty, and begins a new one.
func (l *Log) Roll(now ident.Millis) error { panic("not written yet") }

// Truncate cuts the log down to o, in the order that keeps every crash harmless.
// dropUnsent is called before bytes change: it must drop what has not been sent
// of regions at or above o, together with its connection. It blocks on the disk.
func (l *Log) Truncate(o ident.Offset, now ident.Millis, dropUnsent func(from ident.Offset)) error {
	panic("not written yet")
}

// TimestampOffset is an answer of a lookup by time.
type TimestampOffset struct {
	Timestamp ident.Millis
	Offset    ident.Offset
	Epoch     ident.LeaderEpoch
}

// OffsetForTimestamp finds the first record below upTo with a timestamp at or
// after ts. found is false when there is none.
func (l *Log) OffsetForTimestamp(ts ident.Millis, upTo ident.Offset) (at TimestampOffset, found bool, err error) {
	panic("not written yet")
}

// MaxTimestamp finds the first record with the greatest timestamp below upTo.
func (l *Log) MaxTimestamp(upTo ident.Offset) (at TimestampOffset, found bool, err error) {
	panic("not written yet")
}

// EpochEnd answers OffsetForLeaderEpoch: the largest epoch at or below e that the
// log has, and the offset after its last record. (-1, -1) when e is unknown here.
func (l *Log) EpochEnd(e ident.LeaderEpoch) (ident.LeaderEpoch, ident.Offset) {
	panic("not written yet")
}

// EpochOf is the epoch of the batch that holds offset o, by the epoch file.
func (l *Log) EpochOf(o ident.Offset) ident.LeaderEpoch { panic("not written yet") }

// Epochs appends the epochs of the log to dst, ascending.
func (l *Log) Epochs(dst []Epoch) []Epoch { panic("not written yet") }

// AssignEpoch notes that e begins at start: a leader does so when it is elected,
// before its first append. Append does it by itself for each new epoch.
func (l *Log) AssignEpoch(e ident.LeaderEpoch, start ident.Offset) { panic("not written yet") }

// SaveProducerSnapshot writes the producers' state as of End.
func (l *Log) SaveProducerSnapshot(producers []record.ProducerEntry) error { panic("not written yet") }

// BeginSync captures what has to reach the disk: generation, end, and the files
// that were written since the last successful sync. dirty is false when nothing
// waits. Several may be under way; see [Syncer].
func (l *Log) BeginSync() (work SyncWork, dirty bool) { panic("not written yet") }

// Synced takes in the result of a sync. It returns the flushed end, and whether it
// moved. A result of another generation changes nothing. A failed one takes the
// log out of service.
func (l *Log) Synced(r SyncResult) (flushed ident.Offset, moved bool, err error) {
	panic("not written yet")
}

// Close closes the log. clean syncs everything first and leaves the files ending
// where the log ends, with a snapshot of the producers at the end. Regions that
// are still held stay readable.
func (l *Log) Close(clean bool) error { panic("not written yet") }
