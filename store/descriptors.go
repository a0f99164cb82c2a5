package store

import (
	"errors"
	"os"
)

// How a log uses few descriptors. A directory may hold more logs, and a log more
// segments, than the process may have files open. So a file is opened by whoever
// needs it, a few closed segments stay open for their readers, and a log that has
// nothing to sync can rest: it gives back all its descriptors, and wakes with the
// next append or read. A file with bytes that were not synced never is closed: the
// descriptor is what hears of an error of writing them back.

const (
	// closedOpenMax is how many closed segments of one log stay open.
	closedOpenMax = 4
	// soiledMax is how many closed segments recovery leaves, open, to the first
	// flush round; what is beyond it is synced at once.
	soiledMax = 64
)

// reach makes sure that the segment's file is open.
func (l *Log) reach(s *segment) error {
	if s.file != nil {
		return nil
	}
	if l.hurried {
		return ErrWouldWait
	}
	if err := s.open(l.onFail); err != nil {
		return l.sift(err, "open "+s.name(suffixLog))
	}
	if s == l.active {
		l.noteAwake()
	} else {
		l.keepOpen(s)
	}
	return nil
}

// keepOpen notes that a closed segment is open, and closes the one that has been so
// for longest.
func (l *Log) keepOpen(s *segment) {
	if len(l.opened) == closedOpenMax {
		oldest := l.opened[0]
		l.opened = append(l.opened[:0], l.opened[1:]...)
		if oldest != s && oldest != l.active {
			if err := oldest.release(); err != nil {
				l.fail(err)
			}
		}
	}
	l.opened = append(l.opened, s)
}

// wake makes the log ready for an append: its active file is open, and the name of
// it will be synced with the bytes.
func (l *Log) wake() error {
	if err := l.reach(l.active); err != nil {
		return err
	}
	if !l.unnamed {
		return nil
	}
	if err := l.dirty.name(l.o.FS, l.o.Path); err != nil {
		return l.sift(err, "open "+l.o.Path)
	}
	if l.unmade {
		if err := l.dirty.identity(l.o.FS, l.o.Path); err != nil {
			return l.sift(err, "open "+l.o.Path)
		}
	}
	l.unnamed, l.unmade = false, false
	return nil
}

// rest gives back the descriptors, if nothing has to be synced by them.
func (l *Log) rest() {
	sf := l.active.file
	// A job on the file that reserves ahead must not meet another one that does so
	// by a descriptor of its own.
	if l.closed || l.dirty.active || sf == nil || sf.ahead.Load() {
		return
	}
	sf.release()
	l.active.file = nil
	err := errors.Join(l.active.index.close(), l.active.times.close())
	for _, s := range l.opened {
		if s != l.active {
			err = errors.Join(err, s.release())
		}
	}
	clear(l.opened)
	l.opened = l.opened[:0]
	l.noteAsleep()
	if err != nil {
		l.fail(err)
	}
}

// restIdle lets the log rest when nothing was appended since it was asked last.
func (l *Log) restIdle() {
	if l.end == l.idleAt {
		l.rest()
	}
	l.idleAt = l.end
}

func (l *Log) noteAwake() {
	if !l.awake && l.active.file != nil {
		l.awake = true
		l.health.awake.Add(1)
	}
}

func (l *Log) noteAsleep() {
	if l.awake {
		l.awake = false
		l.health.awake.Add(-1)
	}
}

// soilOrSync leaves a closed segment to the first flush round, or syncs it at once
// when many wait already.
func (l *Log) soilOrSync(s *segment) error {
	if len(l.dirty.closed) < soiledMax {
		return l.soil(s)
	}
	for _, suffix := range []string{suffixLog, suffixIndex, suffixTimeIndex} {
		f, err := l.o.FS.OpenFile(s.name(suffix), os.O_RDWR, 0)
		if isNotExist(err) && suffix != suffixLog {
			continue
		}
		if err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
