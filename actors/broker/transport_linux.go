package broker

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/troupe-broker/troupe/actors/runtime"
)

const (
	// stalledWriteMax is how long a peer may take no byte of an answer.
	stalledWriteMax = 30 * time.Second
	// vectorMax is the number of slices of one write.
	vectorMax = 64
	// rawMax is how many bytes one raw system call moves at most, see tryRead.
	rawMax = 256 << 10
)

// socket is the Transport of a TCP connection, and the blocking half that its reader and the wait for writability use. Writes are one system call each,
// with MSG_DONTWAIT whatever the descriptor's mode; only the wait for writability parks, on a goroutine of its own.
type socket struct {
	conn  *net.TCPConn
	raw   syscall.RawConn
	clock runtime.Clock
	self  *runtime.Ref // the session
	wait  func(func()) // starts the waiting goroutine; its owner waits for it
	stall time.Duration

	once   sync.Once
	closed chan struct{} // closed by Close

	// One write attempt: arguments and results of attempt.
	vec     [vectorMax]unix.Iovec
	vecLen  int
	total   int // bytes in vec
	flags   int
	fd      uintptr // of the file to send
	off     int64
	want    int
	sent    int
	err     error
	attempt func(fd uintptr) bool
	file    func(fd uintptr) bool

	// One read attempt.
	space   func() []byte
	nothing func()
	got     int
	readErr error
	read    func(fd uintptr) bool
}

func newSocket(conn *net.TCPConn, clock runtime.Clock, wait func(func())) (*socket, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &socket{conn: conn, raw: raw, clock: clock, wait: wait, stall: stalledWriteMax, closed: make(chan struct{})}
	s.attempt, s.file, s.read = s.tryWrite, s.trySendFile, s.tryRead
	return s, nil
}

// Write implements Transport with one sendmsg.
func (s *socket) Write(vec [][]byte, more bool) (int, error) {
	s.vecLen, s.total = 0, 0
	for _, b := range vec {
		if len(b) == 0 {
			continue
		}
		if s.vecLen == vectorMax {
			break
		}
		s.vec[s.vecLen].Base = unsafe.SliceData(b)
		s.vec[s.vecLen].SetLen(len(b))
		s.vecLen++
		s.total += len(b)
	}
	s.flags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL
	if more {
		s.flags |= unix.MSG_MORE
	}
	s.sent, s.err = 0, nil
	err := s.raw.Write(s.attempt)
	clear(s.vec[:s.vecLen])
	if err != nil {
		return 0, err
	}
	return s.sent, s.err
}

func (s *socket) tryWrite(fd uintptr) bool {
	msg := unix.Msghdr{Iov: &s.vec[0]}
	msg.SetIovlen(s.vecLen)
	for {
		var n uintptr
		var errno syscall.Errno
		if s.total <= rawMax {
			// A raw call, because it never waits: see tryRead.
			n, _, errno = unix.RawSyscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&msg)), uintptr(s.flags))
		} else {
			n, _, errno = unix.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&msg)), uintptr(s.flags))
		}
		switch errno {
		case 0:
			s.sent = int(n)
		case unix.EINTR:
			continue
		case unix.EAGAIN:
		default:
			s.err = errno
		}
		return true
	}
}

// SendFile implements Transport. The explicit offset leaves the file's own position alone: several sessions send the same file.
func (s *socket) SendFile(fd uintptr, off int64, n int) (int, error) {
	s.fd, s.off, s.want, s.sent, s.err = fd, off, n, 0, nil
	if err := s.raw.Write(s.file); err != nil {
		return 0, err
	}
	return s.sent, s.err
}

// trySendFile makes raw calls, as tryRead does: the socket does not wait, and what is sent is known to be in memory.
func (s *socket) trySendFile(fd uintptr) bool {
	for s.sent < s.want {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDFILE, fd, s.fd, uintptr(unsafe.Pointer(&s.off)), uintptr(min(s.want-s.sent, rawMax)), 0, 0)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			return true
		case errno != 0:
			s.err = errno
			return true
		case n == 0:
			s.err = errShortFile
			return true
		}
		s.sent += int(n)
	}
	return true
}

// ZeroCopy implements Transport.
func (s *socket) ZeroCopy() bool { return true }

// WhenWritable implements Transport: a goroutine parks until the kernel takes bytes again.
func (s *socket) WhenWritable() { s.wait(s.awaitWritable) }

func (s *socket) awaitWritable() {
	_, wall := s.clock.Now()
	if err := s.conn.SetWriteDeadline(time.UnixMilli(int64(wall)).Add(s.stall)); err != nil {
		s.tell(&hangup{reason: err, broken: true})
		return
	}
	err := s.raw.Write(func(fd uintptr) bool {
		// The poller was re-armed just now and tells changes only: what changed before has to be asked for.
		poll := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(poll[:], 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
	if err == nil {
		// The deadline was this wait's: left in place it would refuse every write after it, though the kernel had room.
		err = s.conn.SetWriteDeadline(time.Time{})
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.tell(&hangup{reason: errStalled, broken: true})
	case err != nil:
		s.tell(&hangup{reason: err, broken: true})
	default:
		s.tell(signalWritable)
	}
}

// peerGone says whether the peer has closed its side, or the whole connection. It does not wait.
func (s *socket) peerGone() bool {
	gone := false
	err := s.raw.Control(func(fd uintptr) {
		poll := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		if n, err := unix.Poll(poll[:], 0); err == nil && n > 0 {
			gone = poll[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
		}
	})
	return gone && err == nil
}

// tell posts to the session; when that is gone, so is the reason to tell.
func (s *socket) tell(m runtime.Message) { _ = s.self.Post(m) }

// Close implements Transport. The reader's next read fails.
func (s *socket) Close() {
	s.once.Do(func() {
		close(s.closed)
		_ = s.conn.Close() // an error of a socket that is given up changes nothing
	})
}

// receive waits until bytes have come, asks space for a buffer only then, and reads once into it. When space has none to give it returns 0 at once.
// nothing is called before it parks, to take back what space gave.
func (s *socket) receive(space func() []byte, nothing func()) (int, error) {
	s.space, s.nothing, s.got, s.readErr = space, nothing, 0, nil
	if err := s.raw.Read(s.read); err != nil {
		return 0, err
	}
	return s.got, s.readErr
}

// tryRead makes a raw system call: the scheduler is not told, and keeps the processor for this goroutine. Told, it would give the processor to another
// thread whenever a call takes longer than some 20 µs, and this one would have to ask for it again, which for small requests costs more than they do. A raw
// call must not wait: MSG_DONTWAIT sees to that, and rawMax to it that the copying ends soon.
func (s *socket) tryRead(fd uintptr) bool {
	b := s.space()
	if len(b) == 0 {
		return true
	}
	b = b[:min(len(b), rawMax)]
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			s.nothing()
			return false
		case errno != 0:
			s.readErr = errno
			return true
		case n == 0:
			s.readErr = io.EOF
			return true
		}
		s.got = int(n)
		return true
	}
}
