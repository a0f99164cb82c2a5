package store

import (
	"errors"
	"fmt"
	"os"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// cleanBuffer is the least size in bytes of a run's buffers.
const cleanBuffer = 64 << 10

// Work does the next piece of the run: it notes the keys, or writes a group. It waits
// for the disk. now is the wall clock; a tombstone that is seen for the first time can
// go delete.retention.ms later. After an error the owner calls EndClean; ErrDamaged: a
// batch is unsound, and the log is not to be compacted until it is mended.
func (r *CleanRun) Work(now ident.Millis) (CleanStep, error) {
	if r.ready != nil {
		panic("store: a cleaned group was passed over")
	}
	if err := r.proceed(); err != nil {
		return CleanDone, err
	}
	if r.buffer == nil {
		r.buffer = make([]byte, max(r.o.BufferBytes/2, cleanBuffer))
	}
	if r.keys == nil {
		if err := r.note(); err != nil {
			return CleanDone, err
		}
		r.groups = r.group()
		return CleanAgain, nil
	}
	if len(r.groups) == 0 {
		r.stats.To = r.end
		return CleanDone, nil
	}
	group := r.groups[0]
	if err := r.write(group, now); err != nil {
		return CleanDone, errors.Join(err, r.discard())
	}
	r.groups = r.groups[1:]
	if r.ready == nil {
		return CleanAgain, nil
	}
	return CleanSwap, nil
}

// proceed is an error when the run is to stop.
func (r *CleanRun) proceed() error {
	if r.Cancelled() {
		return ErrCleanAborted
	}
	return r.log.health.check()
}

func (r *CleanRun) sift(err error, doing string) error {
	return r.log.siftAside(err, ErrCleanAborted, doing)
}

// note fills the key map from the dirty part, as far as it fits.
func (r *CleanRun) note() error {
	r.keys = newKeyMap(r.o.MapBytes, r.o.LoadFactor, int64(r.to-r.from))
	r.end = r.from
	for _, s := range r.sources {
		if s.next <= r.from {
			continue
		}
		full, err := r.noteSegment(s)
		if err != nil {
			return err
		}
		if full {
			r.stats.Full = true
			return nil
		}
		r.end = s.next
	}
	return nil
}

// noteSegment notes the keys of one segment. When the map is full, end is the offset of
// the record that did not fit: a batch may have noted records on both sides of it.
func (r *CleanRun) noteSegment(s cleanSource) (full bool, err error) {
	err = r.read(s, func(v record.View, _ bool) error {
		if v.LastOffset() < r.from {
			return nil
		}
		full, err := r.noteBatch(v)
		switch {
		case err != nil:
			return r.damaged(s, v, err)
		case full:
			return errFull
		}
		r.end = v.NextOffset()
		return nil
	})
	if errors.Is(err, errFull) {
		return true, nil
	}
	return false, err
}

// errFull ends a read when the map is full.
var errFull = errors.New("the keys do not fit")

func (r *CleanRun) noteBatch(v record.View) (full bool, err error) {
	if compactible(v) {
		var it record.Iterator
		defer it.Close()
		if err := it.Reset(v, record.Bound{}); err != nil {
			return false, err
		}
		for it.Next() {
			rec := it.Record()
			if rec.Offset < r.from {
				continue
			}
			if rec.Key != nil && !r.keys.put(rec.Key, rec.Offset) {
				return true, nil
			}
			r.end = rec.Offset + 1
		}
		if err := it.Err(); err != nil {
			return false, err
		}
	}
	if id := v.ProducerID(); id >= 0 && v.BaseSequence() != ident.NoSequence {
		if _, active := r.producers[id]; active {
			r.lastDirty[id] = v.LastOffset()
		}
	}
	return false, nil
}

// compactible tells whether the records of a batch take part in compaction. Markers
// never do, whatever their bytes look like; nor do records of transactions, for which
// only the markers behind them say whether they count.
func compactible(v record.View) bool {
	a := v.Attributes()
	return !a.Control() && !a.Transactional() && v.Count() > 0
}

// read shows the batches of a source, whole and with a right checksum. last tells that
// nothing follows. The view is valid during the call.
func (r *CleanRun) read(s cleanSource, show func(v record.View, last bool) error) error {
	if s.size == 0 {
		return nil
	}
	f, err := r.log.o.FS.OpenFile(s.name, os.O_RDONLY, 0)
	if err != nil {
		if isNotExist(err) {
			return fmt.Errorf("%s has gone: %w", s.name, ErrCleanAborted)
		}
		return r.sift(err, "open "+s.name)
	}
	err = r.readFile(f, s, show)
	return errors.Join(err, r.sift(f.Close(), "close "+s.name))
}

func (r *CleanRun) readFile(f File, s cleanSource, show func(v record.View, last bool) error) error {
	sc := newScanner(r.buffer, f, 0, s.size, s.base)
	sc.check, sc.upTo, sc.epochs = true, s.next, &r.epochs
	for {
		if err := r.proceed(); err != nil {
			return err
		}
		v, at, err := sc.batch()
		switch {
		case errors.Is(err, errScanEnd):
			return nil
		case isIOFailure(err):
			return r.sift(err, "read "+s.name)
		case err != nil:
			h, rerr := sc.resync(s.base, s.next)
			if rerr != nil {
				return r.sift(rerr, "read "+s.name)
			}
			if h.To <= r.start { // nobody reads it any more
				continue
			}
			r.bad = h.OffsetRange
			return r.unsound(s, h.OffsetRange, err)
		}
		size := int(sc.pos - at)
		if len(v) < size {
			// The scanner has seen the checksum in pieces; the bytes are wanted in one.
			if v, err = r.whole(f, s, at, size); err != nil {
				return err
			}
		}
		r.stats.BytesRead += int64(size)
		if r.o.Throttle != nil {
			r.o.Throttle(size)
		}
		if err := show(v, sc.pos == s.size); err != nil {
			return err
		}
	}
}

// whole reads a batch that is larger than the buffer.
func (r *CleanRun) whole(f File, s cleanSource, at int64, size int) (record.View, error) {
	if cap(r.large) < size {
		r.large = make([]byte, size)
	}
	v := record.View(r.large[:size])
	if _, err := f.ReadAt(v, at); err != nil {
		return nil, r.sift(err, "read "+s.name)
	}
	if err := v.VerifyCRC(); err != nil {
		r.bad = OffsetRange{v.BaseOffset(), v.NextOffset()}
		return nil, r.damaged(s, v, err)
	}
	return v, nil
}

func (r *CleanRun) damaged(s cleanSource, v record.View, cause error) error {
	return r.unsound(s, OffsetRange{v.BaseOffset(), v.NextOffset()}, cause)
}

// unsound is the error of bytes that must not decide what is dropped.
func (r *CleanRun) unsound(s cleanSource, at OffsetRange, cause error) error {
	return &Error{
		Code: CodeDamaged,
		Message: fmt.Sprintf("the batch at offset %d of %s, in %s, is unsound: %v; %s is not compacted any more, and nothing was dropped: restore the partition from a replica or a backup, or delete the records below %d",
			at.From, r.log.o.Partition, s.name, cause, r.log.o.Partition, at.To),
		Err: errors.Join(ErrDamaged, cause),
	}
}
