package store

import (
	"errors"
	"fmt"

	"github.com/troupe-broker/troupe/wire/ident"
)

// doomedSegment waits, renamed to .deleted, for its files to be unlinked.
type doomedSegment struct {
	base ident.Offset
	due  ident.Millis
}

// Trimmed is what retention did.
type Trimmed struct {
	Start    ident.Offset // the log start now
	Segments int          // how many were closed to readers and renamed
	Bytes    int64        // their size
}

// SetStart moves the log start up to o (DeleteRecords, or a leader's start told
// to a follower); a lower o does nothing, one above End panics. It is durable when
// a sync that began afterwards has returned. Segments wholly below it go with the
// next ApplyRetention.
func (l *Log) SetStart(o ident.Offset) error {
	if err := l.usable(); err != nil {
		return err
	}
	if o > l.end {
		panic(fmt.Sprintf("store: the start of %s was set to %d, it ends at %d", l.o.Partition, o, l.end))
	}
	l.moveStart(o)
	return nil
}

func (l *Log) moveStart(o ident.Offset) {
	if o <= l.start {
		return
	}
	l.start = o
	l.standing.start.Store(int64(o))
	l.dirty.start = true
	if l.epochs.cutStart(o) {
		l.epochsChanged()
	}
	l.passHoles()
}

// RetentionWaits tells whether ApplyRetention would have to wait for the disk to know
// which segments are due; LookForRetention, by somebody who may wait, spares it that.
func (l *Log) RetentionWaits(now ident.Millis, hw ident.Offset) bool {
	if l.usable() != nil {
		return false
	}
	l.hurried = true
	_, err := l.retired(now, hw)
	l.hurried = false
	return errors.Is(err, ErrWouldWait)
}

// LookForRetention reads what ApplyRetention goes by, which the log remembers.
func (l *Log) LookForRetention(now ident.Millis, hw ident.Offset) error {
	if err := l.usable(); err != nil {
		return err
	}
	_, err := l.retired(now, hw)
	return err
}

// ApplyRetention drops segments wholly below hw that are too old, beyond the size
// limit, or below the log start, and unlinks files whose delay is over. Only
// closed segments go; when the active one is due by age it is closed first. Call
// it every log.retention.check.interval.ms.
func (l *Log) ApplyRetention(now ident.Millis, hw ident.Offset) (Trimmed, error) {
	if err := l.usable(); err != nil {
		return Trimmed{Start: l.start}, err
	}
	l.settle()
	l.reap(now)
	l.restIdle()
	n, err := l.retired(now, hw)
	if err != nil {
		return Trimmed{Start: l.start}, err
	}
	if n == len(l.segments) {
		if err := l.Roll(now); err != nil {
			return Trimmed{Start: l.start}, err
		}
		n = len(l.segments) - 1
	}
	t := Trimmed{Segments: n}
	for _, s := range l.segments[:n] {
		t.Bytes += s.size
	}
	err = l.drop(n, now)
	t.Start = l.start
	return t, err
}

// retired counts the leading segments that are to be dropped.
func (l *Log) retired(now ident.Millis, hw ident.Offset) (int, error) {
	excess := int64(-1)
	if l.cfg.DeleteRetained && l.cfg.RetentionBytes >= 0 {
		excess = l.Size() - l.cfg.RetentionBytes
	}
	for i, s := range l.segments {
		next := l.end
		if i+1 < len(l.segments) {
			next = l.segments[i+1].base
		}
		if next > hw || (s == l.active && s.size == 0) {
			return i, nil
		}
		switch {
		case next <= l.start && s != l.active:
		case excess >= s.size && s != l.active:
			excess -= s.size
		default:
			old, err := l.expired(s, now)
			if err != nil || !old {
				return i, err
			}
			excess -= s.size
		}
	}
	return len(l.segments), nil
}

// expired tells whether the segment's newest record is older than retention.ms. A
// timestamp in the future would keep it for ever; the file's last change counts
// in its place, as it does when there are no timestamps.
func (l *Log) expired(s *segment, now ident.Millis) (bool, error) {
	if !l.cfg.DeleteRetained || l.cfg.RetentionMs < 0 {
		return false, nil
	}
	top, err := l.topOf(s)
	if err != nil {
		return false, err
	}
	newest := top.timestamp
	if newest < 0 || newest > now {
		info, err := l.o.FS.Stat(s.name(suffixLog))
		if isNotExist(err) && l.unnamedSwap(s) {
			return false, nil // it gets its name any moment
		}
		if err != nil {
			return false, l.sift(err, "look at "+s.name(suffixLog))
		}
		newest = info.Modified
	}
	return int64(now-newest) > l.cfg.RetentionMs, nil
}

// drop takes the first n segments out of the log. Their names change once the new
// log start is durable, so that a log never begins above its start; and their files
// go after file.delete.delay.ms.
func (l *Log) drop(n int, now ident.Millis) error {
	if n == 0 {
		return nil
	}
	var err error
	for _, s := range l.segments[:n] {
		l.closedSize -= s.size
		err = errors.Join(err, s.release())
		l.leaving = append(l.leaving, doomedSegment{s.base, now + ident.Millis(l.cfg.FileDeleteDelayMs)})
	}
	clear(l.segments[:n])
	l.segments = l.segments[n:]
	l.moveStart(l.segments[0].base)
	l.passHoles()
	l.dirty.start = true
	if l.o.persist == nil {
		l.leave(l.start)
	}
	stale := 0
	for stale < len(l.snapshots) && l.snapshots[stale] < l.start {
		stale++
	}
	// The newest one is kept even when it is below the start: the producers it
	// names may still be active.
	return errors.Join(l.sift(err, "close a segment"), l.dropSnapshots(min(stale, len(l.snapshots)-1), 0))
}

// leave renames the segments that wait for start to be durable, and lie below it as a
// whole: in the background, lowest first and each durable before the next, so that a
// crash leaves no hole.
func (l *Log) leave(start ident.Offset) {
	n := 0
	for n < len(l.leaving) {
		next := l.segments[0].base
		if n+1 < len(l.leaving) {
			next = l.leaving[n+1].base
		}
		if next > start {
			break
		}
		n++
	}
	if n == 0 {
		return
	}
	gone := make([]ident.Offset, n)
	for i, s := range l.leaving[:n] {
		gone[i] = s.base
	}
	l.doomed = append(l.doomed, l.leaving[:n]...)
	l.leaving = l.leaving[n:]
	l.inDirectory(func() error { return setAside(l.o.FS, l.o.Path, gone) })
}

// setAside renames segments to .deleted, in the order given, each durable before
// the next.
func setAside(fs FS, dir string, bases []ident.Offset) error {
	for _, base := range bases {
		if err := renameSegment(fs, dir, base); err != nil {
			return err
		}
		if err := syncDir(fs, dir); err != nil {
			return err
		}
	}
	return nil
}

// reap unlinks what has waited long enough.
func (l *Log) reap(now ident.Millis) {
	n := 0
	for n < len(l.doomed) && l.doomed[n].due <= now {
		n++
	}
	if n == 0 {
		return
	}
	due := make([]ident.Offset, n)
	for i := range due {
		due[i] = l.doomed[i].base
	}
	l.doomed = l.doomed[n:]
	l.inDirectory(func() error {
		var err error
		for _, base := range due {
			err = errors.Join(err, removeSegment(l.o.FS, l.o.Path, base, suffixDeleted))
		}
		return err
	})
}

// inDirectory runs a job on the partition's directory in the background, unless the
// directory is gone by then.
func (l *Log) inDirectory(job func() error) {
	l.background(func() {
		l.shared.Lock()
		defer l.shared.Unlock()
		if l.shared.gone {
			return
		}
		if err := job(); err != nil {
			l.fail(err)
		}
	})
}
