package store

import (
	"errors"
	"os"
	"path/filepath"
)

// A truncation cannot be undone once the first file was cut, so that it must not run
// out of space on its way. Before it changes anything it sets aside what its small
// files need, and a descriptor; who cannot get that much is refused, may try again,
// and nothing has changed. A step that meets a full disk gets what was set aside.

const (
	spareFile = "truncation" + suffixTemporary // recovery removes what a crash leaves
	// spareBytes is far more than an epoch file, the ends of two indexes and the
	// first blocks of a directory take.
	spareBytes = 256 << 10
)

type spare struct {
	fs   FS
	name string
	file File // nil: given away
}

// setSpare sets space and a descriptor aside. Errors: ErrNoSpace, ErrExhausted.
func (l *Log) setSpare() (*spare, error) {
	s := &spare{fs: l.o.FS, name: filepath.Join(l.o.Path, spareFile)}
	f, err := s.fs.OpenFile(s.name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, l.sift(err, "set space aside in "+l.o.Path)
	}
	s.file = f
	if err := f.Allocate(0, spareBytes+int64(len(l.epochs.list))*32); err != nil {
		return nil, l.sift(errors.Join(err, s.drop()), "set space aside in "+l.o.Path)
	}
	return s, nil
}

// drop gives back what was set aside.
func (s *spare) drop() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	if rm := s.fs.Remove(s.name); rm != nil && !isNotExist(rm) {
		err = errors.Join(err, rm)
	}
	return err
}

// run does a step that may be repeated when it was refused.
func (s *spare) run(step func() error) error {
	err := step()
	if !IsRetriable(err) || s.file == nil {
		return err
	}
	if rm := s.drop(); rm != nil {
		return errors.Join(err, rm)
	}
	return step()
}
