package runtime

import (
	"testing"

	"pgregory.net/rapid"
)

type numbered int

func (numbered) Bytes() int { return 1 }

func TestRingIsAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ring
		var model []int
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(*rapid.T) {
				r.push(slot{numbered(next), 1})
				model = append(model, next)
				next++
			},
			"push front": func(*rapid.T) {
				r.pushFront(slot{numbered(next), 1})
				model = append([]int{next}, model...)
				next++
			},
			"pop": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip("empty")
				}
				if got := int(r.pop().msg.(numbered)); got != model[0] {
					t.Fatalf("pop gave %d, want %d", got, model[0])
				}
				model = model[1:]
			},
			"": func(t *rapid.T) {
				if r.n != len(model) {
					t.Fatalf("%d queued, want %d", r.n, len(model))
				}
				if c := len(r.buf); c&(c-1) != 0 || c < r.n {
					t.Fatalf("capacity %d for %d messages", c, r.n)
				}
			},
		})
	})
}

func TestRingForgetsABurst(t *testing.T) {
	var r ring
	for range 1 << 16 {
		r.push(slot{numbered(1), 1})
	}
	for r.n > 0 {
		r.pop()
	}
	burst := len(r.buf)
	for range 20 * ringCalm {
		r.push(slot{numbered(1), 1})
		r.pop()
	}
	if burst < 1<<16 || len(r.buf) > ringMin {
		t.Fatalf("capacity %d after the burst, %d after the calm", burst, len(r.buf))
	}
}

func TestRingDoesNotAllocateInASteadyState(t *testing.T) {
	var r ring
	s := slot{numbered(1), 1}
	busy := func() {
		for range 100 {
			r.push(s)
		}
		for range 100 {
			r.pop()
		}
	}
	busy()
	if n := testing.AllocsPerRun(10*ringCalm, busy); n != 0 {
		t.Fatalf("%v allocations per 100 messages", n)
	}
}

func TestRingKeepsNoMessageAlive(t *testing.T) {
	var r ring
	for i := range 100 {
		r.push(slot{numbered(i), 1})
	}
	for r.n > 0 {
		r.pop()
	}
	for i, s := range r.buf {
		if s.msg != nil {
			t.Fatalf("slot %d still holds %v", i, s.msg)
		}
	}
}
