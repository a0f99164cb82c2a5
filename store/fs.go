package store

import (
	"io"
	"io/fs"

	"github.com/troupe-broker/troupe/wire/ident"
)

// FS is the outside world of disks. [OS] is the real one; package storetest has
// twins that forget, fail and lag. Names are paths, absolute or relative to the
// process. Errors wrap those of package io/fs and syscall, so that errors.Is with
// fs.ErrNotExist and syscall.ENOSPC works with every implementation.
type FS interface {
	// OpenFile opens a file. flag is of os.O_*, perm is used when it is created.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// OpenDir opens a directory in order to sync it later, even after the
	// directory was renamed or removed.
	OpenDir(name string) (Dir, error)
	// Rename moves a file or directory, replacing a file that is in the way.
	Rename(from, to string) error
	// Remove deletes a file or an empty directory.
	Remove(name string) error
	// RemoveAll deletes a directory and all below it; a missing one is no error.
	RemoveAll(name string) error
	// MkdirAll makes a directory and its parents; an existing one is no error.
	MkdirAll(name string, perm fs.FileMode) error
	// ReadDir lists a directory, sorted by name.
	ReadDir(name string) ([]DirEntry, error)
	// Stat describes a file or directory.
	Stat(name string) (FileInfo, error)
	// Usage describes the file system that holds name.
	Usage(name string) (Usage, error)
	// Lock takes the exclusive lock of a file, creating it; a second taker gets
	// ErrLocked. Closing gives it back, as the end of the process does.
	Lock(name string) (io.Closer, error)
	// BootID names the kernel's current boot. Memory survives within one boot.
	BootID() (string, error)
}

// File is an open file. ReadAt and WriteAt may be called from several goroutines.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Name is the name the file was opened by.
	Name() string
	// Size is the length of the file in bytes, reserved space included.
	Size() (int64, error)
	// Truncate sets the length. Bytes beyond a former end read as zeros.
	Truncate(size int64) error
	// Allocate reserves [off, off+n), growing the file to cover it, so that no
	// later write in the range can fail for lack of space. The reserved bytes
	// read as zeros where nothing was written.
	Allocate(off, n int64) error
	// Sync makes the file's bytes and its length durable (fdatasync). It does not
	// cover the file's name; see Dir.Sync. After an error nothing is known of the
	// bytes written since the last success.
	Sync() error
	// Map maps [off, off+n) shared and writable. The range may lie beyond the
	// file's end; only bytes below the end may be touched.
	Map(off, n int64) (Mapping, error)
	// ReadNow is ReadAt for a caller that may not wait: ErrWouldWait, and nothing of
	// use in p, when the disk would be needed.
	ReadNow(p []byte, off int64) (int, error)
	// Resident tells whether reading [off, off+n) needs no disk. A file system
	// that cannot say answers true.
	Resident(off, n int64) bool
	// Identity is the file's device and inode.
	Identity() (FileID, error)
	// Fd is the descriptor for sendfile; ok is false when there is none. It is
	// valid until Close.
	Fd() (fd uintptr, ok bool)
}

// Dir is an open directory.
type Dir interface {
	io.Closer
	// Sync makes the names in the directory durable.
	Sync() error
	// SyncFS makes everything on the directory's file system durable, and reports
	// each write-back error since the directory was opened.
	SyncFS() error
}

// Mapping is a mapped range of a file.
type Mapping interface {
	// Bytes is the range. Touching bytes beyond the file's end is a fault.
	Bytes() []byte
	// Sync makes the mapped range durable.
	Sync() error
	// Close unmaps. Bytes must not be touched afterwards.
	Close() error
}

// DirEntry is one name of a directory.
type DirEntry struct {
	Name string
	Dir  bool
}

// FileID tells one file of a machine from another.
type FileID struct{ Device, Inode uint64 }

// FileInfo describes a file or directory.
type FileInfo struct {
	Size     int64
	Dir      bool
	Modified ident.Millis
	ID       FileID
}

// Usage describes a file system.
type Usage struct {
	Total int64 // bytes
	Free  int64 // bytes that an ordinary user may still write
	// Own tells that the directory asked about is the root of its file system,
	// so that syncing the whole of it does nobody else's work.
	Own bool
	// Flushes tells that syncing the whole file system is known to reach the
	// platter through the drive's cache.
	Flushes bool
}
