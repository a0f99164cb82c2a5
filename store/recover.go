package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// recovery is the opening of one log: what was found, and what is to be read
// again. Its methods are spread over recover*.go by what they are about.
type recovery struct {
	l       *Log
	r       Recovery
	mode    RecoveryMode
	mark    ident.Offset // below it everything must be there
	slot    slotState
	held    bool // slot is valid
	damaged bool // there is a file of what was damaged before
	// endsKept: there is a file of the segments' ends.
	endsKept bool
	now      ident.Millis

	// Batches at or above these offsets are shown to the owner, and to the epoch
	// cache.
	replayFrom ident.Offset
	epochsFrom ident.Offset
	// shown is where the batch ends that was shown last; 0: none was, or damage is behind it.
	shown ident.Offset

	buf []byte // of the scanners
}

// recover opens the log's directory, in the manner that the hint allows.
func (l *Log) recover() (Recovery, error) {
	v := &recovery{l: l, mode: l.o.Hint.Mode, mark: max(l.o.Hint.Mark, 0), now: l.o.Now}
	v.r.Whole = l.o.Hint.Mark >= 0
	defer func() { l.o.scans.give(v.buf) }()
	fresh, err := v.identify()
	if err != nil {
		return Recovery{}, err
	}
	if !fresh {
		if err = v.list(); err != nil {
			return Recovery{}, l.sift(err, "list "+l.o.Path)
		}
	}
	if l.slot != nil {
		v.slot, v.held = l.slot.get()
		v.held = v.held && v.slot.log == logKey(l.o.Topic, l.o.Partition.Partition)
		if v.held {
			v.mark = max(v.mark, v.slot.flushed)
		}
	}
	// Nothing of the log was ever synced, so its identity may not have been either:
	// the process that made it may have died before the first sync.
	l.unmade = l.unmade || v.mark <= max(l.o.Hint.Start, 0)
	if err := v.run(); err != nil {
		return Recovery{}, err
	}
	if err := v.findGaps(); err != nil {
		return Recovery{}, err
	}
	if err := v.recallDamage(); err != nil {
		return Recovery{}, err
	}
	return v.conclude()
}

// run finds the log's end, falling back to a more careful mode when a bolder one
// meets something it does not expect.
func (v *recovery) run() error {
	l := v.l
	if len(l.segments) == 0 {
		return v.beginBare()
	}
	if done, err := v.findStart(); done || err != nil {
		return err
	}
	if err := v.loadEpochs(); err != nil {
		return err
	}
	if v.mode == RecoverClean {
		if done, err := v.runClean(); done || err != nil {
			return err
		}
		v.mode = RecoverVerify
	}
	if v.mode == RecoverSameBoot {
		if done, err := v.runSameBoot(); done || err != nil {
			return err
		}
		v.mode = RecoverCopy
	}
	if err := v.loadEpochs(); err != nil {
		return err
	}
	if v.mode == RecoverCopy {
		if err := v.copySuspects(); err != nil {
			return err
		}
	}
	return v.runVerify()
}

// beginBare begins a log that has no segment: it was just being made, or all it had that counts is lost. What the mark promised stays on record as lost.
func (v *recovery) beginBare() error {
	l := v.l
	start := max(l.o.Hint.Start, 0)
	if err := v.begin(max(start, v.mark)); err != nil || v.mark <= start {
		return err
	}
	v.r.Whole = false
	l.start = start
	l.condemn(hole{OffsetRange: OffsetRange{start, v.mark}, base: v.mark})
	return v.keepEpochs()
}

// keepEpochs takes the epochs of what is lost from their file, below the log's end. By them a repair knows the batches that belong there. Without a sound file
// nothing does, and the range stays damaged.
func (v *recovery) keepEpochs() error {
	l := v.l
	name := filepath.Join(l.o.Path, epochsFile)
	b, err := readFile(l.o.FS, name)
	if err != nil {
		if isNotExist(err) {
			return nil
		}
		return l.sift(err, "read "+name)
	}
	if kept, err := decodeEpochs(b); err == nil {
		kept.cutEnd(l.end)
		l.epochs = kept
	}
	return nil
}

// findGaps compares the end of each closed segment with the base of the next. What lies between was in a file that somebody has removed or cut, or an earlier
// recovery has found it lost and left an empty segment in its place. It costs an index entry and at most one interval of headers a segment.
//
// Compaction leaves gaps, and those of another broker may lie between two segments. So nothing is said of a log that is compacted, or was below that offset; there
// it is only seen to that a segment ends with its last batch, and with the one that it ended with before, as far as that was written down.
func (v *recovery) findGaps() error {
	l := v.l
	compacted := ident.Offset(l.standing.cleaned.Load())
	for i, s := range l.segments[:len(l.segments)-1] {
		next := l.segments[i+1]
		if next.base <= l.start {
			continue
		}
		if err := v.findGap(s, next, l.cfg.Compact || next.base <= compacted); err != nil {
			return err
		}
	}
	return v.compareEnds()
}

// findGap looks between two segments, one of which was compacted, perhaps.
func (v *recovery) findGap(s, next *segment, compacted bool) error {
	l := v.l
	sc, _, err := v.resume(s, next.base)
	if err != nil {
		return l.sift(err, "read "+s.name(suffixLog))
	}
	for sc.next < next.base {
		_, _, err := sc.batch()
		if errors.Is(err, errScanEnd) {
			break
		}
		switch {
		case err == nil:
			continue
		case compacted:
			return l.sift(ifIOFailure(err), "read "+s.name(suffixLog))
		}
		if more, err := v.hurt(s, sc, err, next.base); err != nil || !more {
			return err
		}
	}
	s.end = sc.next
	if sc.next == next.base {
		s.size = sc.pos // what follows was damage when the log went on in the next segment, and is nobody's to read
	}
	if compacted {
		return nil
	}
	// What is below the log start may go.
	from := max(sc.next, l.start)
	if from >= next.base {
		return nil
	}
	whole, err := v.joins(tail{next: sc.next}, next)
	if err != nil || whole {
		return err // whole: the batch behind it is too far for the reach of the former offsets
	}
	v.r.Whole = false
	l.condemn(hole{OffsetRange: OffsetRange{from, next.base}, base: s.base, pos: sc.pos, to: sc.pos})
	return nil
}

// findStart decides where the log starts. Segments leave a log only after its start
// has moved beyond them durably; so when the first one begins above the start,
// those below are lost. done: nothing is left of the log but its offsets.
func (v *recovery) findStart() (done bool, err error) {
	l := v.l
	first, start := l.segments[0].base, l.o.Hint.Start
	l.start = max(first, start)
	if start < 0 || first <= start {
		return false, nil
	}
	l.start = start
	if v.mark >= first {
		v.r.Whole = false
		l.condemn(hole{OffsetRange: OffsetRange{start, first}, base: first})
		return false, nil
	}
	// What is left lies above the mark, behind a hole: it was never promised.
	if err := v.setAsideFrom(0); err != nil {
		return false, err
	}
	return true, v.beginBare()
}

// identify checks that the directory belongs to the topic, or makes it.
func (v *recovery) identify() (fresh bool, err error) {
	l := v.l
	entries, err := l.o.FS.ReadDir(l.o.Path)
	if err != nil && !isNotExist(err) {
		return false, l.sift(err, "list "+l.o.Path)
	}
	// A directory that holds at most temporary files was being made when the
	// broker died: nothing of it was ever acknowledged.
	fresh = true
	for _, e := range entries {
		fresh = fresh && strings.HasSuffix(e.Name, suffixTemporary)
	}
	if fresh {
		return true, l.sift(v.make(), "create "+l.o.Path)
	}
	id, err := readPartitionMeta(l.o.FS, l.o.Path)
	switch {
	case errors.Is(err, ErrNewerFormat):
		return false, coded(CodeNewer, err, "%s in %s: %v; start the version that wrote it", partitionMetaFile, l.o.Path, err)
	case err != nil && !isNotExist(err) && !errors.Is(err, ErrFormat):
		return false, l.sift(err, "read "+partitionMetaFile+" of "+l.o.Path)
	case err != nil:
		return false, coded(CodeStray, ErrStray, "%s in %s is lost or damaged (%v); the directory is set aside as a stray: if its records are wanted, write the file anew and rename the directory back", partitionMetaFile, l.o.Path, err)
	case id != l.o.Topic:
		return false, coded(CodeStray, ErrStray, "%s holds topic id %s, the topic's id is %s; the directory is set aside as a stray of a deleted topic", l.o.Path, id, l.o.Topic)
	}
	return false, nil
}

// make creates the directory and its identity. They are synced with the first
// append, before anything in them is acknowledged: thousands of partitions are
// made in the time of one sync each.
func (v *recovery) make() error {
	l := v.l
	if err := l.o.FS.MkdirAll(l.o.Path, 0o755); err != nil {
		return err
	}
	name := filepath.Join(l.o.Path, partitionMetaFile)
	if err := putFile(l.o.FS, name, encodePartitionMeta(l.o.Topic), false); err != nil {
		return err
	}
	v.r.Created, l.unmade = true, true
	return nil
}

// list reads the directory: segments, snapshots, and what is to be tidied away.
func (v *recovery) list() error {
	l := v.l
	entries, err := l.o.FS.ReadDir(l.o.Path)
	if err != nil {
		return err
	}
	renewed, err := v.completeRenewals(entries)
	if err != nil {
		return err
	}
	if changed, err := v.completeSwaps(entries); err != nil {
		return err
	} else if changed || renewed {
		if entries, err = l.o.FS.ReadDir(l.o.Path); err != nil {
			return err
		}
	}
	for _, e := range entries {
		base, suffix, ok := parseSegmentName(e.Name)
		switch {
		case e.Dir:
			if err := v.unblock(e.Name); err != nil {
				return err
			}
		case ok && suffix == suffixLog:
			l.segments = append(l.segments, newSegment(l.o.FS, l.o.Path, base, v.now))
		case e.Name == damageFile:
			v.damaged = true
		case e.Name == endsFile:
			v.endsKept = true
		case ok && suffix == suffixSnapshot:
			l.snapshots = append(l.snapshots, base)
		case strings.HasSuffix(e.Name, suffixCleaned), strings.HasSuffix(e.Name, suffixSwap), strings.HasSuffix(e.Name, suffixRepaired), strings.HasSuffix(e.Name, suffixRenewed):
			// At once: a compaction may soon make another of the same name.
			if err := l.o.FS.Remove(filepath.Join(l.o.Path, e.Name)); err != nil && !isNotExist(err) {
				return err
			}
		case strings.HasSuffix(e.Name, suffixDeleted), strings.HasSuffix(e.Name, suffixCopy), strings.HasSuffix(e.Name, suffixTemporary):
			name := filepath.Join(l.o.Path, e.Name)
			l.inDirectory(func() error {
				if err := l.o.FS.Remove(name); err != nil && !isNotExist(err) {
					return err
				}
				return nil
			})
		}
	}
	slices.SortFunc(l.segments, func(a, b *segment) int { return int(min(max(a.base-b.base, -1), 1)) })
	slices.Sort(l.snapshots)
	for _, s := range l.segments {
		// They are opened one by one, when they are looked at: a log may have more
		// segments than the process may have descriptors.
		info, err := l.o.FS.Stat(s.name(suffixLog))
		if err != nil {
			return err
		}
		s.size = info.Size
		s.trust.found(unknown)
	}
	return nil
}

// unblock renames a directory that has the name of a cache, so that the cache can be
// made anew. One with the name of a segment is left: the records that it hides are
// nobody's to pass over.
func (v *recovery) unblock(name string) error {
	l := v.l
	path := filepath.Join(l.o.Path, name)
	_, suffix, ours := parseSegmentName(name)
	switch {
	case strings.HasSuffix(name, suffixStrayDir):
		return nil
	case ours && suffix == suffixLog:
		return &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
	case ours || name == epochsFile || strings.HasSuffix(name, suffixTemporary):
		return l.o.FS.Rename(path, path+suffixStrayDir)
	}
	return nil
}

// begin starts an empty log at o.
func (v *recovery) begin(o ident.Offset) error {
	l := v.l
	s, err := l.createSegment(o, 0, v.now)
	if err != nil {
		return err
	}
	l.segments = append(l.segments[:0], s)
	l.active = s
	l.start, l.end = o, o
	l.epochs = epochs{}
	if l.bare = v.r.Created; !l.bare {
		l.epochsLost() // the file is of what was here before
	}
	return nil
}

// loadEpochs reads the epoch file. When it is lost, noise or of another version the
// epochs are taken from the batches, all of them.
func (v *recovery) loadEpochs() error {
	l := v.l
	v.epochsFrom = l.segments[0].base
	name := filepath.Join(l.o.Path, epochsFile)
	b, err := readFile(l.o.FS, name)
	if err == nil {
		l.epochs, err = decodeEpochs(b)
	}
	if v.mode == RecoverSameBoot && v.held && !v.slot.behind && (err == nil || (v.slot.bare && isNotExist(err))) {
		// The file has all epochs but perhaps the newest, which the block has.
		l.bare = v.slot.bare
		v.epochsFrom = max(v.slot.end, v.epochsFrom)
		if l.epochs.assign(v.slot.epoch.Epoch, v.slot.epoch.Start) {
			l.epochsChanged()
		}
		return nil
	}
	switch {
	case isNotExist(err) || errors.Is(err, ErrFormat) || errors.Is(err, ErrNewerFormat):
		l.epochs = epochs{}
		l.epochsLost()
		return nil
	case err != nil:
		return l.sift(err, "read "+name)
	}
	v.epochsFrom = max(v.mark, v.epochsFrom)
	l.epochs.cutEnd(v.epochsFrom)
	return nil
}

// see shows a batch to the epoch cache and to the owner.
func (v *recovery) see(b record.View) {
	l := v.l
	v.r.Batches++
	base := b.BaseOffset()
	from := base
	if v.shown > 0 || len(l.epochs.list) == 0 {
		from = min(max(v.shown, v.epochsFrom), base) // a gap below a batch is its epoch's; see Append
	}
	if base >= v.epochsFrom && l.epochs.assign(b.LeaderEpoch(), from) {
		l.epochsChanged()
	}
	v.shown = b.NextOffset()
	if b.LastOffset() >= v.replayFrom && l.o.OnBatch != nil {
		l.o.OnBatch(b)
	}
}

// conclude takes stock: what is to be synced before it counts, what is served.
func (v *recovery) conclude() (Recovery, error) {
	l := v.l
	if l.start > l.end {
		// The log start is ahead of all that is left: begin there.
		if err := v.restart(l.start); err != nil {
			return Recovery{}, err
		}
	}
	l.active = l.segments[len(l.segments)-1]
	l.sinceSnapshot = l.active.size // at most
	if !v.r.Created {
		l.active.trust.found(l.active.size)
	}
	for _, s := range l.segments[:len(l.segments)-1] {
		l.closedSize += s.size
	}
	if l.o.Hint.Mode == RecoverSameBoot && v.held && l.end < v.slot.end {
		v.r.Whole = false // whatever was above the mark may have been told, and memory has lost it
	}
	if v.held && v.slot.lacking {
		v.r.Whole = false // a run before this one has found that, and died before anybody heard it
	}
	l.slotState.lacking = !v.r.Whole && !v.r.Created && !l.o.Hint.Untold && (l.o.Hint.Mode == RecoverSameBoot || l.o.Hint.Mode == RecoverClean)
	l.epochs.cutEnd(l.end)
	l.epochs.cutStart(l.start)
	for n := len(l.snapshots); n > 0 && l.snapshots[n-1] > l.end; n-- {
		if err := l.dropSnapshots(0, 1); err != nil {
			return Recovery{}, err
		}
	}
	flushed := v.mark
	if v.mode == RecoverClean || v.mode == RecoverCopy {
		flushed = l.end
	}
	if !l.dirty.epochs {
		v.mark = flushed // else the mark waits, as in Synced, until the epoch file has what lies below it
	}
	l.flushed = max(min(flushed, l.end), l.start)
	l.standing.mark.Store(int64(min(max(v.mark, 0), l.end)))
	l.standing.start.Store(int64(l.start))
	if less := l.findDirty(v.r.Created); (less || v.l.o.Hint.Mark > l.mark()) && l.o.persist != nil {
		// A truncation was interrupted before it lowered the mark on disk, or the word that less is clean: what is appended next would inherit that.
		if err := l.o.persist(); err != nil {
			return Recovery{}, err
		}
	}
	if err := v.claim(); err != nil {
		return Recovery{}, l.sift(err, "open "+l.o.Path)
	}
	v.r.Mode, v.r.Start, v.r.End, v.r.Flushed = v.mode, l.start, l.end, l.flushed
	v.r.Damage = l.Damage()
	return v.r, nil
}

// claim notes what a sync has to cover before the log counts as flushed, closes
// what is not needed open, and writes the control block.
func (v *recovery) claim() error {
	l := v.l
	for i, s := range l.segments {
		if i == len(l.segments)-1 {
			break
		}
		// One that ends at the mark was cut to its end after its last sync.
		if l.segments[i+1].base >= l.flushed {
			if err := l.soilOrSync(s); err != nil {
				return err
			}
		}
		// A closed segment is opened again by its first reader.
		if err := s.release(); err != nil {
			return err
		}
	}
	l.dirty.active = l.dirty.active || l.flushed < l.end
	l.unnamed = true
	if l.dirty.active {
		if err := l.wake(); err != nil {
			return err
		}
	}
	return l.rememberFile()
}

// restart drops all segments and begins an empty log at o.
func (v *recovery) restart(o ident.Offset) error {
	l := v.l
	if err := v.setAsideFrom(0); err != nil {
		return err
	}
	l.holes = nil
	return v.begin(o)
}

// setAsideFrom renames the segments from index i on, highest first, each durable
// before the next, and forgets them.
func (v *recovery) setAsideFrom(i int) error {
	l := v.l
	for n := len(l.segments) - 1; n >= i; n-- {
		s := l.segments[n]
		v.r.CutBytes += s.size
		if err := errors.Join(s.release(), setAside(l.o.FS, l.o.Path, []ident.Offset{s.base})); err != nil {
			return l.sift(err, fmt.Sprintf("set segment %d of %s aside", s.base, l.o.Partition))
		}
		l.doomed = append(l.doomed, doomedSegment{s.base, v.now + ident.Millis(l.cfg.FileDeleteDelayMs)})
		l.segments = l.segments[:n]
	}
	return nil
}
