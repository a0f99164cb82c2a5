package main

import (
	"slices"
	"sync"
	"time"
)

// history is when one client's writes were acknowledged.
type history struct {
	mu   sync.Mutex
	acks []time.Time // rising
}

func (h *history) add(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acks = append(h.acks, at)
}

func (h *history) copied() []time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]time.Time(nil), h.acks...)
}

// flowing is since when acknowledgements have come without a pause.
func (h *history) flowing(now time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return flowing(h.acks, now, pauseMax)
}

// gap is the longest time between two acknowledgements of which the later one came after from and not after to; 0: there are none.
func gap(acks []time.Time, from, to time.Time) time.Duration {
	longest := time.Duration(0)
	for i := 1; i < len(acks); i++ {
		if acks[i].After(from) && !acks[i].After(to) {
			longest = max(longest, acks[i].Sub(acks[i-1]))
		}
	}
	return longest
}

// flowing says since when acknowledgements have come, up to now, without a pause above pauseMax: the zero time when the last one is longer ago.
func flowing(acks []time.Time, now time.Time, pauseMax time.Duration) time.Time {
	last := now
	for _, ack := range slices.Backward(acks) {
		if last.Sub(ack) > pauseMax {
			break
		}
		last = ack
	}
	if last.Equal(now) {
		return time.Time{}
	}
	return last
}
