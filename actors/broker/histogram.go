package broker

import (
	"math/bits"
	"sync/atomic"

	"github.com/troupe-broker/troupe/wire/ident"
)

const (
	histogramShift   = 10 // the first bucket ends at 1024 ns
	histogramBuckets = 26 // the last that is not "more" ends at about 34 s
)

// histogram counts durations in buckets that double, with two additions an observation and no lock. Its bounds are powers of two of a nanosecond.
type histogram struct {
	buckets [histogramBuckets + 1]atomic.Uint64
	sum     atomic.Int64 // nanoseconds
}

func (h *histogram) observe(d ident.Instant) {
	d = max(d, 0)
	i := bits.Len64(uint64(d-1) >> histogramShift)
	if d == 0 {
		i = 0
	}
	h.buckets[min(i, histogramBuckets)].Add(1)
	h.sum.Add(int64(d))
}

// read returns the cumulative counts by upper bound in seconds, the count and the sum in seconds. Observations that go on meanwhile may be in one and not
// in the other.
func (h *histogram) read() (cumulative map[float64]uint64, count uint64, sum float64) {
	cumulative = make(map[float64]uint64, histogramBuckets)
	for i := range h.buckets {
		count += h.buckets[i].Load()
		if i < histogramBuckets {
			cumulative[float64(uint64(1)<<(histogramShift+i))/1e9] = count
		}
	}
	return cumulative, count, float64(h.sum.Load()) / 1e9
}
