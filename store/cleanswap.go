package store

import (
	"errors"
	"os"
	"slices"
	"sync/atomic"

	"github.com/troupe-broker/troupe/wire/ident"
)

// The files of a swap, each line durable before the next:
//
//	X.log.cleaned, and its indexes                 written, and not the log's yet
//	X.log.cleaned -> X.log.swap                    from here on it counts
//	X.* -> X.*.deleted, Y.* -> Y.*.deleted, …      the sources
//	X.log.swap -> X.log, and its indexes
//
// A .cleaned file without a .swap is dropped at a restart; a .swap is completed. Its last
// batch ends where the last source's did (an empty one stays for that), so that it tells
// which segments it replaces: those that begin before its end.

// swap is what is to be done to the files of a group that was swapped in memory.
type swap struct {
	base    ident.Offset
	suffix  string // of the files that were written
	sources []ident.Offset
	before  *swap // has to be done first: what a tombstone deletes goes before its time runs

	// Guarded by the log's shared lock, which run needs.
	committed, aside bool
	abandoned        bool

	done   atomic.Bool
	failed atomic.Bool // for lack of space; it may be tried again
}

// pendingSwap is the owner's side: a segment whose file has not got its name yet, and so
// is kept open.
type pendingSwap struct {
	swap    *swap
	segment *segment
}

// beginSwap leaves the files of a swap to the background. Jobs on the directory run in
// order, so that whatever the owner asks for later finds the names that it expects.
func (l *Log) beginSwap(w *swap, s *segment) {
	if n := len(l.swaps); n > 0 {
		w.before = l.swaps[n-1].swap
	}
	l.swaps = append(l.swaps, pendingSwap{w, s})
	l.queueSwap(w)
	l.settle()
}

func (l *Log) queueSwap(w *swap) {
	l.inDirectory(func() error {
		err := w.run(l)
		w.failed.Store(err != nil)
		return err
	})
}

// run does what is left of the swap, and of those before it. The caller holds the shared
// lock.
func (w *swap) run(l *Log) error {
	if w.done.Load() || w.abandoned {
		return nil
	}
	if err := l.health.check(); err != nil {
		return err
	}
	if w.before != nil {
		if err := w.before.run(l); err != nil {
			return err
		}
		w.before = nil
	}
	fs, dir := l.o.FS, l.o.Path
	name := segmentName(dir, w.base, suffixLog)
	if !w.committed {
		if err := fs.Rename(name+w.suffix, name+suffixSwap); err != nil {
			return err
		}
		if err := syncDir(fs, dir); err != nil {
			return err
		}
		w.committed = true
	}
	if !w.aside {
		for _, base := range w.sources {
			if err := renameSegment(fs, dir, base); err != nil {
				return err
			}
		}
		if err := syncDir(fs, dir); err != nil {
			return err
		}
		w.aside = true
	}
	if err := nameCleaned(fs, dir, w.base, w.suffix); err != nil {
		return err
	}
	w.done.Store(true)
	return nil
}

// nameCleaned gives a committed segment its names, the log's last.
func nameCleaned(fs FS, dir string, base ident.Offset, written string) error {
	for _, suffix := range []string{suffixTxnIndex, suffixIndex, suffixTimeIndex} {
		name := segmentName(dir, base, suffix)
		if err := fs.Rename(name+written, name); err != nil && !isNotExist(err) {
			return err
		}
	}
	name := segmentName(dir, base, suffixLog)
	if err := fs.Rename(name+suffixSwap, name); err != nil && !isNotExist(err) {
		return err
	}
	return syncDir(fs, dir)
}

// settle takes note of swaps whose files have their names, and queues those again that
// could not be done.
func (l *Log) settle() {
	for len(l.swaps) > 0 && l.swaps[0].swap.done.Load() {
		p := l.swaps[0]
		l.swaps = slices.Delete(l.swaps, 0, 1)
		p.segment.index.name = p.segment.name(suffixIndex)
		p.segment.times.name = p.segment.name(suffixTimeIndex)
		switch {
		case p.segment.file == nil || !slices.Contains(l.segments, p.segment):
		case l.active.file == nil: // the log rests
			l.onFailed(p.segment.release())
		default:
			l.keepOpen(p.segment)
		}
	}
	if len(l.swaps) == 0 {
		l.standing.cleaned.Store(int64(l.cleaned))
		return
	}
	if w := l.swaps[len(l.swaps)-1].swap; w.failed.CompareAndSwap(true, false) {
		l.queueSwap(w)
	}
}

// onFailed hears of an error that no caller waits for.
func (l *Log) onFailed(err error) {
	if err != nil {
		l.fail(err)
	}
}

// unnamedSwap tells whether the file of a segment has not got its name yet.
func (l *Log) unnamedSwap(s *segment) bool {
	return slices.ContainsFunc(l.swaps, func(p pendingSwap) bool { return p.segment == s })
}

// finishSwaps does in the owner's turn what is left of all swaps: before the segments
// are cut, and before the log is closed.
func (l *Log) finishSwaps() error {
	if len(l.swaps) == 0 {
		return nil
	}
	w := l.swaps[len(l.swaps)-1].swap
	l.shared.Lock()
	err := w.run(l)
	l.shared.Unlock()
	l.settle()
	return l.sift(err, "put a cleaned segment of "+l.o.Partition.String()+" in its place")
}

// abandonSwaps keeps jobs that were not run yet from running: somebody else may have the
// directory now. The next start does what they would have done.
func (l *Log) abandonSwaps() {
	l.shared.Lock()
	defer l.shared.Unlock()
	l.shared.closed = true
	for _, p := range l.swaps {
		p.swap.abandoned = true
	}
	l.swaps = nil
}

// completeSwaps does at a restart what a crash left undone.
func (v *recovery) completeSwaps(entries []DirEntry) (changed bool, err error) {
	var swaps, logs []ident.Offset
	lowest := endOfTime // of the cleaned ones
	for _, e := range entries {
		base, suffix, ok := parseSegmentName(e.Name)
		switch {
		case !ok || e.Dir:
		case suffix == suffixLog+suffixSwap:
			swaps = append(swaps, base)
		case suffix == suffixLog+suffixCleaned:
			lowest = min(lowest, base)
		case suffix == suffixLog:
			logs = append(logs, base)
		}
	}
	slices.Sort(swaps)
	for _, base := range swaps {
		if lowest <= base {
			// Kafka splits a segment so: all parts are .swap before the old one goes. A later compaction may have begun the .cleaned one as well, and then the
			// .swap is all there is.
			covered, err := v.covered(base, logs)
			if err != nil {
				return true, err
			}
			if covered {
				if err := removeSegment(v.l.o.FS, v.l.o.Path, base, suffixSwap); err != nil {
					return true, err
				}
				continue
			}
		}
		if err := v.completeSwap(base, logs); err != nil {
			return true, err
		}
	}
	return len(swaps) > 0, nil
}

// covered tells whether a segment under its own name has the offset o.
func (v *recovery) covered(o ident.Offset, logs []ident.Offset) (bool, error) {
	below := ident.NoOffset
	for _, base := range logs {
		if base <= o {
			below = max(below, base)
		}
	}
	if below < 0 {
		return false, nil
	}
	end, _, err := v.l.endOf(segmentName(v.l.o.Path, below, suffixLog), below)
	return end > o, err
}

// completeSwap puts one committed segment in the place of those that it replaces.
func (v *recovery) completeSwap(base ident.Offset, logs []ident.Offset) error {
	l := v.l
	name := segmentName(l.o.Path, base, suffixLog) + suffixSwap
	end, sound, err := l.endOf(name, base)
	if err != nil {
		return err
	}
	if !sound && slices.Contains(logs, base) {
		// The disk has lost the new one, and has the old ones.
		return l.o.FS.Remove(name)
	}
	for _, old := range logs {
		if old >= base && old < end {
			if err := renameSegment(l.o.FS, l.o.Path, old); err != nil {
				return err
			}
		}
	}
	if err := syncDir(l.o.FS, l.o.Path); err != nil {
		return err
	}
	// Kafka's own indexes; built anew.
	for _, suffix := range []string{suffixIndex, suffixTimeIndex} {
		if err := l.o.FS.Remove(segmentName(l.o.Path, base, suffix) + suffixSwap); err != nil && !isNotExist(err) {
			return err
		}
	}
	txn := segmentName(l.o.Path, base, suffixTxnIndex)
	for _, suffix := range []string{suffixSwap, suffixRepaired} { // Kafka's, and that of a repair
		if err := l.o.FS.Rename(txn+suffix, txn); err != nil && !isNotExist(err) {
			return err
		}
	}
	return nameCleaned(l.o.FS, l.o.Path, base, suffixCleaned)
}

// endOf is the offset after the last batch of a file; sound: the batches end where the
// file does.
func (l *Log) endOf(name string, base ident.Offset) (end ident.Offset, sound bool, err error) {
	b, err := l.o.FS.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return 0, false, err
	}
	size, err := b.Size()
	if err != nil {
		return 0, false, errors.Join(err, b.Close())
	}
	sc := newScanner(nil, b, 0, size, base)
	for err == nil {
		_, _, err = sc.batch()
	}
	sound = errors.Is(err, errScanEnd)
	if !isIOFailure(err) {
		err = nil
	}
	return sc.next, sound, errors.Join(err, b.Close())
}
