package store

import (
	"path/filepath"
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// endsFile remembers where the closed segments of a compacted log begin, and where the last batch of each ends. Compaction leaves gaps between offsets, so that a file
// that has gone, or was cut between two batches, would look like one of them.
//
// It is advice, written behind what it tells, and not synced: an older one says less. What it says stays true while segments grow together or are replaced, for
// what takes their place reaches as far; only a truncation, or a recovery that moves a segment's end into one of its own, makes it wrong, and removes it before it cuts.
const endsFile = "segment-ends"

// saveEnds leaves it to the background to write down the closed segments.
func (l *Log) saveEnds() {
	if !l.cfg.Compact {
		return
	}
	var list []OffsetRange
	for _, s := range l.segments[:len(l.segments)-1] {
		if s.end > s.base {
			list = append(list, OffsetRange{s.base, s.end})
		}
	}
	if slices.Equal(list, l.endsSaved) {
		return
	}
	l.endsSaved = list
	turn, name := l.endsTurn.Load(), filepath.Join(l.o.Path, endsFile)
	l.inDirectory(func() error {
		if l.endsTurn.Load() != turn || l.shared.closed {
			return nil // it was cut meanwhile, or somebody else has the directory
		}
		return putFile(l.o.FS, name, encodeRanges(list), false)
	})
}

// forgetEnds removes what was written down, because the log is about to be cut.
func (l *Log) forgetEnds() error {
	l.endsTurn.Add(1)
	l.endsSaved = nil
	l.shared.Lock()
	defer l.shared.Unlock()
	if err := l.o.FS.Remove(filepath.Join(l.o.Path, endsFile)); err != nil && !isNotExist(err) {
		return err
	}
	return nil
}

// compareEnds holds the segments that are there against what was written down. Only below the durable mark it was promised that they are.
func (v *recovery) compareEnds() error {
	l := v.l
	if !v.endsKept {
		return nil
	}
	b, err := readFile(l.o.FS, filepath.Join(l.o.Path, endsFile))
	if err != nil && !isNotExist(err) {
		return l.sift(err, "read "+endsFile+" of "+l.o.Path)
	}
	list, err := decodeRanges(b)
	if err != nil {
		return nil //nolint:nilerr // noise says nothing
	}
	l.endsSaved = list
	for _, e := range list {
		i := l.segmentAt(e.To - 1)
		if e.To <= l.start || e.To > v.mark || i < 0 || i == len(l.segments)-1 {
			continue // below the first segment the log start tells, and the last one reaches up to the mark
		}
		s := l.segments[i]
		if s.end == ident.NoOffset || s.end >= e.To {
			continue
		}
		v.r.Whole = false
		l.condemn(hole{OffsetRange: OffsetRange{max(s.end, e.From, l.start), e.To}, base: s.base, pos: s.size, to: s.size})
	}
	return nil
}
