package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// replace makes content the durable content of one of the directory's files. When
// the disk is full the ballast gives way for it.
func (d *Directory) replace(name string, content []byte) error {
	path := filepath.Join(d.o.Path, name)
	err := replaceFile(d.o.FS, path, content)
	if err != nil && IsNoSpace(err) && d.dropBallast() {
		err = replaceFile(d.o.FS, path, content)
	}
	return d.health.sift(err, "write "+path)
}

func (d *Directory) dropBallast() bool {
	d.write.Lock()
	defer d.write.Unlock()
	if !d.ballast {
		return false
	}
	d.ballast = false
	return d.o.FS.Remove(filepath.Join(d.o.Path, ballastFile)) == nil
}

// loadBallast sets space aside if there is any to spare.
func (d *Directory) loadBallast() error {
	d.write.Lock()
	defer d.write.Unlock()
	if d.ballast {
		return nil
	}
	path := filepath.Join(d.o.Path, ballastFile)
	f, err := d.o.FS.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err == nil {
		err = errors.Join(f.Allocate(0, d.o.BallastBytes), f.Close())
	}
	if err != nil {
		if rm := d.o.FS.Remove(path); rm != nil && !isNotExist(rm) {
			err = errors.Join(err, rm)
		}
		if IsNoSpace(err) {
			return nil // later, when there is space again
		}
		return d.health.sift(err, "allocate "+path)
	}
	d.ballast = true
	return nil
}

// Checkpoint writes durable marks and log starts of all logs, durably. Call it
// every log.flush.offset.checkpoint.interval.ms.
func (d *Directory) Checkpoint() error {
	if err := d.health.check(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("data directory %s: %w", d.o.Path, ErrClosed)
	}
	return errors.Join(d.checkpoint(), d.loadBallast())
}

// checkpoint does it. Caller holds mu.
func (d *Directory) checkpoint() error {
	// The starts first: a mark above the start of a log without a segment is what a log looks like that lost all its files.
	err := errors.Join(d.writeLines(startsFile, d.starts(), false), d.writeMarks(), d.writeCleaned())
	if err == nil {
		clear(d.deleted)
	}
	return err
}

// writeCleaned writes how far each log was compacted, in Kafka's form. A line that is
// too low costs a compaction, so that a full disk is no reason to fail. One that is too
// high on disk is: what a repair has put below it would count as clean. Caller holds mu.
func (d *Directory) writeCleaned() error {
	var lines []markLine
	for tp, e := range d.logs {
		if o := ident.Offset(e.standing.cleaned.Load()); o > 0 {
			lines = append(lines, markLine{partition: tp, offset: o})
		}
	}
	text := encodeMarks(lines, markColumns{})
	if n := len(d.cleaned); n == 1 && bytes.Equal(text, d.cleaned[0]) || n == 0 && len(lines) == 0 {
		return nil
	}
	path := filepath.Join(d.o.Path, cleanedFile)
	lowers := d.lowersCleaned()
	err := d.putCleaned(path, text)
	if err != nil && lowers && IsNoSpace(err) && d.dropBallast() {
		err = d.putCleaned(path, text)
	}
	if !lowers && IsRetriable(err) {
		return nil
	}
	return d.health.sift(err, "write "+path)
}

// putCleaned replaces the file, and notes what may be on disk: when it has got its name and the directory could not be synced, the new text or the one of before. Caller
// holds mu.
func (d *Directory) putCleaned(path string, text []byte) error {
	if n := len(d.cleaned); n > 1 { // a third one there is not
		if err := syncDir(d.o.FS, d.o.Path); err != nil {
			return err
		}
		d.cleaned = d.cleaned[n-1:]
	}
	if err := putFile(d.o.FS, path, text, true); err != nil {
		return err
	}
	d.cleaned = append(d.cleaned, text)
	if err := syncDir(d.o.FS, d.o.Path); err != nil {
		return err
	}
	d.cleaned = [][]byte{text}
	return nil
}

// lowersCleaned tells whether the file on disk may call more of a log clean than is, or have a line of one that has gone: another of its name would inherit it. Caller
// holds mu.
func (d *Directory) lowersCleaned() bool {
	return slices.ContainsFunc(d.cleaned, func(text []byte) bool {
		lines, _ := decodeMarks(text, markColumns{}) // what cannot be read is not believed at a start either
		return slices.ContainsFunc(lines, func(m markLine) bool {
			e := d.logs[m.partition]
			return e == nil || ident.Offset(e.standing.cleaned.Load()) < m.offset
		})
	})
}

// readCleaned reads it. What cannot be read is forgotten, and compacted again.
func (d *Directory) readCleaned() error {
	b, err := readFile(d.o.FS, filepath.Join(d.o.Path, cleanedFile))
	var lines []markLine
	if err == nil {
		lines, err = decodeMarks(b, markColumns{})
	}
	switch {
	case errors.Is(err, ErrNewerFormat) || isNotExist(err) || errors.Is(err, ErrFormat):
		return nil
	case err != nil:
		return err
	}
	d.cleaned = [][]byte{b}
	for _, m := range lines {
		if e := d.logs[m.partition]; e != nil {
			e.standing.cleaned.Store(int64(m.offset))
		}
	}
	return nil
}

// ForgetStrict returns when no flag "strict, confirmed" of a log is on disk any more, after [Log.SetStrict] has taken it back. With an error it may still be
// there: call again.
func (d *Directory) ForgetStrict(tp ident.TopicPartition) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.logs[tp]; e == nil || !e.strict {
		return nil
	}
	return d.writeMarks()
}

// Strict tells the flag "strict, confirmed" of a log, as it was found or set.
func (d *Directory) Strict(tp ident.TopicPartition) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.logs[tp]
	return e != nil && e.standing.strict.Load()
}

// persist makes marks and log starts durable, and the control block with them: the
// step of a truncation before any byte is touched, when the mark is lowered. The
// starts go along, because the epoch file that is written next may have been cut to
// one.
func (d *Directory) persist() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.checkpoint(); err != nil {
		return err
	}
	return d.control.sync()
}

// writeStarts makes moved log starts durable.
func (d *Directory) writeStarts() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.writeLines(startsFile, d.starts(), false)
}

// writeMarks writes the durable marks and the flags beside them, and notes which flags may be on disk: while it fails, those of before and those it was about
// to write. Caller holds mu.
func (d *Directory) writeMarks() error {
	lines := d.marks()
	for i := range lines {
		e := d.logs[lines[i].partition]
		e.strict = e.strict || lines[i].strict
	}
	if err := d.writeLines(marksFile, lines, true); err != nil {
		return err
	}
	for i := range lines {
		d.logs[lines[i].partition].strict = lines[i].strict
	}
	return nil
}

// marks lists the durable marks. Caller holds mu.
func (d *Directory) marks() []markLine {
	lines := make([]markLine, 0, len(d.logs))
	untold := d.untold.Load()
	for tp, e := range d.logs {
		strict := e.standing.strict.Load() && (e.wasSet || !untold)
		lines = append(lines, markLine{partition: tp, offset: ident.Offset(e.standing.mark.Load()), strict: strict, topic: e.topic})
	}
	return lines
}

// starts lists the log starts that are not 0. Caller holds mu.
func (d *Directory) starts() []markLine {
	var lines []markLine
	for tp, e := range d.logs {
		if start := ident.Offset(e.standing.start.Load()); start > 0 {
			lines = append(lines, markLine{partition: tp, offset: start, topic: e.topic})
		}
	}
	return lines
}

// writeLines writes a checkpoint: the sealed copy first, which is believed first.
func (d *Directory) writeLines(name string, lines []markLine, flags bool) error {
	if err := d.replace(name+suffixSealed, seal(encodeMarks(lines, markColumns{flag: flags, topic: true}))); err != nil {
		return err
	}
	return d.replace(name, encodeMarks(lines, markColumns{}))
}

// readLines reads a checkpoint: the sealed copy if it is sound, else the plain
// one. found is false when neither is. Beside a sealed copy that is damaged the plain
// one is not believed to be of a newer version: nothing seals its number.
func readLines(fs FS, dir, name string, flags bool) (lines []markLine, found bool, err error) {
	b, err := readFile(fs, filepath.Join(dir, name+suffixSealed))
	if err == nil {
		var text []byte
		if text, err = unseal(b); err == nil {
			lines, err = decodeMarks(text, markColumns{flag: flags, topic: true})
		}
	}
	if err == nil {
		return lines, true, nil
	}
	if !passable(err) {
		return nil, false, fmt.Errorf("%s: %w", name+suffixSealed, err)
	}
	damaged := !isNotExist(err)
	if b, err = readFile(fs, filepath.Join(dir, name)); err == nil {
		lines, err = decodeMarks(b, markColumns{})
	}
	if err == nil {
		return lines, true, nil
	}
	if !passable(err) && (!damaged || !errors.Is(err, ErrNewerFormat)) {
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	return nil, false, nil
}

// passable tells whether an error of one copy lets us look at the other.
func passable(err error) bool {
	return isNotExist(err) || (errors.Is(err, ErrFormat) && !errors.Is(err, ErrNewerFormat))
}
