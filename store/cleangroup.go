package store

import (
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// cleaned is a group that was written: one segment, under .cleaned names and durable.
type cleaned struct {
	sources []cleanSource
	segment *segment
}

// group puts the segments that have to be written into groups, each of which becomes one
// segment: small ones grow together again. (Kafka: Cleaner.groupSegmentsBySize)
func (r *CleanRun) group() [][]cleanSource {
	var groups [][]cleanSource
	var sum int64
	for _, s := range r.sources {
		if s.base >= r.end {
			break
		}
		n := len(groups) - 1
		if n >= 0 && len(groups[n]) < groupMax && sum+s.size <= r.groupBytes() && s.next-1-groups[n][0].base <= math.MaxInt32 {
			groups[n] = append(groups[n], s)
			sum += s.size
			continue
		}
		groups = append(groups, []cleanSource{s})
		sum = s.size
	}
	return groups
}

// groupMax bounds the segments of a group: so many renames one swap may take.
const groupMax = 256

// groupBytes is how large the sources of a group may be together, so that neither the
// segment nor its indexes exceed what is configured: an entry costs 12 bytes and stands
// for more than the interval.
func (r *CleanRun) groupBytes() int64 {
	entries := int64(r.cfg.SegmentIndexBytes)/timeEntrySize - 2
	return min(int64(r.cfg.SegmentBytes), entries*(int64(r.cfg.IndexIntervalBytes)+1))
}

// cleanWriter writes one group.
type cleanWriter struct {
	run     *CleanRun
	segment *segment
	pending []byte
	at      int64 // position of pending
	changed bool
	scratch []byte
	now     ident.Millis
}

// write makes the new segment of a group, and leaves it in ready. When there is nothing
// to change, ready stays nil.
func (r *CleanRun) write(group []cleanSource, now ident.Millis) error {
	w := &cleanWriter{run: r, now: now, changed: len(group) > 1}
	if err := w.create(group[0].base); err != nil {
		return err
	}
	r.ready = &cleaned{sources: group, segment: w.segment}
	for i, s := range group {
		final := true
		for _, t := range group[i+1:] {
			final = final && t.size == 0
		}
		if err := r.read(s, func(v record.View, last bool) error { return w.batch(s, v, last && final) }); err != nil {
			return err
		}
	}
	if !w.changed {
		return r.discard()
	}
	return r.sift(w.finish(), "write "+w.segment.file.file.Name())
}

// create makes the file. The lock keeps it from appearing in the directory of another
// log that has the name now.
func (w *cleanWriter) create(base ident.Offset) error {
	l := w.run.log
	s := newSegment(l.o.FS, l.o.Path, base, w.now)
	s.index.name += suffixCleaned
	s.times.name += suffixCleaned
	w.segment = s
	l.shared.Lock()
	defer l.shared.Unlock()
	if l.shared.gone || l.shared.closed {
		return ErrCleanAborted
	}
	if err := removeSegment(l.o.FS, l.o.Path, base, suffixCleaned); err != nil {
		return l.health.siftOne(err, "make room for a cleaned segment")
	}
	name := s.name(suffixLog) + suffixCleaned
	sf, err := openSegmentFile(l.o.FS, name, os.O_RDWR|os.O_CREATE|os.O_EXCL, l.onFail)
	if err != nil {
		return l.health.siftOne(err, "create "+name)
	}
	sf.void, sf.trust = s.void, s.trust
	s.file = sf
	return nil
}

// batch writes what is left of a batch.
func (w *cleanWriter) batch(s cleanSource, v record.View, last bool) error {
	r := w.run
	left, err := w.filtered(v)
	if err != nil {
		return r.damaged(s, v, err)
	}
	if left == nil {
		needed := last || r.remembers(v)
		w.changed = w.changed || v.Count() > 0 || !needed
		if !needed {
			return nil
		}
		left = record.Emptied(w.scratch, v)
		w.scratch = left
	}
	return w.put(left)
}

// filtered is what is left of a batch: the batch itself, another one, or nil.
func (w *cleanWriter) filtered(v record.View) (record.View, error) {
	r := w.run
	switch {
	case !v.Attributes().Control() && v.Count() == 0:
		return nil, nil
	case !compactible(v) || v.BaseOffset() >= r.end:
		return v, nil
	}
	horizon := ident.NoTimestamp
	if v.LastOffset() < r.end {
		horizon = w.now + ident.Millis(min(r.cfg.DeleteRetentionMs, math.MaxInt64-int64(w.now)))
	}
	expired := v.DeleteHorizon() <= w.now
	got, scratch, err := r.filter.Run(w.scratch, v, horizon, func(rec *record.Record) bool { return r.keeps(rec, expired) })
	if err != nil {
		return nil, err
	}
	w.scratch = scratch
	r.stats.Records += int64(got.Kept + got.Dropped)
	r.stats.Dropped += int64(got.Dropped)
	w.changed = w.changed || !got.Same
	return got.Batch, nil
}

// keeps tells whether a record stays. expired: the tombstones of its batch have been
// there for long enough.
func (r *CleanRun) keeps(rec *record.Record, expired bool) bool {
	switch {
	case rec.Offset >= r.end:
		return true
	case rec.Key == nil:
		// What has no key cannot be asked for by it. Kafka drops it, too.
		r.stats.Keyless++
		return false
	case r.keys.get(rec.Key) > rec.Offset:
		return false
	}
	return rec.Value != nil || !expired
}

// remembers tells whether a batch without records is still needed, because it has the
// last sequence of an active producer. One that has written behind the end of this run
// may lose that to a truncation, so that its last batch below the end stays as well.
func (r *CleanRun) remembers(v record.View) bool {
	id := v.ProducerID()
	if id < 0 || v.BaseSequence() == ident.NoSequence {
		return false
	}
	last, active := r.producers[id]
	if !active {
		return false
	}
	at := v.LastOffset()
	return at == last || (last >= r.end && at >= r.lastDirty[id])
}

// put adds a batch to the segment.
func (w *cleanWriter) put(v record.View) error {
	s := w.segment
	if s.size+int64(len(v)) > math.MaxInt32 {
		return fmt.Errorf("%s grows beyond a segment's greatest size: %w", s.file.file.Name(), ErrCleanAborted)
	}
	if len(w.pending) > 0 && len(w.pending)+len(v) > len(w.run.buffer) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	s.appended(v, len(v), w.run.cfg.IndexIntervalBytes)
	w.pending = append(w.pending, v...)
	return nil
}

// flush writes what is pending.
func (w *cleanWriter) flush() error {
	r, f := w.run, w.segment.file.file
	if _, err := f.WriteAt(w.pending, w.at); err != nil {
		return r.sift(err, "write "+f.Name())
	}
	n := len(w.pending)
	w.at += int64(n)
	w.pending = w.pending[:0]
	r.stats.BytesWritten += int64(n)
	if r.o.Throttle != nil {
		r.o.Throttle(n)
	}
	return nil
}

// finish makes the segment, its indexes and their names durable.
func (w *cleanWriter) finish() error {
	s, l := w.segment, w.run.log
	if err := w.flush(); err != nil {
		return err
	}
	s.file.reserved.Store(s.size)
	s.file.freeze()
	s.believed, s.loaded = true, true
	if err := errors.Join(s.finishIndexes(), s.file.file.Sync(), s.times.sync(), s.index.sync(), w.gatherAborted()); err != nil {
		return err
	}
	return syncDir(l.o.FS, l.o.Path)
}

// gatherAborted joins the indexes of aborted transactions, which a log that Kafka has
// written may have. Their entries hold absolute offsets and stay as they are, for no
// record of a transaction is touched.
func (w *cleanWriter) gatherAborted() error {
	l := w.run.log
	var all []byte
	for _, s := range w.run.ready.sources {
		b, err := readFile(l.o.FS, segmentName(l.o.Path, s.base, suffixTxnIndex))
		if err != nil && !isNotExist(err) {
			return err
		}
		all = append(all, b...)
	}
	if len(all) == 0 {
		return nil
	}
	return writeFile(l.o.FS, segmentName(l.o.Path, w.segment.base, suffixTxnIndex)+suffixCleaned, all, true)
}

// discard removes a group that was not swapped.
func (r *CleanRun) discard() error {
	g := r.ready
	if g == nil {
		return nil
	}
	r.ready = nil
	l := r.log
	err := g.segment.release()
	l.shared.Lock()
	defer l.shared.Unlock()
	if !l.shared.gone && !l.shared.closed {
		err = errors.Join(err, removeSegment(l.o.FS, l.o.Path, g.segment.base, suffixCleaned))
	}
	if l.health.check() != nil {
		return nil // the directory is lost, and the next start tidies it
	}
	return l.health.siftOne(err, "remove a cleaned segment")
}
