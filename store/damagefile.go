package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// damageFile keeps what was found to be damaged over a restart. Without it a batch that was found bad when it came from the disk would be served again by a
// process that finds it in the page cache. It is advice: what it says is held against the batches, so that whoever put a sound file back is believed.
const damageFile = "damaged-offsets"

// encodeRanges writes ranges the way Kafka writes checkpoints, sealed.
func encodeRanges(list []OffsetRange) []byte {
	b := fmt.Appendf(nil, "0\n%d\n", len(list))
	for _, r := range list {
		b = fmt.Appendf(b, "%d %d\n", r.From, r.To)
	}
	return seal(b)
}

// decodeRanges is the inverse. ErrFormat, ErrNewerFormat.
func decodeRanges(b []byte) ([]OffsetRange, error) {
	text, err := unseal(b)
	if err != nil {
		return nil, err
	}
	lines, err := checkpointLines(text)
	if err != nil {
		return nil, err
	}
	list := make([]OffsetRange, 0, len(lines))
	for _, line := range lines {
		from, to, _ := strings.Cut(line, " ")
		a, err1 := strconv.ParseInt(from, 10, 64)
		z, err2 := strconv.ParseInt(to, 10, 64)
		if err := errors.Join(err1, err2); err != nil || a < 0 || z <= a {
			return nil, fmt.Errorf("%.60q is no range of offsets: %w", line, ErrFormat)
		}
		list = append(list, OffsetRange{ident.Offset(a), ident.Offset(z)})
	}
	return list, nil
}

// saveDamage leaves it to the background to write what is damaged, if the file says otherwise.
func (l *Log) saveDamage() {
	list := make([]OffsetRange, len(l.holes)) // also those below the start, which are passed over
	for i, h := range l.holes {
		list[i] = h.OffsetRange
	}
	if slices.Equal(list, l.damageSaved) && !l.damageUnsaved.Load() {
		return
	}
	l.damageSaved = list
	l.damageUnsaved.Store(false)
	name := filepath.Join(l.o.Path, damageFile)
	l.inDirectory(func() error {
		var err error
		if len(list) > 0 {
			err = replaceFile(l.o.FS, name, encodeRanges(list))
		} else if err = l.o.FS.Remove(name); isNotExist(err) {
			err = nil
		}
		if err != nil {
			l.damageUnsaved.Store(true) // a full disk; the next one to find something tries again
		}
		return err
	})
}

// recallDamage looks again at what was damaged when the log was open last.
func (v *recovery) recallDamage() error {
	if !v.damaged {
		return nil
	}
	l := v.l
	name := filepath.Join(l.o.Path, damageFile)
	b, err := readFile(l.o.FS, name)
	if err != nil && !isNotExist(err) {
		return l.sift(err, "read "+name)
	}
	list, err := decodeRanges(b)
	if err != nil {
		// What it said is found again by whoever reads it from the disk.
		list = []OffsetRange{{ident.NoOffset, ident.NoOffset}}
	}
	l.damageSaved = list
	for _, r := range list {
		from, to := r.From, min(r.To, l.end)
		if to > l.start {
			from = max(from, l.start)
		}
		for i := max(l.segmentAt(from), 0); i < len(l.segments) && l.segments[i].base < to; i++ {
			if err := v.recheck(i, from, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// recheck reads the batches of [from, to) that are in segment i, and condemns those that are unsound.
func (v *recovery) recheck(i int, from, to ident.Offset) error {
	l := v.l
	s := l.segments[i]
	sc, p, err := v.resume(s, from)
	if err != nil {
		return l.sift(err, "read "+s.name(suffixLog))
	}
	bound := l.behind(s)
	sc.upTo = bound
	if p.pos > 0 { // on a batch below, whose header says where the next one begins
		if _, _, err := sc.batch(); err != nil {
			return l.sift(ifIOFailure(err), "read "+s.name(suffixLog))
		}
	}
	sc.check = true
	for sc.next < to {
		next, epoch := sc.next, sc.epoch
		b, at, err := sc.batch()
		if err == nil && l.futureEpoch(b) {
			sc.pos, sc.next, sc.epoch, err = at, next, epoch, fmt.Errorf("epoch %d at offset %d: %w", b.LeaderEpoch(), b.LastOffset(), ErrFormat)
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, errScanEnd), errors.Is(err, errScanZero):
			// What is not there cannot be sound. findGap has said so, but not of a compacted log.
			if gap := (OffsetRange{max(sc.next, from), min(to, bound)}); gap.From < gap.To {
				v.r.Whole = false
				l.condemn(hole{OffsetRange: gap, base: s.base, pos: sc.pos, to: sc.pos})
			}
			return nil
		case isIOFailure(err):
			return l.sift(err, "read "+s.name(suffixLog))
		}
		h, err := sc.resync(s.base, bound)
		if err != nil {
			return l.sift(err, "read "+s.name(suffixLog))
		}
		l.condemn(h)
		sc.next = max(sc.next, h.To)
	}
	return nil
}

// futureEpoch tells that a batch is of an epoch that the log had not got to: a flipped bit that no checksum shows.
func (l *Log) futureEpoch(b record.View) bool {
	e := l.epochs.of(b.LastOffset())
	return e >= 0 && b.LeaderEpoch() > e
}
