package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// A producer snapshot: version, checksum of what follows, count, entries.
// (ProducerStateManager.java, ProducerSnapshot.json)
const (
	snapshotVersion   = 1
	snapshotHead      = 2 + 4 + 4
	snapshotEntrySize = 8 + 2 + 4 + 8 + 4 + 8 + 4 + 8
	// snapshotsKept is how many snapshots a log keeps.
	snapshotsKept = 3
	// snapshotEvery is after how many appended bytes a snapshot is made without
	// a segment being closed: what a restart has to read again stays below.
	snapshotEvery = 32 << 20
)

// encodeSnapshot makes the content of a snapshot file.
func encodeSnapshot(producers []record.ProducerEntry) []byte {
	var dst []byte
	be := binary.BigEndian
	dst = be.AppendUint16(dst, snapshotVersion)
	dst = be.AppendUint32(dst, 0)
	dst = be.AppendUint32(dst, uint32(len(producers)))
	for i := range producers {
		p := &producers[i]
		dst = be.AppendUint64(dst, uint64(p.ProducerID))
		dst = be.AppendUint16(dst, uint16(p.ProducerEpoch))
		dst = be.AppendUint32(dst, uint32(p.LastSequence))
		dst = be.AppendUint64(dst, uint64(p.LastOffset))
		dst = be.AppendUint32(dst, uint32(p.OffsetDelta))
		dst = be.AppendUint64(dst, uint64(p.Timestamp))
		dst = be.AppendUint32(dst, uint32(p.CoordinatorEpoch))
		dst = be.AppendUint64(dst, uint64(p.CurrentTxnFirstOffset))
	}
	be.PutUint32(dst[2:], crc32.Checksum(dst[6:], castagnoli))
	return dst
}

// decodeSnapshot reads a snapshot file. Memory is bounded by the file's size.
func decodeSnapshot(b []byte) ([]record.ProducerEntry, error) {
	be := binary.BigEndian
	if len(b) < snapshotHead {
		return nil, fmt.Errorf("a snapshot of %d bytes: %w", len(b), ErrFormat)
	}
	if v := int16(be.Uint16(b)); v != snapshotVersion {
		return nil, fmt.Errorf("snapshot version %d, this broker reads %d: %w", v, snapshotVersion, ErrFormat)
	}
	if crc32.Checksum(b[6:], castagnoli) != be.Uint32(b[2:]) {
		return nil, fmt.Errorf("the snapshot's checksum does not match: %w", ErrFormat)
	}
	n := int64(int32(be.Uint32(b[6:])))
	b = b[snapshotHead:]
	if n < 0 || int64(len(b)) != n*snapshotEntrySize {
		return nil, fmt.Errorf("%d producers in %d bytes: %w", n, len(b), ErrFormat)
	}
	producers := make([]record.ProducerEntry, n)
	for i := range producers {
		producers[i] = record.ProducerEntry{
			ProducerID:            ident.ProducerID(be.Uint64(b)),
			ProducerEpoch:         ident.ProducerEpoch(be.Uint16(b[8:])),
			LastSequence:          ident.Sequence(be.Uint32(b[10:])),
			LastOffset:            ident.Offset(be.Uint64(b[14:])),
			OffsetDelta:           int32(be.Uint32(b[22:])),
			Timestamp:             ident.Millis(be.Uint64(b[26:])),
			CoordinatorEpoch:      int32(be.Uint32(b[34:])),
			CurrentTxnFirstOffset: ident.Offset(be.Uint64(b[38:])),
		}
		b = b[snapshotEntrySize:]
	}
	return producers, nil
}

// snapshotProducers asks the owner for the producers' state and saves it.
func (l *Log) snapshotProducers() error {
	l.sinceSnapshot = 0 // also when it fails: the next attempt is as far away
	if l.o.Producers == nil {
		return nil
	}
	return l.SaveProducerSnapshot(l.o.Producers(nil))
}

// SaveProducerSnapshot writes the producers' state as of End, so that a restart
// need not read the batches below. Only the newest few snapshots are kept.
func (l *Log) SaveProducerSnapshot(producers []record.ProducerEntry) error {
	if err := l.usable(); err != nil {
		return err
	}
	name := segmentName(l.o.Path, l.end, suffixSnapshot)
	f, err := l.o.FS.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return l.sift(err, "create "+name)
	}
	if _, err := f.WriteAt(encodeSnapshot(producers), 0); err != nil {
		// A snapshot that is cut short fails its checksum and is passed over.
		return errors.Join(l.sift(err, "write "+name), f.Close())
	}
	l.dirty.files = append(l.dirty.files, f)
	if err := l.dirty.name(l.o.FS, l.o.Path); err != nil {
		return l.sift(err, "open "+l.o.Path)
	}
	if i, found := slices.BinarySearch(l.snapshots, l.end); !found {
		l.snapshots = slices.Insert(l.snapshots, i, l.end)
	}
	return l.dropSnapshots(len(l.snapshots)-snapshotsKept, 0)
}

// dropSnapshots removes the first n and the last m snapshots.
func (l *Log) dropSnapshots(n, m int) error {
	n = min(max(n, 0), len(l.snapshots))
	m = min(max(m, 0), len(l.snapshots)-n)
	gone := slices.Concat(l.snapshots[:n], l.snapshots[len(l.snapshots)-m:])
	l.snapshots = slices.Clone(l.snapshots[n : len(l.snapshots)-m])
	for _, at := range gone {
		err := l.o.FS.Remove(segmentName(l.o.Path, at, suffixSnapshot))
		if err != nil && !isNotExist(err) {
			return l.sift(err, "remove a producer snapshot of "+l.o.Partition.String())
		}
	}
	return nil
}

// loadSnapshot gives the owner the newest sound snapshot at or below end and
// returns its offset; that of the first batch there is, be it below the log's start,
// when there is no snapshot. Unsound ones, and those of another version, are removed:
// the batches say the same.
func (l *Log) loadSnapshot(end ident.Offset) (ident.Offset, error) {
	return l.newestSnapshot(end, l.o.OnSnapshot)
}

// ReplayProducers shows what the producers' state at End follows from, as recovery does:
// the newest snapshot, if there is one, then the header of every batch above it, in
// order. A replica needs it after a truncation. The views are valid during the call
// that shows them. It reads the log, and may wait for the disk.
func (l *Log) ReplayProducers(onSnapshot func(at ident.Offset, producers []record.ProducerEntry), onBatch func(header record.View)) error {
	if err := l.usable(); err != nil {
		return err
	}
	from, err := l.newestSnapshot(l.end, onSnapshot)
	if err != nil {
		return err
	}
	for i := max(l.segmentAt(from), 0); i < len(l.segments); i++ {
		s := l.segments[i]
		if err := l.reach(s); err != nil {
			return err
		}
		at, err := l.positionOf(s, from)
		if err != nil {
			return err
		}
		_, _, err = l.walk(s, at, func(h record.View, _ int64) bool {
			onBatch(h)
			return false
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) newestSnapshot(end ident.Offset, onSnapshot func(ident.Offset, []record.ProducerEntry)) (ident.Offset, error) {
	for n := len(l.snapshots); n > 0; n = len(l.snapshots) {
		at := l.snapshots[n-1]
		name := segmentName(l.o.Path, at, suffixSnapshot)
		var producers []record.ProducerEntry
		b, err := readFile(l.o.FS, name)
		if err == nil {
			producers, err = decodeSnapshot(b)
		}
		if err == nil && at <= end {
			if onSnapshot != nil {
				onSnapshot(at, producers)
			}
			return at, nil
		}
		if IsRetriable(err) {
			return 0, l.sift(err, "read "+name) // nothing is wrong with the file
		}
		if err := l.dropSnapshots(0, 1); err != nil {
			return 0, err
		}
	}
	return l.segments[0].base, nil
}
