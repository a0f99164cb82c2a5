package store

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Conditions a caller acts upon; compare with errors.Is.
var (
	// ErrNoSpace: the disk is full. Nothing changed; the same call may succeed
	// later. Kafka clients see a retriable error.
	ErrNoSpace = errors.New("no space left for the log")
	// ErrExhausted: the process or the machine has no descriptor left. The disk is
	// sound; the same call may succeed later.
	ErrExhausted = errors.New("no file descriptor left")
	// ErrDirectoryOffline: an I/O error took the whole data directory out of
	// service until the broker is restarted.
	ErrDirectoryOffline = errors.New("the data directory is offline")
	// ErrOffsetOutOfRange: the offset is below the log start or above the end.
	ErrOffsetOutOfRange = errors.New("offset out of range")
	// ErrDamaged: the bytes at this offset do not pass their checksum and are not
	// served. Kafka clients see CORRUPT_MESSAGE.
	ErrDamaged = errors.New("the batch is damaged")
	// ErrStray: the partition directory's identity is lost or is not the
	// expected one; it was set aside under a name ending in -stray.
	ErrStray = errors.New("the partition directory is a stray")
	// ErrLocked: another process uses the data directory.
	ErrLocked = errors.New("the data directory is locked by another process")
	// ErrObstructed: a file of one log cannot be used: it is missing or may not be
	// opened, or something else has its name. That log is of no further use until
	// the next start; the directory and its other logs are sound.
	ErrObstructed = errors.New("a file of the log is missing, forbidden, or something else")
	// ErrWouldWait: the answer is not in memory. Ask again where waiting for the disk
	// is allowed.
	ErrWouldWait = errors.New("the answer is on the disk")
	// ErrClosed: the log or directory was closed.
	ErrClosed = errors.New("closed")
	// ErrNewerFormat: the file was written by a later version of Troupe.
	ErrNewerFormat = errors.New("written by a newer version")
	// ErrFormat: the file is not what its name says, or is damaged.
	ErrFormat = errors.New("not a well-formed file")
)

// Code names an error in docs/errors.md.
type Code string

// The codes of this package. Each has a paragraph in docs/errors.md.
const (
	CodeLocked        Code = "TRP-2001" // another process has the directory
	CodeMeta          Code = "TRP-2002" // meta.properties lost or damaged
	CodeForeign       Code = "TRP-2003" // the directory belongs to another broker or cluster
	CodeNewer         Code = "TRP-2004" // a file of a newer version
	CodeNoSpace       Code = "TRP-2005" // disk full
	CodeOffline       Code = "TRP-2006" // I/O error, directory offline
	CodeStray         Code = "TRP-2007" // partition.metadata lost or of another topic
	CodeStartLost     Code = "TRP-2008" // log-start-offset-checkpoint lost or damaged
	CodeDamaged       Code = "TRP-2009" // damaged batch
	CodeRaft          Code = "TRP-2010" // Raft log lost or damaged
	CodeNoPermission  Code = "TRP-2011" // the directory cannot be written
	CodeNotADirectory Code = "TRP-2012" // the path is a file
	CodeDescriptors   Code = "TRP-2016" // too many open files
	CodeObstructed    Code = "TRP-2017" // a file of one partition is missing, forbidden, or something else
)

// Error is an error with a code for the user. Message says what happened, where,
// and what to do; Err is the condition or cause.
type Error struct {
	Code    Code
	Message string
	Err     error
}

// Error prints code and message, and the cause where the message does not hold it.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unwrap gives the condition.
func (e *Error) Unwrap() error { return e.Err }

func coded(code Code, cause error, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: cause}
}

// OffsetError says which range an offset missed.
type OffsetError struct {
	Partition          ident.TopicPartition
	Offset, Start, End ident.Offset
}

// Error prints the offset and the range.
func (e *OffsetError) Error() string {
	return fmt.Sprintf("offset %d of %s is outside [%d, %d]", e.Offset, e.Partition, e.Start, e.End)
}

// Unwrap gives ErrOffsetOutOfRange.
func (e *OffsetError) Unwrap() error { return ErrOffsetOutOfRange }

// IsNoSpace tells whether err says that a disk or a quota is full.
func IsNoSpace(err error) bool {
	return errors.Is(err, ErrNoSpace) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// IsExhausted tells whether err says that descriptors have run out: of the process
// (EMFILE) or of the machine (ENFILE).
func IsExhausted(err error) bool {
	return errors.Is(err, ErrExhausted) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// IsRetriable tells whether the call that failed with err changed nothing and may
// succeed later: the disk is full, or descriptors have run out. Nothing is wrong
// with what is stored.
func IsRetriable(err error) bool { return IsNoSpace(err) || IsExhausted(err) }

// obstructions say that a name leads to something else than the file that belongs
// there, or that the file may not be used. The disk works.
var obstructions = []error{
	fs.ErrNotExist, fs.ErrExist, fs.ErrPermission,
	syscall.EISDIR, syscall.ENOTDIR, syscall.ENOTEMPTY, syscall.ELOOP, syscall.ENAMETOOLONG,
}

// isObstructed tells whether err says so, and says nothing worse.
func isObstructed(err error) bool {
	if err == nil || errors.Is(err, syscall.EIO) || errors.Is(err, ErrDirectoryOffline) {
		return false
	}
	return slices.ContainsFunc(obstructions, func(o error) bool { return errors.Is(err, o) })
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
