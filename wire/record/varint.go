package record

import "encoding/binary"

// Records use the zigzag varints of Protocol Buffers, for 32 bits ("varint") and
// for 64 ("varlong"); ByteUtils.java. Both readers return how many bytes they
// took: 0 when b ends too early or the number has too many bits.

func readVarint(b []byte) (int32, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return int32(b[0]>>1) ^ -int32(b[0]&1), 1
	}
	var u uint32
	for i := 0; i < len(b) && i < 5; i++ {
		c := b[i]
		if i == 4 && c > 0x0f {
			return 0, 0
		}
		u |= uint32(c&0x7f) << (7 * i)
		if c < 0x80 {
			return int32(u>>1) ^ -int32(u&1), i + 1
		}
	}
	return 0, 0
}

func readVarlong(b []byte) (int64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return int64(b[0]>>1) ^ -int64(b[0]&1), 1
	}
	v, n := binary.Varint(b)
	if n < 0 {
		return 0, 0
	}
	return v, n
}

func appendVarint(dst []byte, v int64) []byte { return binary.AppendVarint(dst, v) }

// varintSize is the number of bytes that appendVarint writes.
func varintSize(v int64) int {
	n := 1
	for u := uint64(v)<<1 ^ uint64(v>>63); u >= 0x80; u >>= 7 {
		n++
	}
	return n
}
