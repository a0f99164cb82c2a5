package store

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// How a log is compacted. A run reads the dirty part of the log and notes the last
// offset of each key (cleanmap.go); then it writes the closed segments anew without the
// records that a later one of their key stands for, group by group (cleangroup.go); and
// puts each group in the place of its sources (cleanswap.go). All but the latter happens
// off the owner's turn, on files that nobody changes:
//
//	owner                               cleaner
//	-----                               -------
//	run := log.BeginClean(now, bound)
//	                                    run.Work(now)   CleanAgain: the keys are noted
//	                                    run.Work(now)   CleanSwap: a group is written
//	log.SwapCleaned(run)                                …
//	                                    run.Work(now)   CleanDone
//	log.EndClean(run)
//
// What is dirty is a matter of economy, so that the offset up to which the log is clean
// is a cache. That a record is readable until a later one of its key is, and a tombstone
// for delete.retention.ms after what it deletes has gone, is a promise: groups are
// swapped from the oldest to the newest, on disk too, and a tombstone's time begins with
// the first run that knew it to be its key's last record.

// ErrCleanAborted says that a run has lost its point: the segments it read are not the
// log's any more, or the log is not to be compacted any more. Nothing has changed.
var ErrCleanAborted = errors.New("the compaction was aborted")

// Cleanable tells what a compaction of a log would find.
type Cleanable struct {
	From, To ident.Offset // the dirty part that may be cleaned now
	Clean    int64        // bytes of segments below From
	Dirty    int64        // bytes of segments from From to To
	// Overdue is how long, in milliseconds, the oldest dirty record has waited beyond
	// max.compaction.lag.ms; 0: it has not.
	Overdue int64
	// Due tells that it should be cleaned: the ratio exceeds
	// min.cleanable.dirty.ratio, or something is overdue.
	Due bool
}

// Ratio is the dirty share of the bytes.
func (c Cleanable) Ratio() float64 {
	if c.Dirty == 0 {
		return 0
	}
	return float64(c.Dirty) / float64(c.Clean+c.Dirty)
}

// CleanOptions bounds what a run may use.
type CleanOptions struct {
	MapBytes    int64   // of keys: log.cleaner.dedupe.buffer.size; what does not fit is left to the next run
	LoadFactor  float64 // log.cleaner.io.buffer.load.factor
	BufferBytes int     // for reading, and for writing: log.cleaner.io.buffer.size; one batch always fits
	// Throttle hears of each piece of bytes read or written, off the owner's turn, and
	// may wait. Nil: no limit.
	Throttle func(bytes int)
}

// CleanStats is what a run did.
type CleanStats struct {
	From, To     ident.Offset // the dirty part that is clean now
	BytesRead    int64
	BytesWritten int64
	Records      int64 // read in the second pass
	Dropped      int64 // of them, without another to stand for them being lost
	Keyless      int64 // of the dropped, records without a key
	Segments     int   // that were replaced
	Full         bool  // the keys did not fit; there is more to do
}

// CleanRun is one compaction of one log. Its Work may be called from any goroutine, by
// one at a time; the rest is the log's owner's.
type CleanRun struct {
	log       *Log // of which Work uses only what does not change
	o         CleanOptions
	cfg       LogConfig
	from, to  ident.Offset
	start     ident.Offset // of the log, when the run began
	epochs    epochs       // likewise
	sources   []cleanSource
	producers map[ident.ProducerID]ident.Offset // active ones, and their last offset
	cancelled atomic.Bool
	repaired  int64 // of the log, when the run began

	keys      *keyMap
	end       ident.Offset                      // below it the keys are noted
	lastDirty map[ident.ProducerID]ident.Offset // last offset of active producers in [from, end)
	groups    [][]cleanSource
	ready     *cleaned // written, waits for SwapCleaned
	buffer    []byte
	large     []byte
	filter    record.Filter
	stats     CleanStats
	bad       OffsetRange
}

// cleanSource is a segment that a run reads.
type cleanSource struct {
	segment *segment // for its identity only, off the owner's turn
	name    string
	base    ident.Offset
	size    int64
	next    ident.Offset // base of the segment behind it
}

// CleanStep is what is to be done next for a run.
type CleanStep uint8

const (
	// CleanAgain: Work is to be called again.
	CleanAgain CleanStep = iota
	// CleanSwap: the owner is to call SwapCleaned, then Work again.
	CleanSwap
	// CleanDone: the owner is to call EndClean.
	CleanDone
)

// Cleanable looks whether the log needs compaction. bound is below the high watermark
// and the last stable offset; what is not flushed is not touched either. It may read a
// header of each dirty segment when a compaction lag is configured, and then remembers
// what it saw; see CleanWaits.
func (l *Log) Cleanable(now ident.Millis, bound ident.Offset) (Cleanable, error) {
	if err := l.usable(); err != nil {
		return Cleanable{}, err
	}
	l.settle()
	bound = min(bound, l.flushed)
	c := Cleanable{From: l.firstDirty()}
	c.To = c.From
	if !l.cfg.Compact {
		return c, nil
	}
	for i := max(l.segmentAt(l.start), 0); i < len(l.segments)-1; i++ {
		s, next := l.segments[i], l.segments[i+1].base
		if next > bound {
			break
		}
		if next <= c.From {
			c.Clean += s.size
			continue
		}
		young, overdue, err := l.lags(s, now)
		if err != nil {
			return c, err
		}
		if young {
			break
		}
		c.To = next
		c.Dirty += s.size
		c.Overdue = max(c.Overdue, overdue)
	}
	c.Due = c.Dirty > 0 && (c.Ratio() > l.cfg.MinCleanableRatio || c.Overdue > 0)
	return c, nil
}

// CleanWaits tells whether Cleanable, and with it BeginClean, would have to wait for the
// disk. Cleanable, by somebody who may wait, spares them that.
func (l *Log) CleanWaits(now ident.Millis, bound ident.Offset) bool {
	if l.usable() != nil {
		return false
	}
	l.hurried = true
	_, err := l.Cleanable(now, bound)
	l.hurried = false
	return errors.Is(err, ErrWouldWait)
}

// lags looks at the times of a dirty segment: whether it is too young to be cleaned, and
// for how many milliseconds it should have been.
func (l *Log) lags(s *segment, now ident.Millis) (young bool, overdue int64, err error) {
	if l.cfg.MinCompactionLagMs > 0 {
		top, err := l.topOf(s)
		if err != nil {
			return false, 0, err
		}
		if int64(now)-int64(top.timestamp) < l.cfg.MinCompactionLagMs {
			return true, 0, nil
		}
	}
	if most := l.cfg.MaxCompactionLagMs; most > 0 && most < math.MaxInt64 && s.size > 0 {
		if s.first == ident.NoTimestamp {
			h, err := l.headerAt(s, 0)
			if errors.Is(err, ErrDamaged) && !l.hurried {
				err = errors.Join(err, l.condemnAt(s, 0, s.base))
			}
			if err != nil {
				return false, 0, err
			}
			s.first = h.MaxTimestamp()
		}
		if s.first > 0 {
			overdue = max(int64(now)-int64(s.first)-most, 0)
		}
	}
	return false, overdue, nil
}

// firstDirty is where the dirty part begins.
func (l *Log) firstDirty() ident.Offset {
	if l.cleaned < l.start || l.cleaned > l.end {
		return l.start
	}
	return l.cleaned
}

// dirtyFrom notes that what lies at o and above goes, and others may come.
func (l *Log) dirtyFrom(o ident.Offset) {
	l.cleaned = min(l.cleaned, o)
	l.standing.cleaned.Store(int64(l.cleaned))
}

// findDirty takes over what the directory remembers of the log that was opened. A log
// that was made now has nothing to do with a former one of its name. It tells whether less is clean than was remembered.
func (l *Log) findDirty(created bool) (less bool) {
	was := ident.Offset(l.standing.cleaned.Load())
	l.cleaned = was
	if created || l.cleaned > l.end {
		l.cleaned = l.start
	}
	l.standing.cleaned.Store(int64(l.cleaned))
	return l.cleaned < was
}

// BeginClean begins a compaction of what Cleanable has found; nil when there is nothing,
// or the run before is not on disk yet. An error says that the log cannot be compacted:
// a damaged batch must not decide what is dropped.
func (l *Log) BeginClean(now ident.Millis, bound ident.Offset, o CleanOptions) (*CleanRun, error) {
	c, err := l.Cleanable(now, bound)
	if err != nil || c.Dirty == 0 || len(l.swaps) > 0 {
		return nil, err
	}
	for _, h := range l.holes {
		if h.To > l.start && h.From < c.To {
			return nil, &Error{
				Code:    CodeDamaged,
				Message: fmt.Sprintf("%s is not compacted: its offsets [%d, %d) are damaged; restore the partition from a replica or a backup, or delete the records below %d", l.o.Partition, h.From, h.To, h.To),
				Err:     ErrDamaged,
			}
		}
	}
	r := &CleanRun{
		log: l, o: o, cfg: l.cfg, from: c.From, to: c.To, start: l.start, epochs: epochs{slices.Clone(l.epochs.list)},
		producers: make(map[ident.ProducerID]ident.Offset), lastDirty: make(map[ident.ProducerID]ident.Offset), repaired: l.repaired.Load(),
	}
	r.stats.From, r.stats.To = c.From, c.From
	for i := max(l.segmentAt(l.start), 0); i < len(l.segments)-1 && l.segments[i].base < c.To; i++ {
		s := l.segments[i]
		r.sources = append(r.sources, cleanSource{s, s.name(suffixLog), s.base, s.size, l.segments[i+1].base})
	}
	if l.o.Producers != nil {
		for _, p := range l.o.Producers(nil) {
			r.producers[p.ProducerID] = p.LastOffset
		}
	}
	return r, nil
}

// Unsound is what Work has found damaged, with ErrDamaged; empty when the bytes are as
// they were written, and only not understood. The owner should Condemn it.
func (r *CleanRun) Unsound() OffsetRange { return r.bad }

// Cancel makes Work stop at the next batch, from any goroutine.
func (r *CleanRun) Cancel() { r.cancelled.Store(true) }

// Cancelled tells whether the run is to stop, to any goroutine: it was cancelled, or a
// repair counts on what is there now, or has put another file in the place of one that it
// reads by its name. What a run that was cancelled has met is not to be believed.
func (r *CleanRun) Cancelled() bool {
	return r.cancelled.Load() || r.log.repaired.Load() != r.repaired
}

// Abandon ends a run whose log's owner is gone. It may be called in place of EndClean
// from any goroutine that has the run to itself.
func (r *CleanRun) Abandon() {
	r.Cancel()
	r.log.onFailed(r.discard())
}

// SwapCleaned puts the group that Work has written in the place of its sources. The
// files follow in the background; a crash leaves one or the other. ErrCleanAborted:
// another truncation, retention, or a changed policy was first; the run is over.
func (l *Log) SwapCleaned(r *CleanRun, now ident.Millis) error {
	if err := l.usable(); err != nil {
		r.Cancel()
		return errors.Join(err, r.discard())
	}
	l.settle()
	g := r.ready
	i := l.segmentAt(g.sources[0].base)
	if r.Cancelled() || !l.cfg.Compact || !l.still(i, g.sources) {
		r.Cancel()
		return errors.Join(ErrCleanAborted, r.discard())
	}
	r.ready = nil
	n := len(g.sources)
	w := &swap{base: g.sources[0].base, suffix: suffixCleaned}
	var err error
	for _, s := range l.segments[i : i+n] {
		l.closedSize -= s.size
		l.opened = slices.DeleteFunc(l.opened, func(x *segment) bool { return x == s })
		err = errors.Join(err, s.release())
		w.sources = append(w.sources, s.base)
		l.doomed = append(l.doomed, doomedSegment{s.base, now + ident.Millis(l.cfg.FileDeleteDelayMs)})
	}
	g.segment.end = l.segments[i+n-1].end // its last batch stays, if only by its header
	l.segments = slices.Replace(l.segments, i, i+n, g.segment)
	l.holes = slices.DeleteFunc(l.holes, func(h hole) bool { return slices.Contains(w.sources, h.base) }) // below the start: nothing of it was copied
	l.closedSize += g.segment.size
	l.shapes++
	l.resume.clear()
	r.stats.Segments += n
	l.beginSwap(w, g.segment)
	return l.sift(err, "close a segment")
}

// still tells whether the sources are the log's segments from index i on, unchanged and
// undamaged.
func (l *Log) still(i int, sources []cleanSource) bool {
	if i < 0 || i+len(sources) >= len(l.segments) {
		return false
	}
	for n, want := range sources {
		if s := l.segments[i+n]; s != want.segment || s.size != want.size {
			return false
		}
	}
	last := sources[len(sources)-1].next
	return !slices.ContainsFunc(l.holes, func(h hole) bool { return h.To > max(sources[0].base, l.start) && h.From < last })
}

// EndClean ends a run. After CleanDone the log is clean up to the stats' To; after
// anything else what was swapped stays, and the rest is done again by the next run.
func (l *Log) EndClean(r *CleanRun) CleanStats {
	over := r.Cancelled() // what a repair has put in is not clean
	r.Abandon()
	if !over && !l.closed && r.stats.To > r.from && l.cfg.Compact {
		l.cleaned = min(max(l.firstDirty(), r.stats.To), l.end)
		l.settle()
		l.saveEnds()
	}
	return r.stats
}

// FirstDirty is the offset below which every key has one record, as far as the last
// compaction could see.
func (l *Log) FirstDirty() ident.Offset { return l.firstDirty() }
