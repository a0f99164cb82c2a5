package record

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/snappy"
)

// Java clients write snappy in the framing of the snappy-java library (xerial):
// eight bytes of magic, a version and a compatible version of four bytes each,
// then blocks, each with its length in four bytes. librdkafka and others write one
// bare snappy block. Both are read; the framing is written.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const (
	xerialHeaderSize = 16
	xerialBlockSize  = 32 << 10 // of uncompressed bytes, as snappy-java cuts them
)

func isXerial(b []byte) bool {
	return len(b) >= xerialHeaderSize && bytes.HasPrefix(b, xerialMagic)
}

// xerialReader decompresses framed snappy block by block.
type xerialReader struct {
	rest  []byte // blocks to come
	block []byte // storage for the current block
	out   []byte // of the current block, not given yet
}

// reset starts over with bytes that begin with the framing's header.
func (x *xerialReader) reset(b []byte) {
	x.out = nil
	if x.rest = b; b != nil {
		x.rest = b[xerialHeaderSize:]
	}
	if cap(x.block) > windowKept {
		x.block = nil
	}
}

// read fills p with decompressed bytes. No block may give more than allowed.
func (x *xerialReader) read(p []byte, allowed int) (int, error) {
	for len(x.out) == 0 {
		// Streams may follow one another, each with its header.
		if isXerial(x.rest) {
			x.rest = x.rest[xerialHeaderSize:]
		}
		if len(x.rest) == 0 {
			return 0, io.EOF
		}
		if len(x.rest) < 4 {
			return 0, io.ErrUnexpectedEOF
		}
		size := binary.BigEndian.Uint32(x.rest)
		if uint64(size) > uint64(len(x.rest)-4) {
			return 0, io.ErrUnexpectedEOF
		}
		packed := x.rest[4 : 4+size]
		x.rest = x.rest[4+size:]
		n, err := snappyLen(packed, allowed)
		if err != nil {
			return 0, err
		}
		if cap(x.block) < n {
			x.block = make([]byte, n)
		}
		if x.out, err = snappy.Decode(x.block[:cap(x.block)], packed); err != nil {
			return 0, err
		}
	}
	n := copy(p, x.out)
	x.out = x.out[n:]
	return n, nil
}

// appendXerial compresses b in the framing.
func appendXerial(dst, b []byte) []byte {
	dst = append(dst, xerialMagic...)
	dst = binary.BigEndian.AppendUint32(dst, 1)
	dst = binary.BigEndian.AppendUint32(dst, 1)
	for len(b) > 0 {
		chunk := b[:min(len(b), xerialBlockSize)]
		b = b[len(chunk):]
		at := len(dst)
		dst = append(dst, make([]byte, 4+snappy.MaxEncodedLen(len(chunk)))...)
		block := snappy.Encode(dst[at+4:], chunk)
		binary.BigEndian.PutUint32(dst[at:], uint32(len(block)))
		dst = dst[:at+4+len(block)]
	}
	return dst
}
