package record_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// seeds are batches of every codec and of several kinds.
func seeds(f *testing.F) [][]byte {
	f.Helper()
	var out [][]byte
	rng := rand.New(rand.NewPCG(11, 12))
	for _, codec := range codecs {
		for _, n := range []int{1, 3} {
			b := record.NewBuilder()
			b.Codec = codec
			if n == 3 {
				b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Transactional = 1, 2, 3, true
			}
			out = append(out, build(f, b, someRecords(rng, n)))
		}
	}
	return out
}

// errorsOfBytes are what may be said of bytes; anything else is a bug.
var errorsOfBytes = []error{record.ErrTruncated, record.ErrLength, record.ErrMagic, record.ErrCodec, record.ErrRecord, record.ErrCount, record.ErrDecompress, record.ErrBound}

func isErrorOfBytes(err error) bool {
	for _, e := range errorsOfBytes {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// fuzzBound is small, so that a fuzzer's bombs are cheap.
var fuzzBound = record.Bound{Max: 1 << 20, Slack: 64 << 10}

func FuzzSplitAndIterate(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
		f.Add(append(bytes.Clone(b), b...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var it record.Iterator
		defer it.Close()
		for rest := b; len(rest) > 0; {
			v, after, err := record.Split(rest)
			if err != nil {
				if !isErrorOfBytes(err) || len(after) != len(rest) {
					t.Fatalf("Split: %v, %d of %d bytes left", err, len(after), len(rest))
				}
				return
			}
			if len(v) < record.HeaderSize || len(v)+len(after) != len(rest) || v.Magic() != record.Magic {
				t.Fatalf("a view of %d bytes, %d left of %d", len(v), len(after), len(rest))
			}
			rest = after
			if err := it.Reset(v, fuzzBound); err != nil {
				if !isErrorOfBytes(err) {
					t.Fatal(err)
				}
				continue
			}
			var n int32
			for ; it.Next(); n++ {
				r := it.Record()
				var headers int32
				for h := r.Headers(); h.Next(); headers++ {
					if h.Key() == nil {
						t.Fatal("a header without a key")
					}
				}
				if headers != r.HeaderCount || r.Offset != v.BaseOffset()+ident.Offset(r.OffsetDelta) {
					t.Fatalf("record %d: %d of %d headers, offset %d", n, headers, r.HeaderCount, r.Offset)
				}
			}
			if it.Err() == nil && n != v.Count() {
				t.Fatalf("%d records, the header says %d", n, v.Count())
			}
			if it.Err() != nil && !isErrorOfBytes(it.Err()) {
				t.Fatal(it.Err())
			}
			if it.Next() {
				t.Fatal("a walk that ended goes on")
			}
		}
	})
}

func FuzzDecompress(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b[22]&7, b[record.HeaderSize:])
	}
	plain := build(f, record.NewBuilder(), keyed(3)).Records()
	for _, p := range pack {
		f.Add(byte(p.codec), p.do(f, plain))
	}
	f.Fuzz(func(t *testing.T, codec byte, section []byte) {
		v := wrap(record.Codec(codec&7), 3, section)
		var it record.Iterator
		defer it.Close()
		if err := it.Reset(v, fuzzBound); err != nil {
			if !errors.Is(err, record.ErrCodec) {
				t.Fatal(err)
			}
			return
		}
		for it.Next() {
		}
		if it.Err() != nil && !isErrorOfBytes(it.Err()) {
			t.Fatal(it.Err())
		}
	})
}

// What Validate lets through at full depth must be a batch that every consumer can
// read, whatever the producer sent.
func FuzzValidate(f *testing.F) {
	for _, b := range seeds(f) {
		for flags := range 8 {
			f.Add(byte(flags), byte(flags%6), b)
		}
	}
	f.Fuzz(func(t *testing.T, flags, compression byte, b []byte) {
		if v, _, err := record.Split(b); err == nil {
			seal(v) // a fuzzer does not find a CRC
		}
		r := rules(func(r *record.Rules) {
			r.Depth = record.DepthFull
			r.Bound = fuzzBound
			r.Compacted = flags&1 != 0
			r.TimestampType = record.TimestampType(flags >> 1 & 1)
			r.Internal = flags&4 != 0
			r.Compression = record.Compression(compression % 6)
			r.TimestampAfterMax = record.NoLimit
		})
		shallow := *r
		shallow.Depth = record.DepthHeader
		shallow.Compression = record.CompressionProducer
		_, shallowErr := record.Validate(nil, bytes.Clone(b), now, &shallow)

		res, err := record.Validate(nil, b, now, r)
		if err != nil {
			var invalid *record.Invalid
			if !errors.As(err, &invalid) || invalid.Reason < record.ReasonCorrupt || invalid.Reason > record.ReasonCompression || invalid.Message == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		if shallowErr != nil {
			t.Fatalf("depth full lets through what depth header refuses: %v", shallowErr)
		}
		v, rest, err := record.Split(res.Batch)
		if err != nil || len(rest) != 0 || v.Header() != res.Header || !res.Walked {
			t.Fatalf("%v, %d bytes left, %+v", err, len(rest), res)
		}
		if err := v.VerifyCRC(); err != nil {
			t.Fatal(err)
		}
		if r.Compression != record.CompressionProducer && v.Attributes().Codec() != record.Codec(r.Compression-1) {
			t.Fatalf("compression.type %v is stored as %v", r.Compression, v.Attributes().Codec())
		}
		var it record.Iterator
		defer it.Close()
		if err := it.Reset(v, record.Bound{}); err != nil {
			t.Fatal(err)
		}
		var n int32
		greatest, delta := ident.Millis(0), int32(0)
		for ; it.Next(); n++ {
			rec := it.Record()
			if rec.OffsetDelta != n || r.Compacted && rec.Key == nil && !v.Attributes().Control() {
				t.Fatalf("record %d: %+v", n, rec)
			}
			if n == 0 || rec.Timestamp > greatest {
				greatest, delta = rec.Timestamp, n
			}
		}
		if it.Err() != nil || n == 0 || n != v.Count() || v.LastOffsetDelta() != n-1 {
			t.Fatalf("%d records: %v", n, it.Err())
		}
		if greatest != v.MaxTimestamp() || delta != res.MaxTimestampDelta {
			t.Fatalf("greatest timestamp %d of record %d, the header says %d, the result %d", greatest, delta, v.MaxTimestamp(), res.MaxTimestampDelta)
		}
	})
}

func FuzzBuild(f *testing.F) {
	f.Add(byte(0), int64(1), int64(2), []byte("key"), []byte("value"), "header", []byte("h"))
	f.Add(byte(4), int64(-1), int64(1)<<60, []byte(nil), []byte{}, "", []byte(nil))
	f.Fuzz(func(t *testing.T, codec byte, ts1, ts2 int64, key, value []byte, header string, hv []byte) {
		// A delta of timestamps that overflows cannot be written by anyone.
		if delta := ts2 - ts1; (delta > 0) != (ts2 > ts1) {
			return
		}
		records := []given{
			{ts: ident.Millis(ts1), key: key, value: value, headers: []record.KeyValue{{Key: header, Value: hv}}},
			{ts: ident.Millis(ts2), value: key},
		}
		b := record.NewBuilder()
		b.Codec = record.Codec(codec % 5)
		v := build(t, b, records)
		var it record.Iterator
		defer it.Close()
		if err := it.Reset(v, record.Bound{}); err != nil {
			t.Fatal(err)
		}
		for i, g := range records {
			if !it.Next() {
				t.Fatal(it.Err())
			}
			if err := same(g, it.Record()); err != nil {
				t.Fatalf("record %d: %v", i, err)
			}
		}
	})
}
