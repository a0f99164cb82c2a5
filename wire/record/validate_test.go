package record_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

const now = ident.Millis(1_700_000_000_500)

// seal writes the CRC of a batch that a test has changed.
func seal(v record.View) {
	binary.BigEndian.PutUint32(v[17:], crc32.Checksum(v[21:], crc32.MakeTable(crc32.Castagnoli)))
}

func put16(v []byte, at int, x int16) { binary.BigEndian.PutUint16(v[at:], uint16(x)) }
func put32(v []byte, at int, x int32) { binary.BigEndian.PutUint32(v[at:], uint32(x)) }
func put64(v []byte, at int, x int64) { binary.BigEndian.PutUint64(v[at:], uint64(x)) }

func keyed(n int) []given {
	out := make([]given, n)
	for i := range out {
		out[i] = given{ts: now - ident.Millis(n) + ident.Millis(i), key: []byte("key"), value: []byte(strings.Repeat("value", 20))}
	}
	return out
}

func rules(change func(*record.Rules)) *record.Rules {
	r := record.DefaultRules()
	if change != nil {
		change(&r)
	}
	return &r
}

var depths = []record.Depth{record.DepthDefault, record.DepthHeader, record.DepthFull}

func TestAGoodBatchPassesUnchanged(t *testing.T) {
	for _, depth := range depths {
		for _, codec := range codecs {
			b := record.NewBuilder()
			b.Codec = codec
			v := build(t, b, keyed(10))
			before := bytes.Clone(v)
			res, err := record.Validate(nil, v, now, rules(func(r *record.Rules) { r.Depth = depth }))
			if err != nil {
				t.Fatalf("%v %v: %v", depth, codec, err)
			}
			walked := depth == record.DepthFull || depth == record.DepthDefault && codec == record.CodecNone
			if !bytes.Equal(v, before) || &res.Batch[0] != &v[0] || res.Converted || res.Walked != walked ||
				res.LogAppendTime != ident.NoTimestamp || res.MaxTimestampDelta != 9 || res.Header != v.Header() {
				t.Errorf("%v %v: %+v", depth, codec, res)
			}
		}
	}
}

// Each case breaks one thing in a good batch of three records and names the answer.
func TestWhatKafkaRefusesIsRefused(t *testing.T) {
	type change func(v []byte) []byte
	inPlace := func(f func(v []byte)) change {
		return func(v []byte) []byte { f(v); seal(v); return v }
	}
	for _, c := range []struct {
		name   string
		reason record.Reason
		rules  func(*record.Rules)
		change change
		only   []record.Depth // nil: every depth
	}{
		{"nothing at all", record.ReasonInvalidRecord, nil, func([]byte) []byte { return nil }, nil},
		{"half a batch", record.ReasonInvalidRecord, nil, func(v []byte) []byte { return v[:len(v)-1] }, nil},
		{"two batches", record.ReasonInvalidRecord, nil, func(v []byte) []byte { return append(v, v...) }, nil},
		{"bytes after the batch", record.ReasonInvalidRecord, nil, func(v []byte) []byte { return append(v, 0) }, nil},
		{"a length below the header's", record.ReasonCorrupt, nil, func(v []byte) []byte { put32(v, 8, 48); return v }, nil},
		{"magic 1", record.ReasonInvalidRecord, nil, func(v []byte) []byte { v[16] = 1; return v }, nil},
		{"a flipped bit", record.ReasonCorrupt, nil, func(v []byte) []byte { v[len(v)-1] ^= 1; return v }, nil},
		{"a base offset", record.ReasonInvalidRecord, nil, inPlace(func(v []byte) { put64(v, 0, 5) }), nil},
		{"no records by the header", record.ReasonInvalidRecord, nil, inPlace(func(v []byte) { put32(v, 57, 0); put32(v, 23, -1) }), nil},
		{"a negative count", record.ReasonInvalidRecord, nil, inPlace(func(v []byte) { put32(v, 57, -3) }), nil},
		{"a last offset that does not fit the count", record.ReasonInvalidRecord, nil, inPlace(func(v []byte) { put32(v, 23, 3) }), nil},
		{"a control batch", record.ReasonInvalidRecord, nil, inPlace(func(v []byte) { put16(v, 21, 0x20) }), nil},
		{"a delete horizon", record.ReasonInvalidRecord, nil, inPlace(func(v []byte) { put16(v, 21, 0x40) }), nil},
		{"codec 5", record.ReasonCompression, nil, inPlace(func(v []byte) { put16(v, 21, 5) }), nil},
		{"codec 7", record.ReasonCompression, nil, inPlace(func(v []byte) { put16(v, 21, 7) }), nil},
		{"zstd before Produce version 7", record.ReasonCompression, func(r *record.Rules) { r.ZstdRefused = true }, inPlace(func(v []byte) { put16(v, 21, 4) }), nil},
		{"a producer with a negative sequence", record.ReasonInvalidRecord, nil, inPlace(func(v []byte) { put64(v, 43, 9); put16(v, 51, 0); put32(v, 53, -1) }), nil},
		{"a producer with a negative epoch", record.ReasonInvalidRecord, nil, inPlace(func(v []byte) { put64(v, 43, 9); put32(v, 53, 0) }), nil},
		{"a transaction without a producer", record.ReasonInvalidRecord, nil, inPlace(func(v []byte) { put16(v, 21, 0x10) }), nil},
		{"more than max.message.bytes", record.ReasonTooLarge, func(r *record.Rules) { r.MaxMessageBytes = 100 }, nil, nil},
		{"more than a segment", record.ReasonListTooLarge, func(r *record.Rules) { r.SegmentBytes = 100 }, nil, nil},
		{"LogAppendTime from a producer on a LogAppendTime topic", record.ReasonTimestamp, func(r *record.Rules) { r.TimestampType = record.LogAppendTime }, inPlace(func(v []byte) { put16(v, 21, 0x08) }), nil},
		{"timestamps of long ago", record.ReasonTimestamp, func(r *record.Rules) { r.TimestampBeforeMax = 1 }, inPlace(func(v []byte) { put64(v, 27, int64(now)-9000); put64(v, 35, int64(now)-9000) }), nil},
		{"timestamps of tomorrow", record.ReasonTimestamp, nil, inPlace(func(v []byte) { put64(v, 27, int64(now)+3_600_001); put64(v, 35, int64(now)+3_600_005) }), nil},
		{"one record more than counted", record.ReasonInvalidRecord, nil, inPlace(func(v []byte) { put32(v, 57, 2); put32(v, 23, 1) }), []record.Depth{record.DepthDefault, record.DepthFull}},
		{"one record less than counted", record.ReasonInvalidRecord, nil, inPlace(func(v []byte) { put32(v, 57, 4); put32(v, 23, 3) }), []record.Depth{record.DepthDefault, record.DepthFull}},
		{"a record that runs past the batch", record.ReasonInvalidRecord, nil, inPlace(func(v []byte) { v[61] = 0xfe; v[62] = 0x7f }), []record.Depth{record.DepthDefault, record.DepthFull}},
		{"a gap in the offsets", record.ReasonInvalidRecord, nil, inPlace(func(v []byte) { v[65] = 2 }), []record.Depth{record.DepthDefault, record.DepthFull}},
	} {
		for _, depth := range depths {
			expected := c.only == nil
			for _, d := range c.only {
				expected = expected || d == depth
			}
			if !expected {
				continue
			}
			v := []byte(build(t, record.NewBuilder(), keyed(3)))
			if c.change != nil {
				v = c.change(v)
			}
			r := rules(func(r *record.Rules) {
				r.Depth = depth
				if c.rules != nil {
					c.rules(r)
				}
			})
			res, err := record.Validate(nil, v, now, r)
			var invalid *record.Invalid
			if !errors.As(err, &invalid) || invalid.Reason != c.reason || invalid.Error() == "" {
				t.Errorf("%s, depth %v: %+v, %v", c.name, depth, res, err)
			}
		}
	}
}

func TestCompactedTopicsWantKeysAndBlameTheRecords(t *testing.T) {
	for _, codec := range codecs {
		for _, depth := range []record.Depth{record.DepthDefault, record.DepthFull} {
			records := keyed(40)
			records[3].key, records[38].key = nil, nil
			b := record.NewBuilder()
			b.Codec = codec
			r := rules(func(r *record.Rules) { r.Compacted, r.Depth = true, depth })
			_, err := record.Validate(nil, build(t, b, records), now, r)
			var invalid *record.Invalid
			if !errors.As(err, &invalid) || invalid.Reason != record.ReasonInvalidRecord || len(invalid.Records) != 2 ||
				invalid.Records[0].Index != 3 || invalid.Records[1].Index != 38 {
				t.Fatalf("%v: %#v", codec, err)
			}
		}
	}
	records := keyed(100)
	for i := range records {
		records[i].key = nil
	}
	_, err := record.Validate(nil, build(t, record.NewBuilder(), records), now, rules(func(r *record.Rules) { r.Compacted = true }))
	var invalid *record.Invalid
	if !errors.As(err, &invalid) || len(invalid.Records) != record.RecordErrorsMax || !strings.HasPrefix(invalid.Message, "100 of 100") {
		t.Fatalf("a hundred faults give %#v", err)
	}
}

// Kafka limits what it decompresses: an uncompressed record of the same size is bounded by its batch alone.
func TestALargeRecordIsRefusedWhenItCameCompressed(t *testing.T) {
	for _, codec := range codecs {
		for _, depth := range []record.Depth{record.DepthDefault, record.DepthFull} {
			records := keyed(5)
			records[2].value = bytes.Repeat([]byte("x"), 2000)
			b := record.NewBuilder()
			b.Codec = codec
			limit := func(n int64) *record.Rules {
				return rules(func(r *record.Rules) { r.Depth, r.RecordBytesMax = depth, n })
			}
			_, err := record.Validate(nil, build(t, b, records), now, limit(1000))
			var invalid *record.Invalid
			refused := errors.As(err, &invalid) && invalid.Reason == record.ReasonInvalidRecord && len(invalid.Records) == 1 && invalid.Records[0].Index == 2
			if refused != (codec != record.CodecNone) || !refused && err != nil {
				t.Errorf("%v %v: %v", codec, depth, err)
			}
			if _, err := record.Validate(nil, build(t, b, records), now, limit(3000)); err != nil {
				t.Errorf("%v %v, a limit above it: %v", codec, depth, err)
			}
		}
	}
}

func TestTimestampsOutOfRangeBlameTheirRecords(t *testing.T) {
	for _, codec := range codecs {
		for _, depth := range []record.Depth{record.DepthDefault, record.DepthFull} {
			records := keyed(5)
			records[4].ts = now + 3_600_001
			b := record.NewBuilder()
			b.Codec = codec
			_, err := record.Validate(nil, build(t, b, records), now, rules(func(r *record.Rules) { r.Depth = depth }))
			var invalid *record.Invalid
			if !errors.As(err, &invalid) || invalid.Reason != record.ReasonTimestamp || len(invalid.Records) != 1 || invalid.Records[0].Index != 4 {
				t.Errorf("%v %v: %v", codec, depth, err)
			}
		}
	}
	for _, c := range []struct {
		ts            ident.Millis
		before, after int64
		refused       bool
	}{
		{now - 10, 10, 0, false},
		{now - 11, 10, 0, true},
		{now + 10, 0, 10, false},
		{now + 11, 0, 10, true},
		{now, 0, 0, false},
		{ident.NoTimestamp, 0, 0, false},
		{0, record.NoLimit, 0, false},
		{math.MaxInt64, record.NoLimit, record.NoLimit, false},
		{math.MaxInt64, record.NoLimit, math.MaxInt64 - 1, false},
		{math.MinInt64, record.NoLimit, record.NoLimit, true},
	} {
		records := []given{{ts: c.ts, value: []byte("v")}}
		_, err := record.Validate(nil, build(t, record.NewBuilder(), records), now, rules(func(r *record.Rules) {
			r.TimestampBeforeMax, r.TimestampAfterMax = c.before, c.after
		}))
		if (err != nil) != c.refused {
			t.Errorf("timestamp %d with limits %d and %d: %v", c.ts, c.before, c.after, err)
		}
	}
}

func TestLogAppendTimeIsStampedWithItsCRC(t *testing.T) {
	for _, codec := range codecs {
		for _, depth := range depths {
			b := record.NewBuilder()
			b.Codec = codec
			v := build(t, b, keyed(4))
			tail := bytes.Clone(v[61:])
			res, err := record.Validate(nil, v, now, rules(func(r *record.Rules) { r.TimestampType, r.Depth = record.LogAppendTime, depth }))
			if err != nil {
				t.Fatal(err)
			}
			if err := res.Batch.VerifyCRC(); err != nil {
				t.Fatal(err)
			}
			if res.LogAppendTime != now || res.MaxTimestampDelta != 0 || res.Batch.MaxTimestamp() != now || res.Batch.Attributes().TimestampType() != record.LogAppendTime ||
				res.Batch.Attributes().Codec() != codec || res.Header != res.Batch.Header() || !bytes.Equal(res.Batch.Records(), tail) {
				t.Errorf("%v %v: %+v", codec, depth, res)
			}
		}
	}
}

// A batch that says LogAppendTime on a CreateTime topic keeps the times of its
// records: the bit goes.
func TestAProducersLogAppendTimeBitIsCleared(t *testing.T) {
	for _, codec := range codecs {
		for _, depth := range depths {
			b := record.NewBuilder()
			b.Codec, b.TimestampType = codec, record.LogAppendTime
			res, err := record.Validate(nil, build(t, b, keyed(4)), now, rules(func(r *record.Rules) { r.Depth = depth }))
			if err != nil {
				t.Fatal(err)
			}
			if err := res.Batch.VerifyCRC(); err != nil || res.Batch.Attributes().TimestampType() != record.CreateTime || res.Batch.MaxTimestamp() != now-1 {
				t.Errorf("%v %v: %+v, %v", codec, depth, res.Header, err)
			}
		}
	}
}

// Producers may leave maxTimestamp unset or wrong; every doubtful value is
// replaced by the truth at the default depth, with the CRC.
func TestADoubtfulMaxTimestampIsCorrected(t *testing.T) {
	for _, codec := range codecs {
		for _, wrong := range []int64{-1, 0, int64(now) - 5, int64(now) + 3_700_000} {
			records := []given{{ts: now - 5, value: []byte("a")}, {ts: now + 7, value: []byte("b")}, {ts: now + 7, value: []byte("c")}, {ts: now, value: []byte("d")}}
			b := record.NewBuilder()
			b.Codec = codec
			v := build(t, b, records)
			put64(v, 35, wrong)
			seal(v)
			res, err := record.Validate(nil, v, now, rules(nil))
			if err != nil {
				t.Fatalf("%v, maxTimestamp %d: %v", codec, wrong, err)
			}
			if err := res.Batch.VerifyCRC(); err != nil || res.Batch.MaxTimestamp() != now+7 || res.MaxTimestampDelta != 1 || !res.Walked || res.Header != res.Batch.Header() {
				t.Errorf("%v, maxTimestamp %d: %+v, %v", codec, wrong, res, err)
			}
		}
	}
}

func TestCompressionTypeConverts(t *testing.T) {
	targets := []record.Compression{record.CompressionNone, record.CompressionGzip, record.CompressionSnappy, record.CompressionLz4, record.CompressionZstd}
	var scratch []byte
	for _, from := range codecs {
		for i, to := range targets {
			for _, depth := range depths {
				for _, level := range []int{0, 1, 9, 17, 22, -5} {
					records := someRecords(rand.New(rand.NewPCG(1, uint64(i))), 30)
					b := record.NewBuilder()
					b.Codec, b.ProducerID, b.ProducerEpoch, b.BaseSequence, b.Transactional = from, 5, 6, 7, true
					v := build(t, b, records)
					res, err := record.Validate(scratch, v, now, rules(func(r *record.Rules) { r.Compression, r.CompressionLevel, r.Depth = to, level, depth }))
					if err != nil {
						t.Fatalf("%v to %v: %v", from, to, err)
					}
					if res.Converted != (from != codecs[i]) || !res.Converted && &res.Batch[0] != &v[0] {
						t.Fatalf("%v to %v: converted %v", from, to, res.Converted)
					}
					want := v.Header()
					want.Attributes = want.Attributes.WithCodec(codecs[i])
					want.CRC, want.Length = res.Batch.CRC(), int32(len(res.Batch)-record.PrefixSize)
					if err := res.Batch.VerifyCRC(); err != nil || res.Header != want || res.Batch.Header() != want {
						t.Fatalf("%v to %v: %v\ngot  %+v\nwant %+v", from, to, err, res.Header, want)
					}
					var it record.Iterator
					if err := it.Reset(res.Batch, record.Bound{}); err != nil {
						t.Fatal(err)
					}
					for n, g := range records {
						if !it.Next() {
							t.Fatalf("%v to %v: record %d is missing: %v", from, to, n, it.Err())
						}
						if err := same(g, it.Record()); err != nil {
							t.Fatalf("%v to %v: record %d: %v", from, to, n, err)
						}
					}
					if it.Next() || it.Err() != nil {
						t.Fatalf("%v to %v: %v", from, to, it.Err())
					}
					it.Close()
					if res.Converted {
						scratch = res.Batch
					}
				}
			}
		}
	}
}

func TestAConvertedBatchMustFitToo(t *testing.T) {
	b := record.NewBuilder()
	b.Codec = record.CodecGzip
	b.Append(now, nil, bytes.Repeat([]byte("x"), 10_000))
	v, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[record.Reason]func(*record.Rules){
		record.ReasonTooLarge:     func(r *record.Rules) { r.Compression, r.MaxMessageBytes = record.CompressionNone, 5000 },
		record.ReasonListTooLarge: func(r *record.Rules) { r.Compression, r.SegmentBytes = record.CompressionNone, 5000 },
	} {
		var invalid *record.Invalid
		if _, err := record.Validate(nil, bytes.Clone(v), now, rules(change)); !errors.As(err, &invalid) || invalid.Reason != want {
			t.Errorf("want reason %d, got %v", want, err)
		}
	}
}

func TestTheBrokersOwnControlBatchesPass(t *testing.T) {
	b := record.NewBuilder()
	b.Control, b.Transactional, b.ProducerID, b.ProducerEpoch = true, true, 4, 0
	b.Append(now, []byte{0, 0, 0, 1}, []byte{0, 0, 0, 0, 0, 9})
	v, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.Validate(nil, bytes.Clone(v), now, rules(nil)); err == nil {
		t.Error("a client wrote a control batch")
	}
	if _, err := record.Validate(nil, v, now, rules(func(r *record.Rules) { r.Internal, r.Compacted = true, true })); err != nil {
		t.Error(err)
	}
}

func TestValidatingAllocatesNothing(t *testing.T) {
	for _, depth := range depths {
		for _, stamp := range []record.TimestampType{record.CreateTime, record.LogAppendTime} {
			v := build(t, record.NewBuilder(), keyed(100))
			r := rules(func(r *record.Rules) { r.Depth, r.TimestampType = depth, stamp })
			pristine := bytes.Clone(v)
			allocs := testing.AllocsPerRun(100, func() {
				copy(v, pristine)
				if _, err := record.Validate(nil, v, now, r); err != nil {
					t.Fatal(err)
				}
			})
			if allocs != 0 {
				t.Errorf("depth %v, %v: %v allocations", depth, stamp, allocs)
			}
		}
	}
	for _, codec := range codecs {
		b := record.NewBuilder()
		b.Codec = codec
		v := build(t, b, keyed(100))
		r := rules(func(r *record.Rules) { r.Depth = record.DepthHeader })
		if allocs := testing.AllocsPerRun(100, func() {
			if _, err := record.Validate(nil, v, now, r); err != nil {
				t.Fatal(err)
			}
		}); allocs != 0 {
			t.Errorf("codec %v at depth header: %v allocations", codec, allocs)
		}
	}
}

func TestWalkingAllocatesNothing(t *testing.T) {
	v := build(t, record.NewBuilder(), someRecords(rand.New(rand.NewPCG(1, 1)), 100))
	var it record.Iterator
	total := 0
	if allocs := testing.AllocsPerRun(100, func() {
		if err := it.Reset(v, record.Bound{}); err != nil {
			t.Fatal(err)
		}
		for it.Next() {
			for h := it.Record().Headers(); h.Next(); {
				total += len(h.Key()) + len(h.Value())
			}
		}
	}); allocs != 0 || it.Err() != nil || total == 0 {
		t.Errorf("%v allocations, %v, %d bytes of headers", allocs, it.Err(), total)
	}
}

func ExampleValidate() {
	b := record.NewBuilder()
	b.Append(1_700_000_000_000, nil, []byte("no key"))
	batch, err := b.Finish(nil)
	if err != nil {
		panic(err)
	}
	rules := record.DefaultRules()
	rules.Compacted = true
	_, err = record.Validate(nil, batch, 1_700_000_000_000, &rules)
	fmt.Println(err)
	// Output: 1 of 1 records are refused; the first is record 0: a record of a compacted topic needs a key
}
