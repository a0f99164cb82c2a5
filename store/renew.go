package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// How the compacted part of a log is mended. Replicas are compacted each for itself. A range of one that still has a record, beside a range of one that has dropped
// the tombstone of its key already, is a key that has come back. So a batch of another replica is put into this log alone only where neither has lost anything to
// compaction: in the range, and behind it here. Else everything is fetched, from the log start up to a segment from which on this log has every record that was ever
// appended:
//
//	log start             damage                 first dirty          end
//	    |------------------####---------------------|------------------|
//	    |  the leader's, as it is at one moment              | our own  |
//	                                                        upTo
//
// What the leader has below upTo is right for the records below upTo, whatever it has compacted above; and of those above, none is missing here. The moment is known
// by its shape (Log.Shape): when a compaction of the leader puts a segment in its place meanwhile, the copying begins again.
//
// The files of the new segments, with the suffix .renewed, count from the moment that the file renewed-segments names them, all at once. A restart goes on from there.

// suffixRenewed is ours: a segment that is to take the place of the compacted part with others. It is dropped when it is found without being named.
const suffixRenewed = ".renewed"

// renewedFile names the segments of a renewal while they take their places.
const renewedFile = "renewed-segments"

// renewalsAgain is how often a renewal begins again before it is given up for a while.
const renewalsAgain = 3

// renewal is the part of a repair that copies the compacted part of a log.
type renewal struct {
	parts []renewedPart // finished
	shape uint64        // of the leader's log; 0: nothing was sent yet
	again int
}

// renewedPart is one segment that was written.
type renewedPart struct {
	base, end ident.Offset
	size      int64
}

// Shape changes with everything that puts other segments in the place of those that are there. It is never 0.
func (l *Log) Shape() uint64 { return hash(uint64(l.generation), l.shapes, 0) }

// compactable tells whether compaction may have taken records out of the log.
func (l *Log) compactable() bool { return l.cfg.Compact || l.cleaned > l.start }

// Renews tells that all of the compacted part is being fetched, and that SwapRepaired waits for the disk.
func (r *Repair) Renews() bool { return r.renewal != nil }

// renew begins with the compacted part, from the start.
func (r *Repair) renew() error {
	err := r.dropWritten()
	if r.renewal == nil {
		r.renewal = &renewal{}
	}
	r.renewal.parts, r.renewal.shape = nil, 0
	r.from, r.next, r.epoch, r.full, r.behind = r.start, r.start, ident.NoLeaderEpoch, false, false
	return err
}

// renewWork goes on with the compacted part.
func (r *Repair) renewWork() (RepairStep, error) {
	if r.next < r.upTo {
		return RepairWants, nil
	}
	if r.segment == nil && len(r.renewal.parts) > 0 {
		return RepairReady, nil
	}
	if r.segment == nil {
		if err := r.create(r.first, suffixRenewed); err != nil {
			return RepairReady, err
		}
	}
	name := r.segment.file.file.Name()
	return RepairReady, r.sift(errors.Join(r.reachOut(), r.endPart()), "write "+name)
}

// reachOut lets the last segment end where the next one begins, with a header without records, as compaction does.
func (r *Repair) reachOut() error {
	s := r.segment
	if r.order == r.upTo && s.size > 0 || r.upTo <= s.base {
		return nil
	}
	b := record.NewBuilder()
	b.LeaderEpoch = max(r.epoch, r.epochs.of(r.upTo-1), 0)
	b.Append(0, nil, nil)
	out, err := b.Finish(nil)
	if err != nil {
		return err
	}
	v := record.Emptied(nil, record.View(out))
	v.SetBaseOffset(r.upTo - 1)
	v.SetLeaderEpoch(b.LeaderEpoch)
	return r.write(v)
}

// write adds a batch to the segment.
func (r *Repair) write(v record.View) error {
	s := r.segment
	if _, err := s.file.file.WriteAt(v, s.size); err != nil {
		return err
	}
	s.appended(v, len(v), r.every)
	r.order, r.epoch = v.NextOffset(), v.LeaderEpoch()
	return nil
}

// endPart makes the segment durable, but for its name.
func (r *Repair) endPart() error {
	s := r.segment
	s.file.reserved.Store(s.size)
	s.file.freeze()
	if err := errors.Join(s.finishIndexes(), s.file.file.Sync(), s.times.sync(), s.index.sync()); err != nil {
		return err
	}
	r.renewal.parts = append(r.renewal.parts, renewedPart{s.base, r.order, s.size})
	r.segment = nil
	return s.release()
}

// putRenewed takes the next batches of the compacted part. A batch that neither fits behind the one before nor below upTo, and one of an epoch that cannot be, is an error.
func (r *Repair) putRenewed(batches []byte, next ident.Offset, shape uint64) error {
	w := r.renewal
	switch {
	case shape == 0:
		return fmt.Errorf("the leader does not tell how its log is compacted: %w", ErrRepairOver)
	case w.shape == 0:
		w.shape = shape
	case w.shape != shape:
		if w.again++; w.again > renewalsAgain {
			return fmt.Errorf("the leader's log was compacted meanwhile, again and again: %w", ErrRepairOver)
		}
		return r.renew()
	}
	for len(batches) > 0 {
		v, rest, err := checkedBatch(batches)
		if err != nil {
			return fmt.Errorf("a batch for offset %d: %w", r.next, err)
		}
		if err := r.fits(v); err != nil {
			return err
		}
		if err := r.place(v); err != nil {
			return err
		}
		if err := r.write(v); err != nil {
			return r.sift(err, "write "+r.segment.file.file.Name())
		}
		r.next, batches = v.NextOffset(), rest
	}
	r.next = max(r.next, min(next, r.upTo))
	return nil
}

// place makes sure that a batch goes into a segment with room for it, as Log.mustRoll does.
func (r *Repair) place(v record.View) error {
	s := r.segment
	if s != nil && s.size > 0 && (!s.relative(v.LastOffset()) || s.size+int64(len(v)) > r.limit || s.index.full(r.indexBytes) || s.times.full(r.indexBytes)) {
		name := s.file.file.Name()
		if err := r.sift(r.endPart(), "write "+name); err != nil {
			return err
		}
		s = nil
	}
	if s != nil {
		return nil
	}
	// A gap below the batch belongs to the new segment, unless the batch is too far for that.
	base := r.order
	if len(r.renewal.parts) == 0 {
		base = min(r.first, v.BaseOffset())
	}
	if v.LastOffset()-base > 1<<31-1 {
		base = v.BaseOffset()
	}
	return r.create(base, suffixRenewed)
}

// dropWritten removes what was written of the repair.
func (r *Repair) dropWritten() error {
	var err error
	if s := r.segment; s != nil {
		r.segment = nil
		err = errors.Join(s.release(), r.log.dropRepaired(s.base, r.suffix()))
	}
	if r.renewal != nil {
		for _, p := range r.renewal.parts {
			err = errors.Join(err, r.log.dropRepaired(p.base, suffixRenewed))
		}
		r.renewal.parts = nil
	}
	return err
}

// suffix is that of the files that are being written.
func (r *Repair) suffix() string {
	if r.renewal != nil {
		return suffixRenewed
	}
	return suffixRepaired
}

// swapRenewed puts the compacted part in its place. It waits for the disk.
func (l *Log) swapRenewed(r *Repair, now ident.Millis) (OffsetRange, error) {
	i := slices.IndexFunc(l.segments, func(s *segment) bool { return s.base == r.upTo })
	if i < 0 || !slices.Contains(l.holes, r.hole) || len(l.swaps) > 0 || len(l.leaving) > 0 || l.start != r.start {
		r.Abandon()
		return OffsetRange{}, ErrRepairOver
	}
	parts := r.renewal.parts
	var sources, bases []ident.Offset
	for _, s := range l.segments[:i] {
		sources = append(sources, s.base)
	}
	for _, p := range parts {
		bases = append(bases, p.base)
	}
	l.repaired.Add(1) // before a file gets another's name: a compaction may be reading
	// A process that dies before the next checkpoint must not leave word that what the leader has not compacted yet is clean: a tombstone would go before its records.
	l.dirtyFrom(l.start)
	if l.o.persist != nil {
		if err := l.o.persist(); err != nil {
			r.Abandon()
			return OffsetRange{}, l.sift(err, "write down that "+l.o.Partition.String()+" is to be compacted anew")
		}
	}
	l.shared.Lock()
	err := r.commit(bases)
	l.shared.Unlock()
	if err != nil {
		r.Abandon()
		return OffsetRange{}, l.sift(err, "name the renewed segments of "+l.o.Partition.String())
	}
	r.renewal.parts = nil // they count, whatever happens
	l.shared.Lock()
	err = completeRenewal(l.o.FS, l.o.Path, bases, sources)
	l.shared.Unlock()
	if err != nil {
		return OffsetRange{}, l.health.fail(fmt.Errorf("put the renewed segments of %s in their place: %w", l.o.Partition, err))
	}
	for _, s := range l.segments[:i] {
		l.closedSize -= s.size
		l.opened = slices.DeleteFunc(l.opened, func(x *segment) bool { return x == s })
		err = errors.Join(err, s.release())
		l.doomed = append(l.doomed, doomedSegment{s.base, now + ident.Millis(l.cfg.FileDeleteDelayMs)})
	}
	fresh := make([]*segment, len(parts))
	for n, p := range parts {
		fresh[n] = newSegment(l.o.FS, l.o.Path, p.base, now)
		fresh[n].size, fresh[n].end = p.size, p.end
		l.closedSize += p.size
	}
	l.segments = slices.Replace(l.segments, 0, i, fresh...)
	l.holes = slices.DeleteFunc(l.holes, func(h hole) bool { return h.To <= r.upTo })
	l.shapes++
	l.resume.clear()
	l.saveDamage()
	l.saveEnds()
	return OffsetRange{}, l.sift(err, "close a segment")
}

// commit lets the new segments count. The caller holds the shared lock.
func (r *Repair) commit(bases []ident.Offset) error {
	l := r.log
	if l.shared.gone || l.shared.closed {
		return ErrRepairOver
	}
	if err := syncDir(l.o.FS, l.o.Path); err != nil {
		return err
	}
	return replaceFile(l.o.FS, filepath.Join(l.o.Path, renewedFile), encodeRenewed(r.upTo, bases))
}

// completeRenewal gives the committed segments their names, after the old ones were set aside. What is done already is passed over.
func completeRenewal(fs FS, dir string, bases, sources []ident.Offset) error {
	for _, base := range sources {
		if slices.Contains(bases, base) && !there(fs, segmentName(dir, base, suffixLog)+suffixRenewed) {
			continue // it is the new one
		}
		if err := renameSegment(fs, dir, base); err != nil {
			return err
		}
	}
	if err := syncDir(fs, dir); err != nil {
		return err
	}
	for _, base := range bases {
		for _, suffix := range segmentSuffixes { // the log is the last
			name := segmentName(dir, base, suffix)
			if err := fs.Rename(name+suffixRenewed, name); err != nil && !isNotExist(err) {
				return err
			}
		}
	}
	if err := syncDir(fs, dir); err != nil {
		return err
	}
	if err := fs.Remove(filepath.Join(dir, renewedFile)); err != nil && !isNotExist(err) {
		return err
	}
	return syncDir(fs, dir)
}

// there tells whether a file exists. One that cannot be looked at is taken to be there: whoever renames it will be told.
func there(fs FS, name string) bool {
	_, err := fs.Stat(name)
	return !isNotExist(err)
}

// encodeRenewed writes which segments take the place of those below upTo, the way Kafka writes checkpoints, sealed.
func encodeRenewed(upTo ident.Offset, bases []ident.Offset) []byte {
	b := fmt.Appendf(nil, "0\n%d\n%d\n", 1+len(bases), upTo)
	for _, base := range bases {
		b = fmt.Appendf(b, "%d\n", base)
	}
	return seal(b)
}

// decodeRenewed is the inverse. ErrFormat, ErrNewerFormat.
func decodeRenewed(b []byte) (upTo ident.Offset, bases []ident.Offset, err error) {
	text, err := unseal(b)
	if err != nil {
		return 0, nil, err
	}
	lines, err := checkpointLines(text)
	if err != nil {
		return 0, nil, err
	}
	for _, line := range lines {
		n, err := strconv.ParseInt(line, 10, 64)
		if err != nil || n < 0 {
			return 0, nil, fmt.Errorf("%.60q is no offset: %w", line, ErrFormat)
		}
		bases = append(bases, ident.Offset(n))
	}
	if len(bases) < 2 {
		return 0, nil, fmt.Errorf("no segment is named: %w", ErrFormat)
	}
	return bases[0], bases[1:], nil
}

// completeRenewals does at a restart what a crash left undone.
func (v *recovery) completeRenewals(entries []DirEntry) (changed bool, err error) {
	l := v.l
	if !slices.ContainsFunc(entries, func(e DirEntry) bool { return e.Name == renewedFile && !e.Dir }) {
		return false, nil
	}
	name := filepath.Join(l.o.Path, renewedFile)
	b, err := readFile(l.o.FS, name)
	if err != nil {
		return false, err
	}
	upTo, bases, err := decodeRenewed(b)
	if errors.Is(err, ErrFormat) && !errors.Is(err, ErrNewerFormat) {
		// It was renamed with its bytes durable, so that this is damage. Of the new segments those count that have their names; the next round of repair goes on.
		return true, l.o.FS.Remove(name)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	var sources []ident.Offset
	for _, e := range entries {
		if base, suffix, ok := parseSegmentName(e.Name); ok && suffix == suffixLog && base < upTo && !e.Dir {
			sources = append(sources, base)
		}
	}
	return true, completeRenewal(l.o.FS, l.o.Path, bases, sources)
}
