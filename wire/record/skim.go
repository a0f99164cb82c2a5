package record

import (
	"math"

	"github.com/troupe-broker/troupe/wire/ident"
)

// skimDeltaMax bounds the timestamp deltas that skim understands: five bytes of a
// varlong, about 200 days. The slow walk takes the others.
const skimDeltaMax = 1<<34 - 1

// skim is the walk over an uncompressed batch in which nothing is wrong: the same
// checks at a third of the price, since nothing is cut out or remembered of a record
// but its timestamp. It never refuses. What it does not understand or does not like
// is for the slow walk to judge, which then says what is wrong. FuzzSkim holds them
// equal.
func (w *walk) skim(v View) (ok bool) {
	b, at := v.Records(), 0
	base := v.BaseTimestamp()
	if base < 0 || base > math.MaxInt64-skimDeltaMax {
		return false
	}
	needKey := w.rules.Compacted && !w.control
	var deltaMin, deltaMax int64
	maxIndex := int32(0)
	for i := range w.count {
		var size, delta, n int64
		if size, at = skimNumber(b, at); at == 0 || size < 0 || size > int64(len(b)-at) {
			return false
		}
		end := at + int(size)
		if at++; at >= end { // attributes
			return false
		}
		if delta, at = skimNumber(b[:end], at); at == 0 {
			return false
		}
		if n, at = skimNumber(b[:end], at); at == 0 || n != int64(i) {
			return false
		}
		if n, at = skimNumber(b[:end], at); at == 0 || n < -1 || n < 0 && needKey {
			return false
		}
		if at += int(max(n, 0)); at >= end {
			return false
		}
		if n, at = skimNumber(b[:end], at); at == 0 || n < -1 {
			return false
		}
		if at += int(max(n, 0)); at >= end {
			return false
		}
		if n, at = skimNumber(b[:end], at); at == 0 || n < 0 {
			return false
		}
		if n > 0 {
			if at = skimHeaders(b[:end], at, n); at == 0 {
				return false
			}
		}
		if at != end {
			return false
		}
		switch {
		case i == 0:
			deltaMin, deltaMax = delta, delta
		case delta > deltaMax:
			deltaMax, maxIndex = delta, i
		case delta < deltaMin:
			deltaMin = delta
		}
	}
	oldest, newest := base+ident.Millis(deltaMin), base+ident.Millis(deltaMax)
	if w.count <= 0 || at != len(b) || oldest < 0 {
		return false
	}
	// What lies between two timestamps in range is in range.
	if w.rules.TimestampType == CreateTime && (w.rules.outOfRange(oldest, w.now) || w.rules.outOfRange(newest, w.now)) {
		return false
	}
	w.maxTimestamp, w.maxDelta = newest, maxIndex
	return true
}

// skimHeaders walks over n headers at b[at:] and returns where they end; 0 when they
// do not end well.
func skimHeaders(b []byte, at int, n int64) int {
	for ; n > 0; n-- {
		var size int64
		if size, at = skimNumber(b, at); at == 0 || size < 0 || size > int64(len(b)-at) {
			return 0
		}
		at += int(size)
		if size, at = skimNumber(b, at); at == 0 || size < -1 || size > int64(len(b)-at) {
			return 0
		}
		at += int(max(size, 0))
	}
	return at
}

// skimNumber reads a varint at b[at:] and returns where it ends: 0 when it does not
// end, or has more than five bytes. Most have one, and lengths often two.
func skimNumber(b []byte, at int) (int64, int) {
	if rest := b[min(at, len(b)):]; len(rest) > 1 {
		if c := uint64(rest[0]); c < 0x80 {
			return int64(c>>1) ^ -int64(c&1), at + 1
		}
		if c := uint64(rest[1]); c < 0x80 {
			u := uint64(rest[0]&0x7f) | c<<7
			return int64(u>>1) ^ -int64(u&1), at + 2
		}
	}
	var u uint64
	for shift := 0; shift < 35 && at < len(b); shift += 7 {
		c := b[at]
		at++
		u |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return int64(u>>1) ^ -int64(u&1), at
		}
	}
	return 0, 0
}
