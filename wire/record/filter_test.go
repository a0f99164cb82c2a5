package record

import (
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
)

// filtering builds a batch of records k0, k1, … with timestamps 1000, 1001, …; those
// whose index is a multiple of three have no value.
func filtering(t *testing.T, codec Codec, n int) View {
	t.Helper()
	b := NewBuilder()
	b.BaseOffset, b.LeaderEpoch, b.Codec = 500, 7, codec
	b.ProducerID, b.ProducerEpoch, b.BaseSequence = 9, 2, 40
	for i := range n {
		value := fmt.Appendf(nil, "value %d", i)
		if i%3 == 0 {
			value = nil
		}
		b.Append(ident.Millis(1000+i), fmt.Appendf(nil, "k%d", i), value, KeyValue{Key: "h", Value: []byte{byte(i)}})
	}
	out, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// told prints the records of a batch.
func told(t *testing.T, v View) []string {
	t.Helper()
	if err := v.VerifyCRC(); err != nil {
		t.Fatal(err)
	}
	var it Iterator
	defer it.Close()
	if err := it.Reset(v, Bound{}); err != nil {
		t.Fatal(err)
	}
	var out []string
	for it.Next() {
		r := it.Record()
		h := r.Headers()
		h.Next()
		out = append(out, fmt.Sprintf("%d@%d %s=%s %x %x", r.Offset, r.Timestamp, r.Key, r.Value, h.Key(), h.Value()))
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFilterKeepsOffsetsTimesAndProducer(t *testing.T) {
	for codec := CodecNone; codec <= CodecZstd; codec++ {
		for _, horizon := range []ident.Millis{ident.NoTimestamp, 3, 1 << 50} {
			v := filtering(t, codec, 30)
			all := told(t, v)
			var want []string
			for i, s := range all {
				if i%4 == 1 || i == 6 { // 6, 9, 21 are tombstones
					want = append(want, s)
				}
			}
			var f Filter
			got, _, err := f.Run(nil, v, horizon, func(r *Record) bool { return r.OffsetDelta%4 == 1 || r.OffsetDelta == 6 })
			if err != nil {
				t.Fatal(err)
			}
			if have := told(t, got.Batch); fmt.Sprint(have) != fmt.Sprint(want) {
				t.Fatalf("%v, horizon %d: got %v, want %v", codec, horizon, have, want)
			}
			h := got.Batch.Header()
			if int(h.Count) != len(want) || h.BaseOffset != 500 || h.LastOffset() != 529 || h.LeaderEpoch != 7 || h.ProducerID != 9 ||
				h.ProducerEpoch != 2 || h.BaseSequence != 40 || h.LastSequence() != 69 || h.MaxTimestamp != 1029 || h.Attributes.Codec() != codec {
				t.Fatalf("%v: header %+v", codec, h)
			}
			set := horizon != ident.NoTimestamp
			if got.Horizon != set || h.Attributes.HasDeleteHorizon() != set || (set && got.Batch.DeleteHorizon() != horizon) {
				t.Fatalf("horizon %d: %+v, %+v", horizon, got, h)
			}
			// A horizon that is set is never moved.
			again, _, err := f.Run(nil, got.Batch, horizon+1000, func(*Record) bool { return true })
			if err != nil || again.Same != set {
				t.Fatalf("a second time: %+v, %v", again, err)
			}
		}
	}
}

func TestFilterLeavesTheGreatestTimestampOfWhatIsLeft(t *testing.T) {
	v := filtering(t, CodecNone, 10)
	var f Filter
	got, _, err := f.Run(nil, v, ident.NoTimestamp, func(r *Record) bool { return r.OffsetDelta < 5 })
	if err != nil || got.Batch.MaxTimestamp() != 1004 {
		t.Fatalf("max timestamp %d, %v", got.Batch.MaxTimestamp(), err)
	}
	v.StampLogAppendTime(77)
	got, _, err = f.Run(nil, v, ident.NoTimestamp, func(r *Record) bool { return r.OffsetDelta < 5 })
	if err != nil || got.Batch.MaxTimestamp() != 77 {
		t.Fatalf("LogAppendTime: max timestamp %d, %v", got.Batch.MaxTimestamp(), err)
	}
}

func TestFilterOfNothingAndOfAll(t *testing.T) {
	v := filtering(t, CodecLz4, 4)
	var f Filter
	none, _, err := f.Run(nil, v, 5, func(*Record) bool { return false })
	if err != nil || none.Batch != nil || none.Dropped != 4 || none.Horizon {
		t.Fatalf("%+v, %v", none, err)
	}
	all, _, err := f.Run(nil, v, ident.NoTimestamp, func(*Record) bool { return true })
	if err != nil || !all.Same || all.Kept != 4 {
		t.Fatalf("%+v, %v", all, err)
	}
	e := Emptied(nil, v)
	if err := e.VerifyCRC(); err != nil {
		t.Fatal(err)
	}
	h := e.Header()
	if len(e) != HeaderSize || h.Count != 0 || h.LastOffset() != 503 || h.LastSequence() != 43 || h.MaxTimestamp != 1003 || len(told(t, e)) != 0 {
		t.Fatalf("%+v", h)
	}
}

func TestFilterOfDamagedRecordsIsAnError(t *testing.T) {
	v := filtering(t, CodecGzip, 20)
	v[len(v)-9] ^= 0xff
	var f Filter
	if got, _, err := f.Run(nil, v, 5, func(*Record) bool { return true }); err == nil {
		t.Fatalf("damage passed: %+v", got)
	}
}
