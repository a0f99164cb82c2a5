package store

import (
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// asOpened is a log as a clean stop had left it and an opening found it. While the
// log still is so, closing it again is no work: all of it is on disk, the files end
// where the log ends, and the producers' snapshot is there. A broker with thousands of
// quiet partitions would sync thousands of files for nothing.
type asOpened struct {
	start, end ident.Offset
	generation ident.Generation
	active     ident.Offset // base of the active segment
	segments   int
	cleaned    ident.Offset
	epochs     []Epoch // that have records
}

// noteOpened remembers the log if it is as a clean stop left it, else nothing.
func (l *Log) noteOpened(r *Recovery) {
	if r.Mode != RecoverClean || r.Created || l.dirty.any() || l.o.Producers != nil && !slices.Contains(l.snapshots, l.end) {
		return
	}
	now := l.standingNow()
	now.epochs = slices.Clone(now.epochs)
	l.asOpened = &now
}

func (l *Log) standingNow() asOpened {
	return asOpened{
		start: l.start, end: l.end, generation: l.generation, active: l.active.base, segments: len(l.segments), cleaned: l.cleaned, epochs: l.epochs.used(l.end),
	}
}

// untouched tells whether nothing has to reach the disk for a clean close. An epoch
// that a leader was given and wrote nothing in is no change: nobody asks for it once
// the log is open again, under a later one.
func (l *Log) untouched() bool {
	was, d := l.asOpened, &l.dirty
	if was == nil || d.active || d.start || len(d.closed)+len(d.files)+len(d.dirs)+len(l.swaps)+len(l.leaving) > 0 {
		return false
	}
	now := l.standingNow()
	return now.start == was.start && now.end == was.end && now.generation == was.generation && now.active == was.active &&
		now.segments == was.segments && now.cleaned == was.cleaned && slices.Equal(now.epochs, was.epochs)
}

// used are the epochs that have records below end.
func (e *epochs) used(end ident.Offset) []Epoch {
	n := len(e.list)
	for n > 0 && e.list[n-1].Start >= end {
		n--
	}
	return e.list[:n]
}
