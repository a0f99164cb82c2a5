package coord_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire/ident"
)

func TestTimersPopInOrder(t *testing.T) {
	timers := coord.NewTimers()
	a := coord.TimerKey{Kind: coord.TimerSession, Group: "g", Member: "a"}
	b := coord.TimerKey{Kind: coord.TimerSession, Group: "g", Member: "b"}
	join := coord.TimerKey{Kind: coord.TimerJoin, Group: "g"}
	timers.Set(b, 10)
	timers.Set(join, 10)
	timers.Set(a, 10)
	timers.Set(coord.TimerKey{Kind: coord.TimerExpire}, 20)
	timers.Set(coord.TimerKey{Kind: coord.TimerExpire}, 5)

	if _, ok := timers.Pop(4); ok {
		t.Fatal("a timer came before it was due")
	}
	for i, want := range []coord.TimerKey{{Kind: coord.TimerExpire}, a, b, join} {
		got, ok := timers.Pop(10)
		if !ok || got != want {
			t.Fatalf("timer %d is %v (%v), want %v", i, got, ok, want)
		}
	}
	if _, ok := timers.Next(); ok || timers.Len() != 0 {
		t.Error("timers are left")
	}
}

// TestTimersAgainstAModel compares with a map that is searched.
func TestTimersAgainstAModel(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		timers, model := coord.NewTimers(), map[coord.TimerKey]ident.Instant{}
		first := func() (coord.TimerKey, ident.Instant, bool) {
			var keys []coord.TimerKey
			for k := range model {
				keys = append(keys, k)
			}
			if len(keys) == 0 {
				return coord.TimerKey{}, 0, false
			}
			least := slices.MinFunc(keys, func(a, b coord.TimerKey) int {
				return cmp.Or(cmp.Compare(model[a], model[b]), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Member, b.Member))
			})
			return least, model[least], true
		}
		now := ident.Instant(0)
		for range 2000 {
			key := coord.TimerKey{
				Kind:  coord.TimerKind(1 + rng.IntN(3)),
				Group: string(rune('a' + rng.IntN(4))), Member: string(rune('a' + rng.IntN(4))),
			}
			switch rng.IntN(4) {
			case 0, 1:
				due := now + ident.Instant(rng.IntN(20))
				timers.Set(key, due)
				model[key] = due
			case 2:
				timers.Cancel(key)
				delete(model, key)
			case 3:
				now += ident.Instant(rng.IntN(3))
				want, due, ok := first()
				got, popped := timers.Pop(now)
				if popped != (ok && due <= now) || popped && got != want {
					t.Fatalf("seed %d: popped %v (%v) at %d, want %v due at %d", seed, got, popped, now, want, due)
				}
				if popped {
					delete(model, got)
				}
			}
			_, due, ok := first()
			if next, set := timers.Next(); set != ok || set && next != due || timers.Len() != len(model) {
				t.Fatalf("seed %d: next is %d (%v) of %d, want %d (%v) of %d", seed, next, set, timers.Len(), due, ok, len(model))
			}
			if at, set := timers.Due(key); set != hasKey(model, key) || set && at != model[key] {
				t.Fatalf("seed %d: %v is due at %d (%v), want %d", seed, key, at, set, model[key])
			}
		}
	}
}

func hasKey(m map[coord.TimerKey]ident.Instant, key coord.TimerKey) bool { _, ok := m[key]; return ok }

func TestMovingATimerAllocatesNothing(t *testing.T) {
	timers := coord.NewTimers()
	for i := range 1000 {
		timers.Set(coord.TimerKey{Kind: coord.TimerSession, Group: "g", Member: string(rune('a' + i))}, ident.Instant(i))
	}
	key, due := coord.TimerKey{Kind: coord.TimerSession, Group: "g", Member: "a"}, ident.Instant(0)
	if n := testing.AllocsPerRun(100, func() { due += 7; timers.Set(key, due) }); n != 0 {
		t.Errorf("moving a timer allocates %v times", n)
	}
}
