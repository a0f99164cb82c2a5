package floor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Role is what a floor server does with a request.
type Role string

// The roles a floor server can play.
const (
	// Null answers Produce requests and stores nothing.
	Null Role = "null"
	// D4 checks the CRC of the request's batch and copies it into a populated mapping
	// before it answers.
	D4 Role = "d4"
	// D5 answers Fetch requests with a header and a region of a cached file.
	D5 Role = "d5"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	frameBytesMax = 16 << 20
	// ringBytes is the size of the mapping that D4 writes into, round and round: it
	// stays resident, so no page fault and no writeback is in the floor.
	ringBytes = 256 << 20
	// receiveBytes is read at a time: large enough for few calls, small enough to stay
	// in the processor's cache until it is copied. A larger request gets a buffer of its
	// size.
	receiveBytes = 256 << 10
	// produceAckBytes is the size of D4's answer on the wire.
	produceAckBytes = 64
	batchHeader     = 61
)

// Server is a running floor.
type Server struct {
	role     Role
	listener net.Listener
	file     *os.File
	ring     []byte
	fileSize int64
	conns    sync.WaitGroup
}

// Start listens on addr and serves until Close. D4 keeps its mapping in a file in dir,
// D5 serves logFile, whose content must be record batches.
func Start(role Role, addr, dir, logFile string) (*Server, error) {
	s := &Server{role: role}
	switch role {
	case Null:
	case D4:
		if err := s.mapRing(); err != nil {
			return nil, err
		}
	case D5:
		f, err := os.Open(logFile)
		if err != nil {
			return nil, err
		}
		st, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		s.file, s.fileSize = f, st.Size()
	default:
		return nil, fmt.Errorf("unknown floor %q: want %q, %q or %q", role, Null, D4, D5)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, errors.Join(err, s.release())
	}
	s.listener = l
	s.conns.Go(s.accept)
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close stops listening. Connections end when their clients leave; Close waits for them.
func (s *Server) Close() error {
	err := s.listener.Close()
	s.conns.Wait()
	return errors.Join(err, s.release())
}

func (s *Server) release() (err error) {
	if s.ring != nil {
		err = unix.Munmap(s.ring)
	}
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	return err
}

// mapRing makes D4's mapping. It is memory of the kernel's that belongs to no disk, so
// that no writeback cleans its pages, after which each would have to fault again.
func (s *Server) mapRing() error {
	fd, err := unix.MemfdCreate("d4-ring", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("memfd for D4: %w", err)
	}
	s.file = os.NewFile(uintptr(fd), "d4-ring")
	if err := s.file.Truncate(ringBytes); err != nil {
		return errors.Join(err, s.file.Close())
	}
	m, err := unix.Mmap(fd, 0, ringBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return errors.Join(fmt.Errorf("map D4's ring: %w", err), s.file.Close())
	}
	for i := 0; i < len(m); i += os.Getpagesize() {
		m[i] = 1
	}
	s.ring = m
	return nil
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.conns.Go(func() {
			// A client that leaves is how each run ends.
			_ = s.serve(c.(*net.TCPConn))
			_ = c.Close()
		})
	}
}

// serve reads as much as is there, up to receiveBytes, and handles the whole requests
// where they lie. Only the beginning of a request that was cut off is moved.
func (s *Server) serve(c *net.TCPConn) error {
	buf := make([]byte, receiveBytes)
	var ring, filled int
	var answers []byte
	for {
		n, err := c.Read(buf[filled:])
		if err != nil {
			return err
		}
		filled += n
		at := 0
		for filled-at >= 4 {
			size := int(binary.BigEndian.Uint32(buf[at:]))
			if size < 14 || size > frameBytesMax {
				return fmt.Errorf("frame of %d bytes", size)
			}
			if filled-at < 4+size {
				break
			}
			frame := buf[at+4:][:size]
			at += 4 + size
			if s.role == D5 {
				if err := s.sendRegion(c, frame); err != nil {
					return err
				}
				continue
			}
			if ring, err = s.store(frame, ring); err != nil {
				return err
			}
			if answers, err = appendProduceAnswer(answers, frame); err != nil {
				return err
			}
			if os.Getenv("ACKEACH") != "" {
				if _, err := c.Write(answers); err != nil {
					return err
				}
				answers = answers[:0]
			}
		}
		if len(answers) > 0 {
			if _, err := c.Write(answers); err != nil {
				return err
			}
			answers = answers[:0]
		}
		filled = copy(buf, buf[at:filled])
		if filled >= 4 {
			if size := 4 + int(binary.BigEndian.Uint32(buf)); size > len(buf) {
				buf = append(make([]byte, 0, size), buf[:filled]...)[:size]
			}
		}
	}
}

// store is what D4 does with a request: check the CRC and copy the batch into the ring
// at at. It returns where the next one goes.
func (s *Server) store(frame []byte, at int) (int, error) {
	if s.role != D4 {
		return at, nil
	}
	_, batch, err := produceParts(frame)
	if err != nil {
		return at, err
	}
	if crc32.Checksum(batch[21:], castagnoli) != binary.BigEndian.Uint32(batch[17:]) {
		return at, errors.New("CRC mismatch")
	}
	if at+len(batch) > len(s.ring) {
		at = 0
	}
	return at + copy(s.ring[at:], batch), nil
}

// produceParts cuts the topic's name and the batch out of a Produce v7 request with one
// topic, one partition and no transactional id (the request of bench/load).
func produceParts(frame []byte) (topic, batch []byte, err error) {
	client := int(binary.BigEndian.Uint16(frame[8:]))
	at := 10 + client + 2 + 2 + 4 + 4
	if len(frame) < at+2 {
		return nil, nil, errors.New("short produce request")
	}
	name := int(binary.BigEndian.Uint16(frame[at:]))
	topic = frame[at+2 : min(len(frame), at+2+name)]
	at += 2 + name + 4 + 4 + 4
	if len(frame) < at+batchHeader {
		return nil, nil, errors.New("produce request without a batch")
	}
	return topic, frame[at:], nil
}

// appendProduceAnswer appends an answer of produceAckBytes in Produce v7's layout. The
// offset is -1, which tells the generator that this server assigns none.
func appendProduceAnswer(to, frame []byte) ([]byte, error) {
	topic, _, err := produceParts(frame)
	if err != nil {
		return to, err
	}
	var dst [produceAckBytes]byte
	binary.BigEndian.PutUint32(dst[:], produceAckBytes-4)
	copy(dst[4:8], frame[4:8])
	binary.BigEndian.PutUint32(dst[8:], 1)
	binary.BigEndian.PutUint16(dst[12:], uint16(len(topic)))
	at := 14 + copy(dst[14:32], topic)
	binary.BigEndian.PutUint32(dst[at:], 1)
	binary.BigEndian.PutUint64(dst[at+10:], ^uint64(0))
	return append(to, dst[:]...), nil
}

// sendRegion answers a Fetch v11 request of bench/load: the region starts at the batch
// that the fetch offset names, which is found by arithmetic because the file's batches
// are all alike.
func (s *Server) sendRegion(c *net.TCPConn, frame []byte) error {
	client := int(binary.BigEndian.Uint16(frame[8:]))
	at := 10 + client + 4 + 4 + 4
	bytesMax := int64(binary.BigEndian.Uint32(frame[at:]))
	at += 4 + 1 + 4 + 4 + 4
	name := int(binary.BigEndian.Uint16(frame[at:]))
	topic := frame[at+2 : at+2+name]
	at += 2 + name + 4 + 4 + 4
	offset := int64(binary.BigEndian.Uint64(frame[at:]))

	var head [batchHeader]byte
	if _, err := s.file.ReadAt(head[:], 0); err != nil {
		return err
	}
	batchBytes := 12 + int64(binary.BigEndian.Uint32(head[8:]))
	records := int64(binary.BigEndian.Uint32(head[57:]))
	from := offset / records * batchBytes
	size := min(max(bytesMax/batchBytes*batchBytes, batchBytes), s.fileSize-from)

	h := make([]byte, 0, 128)
	h = binary.BigEndian.AppendUint32(h, 0)
	h = append(h, frame[4:8]...)
	h = binary.BigEndian.AppendUint32(h, 0) // throttle
	h = binary.BigEndian.AppendUint16(h, 0)
	h = binary.BigEndian.AppendUint32(h, 0) // session
	h = binary.BigEndian.AppendUint32(h, 1)
	h = binary.BigEndian.AppendUint16(h, uint16(len(topic)))
	h = append(h, topic...)
	h = binary.BigEndian.AppendUint32(h, 1)
	h = binary.BigEndian.AppendUint32(h, 0)
	h = binary.BigEndian.AppendUint16(h, 0)
	h = binary.BigEndian.AppendUint64(h, uint64(s.fileSize/batchBytes*records)) // high watermark
	h = binary.BigEndian.AppendUint64(h, ^uint64(0))
	h = binary.BigEndian.AppendUint64(h, 0)
	h = binary.BigEndian.AppendUint32(h, ^uint32(0))
	h = binary.BigEndian.AppendUint32(h, ^uint32(0))
	h = binary.BigEndian.AppendUint32(h, uint32(size))
	binary.BigEndian.PutUint32(h, uint32(int64(len(h))-4+size))
	return sendHeaderAndFile(c, h, s.file, from, size)
}

func sendHeaderAndFile(c *net.TCPConn, header []byte, f *os.File, from, size int64) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	src := int(f.Fd())
	var sendErr error
	err = raw.Write(func(fd uintptr) bool {
		for len(header) > 0 {
			n, err := unix.SendmsgN(int(fd), header, nil, nil, unix.MSG_MORE|unix.MSG_NOSIGNAL)
			if errors.Is(err, unix.EAGAIN) {
				return false
			}
			if err != nil {
				sendErr = err
				return true
			}
			header = header[n:]
		}
		for size > 0 {
			n, err := unix.Sendfile(int(fd), src, &from, int(size))
			if errors.Is(err, unix.EAGAIN) {
				return false
			}
			if err != nil || n == 0 {
				sendErr = errors.Join(err, fmt.Errorf("sendfile stopped %d bytes short", size))
				return true
			}
			size -= int64(n)
		}
		return true
	})
	return errors.Join(err, sendErr)
}
