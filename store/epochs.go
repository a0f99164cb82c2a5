package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-broker/troupe/wire/ident"
)

// epochsFile is the name of a partition's leader epoch file.
const epochsFile = "leader-epoch-checkpoint"

// epochs holds the first offset of each leader epoch of a log. Both columns rise.
// (KIP-101, KIP-279; Kafka: LeaderEpochFileCache.java)
type epochs struct {
	list []Epoch
}

// last is the newest epoch, NoLeaderEpoch when there is none.
func (e *epochs) last() ident.LeaderEpoch {
	if len(e.list) == 0 {
		return ident.NoLeaderEpoch
	}
	return e.list[len(e.list)-1].Epoch
}

// newest is the last entry, {NoLeaderEpoch, 0} when there is none.
func (e *epochs) newest() Epoch {
	if len(e.list) == 0 {
		return Epoch{Epoch: ident.NoLeaderEpoch}
	}
	return e.list[len(e.list)-1]
}

// assign notes that epoch begins at start. Entries that it contradicts (an epoch
// at or above it, or one that begins at or after start) give way. It tells whether
// anything changed.
func (e *epochs) assign(epoch ident.LeaderEpoch, start ident.Offset) bool {
	if epoch < 0 {
		return false
	}
	n := len(e.list)
	if n > 0 && e.list[n-1].Epoch == epoch {
		// The epoch is known; its start is where it was first seen.
		return false
	}
	for n > 0 && (e.list[n-1].Epoch >= epoch || e.list[n-1].Start >= start) {
		n--
	}
	e.list = append(e.list[:n], Epoch{epoch, start})
	return true
}

// end answers OffsetForLeaderEpoch.
func (e *epochs) end(epoch ident.LeaderEpoch, logEnd ident.Offset) (ident.LeaderEpoch, ident.Offset) {
	if epoch < 0 || len(e.list) == 0 || epoch > e.last() {
		return ident.NoLeaderEpoch, ident.NoOffset
	}
	if epoch == e.last() {
		return epoch, logEnd
	}
	// The first entry above the one asked for; there is one.
	i, _ := slices.BinarySearchFunc(e.list, epoch+1, func(x Epoch, want ident.LeaderEpoch) int {
		return int(int64(x.Epoch) - int64(want))
	})
	if i == 0 {
		// All known epochs are newer: the asked one ends where the first begins.
		return epoch, e.list[0].Start
	}
	return e.list[i-1].Epoch, e.list[i].Start
}

// of is the epoch of the record at offset o.
func (e *epochs) of(o ident.Offset) ident.LeaderEpoch {
	if n := len(e.list); n > 0 && o >= e.list[n-1].Start {
		return e.list[n-1].Epoch // as most readers want it
	}
	i, found := slices.BinarySearchFunc(e.list, o, func(x Epoch, want ident.Offset) int {
		switch {
		case x.Start < want:
			return -1
		case x.Start > want:
			return +1
		}
		return 0
	})
	if found {
		return e.list[i].Epoch
	}
	if i == 0 {
		return ident.NoLeaderEpoch
	}
	return e.list[i-1].Epoch
}

// cutEnd drops the epochs that begin at or above o.
func (e *epochs) cutEnd(o ident.Offset) {
	n := len(e.list)
	for n > 0 && e.list[n-1].Start >= o {
		n--
	}
	e.list = e.list[:n]
}

// cutStart drops the epochs that end at or below o; the one that holds o begins
// there from now on.
func (e *epochs) cutStart(o ident.Offset) bool {
	n := 0
	for n+1 < len(e.list) && e.list[n+1].Start <= o {
		n++
	}
	if len(e.list) == 0 || (n == 0 && e.list[0].Start >= o) {
		return false
	}
	e.list = slices.Delete(e.list, 0, n)
	e.list[0].Start = max(e.list[0].Start, o)
	return true
}

// encode writes Kafka's text: version, count, then "epoch start" lines.
// (LeaderEpochCheckpointFile.java)
func (e *epochs) encode(dst []byte) []byte {
	dst = append(dst, "0\n"...)
	dst = strconv.AppendInt(dst, int64(len(e.list)), 10)
	dst = append(dst, '\n')
	for _, x := range e.list {
		dst = strconv.AppendInt(dst, int64(x.Epoch), 10)
		dst = append(dst, ' ')
		dst = strconv.AppendInt(dst, int64(x.Start), 10)
		dst = append(dst, '\n')
	}
	return dst
}

// decodeEpochs reads the file. What is not in order is refused: the file is a
// cache, recovery builds it from the batches.
func decodeEpochs(text []byte) (epochs, error) {
	var e epochs
	lines, err := checkpointLines(text)
	if err != nil {
		return e, err
	}
	for _, line := range lines {
		a, b, ok := strings.Cut(line, " ")
		epoch, err1 := strconv.ParseInt(a, 10, 32)
		start, err2 := strconv.ParseInt(b, 10, 64)
		if !ok || err1 != nil || err2 != nil || epoch < 0 || start < 0 {
			return epochs{}, fmt.Errorf("line %.60q is no epoch and offset: %w", line, ErrFormat)
		}
		x := Epoch{ident.LeaderEpoch(epoch), ident.Offset(start)}
		if n := len(e.list); n > 0 && (e.list[n-1].Epoch >= x.Epoch || e.list[n-1].Start >= x.Start) {
			return epochs{}, fmt.Errorf("line %.60q is not above the one before: %w", line, ErrFormat)
		}
		e.list = append(e.list, x)
	}
	return e, nil
}
