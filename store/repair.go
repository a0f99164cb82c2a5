package store

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// How a damaged range is mended, with the batches of a healthy replica. What is sound of the segment around it is copied into a new file, the batches go
// between, and the new segment takes the place of the old one as a compacted one does (cleanswap.go): a crash leaves one or the other. A range whose file is
// gone becomes a segment of its own. All but the first and the last step happens off the owner's turn, on files that nobody changes:
//
//	owner                                worker
//	-----                                ------
//	r := log.BeginRepair(from, now)
//	                                     r.Work()              RepairAgain, until what lies before the range is copied
//	                                     r.Work()              RepairWants
//	                                     r.Put(batches, next)  again and again, until
//	                                     r.Work()              RepairAgain, until what lies behind is copied
//	                                     r.Work()              RepairReady: all of it is on disk
//	log.SwapRepaired(r, now)

// ErrRepairOver says that a repair has lost its point: the segment or the range are not what they were. Nothing has changed.
var ErrRepairOver = errors.New("the repair is over: the log has changed")

// RepairStep says what a repair needs next.
type RepairStep uint8

const (
	// RepairAgain: more of Work.
	RepairAgain RepairStep = iota
	// RepairWants: batches from Wants on, by Put.
	RepairWants
	// RepairReady: SwapRepaired, by the owner.
	RepairReady
)

// Repair mends one damaged range. Its methods but for Abandon are called by one goroutine at a time.
type Repair struct {
	log    *Log
	hole   hole
	from   ident.Offset // of the hole, or the log start in it
	start  ident.Offset // of the log: a batch may begin below it
	epochs epochs
	limit  int64 // bytes of a segment of its own
	every  int32 // index.interval.bytes
	now    ident.Millis

	source *segment // nil: the range becomes a segment of its own
	name   string   // of the source's file
	size   int64    // bytes of batches of the source
	others []hole   // of the source, ascending

	segment *segment // nil until there is a file
	next    ident.Offset
	epoch   ident.LeaderEpoch
	full    bool // what is left of the range is for another repair

	// Of a log that may have been compacted.
	compacted  bool
	behindIt   []*looked    // the segments behind the range, that of the range first; nil: they were looked at
	upTo       ident.Offset // from the segment that begins here on, no record is missing
	first      ident.Offset // where the log's first segment begins
	renewal    *renewal     // nil: the range alone is fetched
	indexBytes int32

	behind bool // the range is there, and what is behind it is being copied
	at     int64
	gone   int64        // bytes of the source that lie below the log start, in front of all that was copied
	order  ident.Offset // after the last batch that was copied
	bound  ident.Offset // where the source's offsets end
	bad    OffsetRange
	buf    []byte
}

// suffixRepaired is ours: a segment that a repair is writing. It is dropped when it is found.
const suffixRepaired = ".repaired"

// repairStep is how many bytes of the source one call of Work copies at least, unless it ends.
const repairStep = 4 << 20

// BeginRepair begins to mend the first damaged range that ends above from; nil when there is none, or the files of a compaction or of another repair have not got
// their names yet. When the range is in the active segment, that is closed.
func (l *Log) BeginRepair(from ident.Offset, now ident.Millis) (*Repair, error) {
	if err := l.usable(); err != nil {
		return nil, err
	}
	l.settle()
	i := slices.IndexFunc(l.holes, func(h hole) bool { return h.To > max(from, l.start) })
	if i < 0 || len(l.swaps) > 0 || len(l.leaving) > 0 {
		return nil, nil
	}
	if l.rollFirst.Swap(false) {
		if err := l.Roll(now); err != nil {
			return nil, err
		}
	}
	h := l.holes[i]
	at := slices.IndexFunc(l.segments, func(s *segment) bool { return s.base == h.base })
	if at < 0 {
		return nil, fmt.Errorf("the segment at %d has gone: %w", h.base, ErrRepairOver)
	}
	s := l.segments[at]
	// Else it is a gap behind all that the segment has.
	inside := h.To > s.base && (h.pos < s.size || h.From <= s.base)
	if inside && s == l.active {
		if err := l.Roll(now); err != nil {
			return nil, err
		}
		if s == l.active {
			return nil, fmt.Errorf("the segment at %d is empty: %w", h.base, ErrRepairOver)
		}
	}
	r := &Repair{
		log: l, hole: h, from: max(h.From, l.start), start: l.start, limit: int64(l.cfg.SegmentBytes), every: l.cfg.IndexIntervalBytes, now: now, epoch: ident.NoLeaderEpoch,
		epochs: epochs{list: slices.Clone(l.epochs.list)},
	}
	r.next = r.from
	if inside {
		r.source, r.name, r.size, r.order, r.bound = s, s.name(suffixLog), s.size, s.base, l.behind(s)
		r.others = l.holesBeside(h)
	}
	if r.compacted = l.compactable(); r.compacted {
		l.repaired.Add(1)   // a run that is under way must not take away what is found to be there
		l.dirtyFrom(r.from) // what comes need not be compacted; none begins while there is damage
		r.behindIt, r.upTo, r.first, r.indexBytes = l.lookBehind(h, inside), l.end, min(l.segments[0].base, l.start), l.cfg.SegmentIndexBytes
	}
	return r, nil
}

// holesBeside are the other holes of a hole's segment.
func (l *Log) holesBeside(h hole) []hole {
	var list []hole
	for _, o := range l.holes {
		if o.base == h.base && o != h {
			list = append(list, o)
		}
	}
	return list
}

// Range is what is being mended.
func (r *Repair) Range() OffsetRange { return OffsetRange{r.from, r.hole.To} }

// Wants is the offset from which on batches are wanted, and the one at which they have to end.
func (r *Repair) Wants() OffsetRange {
	if r.renewal != nil {
		return OffsetRange{r.next, r.upTo}
	}
	return OffsetRange{r.next, r.hole.To}
}

// Unsound is what Work has found damaged beside the range, with ErrDamaged. The owner should Condemn it.
func (r *Repair) Unsound() OffsetRange { return r.bad }

// Work does the next piece. It waits for the disk. After an error the caller calls Abandon. Errors: ErrDamaged, ErrNoSpace, ErrRepairOver, or the disk's.
func (r *Repair) Work() (RepairStep, error) {
	if err := r.log.health.check(); err != nil {
		return RepairReady, err
	}
	if len(r.behindIt) > 0 {
		return RepairAgain, r.lookFurther()
	}
	if r.renewal != nil {
		return r.renewWork()
	}
	if r.segment == nil && r.source != nil {
		if err := r.create(r.source.base, suffixRepaired); err != nil {
			return RepairReady, err
		}
	}
	if r.source != nil && !r.behind && r.at < r.hole.pos {
		return RepairAgain, r.copy(r.hole.pos)
	}
	if r.source != nil && !r.behind {
		// Who came upon the range may have been misled about where it begins, by a length that was wrong then: what is sound of it was copied.
		r.next = max(r.next, min(r.order, r.hole.To))
	}
	if !r.behind && !r.full && r.next < r.hole.To {
		return RepairWants, nil
	}
	if r.source != nil && !r.behind {
		r.behind, r.at, r.order = true, r.hole.to, r.hole.To
	}
	if r.source != nil && r.at < r.size {
		return RepairAgain, r.copy(r.size)
	}
	if r.segment == nil {
		return RepairReady, nil // the healthy replica has nothing there either
	}
	return RepairReady, r.sift(r.finish(), "write "+r.segment.file.file.Name())
}

// create makes the file. The lock keeps it from appearing in the directory of another log that has the name now.
func (r *Repair) create(base ident.Offset, suffix string) error {
	l := r.log
	s := newSegment(l.o.FS, l.o.Path, base, r.now)
	s.index.name += suffix
	s.times.name += suffix
	l.shared.Lock()
	defer l.shared.Unlock()
	if l.shared.gone || l.shared.closed {
		return ErrRepairOver
	}
	if err := removeSegment(l.o.FS, l.o.Path, base, suffix); err != nil {
		return l.health.siftOne(err, "make room for a repaired segment")
	}
	if r.renewal != nil && len(r.renewal.parts) == 0 {
		// A process that died may have left the end of another renewal in memory only: after a loss of power its list would name what is written now.
		if err := syncDir(l.o.FS, l.o.Path); err != nil {
			return l.health.siftOne(err, "sync "+l.o.Path)
		}
	}
	name := s.name(suffixLog) + suffix
	sf, err := openSegmentFile(l.o.FS, name, os.O_RDWR|os.O_CREATE|os.O_EXCL, l.onFail)
	if err != nil {
		return l.health.siftOne(err, "create "+name)
	}
	sf.void, sf.trust = s.void, s.trust
	s.file = sf
	r.segment = s
	return nil
}

func (r *Repair) sift(err error, doing string) error {
	return r.log.siftAside(err, ErrRepairOver, doing)
}

// Put takes batches that a healthy replica has from Wants on, as it sent them; it has none between them, nor behind them below next. They are checked: checksum,
// order, bounds, and that each is of the leader epoch that this log has for its offset, for offset and epoch say which batch it is. Shape is that of the replica's log
// ([Log.Shape]); 0: it does not say. Errors: ErrFormat, ErrNoSpace, ErrRepairOver, or the disk's.
//
// Where compaction has taken something out of a range that was sent, nothing of it is taken: all of the compacted part is wanted then, from its beginning.
func (r *Repair) Put(batches []byte, next ident.Offset, shape uint64) error {
	if r.renewal != nil {
		return r.putRenewed(batches, next, shape)
	}
	if r.compacted {
		whole, err := r.entire(batches, next)
		if err != nil {
			return err
		}
		if !whole {
			return r.renew()
		}
	}
	for len(batches) > 0 {
		v, rest, err := checkedBatch(batches)
		if err != nil {
			return fmt.Errorf("a batch for offset %d: %w", r.next, err)
		}
		if err := r.fits(v); err != nil {
			return err
		}
		if r.segment == nil {
			if err := r.create(min(r.from, v.BaseOffset()), suffixRepaired); err != nil {
				return err
			}
		}
		s := r.segment
		if s.size+int64(len(v)) > r.most() || !s.relative(v.LastOffset()) {
			if s.size == 0 || r.source != nil {
				return fmt.Errorf("the batch at %d does not fit a segment: %w", v.BaseOffset(), ErrFormat)
			}
			r.full = true
			return nil
		}
		if _, err := s.file.file.WriteAt(v, s.size); err != nil {
			return r.sift(err, "write "+s.file.file.Name())
		}
		s.appended(v, len(v), r.every)
		r.next, r.epoch = v.NextOffset(), v.LeaderEpoch()
		batches = rest
	}
	r.next = max(r.next, min(next, r.hole.To))
	return nil
}

// checkedBatch splits off the first batch, and verifies its checksum.
func checkedBatch(batches []byte) (v record.View, rest []byte, err error) {
	v, rest, err = record.Split(batches)
	if err == nil && len(v) < record.HeaderSize {
		err = record.ErrLength
	}
	if err == nil {
		err = v.VerifyCRC()
	}
	if err != nil {
		err = errors.Join(ErrFormat, err)
	}
	return v, rest, err
}

// most is how large the segment may get.
func (r *Repair) most() int64 {
	if r.source != nil {
		return math.MaxInt32
	}
	return r.limit
}

// fits checks that a batch belongs where it is to go.
func (r *Repair) fits(v record.View) error {
	base, last, epoch, upTo := v.BaseOffset(), v.LastOffset(), r.epochs.of(max(v.BaseOffset(), r.start)), r.Wants().To
	switch {
	case v.Magic() != record.Magic || last < base:
		return fmt.Errorf("what was sent for offset %d is no batch: %w", r.next, ErrFormat)
	case base < r.next && (r.next > r.start || last < r.start) || last >= upTo:
		return fmt.Errorf("a batch with the offsets %d to %d, wanted are [%d, %d): %w", base, last, r.next, upTo, ErrFormat)
	case v.LeaderEpoch() > epoch, v.LeaderEpoch() < epoch && r.renewal == nil, v.LeaderEpoch() < r.epoch:
		// An epoch of this log begins at the lower end of a gap, where another replica may have a batch of an older one yet.
		return fmt.Errorf("the batch at %d is of epoch %d, this log has epoch %d there: %w", base, v.LeaderEpoch(), r.epochs.of(base), ErrFormat)
	}
	return nil
}

// finish makes the segment, its indexes and their names durable.
func (r *Repair) finish() error {
	s, l := r.segment, r.log
	s.file.reserved.Store(s.size)
	s.file.freeze()
	s.believed, s.loaded = len(r.others) == 0, true
	if err := errors.Join(s.finishIndexes(), s.file.file.Sync(), s.times.sync(), s.index.sync()); err != nil {
		return err
	}
	if r.source != nil {
		if err := r.keepAborted(); err != nil {
			return err
		}
	}
	if r.compacted && l.o.persist != nil { // as for a renewal: the word that it is clean must not outlive what was
		if err := l.o.persist(); err != nil {
			return err
		}
	}
	return syncDir(l.o.FS, l.o.Path)
}

// keepAborted takes over the index of aborted transactions, which a log that Kafka has written may have.
func (r *Repair) keepAborted() error {
	name := segmentName(r.log.o.Path, r.source.base, suffixTxnIndex)
	b, err := readFile(r.log.o.FS, name)
	if isNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return writeFile(r.log.o.FS, name+suffixRepaired, b, true)
}

// SwapRepaired puts a repair that is ready in its place, and says what is still damaged of its range: nothing, or what did not fit the segment. The files follow in
// the background, unless the repair [Repair.Renews]: then it waits for the disk. ErrRepairOver: the log has changed meanwhile.
func (l *Log) SwapRepaired(r *Repair, now ident.Millis) (OffsetRange, error) {
	if err := l.usable(); err != nil {
		r.Abandon()
		return OffsetRange{}, err
	}
	l.settle()
	at := slices.IndexFunc(l.holes, func(h hole) bool { return h == r.hole && h.To > l.start })
	if r.segment == nil && r.renewal == nil && at >= 0 { // the healthy replica has nothing there either
		l.holes = slices.Delete(l.holes, at, at+1)
		l.saveDamage()
		return OffsetRange{}, nil
	}
	if r.renewal != nil {
		return l.swapRenewed(r, now)
	}
	s := r.segment
	if at < 0 || len(l.swaps) > 0 || !l.fitsRepaired(r) {
		r.Abandon()
		return OffsetRange{}, ErrRepairOver
	}
	i := l.segmentAt(s.base)
	r.segment = nil
	l.repaired.Add(1) // before a file gets another's name: a compaction may be reading
	w := &swap{base: s.base, suffix: suffixRepaired}
	var err error
	if r.source != nil {
		old := l.segments[i]
		l.closedSize -= old.size
		l.opened = slices.DeleteFunc(l.opened, func(x *segment) bool { return x == old })
		err = old.release()
		w.sources = append(w.sources, old.base)
		l.doomed = append(l.doomed, doomedSegment{old.base, now + ident.Millis(l.cfg.FileDeleteDelayMs)})
		l.segments[i] = s
	} else {
		l.segments = slices.Insert(l.segments, i+1, s)
	}
	l.closedSize += s.size
	left := OffsetRange{r.next, r.hole.To}
	if r.full {
		l.holes[at] = hole{OffsetRange: left, base: s.base, pos: s.size, to: s.size}
	} else {
		left = OffsetRange{}
		l.holes = slices.Delete(l.holes, at, at+1)
	}
	if r.source != nil {
		l.moveHoles(r, s.size)
	}
	l.shapes++
	l.resume.clear()
	l.dirtyFrom(r.from) // the healthy replica need not have compacted what it gave
	l.beginSwap(w, s)
	s.end = max(r.order, min(r.next, r.hole.To))
	l.saveDamage()
	l.saveEnds()
	return left, l.sift(err, "close a segment")
}

// fitsRepaired tells whether the segments around the range are what they were.
func (l *Log) fitsRepaired(r *Repair) bool {
	i := l.segmentAt(r.segment.base)
	if r.source == nil {
		return (i < 0 || l.segments[i].base < r.segment.base) && i+1 < len(l.segments) && l.segments[i+1].base >= r.hole.To
	}
	return i >= 0 && i < len(l.segments)-1 && l.segments[i] == r.source && r.source.size == r.size && slices.Equal(l.holesBeside(r.hole), r.others)
}

// Abandon ends a repair that is not to be swapped, in place of SwapRepaired.
func (r *Repair) Abandon() { r.log.onFailed(r.dropWritten()) }

// dropRepaired removes the files of a repair.
func (l *Log) dropRepaired(base ident.Offset, suffix string) error {
	l.shared.Lock()
	defer l.shared.Unlock()
	if l.shared.gone || l.shared.closed || l.health.check() != nil {
		return nil // the next start tidies the directory
	}
	return l.health.siftOne(removeSegment(l.o.FS, l.o.Path, base, suffix), "remove a repaired segment")
}
