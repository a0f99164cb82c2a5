package store

import "github.com/troupe-broker/troupe/wire/ident"

// Room makes sure that a batch of size bytes can be appended as far as space and
// descriptors go, by reserving what it needs: in the active segment, or in a new one
// where the batch would not fit into it. now is the wall clock. On ErrNoSpace,
// ErrExhausted or any other error the log is as before.
func (l *Log) Room(size int, now ident.Millis) error {
	if err := l.usable(); err != nil {
		return err
	}
	if err := l.wake(); err != nil {
		return err
	}
	a := l.active
	if a.size > 0 && a.size+int64(size) > int64(l.cfg.SegmentBytes) {
		return l.roll(l.end, int64(size), now)
	}
	return l.sift(a.file.reserve(a.size+int64(size), l.growth), "reserve space in "+a.name(suffixLog))
}
