package peer

import (
	"encoding/binary"
	"math"
)

// The first bytes of msgpack's values. Those of the library are variables.
const (
	asPosFixedNumHigh = 0x7f
	asFixedMapLow     = 0x80
	asFixedArrayLow   = 0x90
	asFixedStrLow     = 0xa0
	asNil             = 0xc0
	asFalse           = 0xc2
	asTrue            = 0xc3
	asBin8            = 0xc4
	asBin16           = 0xc5
	asBin32           = 0xc6
	asExt8            = 0xc7
	asExt16           = 0xc8
	asExt32           = 0xc9
	asFloat           = 0xca
	asDouble          = 0xcb
	asUint8           = 0xcc
	asUint16          = 0xcd
	asUint32          = 0xce
	asUint64          = 0xcf
	asInt8            = 0xd0
	asInt16           = 0xd1
	asInt32           = 0xd2
	asInt64           = 0xd3
	asFixExt1         = 0xd4
	asFixExt2         = 0xd5
	asFixExt4         = 0xd6
	asFixExt8         = 0xd7
	asFixExt16        = 0xd8
	asStr8            = 0xd9
	asStr16           = 0xda
	asStr32           = 0xdb
	asArray16         = 0xdc
	asArray32         = 0xdd
	asMap16           = 0xde
	asMap32           = 0xdf
	asNegFixedNumLow  = 0xe0
)

// The append functions put one value at the end of a buffer, in the shortest form
// that msgpack has for it: byte for byte what the msgpack library writes, which a
// test holds them to, without its encoder and the writer below that.

func appendUint(dst []byte, v uint64) []byte {
	switch {
	case v <= math.MaxInt8:
		return append(dst, byte(v))
	case v <= math.MaxUint8:
		return append(dst, asUint8, byte(v))
	case v <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, asUint16), uint16(v))
	case v <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, asUint32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, asUint64), v)
}

func appendInt(dst []byte, v int64) []byte {
	switch {
	case v >= 0:
		return appendUint(dst, uint64(v))
	case v >= -32:
		return append(dst, byte(v))
	case v >= math.MinInt8:
		return append(dst, asInt8, byte(v))
	case v >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(dst, asInt16), uint16(v))
	case v >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, asInt32), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, asInt64), uint64(v))
}

func appendArray(dst []byte, n int) []byte {
	switch {
	case n < 16:
		return append(dst, asFixedArrayLow|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, asArray16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, asArray32), uint32(n))
}

// appendBinHead writes what stands before the n bytes of a bin.
func appendBinHead(dst []byte, n int) []byte {
	switch {
	case n <= math.MaxUint8:
		return append(dst, asBin8, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, asBin16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, asBin32), uint32(n))
}

func appendBin(dst, b []byte) []byte { return append(appendBinHead(dst, len(b)), b...) }

func appendString(dst []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		dst = append(dst, asFixedStrLow|byte(n))
	case n <= math.MaxUint8:
		dst = append(dst, asStr8, byte(n))
	case n <= math.MaxUint16:
		dst = binary.BigEndian.AppendUint16(append(dst, asStr16), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, asStr32), uint32(n))
	}
	return append(dst, s...)
}

// appendID writes one of the ids of sixteen bytes.
func appendID(dst []byte, id [16]byte) []byte {
	return append(append(dst, asBin8, 16), id[:]...)
}
