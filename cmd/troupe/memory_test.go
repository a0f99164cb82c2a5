package main

import "testing"

// TestMemoryIsGivenBackAtRest tells a broker by what it has allocated in all, in MiB, at each look.
func TestMemoryIsGivenBackAtRest(t *testing.T) {
	var r restWatch
	for i, look := range []struct {
		allocated uint64
		due       bool
	}{
		{40, false},  // the start
		{41, true},   // it has come to rest
		{42, false},  // nothing to give back
		{50, false},  // busy
		{52, false},  // at rest; too little for a collection
		{55, false},  // still
		{58, true},   // it has come together
		{500, false}, // busy
		{900, false}, // busy
		{901, true},
	} {
		if due := r.due(look.allocated << 20); due != look.due {
			t.Errorf("look %d, %d MiB: due=%v, want %v", i, look.allocated, due, look.due)
		}
	}
}
