package dump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/troupe-broker/troupe/wire/record"
)

// IndexEntry is one entry of an offset index: the batch at Position ends with Offset.
type IndexEntry struct {
	Offset   int64 `json:"offset"`
	Position int64 `json:"position"`
}

// TimeIndexEntry is one entry of a time index: no record up to Offset is younger than Timestamp.
type TimeIndexEntry struct {
	Timestamp int64 `json:"timestamp"`
	Offset    int64 `json:"offset"`
}

// Sizes of the entries (OffsetIndex.java, TimeIndex.java).
const (
	indexEntrySize     = 8
	timeIndexEntrySize = 12
)

// readEntries cuts a file into entries. Zero entries behind the first are space that was reserved.
func readEntries(path string, size int, visit func(b []byte, at int64) error) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	at := 0
	for ; at+size <= len(b); at += size {
		entry := b[at : at+size]
		if at > 0 && zeros(entry) {
			for i, c := range b[at:] {
				if c != 0 {
					return &DamageError{path, int64(at + i), "an entry behind reserved space"}
				}
			}
			return nil
		}
		if err := visit(entry, int64(at)); err != nil {
			return err
		}
	}
	if at < len(b) && !zeros(b[at:]) {
		return &DamageError{path, int64(at), fmt.Sprintf("%d bytes, too few for an entry of %d", len(b)-at, size)}
	}
	return nil
}

// segmentPlaces maps the last offset of each batch of the segment beside an index to its position, and the greatest
// timestamp up to it.
func segmentPlaces(indexPath, suffix string) (positions, timestamps map[int64]int64, err error) {
	i := strings.LastIndex(indexPath, suffix)
	path := indexPath[:i] + ".log" + indexPath[i+len(suffix):]
	positions, timestamps = map[int64]int64{}, map[int64]int64{}
	greatest := int64(-1)
	_, _, err = batches(path, func(v record.View, at int64) error {
		positions[int64(v.LastOffset())] = at
		greatest = max(greatest, int64(v.MaxTimestamp()))
		timestamps[int64(v.LastOffset())] = greatest
		return nil
	})
	if _, ok := errors.AsType[*DamageError](err); ok {
		err = nil // the segment's own dump reports it; what is before it can be held against
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("there is no segment beside the index to check it against: %w", err)
	}
	return positions, timestamps, err
}

func readIndex(path string, base int64, o Options, emit func(item any) error) error {
	var positions map[int64]int64
	if o.Check {
		var err error
		if positions, _, err = segmentPlaces(path, ".index"); err != nil {
			return err
		}
	}
	last := IndexEntry{Offset: -1, Position: -1}
	return readEntries(path, indexEntrySize, func(b []byte, at int64) error {
		e := IndexEntry{
			Offset:   base + int64(binary.BigEndian.Uint32(b)),
			Position: int64(binary.BigEndian.Uint32(b[4:])),
		}
		if e.Offset <= last.Offset || e.Position <= last.Position {
			return &DamageError{path, at, fmt.Sprintf("offset %d at position %d does not come after offset %d at position %d", e.Offset, e.Position, last.Offset, last.Position)}
		}
		if position, ok := positions[e.Offset]; o.Check && (!ok || position != e.Position) {
			return &DamageError{path, at, fmt.Sprintf("no batch of the segment at position %d ends with offset %d", e.Position, e.Offset)}
		}
		last = e
		return emit(e)
	})
}

func readTimeIndex(path string, base int64, o Options, emit func(item any) error) error {
	var timestamps map[int64]int64
	if o.Check {
		var err error
		if _, timestamps, err = segmentPlaces(path, ".timeindex"); err != nil {
			return err
		}
	}
	last := TimeIndexEntry{Timestamp: -1, Offset: -1}
	return readEntries(path, timeIndexEntrySize, func(b []byte, at int64) error {
		e := TimeIndexEntry{
			Timestamp: int64(binary.BigEndian.Uint64(b)),
			Offset:    base + int64(binary.BigEndian.Uint32(b[8:])),
		}
		if e.Timestamp < last.Timestamp || e.Offset < last.Offset {
			return &DamageError{path, at, fmt.Sprintf("timestamp %d at offset %d does not come after timestamp %d at offset %d", e.Timestamp, e.Offset, last.Timestamp, last.Offset)}
		}
		if greatest, ok := timestamps[e.Offset]; o.Check && ok && greatest > e.Timestamp {
			return &DamageError{path, at, fmt.Sprintf("up to offset %d there is a record of time %d, younger than %d", e.Offset, greatest, e.Timestamp)}
		}
		last = e
		return emit(e)
	})
}
