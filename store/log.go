package store

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// Log is one partition's log. It has one owner; see the package comment.
//
// Always: start <= flushed' <= end, where flushed' is flushed or, after start was
// moved beyond it, start; segments are ascending by base, the last one is active;
// each batch of a segment lies in [its base, the next segment's base).
type Log struct {
	// Fixed when the log is opened.
	o          LogOptions
	health     *health
	standing   *standing
	slot       *slot // nil: no control block
	background func(job func())
	onFail     func(error) // fail, bound once
	// obstructed is what made the log unusable, alone among those of its directory.
	obstructed atomic.Pointer[Error]

	// The owner's.
	cfg           LogConfig
	growth        growthPolicy
	segments      []*segment
	active        *segment
	start         ident.Offset
	end           ident.Offset
	flushed       ident.Offset
	generation    ident.Generation
	epochs        epochs
	closedSize    int64 // bytes of batches in the closed segments
	recent        recentBatches
	resume        resumePoints
	holes         []hole         // damage that is known
	news          []hole         // of them, those that the owner has not been told of
	damageSaved   []OffsetRange  // what the file of damage says
	damageUnsaved atomic.Bool    // it could not be written
	repaired      atomic.Int64   // repairs that were begun, and swapped, beside which no compaction goes on
	endsSaved     []OffsetRange  // what the file of segments' ends says
	endsTurn      atomic.Int64   // counts the times that it was removed
	rollFirst     atomic.Bool    // the next repair is to find the active segment empty
	shapes        uint64         // swaps; see Shape
	snapshots     []ident.Offset // ascending
	cleaned       ident.Offset   // below it the log was compacted, as far as is remembered
	swaps         []pendingSwap  // groups that compaction put in their place, oldest first
	// sinceSnapshot counts the bytes appended since the last snapshot, which a
	// restart reads again.
	sinceSnapshot int64
	leaving       []doomedSegment // dropped, still under their names
	doomed        []doomedSegment // renamed to .deleted
	slotState     slotState
	// epochsChanges counts the changes of epochs, epochsWritten how many of them
	// the epoch file has.
	epochsChanges, epochsWritten uint64
	bare                         bool // there is no epoch file yet
	dirty                        dirt
	jobs                         []*syncJob // done, to be used again
	header                       []byte     // scratch for one header, so that reading it allocates nothing
	hurried                      bool       // the caller may not wait for the disk; see ReadNow
	closed                       bool
	asOpened                     *asOpened // nil: not as a clean stop leaves a log

	unmade  bool         // so does the directory's name, and its identity
	undone  ident.Offset // base of a file that could be neither begun nor taken away again; 0: there is none
	unnamed bool         // the active segment's name waits for the first append, to be synced with it
	awake   bool         // counted as having its active segment open
	out     int          // shares of flush rounds whose results have not come
	opened  []*segment   // closed segments that may be open, oldest first
	idleAt  ident.Offset // the end when the log was last asked whether it is idle

	// shared is what a flush round touches while the owner goes on.
	shared struct {
		sync.Mutex
		gone       bool // the directory was renamed or removed
		closed     bool // compaction must not make or remove files any more
		generation ident.Generation
		epochs     uint64 // changes that the epoch file holds; see epochsChanges
	}
}

// standing is what the directory writes into its checkpoints about a log. The log's
// owner writes it, the flusher reads it.
type standing struct {
	mark    atomic.Int64 // durable mark
	start   atomic.Int64 // log start
	cleaned atomic.Int64 // first dirty offset
	strict  atomic.Bool  // the flag beside the mark, as it is to be written
}

// SetStrict sets the flag "strict, confirmed" beside the durable mark, or takes it back (design of replication: a replica with this flag, a readable mark and
// everything up to it is whole after any restart). It is written with the next checkpoint: a flag that is lost makes a replica less trusted than it could be,
// and a thousand new partitions do not write the marks a thousand times. Who takes it back waits for [Directory.ForgetStrict]. Only the owner of the log calls
// it, so that the flag is as it was set last.
func (l *Log) SetStrict(on bool) { l.standing.strict.Store(on) }

// OpenLog opens or creates a log. Errors: ErrStray, ErrNewerFormat, ErrNoSpace,
// or the file system's. On an error nothing is left open.
func OpenLog(o LogOptions) (*Log, Recovery, error) {
	l := &Log{
		o:          o,
		health:     o.health,
		standing:   o.standing,
		slot:       o.slot,
		background: o.Background,
		header:     make([]byte, record.HeaderSize),
	}
	if l.health == nil {
		l.health = &health{path: o.Path}
	}
	if l.standing == nil {
		l.standing = &standing{}
	}
	if l.background == nil {
		l.background = func(job func()) { job() }
	}
	l.onFail = l.fail
	l.configure(o.Config)
	l.newGeneration()
	r, err := l.recover()
	if err != nil {
		return nil, Recovery{}, errors.Join(fmt.Errorf("open the log of %s in %s: %w", o.Partition, o.Path, err), l.releaseAll())
	}
	l.news = nil // r tells of it
	l.saveDamage()
	l.saveEnds()
	l.noteOpened(&r)
	l.noteAwake()
	l.rest()
	return l, r, nil
}

func (l *Log) newGeneration() {
	l.generation = l.o.Generations.Next()
	l.shared.Lock()
	l.shared.generation = l.generation
	l.shared.Unlock()
}

// Configure changes the settings from the next append on. The size of the segment
// that is being written stays bounded by the mapping it has.
func (l *Log) Configure(c LogConfig) { l.configure(c) }

// Defaults of LogConfig's zeros, in bytes.
const (
	// defaultAppendWriteMin is where pwrite into reserved space becomes cheaper
	// than covering it and copying; BenchmarkAppend has both.
	defaultAppendWriteMin = 256 << 10
	defaultAllocateMin    = 64 << 10
	defaultAllocateMax    = 64 << 20
)

func (l *Log) configure(c LogConfig) {
	if c.SegmentBytes <= 0 || c.SegmentIndexBytes < 2*timeEntrySize || c.IndexIntervalBytes < 0 {
		panic(fmt.Sprintf("store: a log without room for a batch: segment %d, index %d bytes", c.SegmentBytes, c.SegmentIndexBytes))
	}
	if c.AppendWriteMin <= 0 {
		c.AppendWriteMin = defaultAppendWriteMin
	}
	if c.AllocateMin <= 0 {
		c.AllocateMin = defaultAllocateMin
	}
	if c.AllocateMax < c.AllocateMin {
		c.AllocateMax = max(defaultAllocateMax, c.AllocateMin)
	}
	l.cfg = c
	l.growth = growthPolicy{min: c.AllocateMin, max: c.AllocateMax, limit: int64(c.SegmentBytes), whole: c.Preallocate}
}

// usable is nil while the log can be used.
func (l *Log) usable() error {
	if l.closed {
		return fmt.Errorf("the log of %s: %w", l.o.Partition, ErrClosed)
	}
	if e := l.obstructed.Load(); e != nil {
		return e
	}
	return l.health.check()
}

// Partition is the partition that the log holds.
func (l *Log) Partition() ident.TopicPartition { return l.o.Partition }

// Topic is the id of the partition's topic.
func (l *Log) Topic() ident.TopicID { return l.o.Topic }

// Start is the first offset that may be read.
func (l *Log) Start() ident.Offset { return l.start }

// End is the offset that the next batch gets.
func (l *Log) End() ident.Offset { return l.end }

// Flushed is the offset below which everything is on disk.
func (l *Log) Flushed() ident.Offset { return l.flushed }

// Generation is the current generation.
func (l *Log) Generation() ident.Generation { return l.generation }

// Size is the number of bytes of batches in the log's segments.
func (l *Log) Size() int64 { return l.closedSize + l.active.size }

// Segments is the number of segments.
func (l *Log) Segments() int { return len(l.segments) }

// LastEpoch is the epoch of the last batch or assignment, NoLeaderEpoch when none.
func (l *Log) LastEpoch() ident.LeaderEpoch { return l.epochs.last() }

// EpochEnd answers OffsetForLeaderEpoch: the largest epoch at or below e that the
// log has, and the offset after its last record. (-1, -1) when e is unknown here.
func (l *Log) EpochEnd(e ident.LeaderEpoch) (ident.LeaderEpoch, ident.Offset) {
	return l.epochs.end(e, l.end)
}

// EpochOf is the epoch of the record at offset o, by the epoch file.
func (l *Log) EpochOf(o ident.Offset) ident.LeaderEpoch { return l.epochs.of(o) }

// Epochs appends the epochs of the log to dst, ascending.
func (l *Log) Epochs(dst []Epoch) []Epoch { return append(dst, l.epochs.list...) }

// AssignEpoch notes that e begins at start: a leader does so when it is elected,
// before its first append. Append does it by itself for each new epoch.
func (l *Log) AssignEpoch(e ident.LeaderEpoch, start ident.Offset) {
	if l.epochs.assign(e, start) {
		l.epochsChanged()
		l.remember()
	}
}

// CutEpochs forgets the epochs that begin at or above o, which hold no batch: the
// leaderships of this replica in which it wrote nothing. A follower does so before it
// asks its leader, whose next batch may be of an older epoch.
func (l *Log) CutEpochs(o ident.Offset) {
	n := len(l.epochs.list)
	if l.epochs.cutEnd(max(o, l.end)); len(l.epochs.list) != n {
		l.epochsChanged()
		l.remember()
	}
}

// epochsChanged leaves the epoch file to the next sync.
func (l *Log) epochsChanged() {
	l.dirty.epochs = true
	l.epochsChanges++
}

// epochsLost says that the epoch file is not to be believed at all.
func (l *Log) epochsLost() {
	l.epochsChanged()
	l.epochsChanges++
}

// segmentAt is the index of the segment that may hold offset o: the last one that
// begins at or below it; -1 when o is below all.
func (l *Log) segmentAt(o ident.Offset) int {
	if n := len(l.segments) - 1; n >= 0 && l.segments[n].base <= o {
		return n
	}
	i, found := slices.BinarySearchFunc(l.segments, o, func(s *segment, want ident.Offset) int {
		switch {
		case s.base < want:
			return -1
		case s.base > want:
			return +1
		}
		return 0
	})
	if found {
		return i
	}
	return i - 1
}

// remember writes the end of the log into the control block.
func (l *Log) remember() {
	if l.slot == nil || l.health.check() != nil {
		return
	}
	l.slotState.base = l.active.base
	l.slotState.size = l.active.size
	l.slotState.end = l.end
	l.slotState.flushed = l.mark()
	l.slotState.epoch = l.epochs.newest()
	l.slotState.behind = l.epochsChanges > l.epochsWritten+1
	l.slotState.bare = l.bare
	l.slot.put(&l.slotState)
}

// Confessed says that whoever counts on the log has heard that it is not whole (Recovery.Whole). Until then each opening of it finds that again, also after a
// death of the process: what this one has cut, or not found, the next one cannot miss.
func (l *Log) Confessed() {
	if l.slotState.lacking {
		l.slotState.lacking = false
		l.remember()
	}
}

// rememberFile writes into the control block which file is the active one.
func (l *Log) rememberFile() error {
	if l.slot == nil {
		return nil
	}
	if err := l.reach(l.active); err != nil {
		return err
	}
	id, err := l.active.file.file.Identity()
	if err != nil {
		return err
	}
	l.slotState.log = logKey(l.o.Topic, l.o.Partition.Partition)
	l.slotState.file = fileKey(id)
	l.remember()
	return nil
}

// Close closes the log. clean syncs everything first and leaves the files ending
// where the log ends, with a snapshot of the producers at the end; after an error
// the directory must not be called clean. Regions that are still held stay
// readable.
func (l *Log) Close(clean bool) error {
	if l.closed {
		return nil
	}
	var err error
	if clean {
		err = l.closeClean()
	}
	l.abandonSwaps()
	l.closed = true
	err = errors.Join(err, l.releaseAll())
	if l.o.onClose != nil {
		l.o.onClose(l, clean && err == nil)
	}
	return err
}

// errShareOut says that the end of the log must not count as durable yet.
var errShareOut = errors.New("a share of the log is still to be synced")

// closeClean brings the files into the state that RecoverClean expects.
func (l *Log) closeClean() error {
	if err := l.usable(); err != nil {
		return err
	}
	if l.out > 0 {
		return errShareOut
	}
	if l.untouched() {
		return nil
	}
	if err := errors.Join(l.finishSwaps(), l.wake(), l.takeUndone()); err != nil {
		return err
	}
	if err := l.snapshotProducers(); err != nil {
		return err
	}
	if err := l.active.close(); err != nil {
		return l.sift(err, "close "+l.active.name(suffixLog))
	}
	if err := errors.Join(l.soil(l.active), l.sift(l.dirty.name(l.o.FS, l.o.Path), "open "+l.o.Path)); err != nil {
		return err
	}
	work, _ := l.beginSync(true)
	_, _, err := l.Synced(work.do())
	return err
}

// releaseAll gives up all files.
func (l *Log) releaseAll() error {
	var err error
	for _, s := range l.segments {
		err = errors.Join(err, s.release())
	}
	l.noteAsleep()
	return errors.Join(err, l.dirty.release())
}
