package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Bound limits what the records of one batch may decompress to: the smaller of
// Max and Ratio × compressed size + Slack, all in bytes. Zero fields take the
// defaults.
type Bound struct {
	Max   int64 // default 64 MiB
	Ratio int64 // default 64
	Slack int64 // default 2 MiB: twice the default of max.message.bytes
}

// The default Bound. The slack is there so that what may be sent uncompressed may
// also be sent compressed, however well it compresses.
const (
	boundMax   = 64 << 20
	boundRatio = 64
	boundSlack = 2 << 20
)

// allowed is the number of bytes that a section of compressed bytes may become.
func (b Bound) allowed(compressed int) int {
	orDefault := func(v, d int64) int64 {
		if v > 0 {
			return v
		}
		return d
	}
	ratio, slack := orDefault(b.Ratio, boundRatio), orDefault(b.Slack, boundSlack)
	return int(min(orDefault(b.Max, boundMax), ratio*int64(compressed)+slack))
}

// Storage that a source starts with, and that it keeps between batches.
const (
	windowFirst = 64 << 10
	windowKept  = 4 << 20
)

// source decompresses the records of one batch into its window. gzip, lz4 and
// framed snappy come piece by piece. zstd and bare snappy come all at once: a zstd
// frame declares the memory that piecewise decoding takes, and the output is the
// one window that cannot lie. Sources are pooled with their buffers.
type source struct {
	codec   Codec
	begun   bool
	ended   bool
	in      bytes.Reader // over the compressed bytes
	packed  []byte       // the compressed bytes
	window  []byte       // storage for what came out and was not taken yet
	left    int          // bytes that may still come out
	gzip    *gzip.Reader
	lz4     *lz4.Reader
	zstd    *zstd.Decoder
	framed  bool // snappy in xerial's framing
	xerials xerialReader
}

var sources = sync.Pool{New: func() any { return new(source) }}

// openSource starts to decompress a section of records. What is wrong with the
// bytes shows in fill.
func openSource(codec Codec, packed []byte, allowed int) *source {
	s := sources.Get().(*source)
	s.codec, s.packed, s.left = codec, packed, allowed
	s.begun, s.ended = false, false
	s.in.Reset(packed)
	return s
}

func (s *source) close() {
	s.packed = nil
	s.in.Reset(nil)
	s.xerials.reset(nil)
	if cap(s.window) > windowKept {
		s.window = nil
	}
	sources.Put(s)
}

// fill returns have, the untaken end of what it returned last, followed by more of
// the batch: at least n bytes together, unless the batch ends before. Errors wrap
// ErrDecompress or ErrBound.
func (s *source) fill(have []byte, n int) ([]byte, error) {
	if !s.begun {
		s.begun = true
		if err := s.begin(); err != nil {
			return nil, err
		}
		if s.ended { // all at once
			return s.window, nil
		}
	}
	// What was not taken moves to the front. The window grows only when it is
	// full of bytes that are really there.
	s.window = append(s.window[:0], have...)
	for len(s.window) < n && !s.ended {
		if len(s.window) == cap(s.window) {
			grown := make([]byte, len(s.window), max(2*cap(s.window), windowFirst))
			copy(grown, s.window)
			s.window = grown
		}
		free := s.window[len(s.window):cap(s.window)]
		if len(free) > s.left {
			free = free[:s.left+1] // one byte more tells that the bound is passed
		}
		m, err := s.read(free)
		s.window = s.window[:len(s.window)+m]
		s.left -= m
		switch {
		case s.left < 0:
			return nil, s.tooLarge()
		case errors.Is(err, io.EOF):
			s.ended = true
		case err != nil:
			return nil, s.damaged(err)
		}
	}
	return s.window, nil
}

// begin prepares the codec's reader, or decompresses everything.
func (s *source) begin() error {
	switch s.codec {
	case CodecGzip:
		if s.gzip == nil {
			s.gzip = new(gzip.Reader)
		}
		if err := s.gzip.Reset(&s.in); err != nil {
			return s.damaged(err)
		}
	case CodecLz4:
		if s.lz4 == nil {
			s.lz4 = lz4.NewReader(&s.in)
		} else {
			s.lz4.Reset(&s.in)
		}
	case CodecSnappy:
		if s.framed = isXerial(s.packed); !s.framed {
			s.ended = true
			return s.snappyWhole()
		}
		s.xerials.reset(s.packed)
	case CodecZstd:
		s.ended = true
		return s.zstdWhole()
	case CodecNone:
		panic("record: a source for an uncompressed batch")
	}
	return nil
}

// read gives the next bytes of a codec that comes piece by piece.
func (s *source) read(p []byte) (int, error) {
	switch s.codec {
	case CodecGzip:
		return s.gzip.Read(p)
	case CodecLz4:
		return s.lz4.Read(p)
	default:
		return s.xerials.read(p, s.left)
	}
}

func (s *source) damaged(err error) error {
	if errors.Is(err, ErrBound) {
		return s.tooLarge()
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%v: %w: %w", s.codec, ErrDecompress, err)
}

func (s *source) tooLarge() error {
	return fmt.Errorf("%v, %d bytes: %w", s.codec, len(s.packed), ErrBound)
}

// snappyRatio is the most that a snappy element expands: 64 bytes from 3.
const snappyRatio = 22

// snappyLen reads the length that a snappy block declares and refuses it when the
// block could not hold that much, or when it is more than allowed.
func snappyLen(block []byte, allowed int) (int, error) {
	n, err := snappy.DecodedLen(block)
	switch {
	case err != nil:
		return 0, err
	case n > snappyRatio*len(block):
		return 0, snappy.ErrCorrupt
	case n > allowed:
		return 0, ErrBound
	}
	return n, nil
}

func (s *source) snappyWhole() error {
	n, err := snappyLen(s.packed, s.left)
	if err != nil {
		return s.damaged(err)
	}
	if cap(s.window) < n {
		s.window = make([]byte, n)
	}
	if s.window, err = snappy.Decode(s.window[:cap(s.window)], s.packed); err != nil {
		return s.damaged(err)
	}
	return nil
}

const (
	// zstdWindowMax is the greatest window that Kafka's own decoder takes.
	// Decoding into one buffer does not allocate it.
	zstdWindowMax = 1 << 27
	// zstdBlockMax is the most that one block of a frame decodes to.
	zstdBlockMax = 128 << 10
)

func (s *source) zstdWhole() error {
	if s.zstd == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdWindowMax), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			panic(fmt.Sprintf("record: zstd refuses its options: %v", err))
		}
		s.zstd = d
	}
	// A frame may declare its size, but only decoding proves it: the decoder is
	// kept within the buffer, and the buffer grows by four when it was too small,
	// so that all attempts together decode a third more than the last. The decoder
	// does not always say that space was the trouble; but then it stopped less
	// than a block before the end of the buffer.
	limit := s.left + zstdBlockMax
	size := max(cap(s.window), windowFirst+zstdBlockMax)
	for {
		size = min(size, limit)
		if cap(s.window) < size {
			s.window = make([]byte, 0, size)
		}
		out, err := s.zstd.DecodeAll(s.packed, s.window[:0:size])
		if err == nil {
			if len(out) > s.left {
				return s.tooLarge()
			}
			s.window = out
			return nil
		}
		cramped := errors.Is(err, zstd.ErrDecoderSizeExceeded) || len(out)+zstdBlockMax >= size
		switch {
		case !cramped:
			return s.damaged(err)
		case size == limit:
			return s.tooLarge()
		}
		size *= 4
	}
}
