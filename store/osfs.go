//go:build linux

package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/troupe-broker/troupe/wire/ident"
)

// osFS is the machine's file system, through the os package and, where that has no
// word for it, system calls.
type osFS struct{}

// OS is the file system of the machine.
func OS() FS { return osFS{} }

func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag|unix.O_CLOEXEC, perm)
	if err != nil {
		return nil, err
	}
	return &osFile{f: f, fd: int(f.Fd())}, nil
}

func (osFS) OpenDir(name string) (Dir, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &osDir{f: f}, nil
}

func (osFS) Rename(from, to string) error                 { return os.Rename(from, to) }
func (osFS) Remove(name string) error                     { return os.Remove(name) }
func (osFS) RemoveAll(name string) error                  { return os.RemoveAll(name) }
func (osFS) MkdirAll(name string, perm fs.FileMode) error { return os.MkdirAll(name, perm) }

func (osFS) ReadDir(name string) ([]DirEntry, error) {
	list, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	entries := make([]DirEntry, len(list))
	for i, e := range list {
		entries[i] = DirEntry{Name: e.Name(), Dir: e.IsDir()}
	}
	return entries, nil
}

func (osFS) Stat(name string) (FileInfo, error) {
	info, err := os.Stat(name)
	if err != nil {
		return FileInfo{}, err
	}
	fi := FileInfo{Size: info.Size(), Dir: info.IsDir(), Modified: ident.Millis(info.ModTime().UnixMilli())}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		fi.ID = FileID{Device: st.Dev, Inode: st.Ino}
	}
	return fi, nil
}

// Magic numbers of statfs(2) for the file systems we know something about.
const (
	fsExt4 = 0xef53
)

func (osFS) Usage(name string) (Usage, error) {
	var st unix.Statfs_t
	if err := retryEINTR(func() error { return unix.Statfs(name, &st) }); err != nil {
		return Usage{}, &fs.PathError{Op: "statfs", Path: name, Err: err}
	}
	u := Usage{Total: int64(st.Blocks) * st.Bsize, Free: int64(st.Bavail) * st.Bsize}
	abs, err := filepath.Abs(name)
	if err != nil {
		return Usage{}, err
	}
	here, err := osFS{}.Stat(abs)
	if err != nil {
		return Usage{}, err
	}
	above, err := osFS{}.Stat(filepath.Dir(abs))
	if err != nil {
		return Usage{}, err
	}
	u.Own = here.ID.Device != above.ID.Device
	// ext4 flushes the drive's cache in syncfs, unless barriers are off. XFS forces
	// its log and may leave the cache alone when the log is clean; of others we
	// have not looked.
	if st.Type == fsExt4 {
		barriers, err := mountedWithBarriers(here.ID.Device)
		u.Flushes = err == nil && barriers
	}
	return u, nil
}

// mountedWithBarriers looks through /proc/self/mountinfo for the options of the
// file system on a device.
func mountedWithBarriers(device uint64) (bool, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	want := fmt.Sprintf("%d:%d", unix.Major(device), unix.Minor(device))
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[2] != want {
			continue
		}
		options := fields[5] + "," + fields[len(fields)-1]
		return !strings.Contains(options, "nobarrier") && !strings.Contains(options, "barrier=0"), nil
	}
	return false, fmt.Errorf("device %s is not in mountinfo: %w", want, fs.ErrNotExist)
}

func (osFS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	err = retryEINTR(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if err == nil {
		return f, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, errors.Join(&fs.PathError{Op: "flock", Path: name, Err: err}, f.Close())
}

func (osFS) BootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(id)), nil
}

// osFile is an *os.File with the system calls that os has no word for. fd is kept
// beside it because File.Fd would put the file into blocking mode, which regular
// files are in anyway.
type osFile struct {
	f      *os.File
	fd     int
	opaque atomic.Bool // cachestat does not tell of its pages
	told   atomic.Bool // the kernel guesses nothing; see cold
}

func (f *osFile) Name() string                             { return f.f.Name() }
func (f *osFile) ReadAt(p []byte, off int64) (int, error)  { return f.f.ReadAt(p, off) }
func (f *osFile) WriteAt(p []byte, off int64) (int, error) { return f.f.WriteAt(p, off) }
func (f *osFile) Truncate(size int64) error                { return f.f.Truncate(size) }
func (f *osFile) Close() error                             { return f.f.Close() }
func (f *osFile) Fd() (uintptr, bool)                      { return uintptr(f.fd), true }
func (f *osFile) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.f.Name(), Err: err}
}

func (f *osFile) Size() (int64, error) {
	info, err := f.f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *osFile) Allocate(off, n int64) error {
	if n <= 0 {
		return nil
	}
	err := retryEINTR(func() error { return unix.Fallocate(f.fd, 0, off, n) })
	if errors.Is(err, unix.EOPNOTSUPP) {
		// No fallocate here (some network and overlay file systems): write the
		// zeros, which reserves as well.
		return f.allocateByWriting(off, n)
	}
	if err != nil {
		return f.fail("fallocate", err)
	}
	return nil
}

func (f *osFile) allocateByWriting(off, n int64) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	// What lies below the file's end was reserved by an earlier call.
	end := off + n
	zeros := make([]byte, 64<<10)
	for at := max(off, size); at < end; {
		k, err := f.f.WriteAt(zeros[:min(int64(len(zeros)), end-at)], at)
		if err != nil {
			return errors.Join(err, f.f.Truncate(size))
		}
		at += int64(k)
	}
	return nil
}

func (f *osFile) Sync() error {
	if err := retryEINTR(func() error { return unix.Fdatasync(f.fd) }); err != nil {
		return f.fail("fdatasync", err)
	}
	return nil
}

func (f *osFile) Map(off, n int64) (Mapping, error) {
	b, err := unix.Mmap(f.fd, off, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, f.fail("mmap", err)
	}
	return &osMapping{b: b, name: f.f.Name()}, nil
}

// WillNeed has the kernel begin to read [off, off+n) into the page cache. It is a hint, and an error of it says nothing.
func (f *osFile) WillNeed(off, n int64) {
	_ = unix.Fadvise(f.fd, off, n, unix.FADV_WILLNEED)
}

// nowait is what a call takes that asks the page cache and does not wait: its arguments, kept because it is made with every region that is sent. Such calls are
// raw: the scheduler need not be told of what does not wait, and telling it costs more than they do.
type nowait struct {
	b    [1]byte
	iov  unix.Iovec
	span unix.CachestatRange
	stat unix.Cachestat_t
}

var nowaits = sync.Pool{New: func() any { return new(nowait) }}

// Resident counts the pages of the range that are cached (cachestat, Linux 6.5), and reads a byte here and there: a page whose read is under way counts as cached
// too. Where the count says nothing, it reads one byte of each end: a tear in the middle is possible then, and costs a wait, not a wrong answer.
func (f *osFile) Resident(off, n int64) bool {
	if n <= 0 {
		return true
	}
	last := off + n - 1
	if first := off / pageSize; !f.opaque.Load() {
		pages := last/pageSize - first + 1
		cached, ok := f.cached(first*pageSize, pages*pageSize)
		switch {
		case ok && cached == uint64(pages):
			return f.arrived(off, last) || f.cold()
		case ok && cached > 0:
			return f.cold()
		}
	}
	if !f.residentAt(off) || off/pageSize != last/pageSize && !f.residentAt(last) {
		return f.cold()
	}
	// Cached, and counted nowhere: the pages are another file's, as on an overlay file system.
	f.opaque.Store(true)
	return true
}

// cold notes that somebody reads what is on the disk, and answers false. From then on the kernel does not guess what comes next (WillNeed tells it): each guess is
// made by whoever touches a certain page of what was guessed before, and waits for room in the queue of the disk, also in a call that may not wait.
func (f *osFile) cold() bool {
	if !f.told.Swap(true) {
		_ = unix.Fadvise(f.fd, 0, 0, unix.FADV_RANDOM) // a hint
	}
	return false
}

// arriveStep is how far apart bytes are that tell whether what is cached has come from the disk: half of what the kernel reads ahead at once, if nobody has set it.
const arriveStep = 64 << 10

// arrived tells whether none of the reads of [off, last] is still under way, which the kernel has begun because it guesses or was told what comes next.
func (f *osFile) arrived(off, last int64) bool {
	for at := last; at > off; at -= arriveStep { // what was asked for last comes last
		if !f.residentAt(at) {
			return false
		}
	}
	return f.residentAt(off)
}

func (f *osFile) cached(off, n int64) (pages uint64, ok bool) {
	c := nowaits.Get().(*nowait)
	c.span = unix.CachestatRange{Off: uint64(off), Len: uint64(n)}
	_, _, errno := unix.RawSyscall6(unix.SYS_CACHESTAT, uintptr(f.fd), uintptr(unsafe.Pointer(&c.span)), uintptr(unsafe.Pointer(&c.stat)), 0, 0, 0)
	pages = c.stat.Cache
	nowaits.Put(c)
	return pages, errno == 0
}

func (f *osFile) residentAt(off int64) bool {
	c := nowaits.Get().(*nowait)
	_, errno := f.readNow(c, &c.b[0], 1, off)
	nowaits.Put(c)
	// Only EAGAIN says that the disk would be needed. Kernels and file systems
	// without RWF_NOWAIT answer EOPNOTSUPP or ENOSYS: they cannot say.
	return errno != unix.EAGAIN
}

func (f *osFile) readNow(c *nowait, p *byte, n int, off int64) (int, syscall.Errno) {
	c.iov.Base = p
	c.iov.SetLen(n)
	got, _, errno := unix.RawSyscall6(unix.SYS_PREADV2, uintptr(f.fd), uintptr(unsafe.Pointer(&c.iov)), 1, uintptr(off), uintptr(off>>32), unix.RWF_NOWAIT)
	c.iov.Base = nil
	return int(got), errno
}

// ReadNow implements File. What comes short, at the end of the file or of what is cached, is left to ReadAt to tell apart.
func (f *osFile) ReadNow(p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c := nowaits.Get().(*nowait)
	n, errno := f.readNow(c, &p[0], len(p), off)
	nowaits.Put(c)
	switch {
	case errno == 0 && n == len(p):
		return n, nil
	case errno == unix.EAGAIN, errno == 0 && n > 0 && !f.residentAt(off+int64(n)):
		return 0, ErrWouldWait
	default:
		return f.ReadAt(p, off)
	}
}

func (f *osFile) Identity() (FileID, error) {
	var st unix.Stat_t
	if err := retryEINTR(func() error { return unix.Fstat(f.fd, &st) }); err != nil {
		return FileID{}, f.fail("fstat", err)
	}
	return FileID{Device: st.Dev, Inode: st.Ino}, nil
}

type osDir struct{ f *os.File }

func (d *osDir) Close() error { return d.f.Close() }
func (d *osDir) Sync() error  { return d.f.Sync() }

func (d *osDir) SyncFS() error {
	if err := retryEINTR(func() error { return unix.Syncfs(int(d.f.Fd())) }); err != nil {
		return &fs.PathError{Op: "syncfs", Path: d.f.Name(), Err: err}
	}
	return nil
}

type osMapping struct {
	b    []byte
	name string
}

func (m *osMapping) Bytes() []byte { return m.b }

func (m *osMapping) Sync() error {
	if err := unix.Msync(m.b, unix.MS_SYNC); err != nil {
		return &fs.PathError{Op: "msync", Path: m.name, Err: err}
	}
	return nil
}

func (m *osMapping) Close() error {
	if err := unix.Munmap(m.b); err != nil {
		return &fs.PathError{Op: "munmap", Path: m.name, Err: err}
	}
	return nil
}

// retryEINTR repeats a system call that a signal interrupted; the Go runtime
// preempts by signals, so this happens to idle programs too.
func retryEINTR(call func() error) error {
	for {
		err := call()
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
