package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
	return errors.Join(d.writeLines(marksFile, d.marks(), true), d.writeLines(startsFile, d.starts(), false), d.writeCleaned())
}

// writeCleaned writes how far each log was compacted, in Kafka's form. It is a cache, so
// that a full disk is no reason to fail. Caller holds mu.
func (d *Directory) writeCleaned() error {
	var lines []markLine
	for tp, e := range d.logs {
		if o := ident.Offset(e.standing.cleaned.Load()); o > 0 {
			lines = append(lines, markLine{partition: tp, offset: o})
		}
	}
	text := encodeMarks(lines, markColumns{})
	if bytes.Equal(text, d.cleaned) || (len(lines) == 0 && d.cleaned == nil) {
		return nil
	}
	path := filepath.Join(d.o.Path, cleanedFile)
	err := putFile(d.o.FS, path, text, true)
	if err == nil {
		d.cleaned = text
	}
	if IsRetriable(err) {
		return nil
	}
	return d.health.sift(err, "write "+path)
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
	for _, m := range lines {
		if e := d.logs[m.partition]; e != nil {
			e.standing.cleaned.Store(int64(m.offset))
		}
	}
	return nil
}

// SetStrict writes the flag "strict, confirmed" beside the durable mark of a log
// (design of replication: a replica with this flag, a readable mark and everything
// up to it is whole after any restart). It is durable when the call returns.
func (d *Directory) SetStrict(tp ident.TopicPartition, on bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.logs[tp]
	if e == nil {
		return fmt.Errorf("set the strict flag of %s: %w", tp, os.ErrNotExist)
	}
	if e.strict == on {
		return nil
	}
	e.strict = on
	return d.writeLines(marksFile, d.marks(), true)
}

// ConfirmStrict sets the same flag with the next checkpoint. That is safe: a flag that
// is lost makes a replica less trusted than it could be, and a thousand new partitions
// do not write the marks a thousand times.
func (d *Directory) ConfirmStrict(tp ident.TopicPartition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.logs[tp]; e != nil {
		e.strict = true
	}
}

// Strict tells the flag as it was found or set.
func (d *Directory) Strict(tp ident.TopicPartition) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.logs[tp]
	return e != nil && e.strict
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

// marks lists the durable marks. Caller holds mu.
func (d *Directory) marks() []markLine {
	lines := make([]markLine, 0, len(d.logs))
	for tp, e := range d.logs {
		lines = append(lines, markLine{partition: tp, offset: ident.Offset(e.standing.mark.Load()), strict: e.strict, topic: e.topic})
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
// one. found is false when neither is.
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
	if b, err = readFile(fs, filepath.Join(dir, name)); err == nil {
		lines, err = decodeMarks(b, markColumns{})
	}
	if err == nil {
		return lines, true, nil
	}
	if !passable(err) {
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	return nil, false, nil
}

// passable tells whether an error of one copy lets us look at the other.
func passable(err error) bool {
	return isNotExist(err) || (errors.Is(err, ErrFormat) && !errors.Is(err, ErrNewerFormat))
}
