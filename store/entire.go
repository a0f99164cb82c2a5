package store

import (
	"errors"
	"fmt"
	"os"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// Whether compaction has taken anything out of a part of a log is read off its batches: they follow each other without a gap, and each has as many records as
// offsets. So it needs no memory of what was compacted, which may be lost.

// looked is a segment, or the end of one, that is looked at.
type looked struct {
	name       string
	base, next ident.Offset // of the segment, and what is behind it
	from       ident.Offset // where to begin, at pos
	pos, size  int64
	holed      bool // it has other damage
	active     bool
	rest       bool // of the segment that has the damage
}

// lookBehind lists what is behind a hole: the rest of its segment if the hole is inside, and all that follow.
func (l *Log) lookBehind(h hole, inside bool) []*looked {
	var list []*looked
	for _, s := range l.segments {
		next := l.behind(s)
		k := &looked{name: s.name(suffixLog), base: s.base, next: next, from: s.base, size: s.size, active: s == l.active}
		switch {
		case inside && s.base == h.base:
			k.from, k.pos, k.rest = h.To, h.to, true
		case s.base < h.To:
			continue
		}
		for _, o := range l.holes {
			k.holed = k.holed || o != h && o.From < next && o.To > k.from
		}
		list = append(list, k)
	}
	return list
}

// lookFurther looks at one segment, the last first. After one that has lost something there is no need to look at those before: all up to its end is to be fetched.
func (r *Repair) lookFurther() error {
	n := len(r.behindIt) - 1
	k := r.behindIt[n]
	entire, err := r.look(k)
	switch {
	case err != nil:
		return err
	case entire:
		if r.behindIt = r.behindIt[:n]; !k.rest {
			r.upTo = k.base
		}
		return nil
	case k.active:
		r.log.rollFirst.Store(true) // only a segment's beginning will do
		return fmt.Errorf("the segment at %d, which grows, has lost records to compaction: %w", k.base, ErrRepairOver)
	}
	r.behindIt = nil
	return r.renew()
}

// look tells whether a segment has all the records that it ever had.
func (r *Repair) look(k *looked) (bool, error) {
	if k.holed {
		return false, nil
	}
	if k.size == k.pos {
		return k.from == k.next, nil
	}
	f, err := r.log.o.FS.OpenFile(k.name, os.O_RDONLY, 0)
	if err != nil {
		if isNotExist(err) {
			return false, fmt.Errorf("%s has gone: %w", k.name, ErrRepairOver)
		}
		return false, r.sift(err, "open "+k.name)
	}
	entire, err := r.scanEntire(f, k)
	return entire, errors.Join(r.sift(err, "read "+k.name), r.sift(f.Close(), "close "+k.name))
}

func (r *Repair) scanEntire(f File, k *looked) (bool, error) {
	if r.buf == nil {
		r.buf = make([]byte, scanBuffer)
	}
	sc := newScanner(r.buf, f, k.pos, k.size, k.base)
	sc.next = k.from
	for at := k.from; ; at = sc.next {
		v, _, err := sc.batch()
		switch {
		case errors.Is(err, errScanEnd):
			return at == k.next, nil
		case err != nil:
			return false, ifIOFailure(err)
		case v.BaseOffset() != at || !entire(v):
			return false, nil
		}
	}
}

// entire tells whether compaction has taken nothing out of a batch.
func entire(v record.View) bool { return int64(v.Count()) == int64(v.LastOffsetDelta())+1 }

// entire tells whether what was sent for the range is all that there ever was. Batches that do not belong there are for others to refuse.
func (r *Repair) entire(batches []byte, next ident.Offset) (bool, error) {
	at := r.next
	for len(batches) > 0 {
		v, rest, err := checkedBatch(batches)
		if err != nil {
			return false, fmt.Errorf("a batch for offset %d: %w", at, err)
		}
		if v.BaseOffset() > at || !entire(v) {
			return false, nil
		}
		at, batches = v.NextOffset(), rest
	}
	return at >= min(next, r.hole.To), nil
}
