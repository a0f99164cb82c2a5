package record_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// skimRules are rules under which the two walks over a batch are compared.
func skimRules(flags byte) *record.Rules {
	return rules(func(r *record.Rules) {
		r.Compacted = flags&1 != 0
		r.TimestampType = record.TimestampType(flags >> 1 & 1)
		if flags&4 != 0 {
			r.TimestampBeforeMax, r.TimestampAfterMax = 1000, 1000
		}
	})
}

// based gives v another base timestamp.
func based(v record.View, ts ident.Millis) {
	h := v.Header()
	h.BaseTimestamp = ts
	h.Encode(v)
	seal(v)
}

// What the fast walk takes, the slow one takes, with the same result. What it leaves
// may be either.
func FuzzSkim(f *testing.F) {
	rng := rand.New(rand.NewPCG(21, 22))
	for _, n := range []int{1, 2, 9} {
		records := build(f, record.NewBuilder(), someRecords(rng, n)).Records()
		for flags := range byte(8) {
			f.Add(flags, uint16(n), int64(now), bytes.Clone(records))
		}
		f.Add(byte(0), uint16(n+1), int64(0), records)
		f.Add(byte(0), uint16(n), int64(-2), records)
	}
	f.Fuzz(func(t *testing.T, flags byte, count uint16, base int64, records []byte) {
		v := wrap(record.CodecNone, int32(count), records)
		based(v, ident.Millis(base))
		r := skimRules(flags)
		fast, ok := record.Skim(v, now, r)
		if !ok {
			return
		}
		slow, err := record.SlowWalk(v, now, r)
		if err != nil || fast != slow {
			t.Fatalf("the fast walk takes it with %+v, the slow one says %+v, %v", fast, slow, err)
		}
	})
}

// The fast walk is worth its lines only when it takes what producers send.
func TestSkimTakesOrdinaryBatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	taken := 0
	for range 500 {
		v := build(t, record.NewBuilder(), keyed(1+rng.IntN(40)))
		fast, ok := record.Skim(v, now, skimRules(0))
		slow, err := record.SlowWalk(v, now, skimRules(0))
		if err != nil {
			t.Fatal(err)
		}
		if !ok || fast != slow {
			t.Fatalf("taken: %v with %+v, the slow walk says %+v", ok, fast, slow)
		}
		taken++
	}
	if taken == 0 {
		t.Fatal("no batch was tried")
	}
}

// A batch with one fault is left to the walk that can name it.
func TestSkimLeavesFaultyBatches(t *testing.T) {
	whole := build(t, record.NewBuilder(), keyed(3))
	for _, c := range []struct {
		name  string
		spoil func(v record.View) record.View
		flags byte
	}{
		{"a record too few", func(v record.View) record.View { return wrap(record.CodecNone, 4, v.Records()) }, 0},
		{"a record too many", func(v record.View) record.View { return wrap(record.CodecNone, 2, v.Records()) }, 0},
		{"no record", func(record.View) record.View { return wrap(record.CodecNone, 0, nil) }, 0},
		{"cut off", func(v record.View) record.View {
			return wrap(record.CodecNone, 3, v.Records()[:len(v.Records())-1])
		}, 0},
		{"bytes behind", func(v record.View) record.View {
			return wrap(record.CodecNone, 3, append(bytes.Clone(v.Records()), 0))
		}, 0},
		{"a timestamp out of range", func(v record.View) record.View {
			late := wrap(record.CodecNone, 3, v.Records())
			based(late, now+5000)
			return late
		}, 4},
		{"no key in a compacted topic", func(record.View) record.View {
			return build(t, record.NewBuilder(), []given{{ts: now, value: []byte("v")}})
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, ok := record.Skim(c.spoil(whole), now, skimRules(c.flags)); ok {
				t.Fatal("taken")
			}
		})
	}
}
