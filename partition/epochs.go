package partition

import (
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// epochList says which leader epoch wrote which offsets. Epochs and starts both
// rise strictly: an epoch that wrote nothing gives way to the next one, so the list
// is never longer than the log has batches, plus one.
type epochList struct{ entries []EpochStart }

// assign records that an epoch begins at start, and tells whether that is news.
func (l *epochList) assign(e ident.LeaderEpoch, start ident.Offset) bool {
	if n := len(l.entries); n > 0 {
		last := l.entries[n-1]
		if last.Epoch == e {
			return false
		}
		if last.Epoch > e || last.Start > start {
			panic(fmt.Sprintf("partition: epoch %d from %d after epoch %d from %d", e, start, last.Epoch, last.Start))
		}
		if last.Start == start {
			l.entries[n-1] = EpochStart{Epoch: e, Start: start}
			return true
		}
	}
	l.entries = append(l.entries, EpochStart{Epoch: e, Start: start})
	return true
}

// last is the newest epoch, ident.NoLeaderEpoch when there is none.
func (l *epochList) last() ident.LeaderEpoch {
	if n := len(l.entries); n > 0 {
		return l.entries[n-1].Epoch
	}
	return ident.NoLeaderEpoch
}

// cutEnd forgets the epochs that begin at or above end.
func (l *epochList) cutEnd(end ident.Offset) {
	n := len(l.entries)
	for n > 0 && l.entries[n-1].Start >= end {
		n--
	}
	l.entries = l.entries[:n]
}

// trim forgets what lies wholly below start. The epoch that start belongs to now
// begins there.
func (l *epochList) trim(start ident.Offset) {
	i := l.at(start)
	if i < 0 {
		return
	}
	l.entries[i].Start = start
	l.entries = slices.Delete(l.entries, 0, i)
}

// at returns the index of the entry that offset o belongs to, -1 if it lies before
// the first.
func (l *epochList) at(o ident.Offset) int {
	i, found := slices.BinarySearchFunc(l.entries, o, func(e EpochStart, o ident.Offset) int {
		return compare(e.Start, o)
	})
	if found {
		return i
	}
	return i - 1
}

// of returns the epoch that offset o belongs to.
func (l *epochList) of(o ident.Offset) ident.LeaderEpoch {
	if i := l.at(o); i >= 0 {
		return l.entries[i].Epoch
	}
	return ident.NoLeaderEpoch
}

// end returns the largest known epoch up to e and where it ended, as
// OffsetForLeaderEpoch wants it (LeaderEpochFileCache.endOffsetFor); logEnd is where
// the last epoch ends. An epoch below all known ones is answered with itself and
// the start of the first known one; one above all of them is not known.
func (l *epochList) end(e ident.LeaderEpoch, logEnd ident.Offset) (ident.LeaderEpoch, ident.Offset) {
	n := len(l.entries)
	if e == ident.NoLeaderEpoch || n == 0 || e > l.entries[n-1].Epoch {
		return ident.NoLeaderEpoch, ident.NoOffset
	}
	if e == l.entries[n-1].Epoch {
		return e, logEnd
	}
	i, found := slices.BinarySearchFunc(l.entries, e, func(s EpochStart, e ident.LeaderEpoch) int {
		return compare(s.Epoch, e)
	})
	if found {
		return e, l.entries[i+1].Start
	}
	if i == 0 {
		return e, l.entries[0].Start
	}
	return l.entries[i-1].Epoch, l.entries[i].Start
}

func compare[T ident.Offset | ident.LeaderEpoch](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return +1
	}
	return 0
}
