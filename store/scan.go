package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// castagnoli is the polynomial of every checksum in Kafka's and our files.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// What a scan can meet instead of a batch.
var (
	errScanEnd  = io.EOF // the limit was reached exactly
	errScanZero = errors.New("reserved space that was never written")
)

// crcFrom is where the checksummed part of a batch begins, in bytes.
const crcFrom = 21

// scanner walks the batches of a segment's file, from a batch boundary on. It
// reads through the file, never through a mapping, in bounded memory. With check
// it verifies each checksum, else it looks at headers only.
type scanner struct {
	file  io.ReaderAt
	pos   int64 // of the next batch
	limit int64 // where batches end at the latest
	check bool

	// The last batch's order, which the next one must not fall below.
	next  ident.Offset      // offset after the last batch
	epoch ident.LeaderEpoch // of the last batch
	upTo  ident.Offset      // batches must end at or below; 0: no bound
	base  ident.Offset      // of the segment: offsets are at most 2^31-1 above
	// epochs is what is known of them: no batch is of a later one than its last offset.
	// nil: that is not known, but perhaps newest, the epoch that no batch is above.
	epochs *epochs
	newest ident.LeaderEpoch // ident.NoLeaderEpoch: not known either

	buf      []byte
	at       int64 // file position of buf[0]
	n        int   // bytes of buf that are filled
	head     [record.HeaderSize]byte
	lastSize int   // of the last batch, to guess how much to read
	read     int64 // bytes read from the file
}

const (
	scanBuffer = 256 << 10
	// headersApart is the size in bytes of batches from which a scan of headers
	// reads them one by one.
	headersApart = 4 << 10
)

// scans are buffers of scanners that recoveries leave to those after them: a data directory of ten thousand small logs is opened with a few. Nil makes new ones.
type scans struct{ pool sync.Pool }

func (s *scans) take() []byte {
	if s != nil {
		if b, ok := s.pool.Get().(*[scanBuffer]byte); ok {
			return b[:]
		}
	}
	return make([]byte, scanBuffer)
}

func (s *scans) give(buf []byte) {
	if s != nil && buf != nil {
		s.pool.Put((*[scanBuffer]byte)(buf))
	}
}

// newScanner walks the file of the segment that begins at base, from position pos
// to limit.
func newScanner(buf []byte, file io.ReaderAt, pos, limit int64, base ident.Offset) *scanner {
	if len(buf) == 0 {
		buf = make([]byte, scanBuffer)
	}
	return &scanner{file: file, pos: pos, limit: limit, next: base, base: base, epoch: ident.NoLeaderEpoch, newest: ident.NoLeaderEpoch, buf: buf}
}

// scan walks the batches of a segment of an open log from position pos on, within what the log knows of its offsets and epochs.
func (l *Log) scan(s *segment, pos int64) *scanner {
	sc := newScanner(nil, s.file.file, pos, s.size, s.base)
	sc.upTo, sc.epochs = l.behind(s), &l.epochs
	return sc
}

// batch returns the next batch and its position: the whole batch when it is in the
// buffer, else its header alone. The view is valid until the next call. io.EOF: the
// limit. errScanZero: zeros. Other errors say why
// what follows is not the next batch of this log; errors of the file are returned
// as they are, marked by ioError.
func (s *scanner) batch() (v record.View, at int64, err error) {
	if s.pos >= s.limit {
		return nil, s.pos, errScanEnd
	}
	head, err := s.window(s.pos, record.HeaderSize)
	if err != nil {
		return nil, s.pos, err
	}
	if len(head) < record.HeaderSize {
		if allZero(head) {
			return nil, s.pos, errScanZero
		}
		return nil, s.pos, fmt.Errorf("at position %d: %d bytes are no header: %w", s.pos, len(head), record.ErrTruncated)
	}
	size, err := s.header(record.View(head[:record.HeaderSize]))
	if err != nil {
		return nil, s.pos, err
	}
	v, err = s.body(size)
	if err != nil {
		return nil, s.pos, err
	}
	at = s.pos
	s.pos += int64(size)
	s.next, s.epoch, s.lastSize = v.NextOffset(), v.LeaderEpoch(), size
	return v, at, nil
}

// header checks everything that a header shows and returns the batch's size.
func (s *scanner) header(h record.View) (size int, err error) {
	size, err = record.SizeOf(h)
	if err != nil {
		if allZero(h) {
			return 0, errScanZero
		}
		return 0, fmt.Errorf("at position %d: %w", s.pos, err)
	}
	switch {
	case h.Magic() != record.Magic:
		err = fmt.Errorf("magic %d: %w", h.Magic(), record.ErrMagic)
	case s.pos+int64(size) > s.limit:
		err = fmt.Errorf("a batch of %d bytes, %d are left: %w", size, s.limit-s.pos, record.ErrTruncated)
	case h.LastOffsetDelta() < 0:
		err = fmt.Errorf("last offset delta %d: %w", h.LastOffsetDelta(), ErrFormat)
	case h.BaseOffset() < s.next:
		err = fmt.Errorf("base offset %d below %d: %w", h.BaseOffset(), s.next, ErrFormat)
	case h.LastOffset() < h.BaseOffset() || h.LastOffset()-s.base > 1<<31-1:
		err = fmt.Errorf("base offset %d is out of the segment's reach: %w", h.BaseOffset(), ErrFormat)
	case h.LeaderEpoch() < s.epoch:
		err = fmt.Errorf("leader epoch %d below %d: %w", h.LeaderEpoch(), s.epoch, ErrFormat)
	case s.latest(h) >= 0 && h.LeaderEpoch() > s.latest(h):
		err = fmt.Errorf("leader epoch %d, the log has got to %d there: %w", h.LeaderEpoch(), s.latest(h), ErrFormat)
	case s.upTo > 0 && h.NextOffset() > s.upTo:
		err = fmt.Errorf("offsets up to %d, the next segment begins at %d: %w", h.LastOffset(), s.upTo, ErrFormat)
	default:
		err = s.contradicted(h, size)
		if err == nil || isIOFailure(err) {
			return size, err
		}
	}
	return 0, fmt.Errorf("at position %d: %w", s.pos, err)
}

// latest is the epoch that a batch is not above; ident.NoLeaderEpoch: not known.
func (s *scanner) latest(h record.View) ident.LeaderEpoch {
	if s.epochs != nil {
		return s.epochs.of(h.LastOffset())
	}
	return s.newest
}

// contradicted looks at the batch behind one that leaps: base offset and leader
// epoch are outside the checksum, so that a flipped bit in them shows only by what
// follows falling back. Leaps are rare: compaction leaves gaps, leaders change.
func (s *scanner) contradicted(h record.View, size int) error {
	if h.BaseOffset() == s.next && (h.LeaderEpoch() == s.epoch || s.epoch < 0) {
		return nil
	}
	at := s.pos + int64(size)
	if at+record.HeaderSize > s.limit {
		return nil
	}
	next := record.View(s.head[:])
	if _, err := s.file.ReadAt(next, at); err != nil {
		if isShort(err) {
			return nil
		}
		return &ioError{err}
	}
	if _, err := record.SizeOf(next); err != nil || next.Magic() != record.Magic || next.BaseOffset() < s.next {
		return nil //nolint:nilerr // bytes that are no batch are no witness
	}
	if next.BaseOffset() < h.NextOffset() || next.LeaderEpoch() < h.LeaderEpoch() {
		return fmt.Errorf("offset %d and epoch %d, then %d and %d: %w", h.BaseOffset(), h.LeaderEpoch(), next.BaseOffset(), next.LeaderEpoch(), ErrFormat)
	}
	return nil
}

// body returns the batch at pos, whole if it fits the buffer and is needed, and
// checks its checksum if asked to.
func (s *scanner) body(size int) (record.View, error) {
	whole := s.have(s.pos, size)
	if !whole && size <= len(s.buf) && (s.check || record.View(s.slice(s.pos, record.HeaderSize)).Attributes().Control()) {
		b, err := s.window(s.pos, size)
		if err != nil {
			return nil, err
		}
		whole = len(b) >= size
	}
	if whole {
		v := record.View(s.slice(s.pos, size))
		if s.check && crc32.Checksum(v[crcFrom:], castagnoli) != v.CRC() {
			return nil, fmt.Errorf("at position %d: %w", s.pos, record.ErrCRC)
		}
		return v, nil
	}
	head := record.View(s.head[:copy(s.head[:], s.slice(s.pos, record.HeaderSize))])
	if s.check {
		if err := s.checkLarge(head, size); err != nil {
			return nil, err
		}
	}
	return head, nil
}

// checkLarge verifies a batch that does not fit the buffer, piece by piece.
func (s *scanner) checkLarge(head record.View, size int) error {
	sum := uint32(0)
	for at, end := s.pos+crcFrom, s.pos+int64(size); at < end; {
		b, err := s.window(at, int(min(int64(len(s.buf)), end-at)))
		if err != nil {
			return err
		}
		b = b[:min(int64(len(b)), end-at)]
		if len(b) == 0 {
			return fmt.Errorf("at position %d: %w", s.pos, record.ErrTruncated)
		}
		sum = crc32.Update(sum, castagnoli, b)
		at += int64(len(b))
	}
	if sum != head.CRC() {
		return fmt.Errorf("at position %d: %w", s.pos, record.ErrCRC)
	}
	return nil
}

func (s *scanner) have(pos int64, n int) bool {
	return pos >= s.at && pos+int64(n) <= s.at+int64(s.n)
}

func (s *scanner) slice(pos int64, n int) []byte {
	return s.buf[pos-s.at:][:n]
}

// window makes at least n bytes from pos on available, fewer at the limit.
func (s *scanner) window(pos int64, n int) ([]byte, error) {
	n = int(min(int64(n), s.limit-pos))
	if s.have(pos, n) {
		return s.buf[pos-s.at : s.n], nil
	}
	want := len(s.buf)
	if !s.check && s.lastSize > headersApart {
		// Only headers matter and they are far apart: reading one costs less than
		// copying what lies between two.
		want = max(n, 512)
	}
	want = int(min(int64(want), s.limit-pos))
	got, err := s.file.ReadAt(s.buf[:want], pos)
	s.read += int64(got)
	s.at, s.n = pos, got
	if err != nil && !errors.Is(err, io.EOF) {
		s.n = 0
		return nil, &ioError{err}
	}
	return s.buf[:got], nil
}

// ioError marks an error of the disk among errors of the bytes.
type ioError struct{ err error }

func (e *ioError) Error() string { return e.err.Error() }
func (e *ioError) Unwrap() error { return e.err }

func isIOFailure(err error) bool {
	var f *ioError
	return errors.As(err, &f)
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
