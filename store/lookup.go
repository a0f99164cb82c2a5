package store

import (
	"errors"
	"fmt"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// TimestampOffset is an answer of a lookup by time.
type TimestampOffset struct {
	Timestamp ident.Millis
	Offset    ident.Offset
	Epoch     ident.LeaderEpoch
}

// OffsetForTimestamp finds the first record in [Start, upTo) with a timestamp at
// or after ts. found is false when there is none. It reads batches, and may wait
// for the disk.
func (l *Log) OffsetForTimestamp(ts ident.Millis, upTo ident.Offset) (at TimestampOffset, found bool, err error) {
	if err := l.usable(); err != nil {
		return at, false, err
	}
	upTo = min(upTo, l.end)
	for i := max(l.segmentAt(l.start), 0); i < len(l.segments); i++ {
		s := l.segments[i]
		if s.base >= upTo {
			break
		}
		top, err := l.topOf(s)
		if err != nil {
			return at, false, err
		}
		if top.timestamp < ts {
			continue
		}
		from, err := l.timed(s, func() (moment, error) { return s.times.before(ts) })
		if err != nil {
			return at, false, err
		}
		at, found, err = l.searchTime(s, ts, max(from.offset, l.start, s.base), upTo)
		if err != nil || found {
			return at, found, err
		}
	}
	return at, false, nil
}

// searchTime looks at the batches of s that end at or above from, below upTo.
func (l *Log) searchTime(s *segment, ts ident.Millis, from, upTo ident.Offset) (at TimestampOffset, found bool, err error) {
	where, err := l.positionOf(s, from)
	if err != nil {
		return at, false, err
	}
	for {
		var h record.View
		where, h, err = l.walk(s, where, func(h record.View, _ int64) bool {
			return h.MaxTimestamp() >= ts || h.BaseOffset() >= upTo
		})
		if err != nil || h == nil || h.BaseOffset() >= upTo {
			return at, false, err
		}
		v, err := l.batchAt(s, where.pos, sizeOf(h))
		if err != nil {
			return at, false, err
		}
		offset, stamp, ok, err := record.FirstAtOrAfter(v, ts, max(from, l.start))
		if err != nil {
			return at, false, l.damaged(s, where.pos, err)
		}
		if ok {
			return TimestampOffset{stamp, offset, v.LeaderEpoch()}, offset < upTo, nil
		}
		where = spot{where.pos + int64(len(v)), v.NextOffset()}
	}
}

// MaxTimestamp finds the first record with the greatest timestamp in [Start, upTo).
// It reads batches, and may wait for the disk.
func (l *Log) MaxTimestamp(upTo ident.Offset) (at TimestampOffset, found bool, err error) {
	if err := l.usable(); err != nil {
		return at, false, err
	}
	upTo = min(upTo, l.end)
	best := moment{timestamp: ident.NoTimestamp}
	var in *segment
	for i := max(l.segmentAt(l.start), 0); i < len(l.segments); i++ {
		s := l.segments[i]
		if s.base >= upTo {
			break
		}
		m, err := l.topBetween(s, upTo)
		if err != nil {
			return at, false, err
		}
		if m.timestamp > best.timestamp {
			best, in = m, s
		}
	}
	if in == nil {
		return at, false, nil
	}
	at, found, err = l.topRecord(in, best)
	if err != nil || found {
		return at, found, err
	}
	return l.maxTimestampOfRecords(upTo)
}

// topRecord is the record with the greatest timestamp of the batch that m names; found
// is false when compaction has left the batch's header only.
func (l *Log) topRecord(s *segment, m moment) (at TimestampOffset, found bool, err error) {
	where, err := l.positionOf(s, m.offset)
	if err != nil {
		return at, false, err
	}
	h, err := l.headerAt(s, where.pos)
	if err != nil {
		return at, false, err
	}
	v, err := l.batchAt(s, where.pos, sizeOf(h))
	if err != nil {
		return at, false, err
	}
	offset, stamp, err := record.MaxTimestamp(v)
	if err != nil {
		return at, false, l.damaged(s, where.pos, err)
	}
	return TimestampOffset{stamp, offset, v.LeaderEpoch()}, offset != ident.NoOffset, nil
}

// maxTimestampOfRecords does what MaxTimestamp does, batch by batch, where the indexes
// lead to a batch that has no records any more.
func (l *Log) maxTimestampOfRecords(upTo ident.Offset) (at TimestampOffset, found bool, err error) {
	best, in := moment{timestamp: ident.NoTimestamp}, (*segment)(nil)
	for i := max(l.segmentAt(l.start), 0); i < len(l.segments) && l.segments[i].base < upTo; i++ {
		s := l.segments[i]
		where, err := l.positionOf(s, max(l.start, s.base))
		if err != nil {
			return at, false, err
		}
		_, _, err = l.walk(s, where, func(h record.View, _ int64) bool {
			if h.LastOffset() >= upTo {
				return true
			}
			if ts := h.MaxTimestamp(); h.Count() > 0 && ts > best.timestamp {
				best, in = moment{ts, h.LastOffset()}, s
			}
			return false
		})
		if err != nil {
			return at, false, err
		}
	}
	if in == nil {
		return at, false, nil
	}
	return l.topRecord(in, best)
}

// topBetween is the greatest timestamp of the batches of s in [start, upTo).
func (l *Log) topBetween(s *segment, upTo ident.Offset) (moment, error) {
	top, err := l.topOf(s)
	if err != nil {
		return moment{}, err
	}
	if top.offset < upTo && (top.offset >= l.start || top.timestamp < 0) {
		return top, nil
	}
	// The segment's greatest is out of bounds: look at the batches. A time index
	// entry below upTo would save a part of the way, but not when the log start
	// is what excludes.
	at, err := l.positionOf(s, max(l.start, s.base))
	if err != nil {
		return moment{}, err
	}
	best := moment{ident.NoTimestamp, s.base}
	_, _, err = l.walk(s, at, func(h record.View, _ int64) bool {
		if h.LastOffset() >= upTo {
			return true
		}
		if ts := h.MaxTimestamp(); ts > best.timestamp {
			best = moment{ts, h.LastOffset()}
		}
		return false
	})
	return best, err
}

// batchAt reads the batch of size bytes at pos and verifies it.
func (l *Log) batchAt(s *segment, pos int64, size int) (record.View, error) {
	if err := l.reach(s); err != nil {
		return nil, err
	}
	v := record.View(make([]byte, size))
	if _, err := s.file.file.ReadAt(v, pos); err != nil {
		if isShort(err) {
			return nil, l.damaged(s, pos, err)
		}
		return nil, l.sift(err, "read "+s.name(suffixLog))
	}
	if err := v.VerifyCRC(); err != nil {
		if err := l.condemnAt(s, pos, v.BaseOffset()); err != nil {
			return nil, err
		}
		return nil, l.damaged(s, pos, err)
	}
	return v, nil
}

// topOf is the greatest timestamp of s and the last offset of the first batch that
// has it.
func (l *Log) topOf(s *segment) (moment, error) {
	if s.believed {
		return s.top, nil
	}
	if l.hurried && s.file == nil {
		return moment{}, ErrWouldWait
	}
	if err := s.open(l.onFail); err != nil {
		return moment{}, l.sift(err, "open "+s.name(suffixLog))
	}
	m, err := l.timed(s, func() (moment, error) {
		if s.times.count() == 0 {
			return moment{}, fmt.Errorf("%s is empty: %w", s.times.name, ErrFormat)
		}
		return s.times.entry(s.times.count() - 1)
	})
	if err != nil || s.believed {
		return s.top, err // the indexes were built anew, and the top with them
	}
	// The file may have lost its last entries: look at what follows.
	at, err := l.positionOf(s, m.offset)
	if err != nil {
		return moment{}, err
	}
	s.top = m
	_, _, err = l.walk(s, at, func(h record.View, _ int64) bool {
		if ts := h.MaxTimestamp(); ts > s.top.timestamp {
			s.top = moment{ts, h.LastOffset()}
		}
		return false
	})
	s.believed = err == nil
	return s.top, err
}

// timed asks the time index of s and believes the answer only when the log has
// such a batch; else the indexes are built anew and asked again.
func (l *Log) timed(s *segment, ask func() (moment, error)) (moment, error) {
	for range 2 {
		err := l.loadIndexes(s)
		var m moment
		if err == nil {
			s.times.hurried = l.hurried
			m, err = ask()
			s.times.hurried = false
		}
		if errors.Is(err, ErrWouldWait) {
			return moment{}, err
		}
		if err == nil {
			if m.timestamp < 0 && m.offset == s.base {
				return m, nil
			}
			ok, err := l.confirmMoment(s, m)
			if err != nil || ok {
				return m, err
			}
		}
		if err := l.rebuildIndexes(s); err != nil {
			return moment{}, err
		}
	}
	return moment{ident.NoTimestamp, s.base}, nil
}

func (l *Log) confirmMoment(s *segment, m moment) (bool, error) {
	if m.offset < s.base {
		return false, nil
	}
	where, err := l.positionOf(s, m.offset)
	if err != nil || where.pos >= s.size {
		return false, err
	}
	h, err := l.headerAt(s, where.pos)
	if errors.Is(err, ErrDamaged) {
		return false, nil
	}
	return err == nil && h.LastOffset() == m.offset && h.MaxTimestamp() == m.timestamp, err
}
