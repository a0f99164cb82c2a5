package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

var codecs = []record.Codec{record.CodecNone, record.CodecGzip, record.CodecSnappy, record.CodecLz4, record.CodecZstd}

// given is a record as a test hands it to a builder.
type given struct {
	ts      ident.Millis
	key     []byte
	value   []byte
	headers []record.KeyValue
}

// someRecords makes n records of all shapes: null and empty keys and values,
// headers, timestamps that go back.
func someRecords(rng *rand.Rand, n int) []given {
	text := func(sizeMax int) []byte {
		b := make([]byte, rng.IntN(sizeMax+1))
		for i := range b {
			b[i] = "abcdefgh"[rng.IntN(8)]
		}
		return b
	}
	out := make([]given, n)
	for i := range out {
		g := given{ts: 1_700_000_000_000 + ident.Millis(rng.IntN(2000)-1000)}
		if rng.IntN(4) > 0 {
			g.key = text(20)
		}
		if rng.IntN(8) > 0 {
			g.value = text(300)
		}
		for range rng.IntN(3) {
			kv := record.KeyValue{Key: string(text(5))}
			if rng.IntN(3) > 0 {
				kv.Value = text(9)
			}
			g.headers = append(g.headers, kv)
		}
		out[i] = g
	}
	return out
}

func build(tb testing.TB, b *record.Builder, records []given) record.View {
	tb.Helper()
	for _, g := range records {
		b.Append(g.ts, g.key, g.value, g.headers...)
	}
	bytes, err := b.Finish(nil)
	if err != nil {
		tb.Fatal(err)
	}
	v, rest, err := record.Split(bytes)
	if err != nil || len(rest) != 0 {
		tb.Fatalf("Split: %d bytes left, %v", len(rest), err)
	}
	return v
}

// same compares a record that was read with the one that was given.
func same(g given, r *record.Record) error {
	if r.Timestamp != g.ts {
		return fmt.Errorf("timestamp %d, want %d", r.Timestamp, g.ts)
	}
	if !bytes.Equal(r.Key, g.key) || (r.Key == nil) != (g.key == nil) {
		return fmt.Errorf("key %q, want %q", r.Key, g.key)
	}
	if !bytes.Equal(r.Value, g.value) || (r.Value == nil) != (g.value == nil) {
		return fmt.Errorf("value %q, want %q", r.Value, g.value)
	}
	var headers []record.KeyValue
	for h := r.Headers(); h.Next(); {
		headers = append(headers, record.KeyValue{Key: string(h.Key()), Value: h.Value()})
	}
	if len(headers) != len(g.headers) {
		return fmt.Errorf("%d headers, want %d", len(headers), len(g.headers))
	}
	for i, kv := range g.headers {
		got := headers[i]
		if got.Key != kv.Key || !bytes.Equal(got.Value, kv.Value) || (got.Value == nil) != (kv.Value == nil) {
			return fmt.Errorf("header %d is %q, want %q", i, got, kv)
		}
	}
	return nil
}

func TestWhatIsBuiltIsReadBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, codec := range codecs {
		for _, n := range []int{1, 2, 3, 50, 2000} {
			t.Run(fmt.Sprintf("codec=%v/records=%d", codec, n), func(t *testing.T) {
				records := someRecords(rng, n)
				b := record.NewBuilder()
				b.BaseOffset, b.LeaderEpoch, b.Codec = 1000, 7, codec
				b.ProducerID, b.ProducerEpoch, b.BaseSequence = 42, 3, 99
				v := build(t, b, records)
				if err := v.VerifyCRC(); err != nil {
					t.Fatal(err)
				}
				h := v.Header()
				if h.BaseOffset != 1000 || h.LeaderEpoch != 7 || h.Magic != 2 || h.Count != int32(n) || h.LastOffset() != 1000+ident.Offset(n)-1 ||
					h.ProducerID != 42 || h.ProducerEpoch != 3 || h.BaseSequence != 99 || h.Attributes.Codec() != codec || int(h.Length) != len(v)-record.PrefixSize {
					t.Fatalf("header %+v", h)
				}
				var it record.Iterator
				defer it.Close()
				if err := it.Reset(v, record.Bound{}); err != nil {
					t.Fatal(err)
				}
				greatest := records[0].ts
				for i, g := range records {
					if !it.Next() {
						t.Fatalf("record %d is missing: %v", i, it.Err())
					}
					if err := same(g, it.Record()); err != nil {
						t.Fatalf("record %d: %v", i, err)
					}
					if got := it.Record().Offset; got != 1000+ident.Offset(i) {
						t.Fatalf("record %d has offset %d", i, got)
					}
					greatest = max(greatest, g.ts)
				}
				if it.Next() || it.Err() != nil {
					t.Fatalf("the batch does not end: %v", it.Err())
				}
				if v.MaxTimestamp() != greatest {
					t.Fatalf("maxTimestamp %d, want %d", v.MaxTimestamp(), greatest)
				}
			})
		}
	}
}

// kmsg knows the header and the records too, from the same protocol, by other hands.
func TestBatchesAreWhatKmsgReads(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		records := someRecords(rng, 1+rng.IntN(20))
		b := record.NewBuilder()
		b.BaseOffset = ident.Offset(rng.Int64())
		b.LeaderEpoch = ident.LeaderEpoch(rng.Int32())
		b.ProducerID, b.ProducerEpoch, b.BaseSequence = ident.ProducerID(rng.Int64()), ident.ProducerEpoch(rng.Int32()), ident.Sequence(rng.Int32())
		b.Transactional, b.Control = rng.IntN(2) == 0, rng.IntN(2) == 0
		v := build(t, b, records)

		var k kmsg.RecordBatch
		if err := k.ReadFrom(v); err != nil {
			t.Fatal(err)
		}
		h := v.Header()
		theirs := record.Header{
			BaseOffset: ident.Offset(k.FirstOffset), Length: k.Length, LeaderEpoch: ident.LeaderEpoch(k.PartitionLeaderEpoch), Magic: k.Magic,
			CRC: uint32(k.CRC), Attributes: record.Attributes(k.Attributes), LastOffsetDelta: k.LastOffsetDelta,
			BaseTimestamp: ident.Millis(k.FirstTimestamp), MaxTimestamp: ident.Millis(k.MaxTimestamp), ProducerID: ident.ProducerID(k.ProducerID),
			ProducerEpoch: ident.ProducerEpoch(k.ProducerEpoch), BaseSequence: ident.Sequence(k.FirstSequence), Count: k.NumRecords,
		}
		if h != theirs {
			t.Fatalf("ours   %+v\ntheirs %+v", h, theirs)
		}
		if again := k.AppendTo(nil); !bytes.Equal(again, v) {
			t.Fatal("kmsg writes the batch differently")
		}
		rest := k.Records
		for i, g := range records {
			var r kmsg.Record
			if err := r.ReadFrom(rest); err != nil {
				t.Fatal(err)
			}
			size := len(r.AppendTo(nil))
			rest = rest[size:]
			if !bytes.Equal(r.Key, g.key) || !bytes.Equal(r.Value, g.value) || len(r.Headers) != len(g.headers) ||
				int(r.OffsetDelta) != i || records[0].ts+ident.Millis(r.TimestampDelta64) != g.ts {
				t.Fatalf("record %d: kmsg reads %+v, given %+v", i, r, g)
			}
		}
		if len(rest) != 0 {
			t.Fatalf("%d bytes after the records", len(rest))
		}
	}
}

func TestABuilderForgetsItsRecords(t *testing.T) {
	b := record.NewBuilder()
	if _, err := b.Finish(nil); err == nil {
		t.Fatal("a batch without records was built")
	}
	b.Append(5, nil, []byte("a"))
	if b.Count() != 1 || b.Size() != record.HeaderSize+8 {
		t.Fatalf("%d records, %d bytes", b.Count(), b.Size())
	}
	first, err := b.Finish([]byte("before"))
	if err != nil || !bytes.HasPrefix(first, []byte("before")) || b.Count() != 0 {
		t.Fatalf("%q, %v", first, err)
	}
	b.Append(5, nil, []byte("a"))
	second, err := b.Finish(nil)
	if err != nil || !bytes.Equal(first[6:], second) {
		t.Fatalf("the second batch differs from the first: %v", err)
	}
}

func TestSplitCutsBatchesOffAndStopsAtATornOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var log []byte
	var sizes []int
	for range 5 {
		v := build(t, record.NewBuilder(), someRecords(rng, 3))
		log = append(log, v...)
		sizes = append(sizes, len(v))
	}
	rest := log[:len(log)-1]
	for i, size := range sizes {
		v, after, err := record.Split(rest)
		if i == len(sizes)-1 {
			if !errors.Is(err, record.ErrTruncated) || len(after) != size-1 {
				t.Fatalf("the torn batch gives %v and %d bytes", err, len(after))
			}
			break
		}
		if err != nil || len(v) != size || cap(v) != size {
			t.Fatalf("batch %d: %d bytes, capacity %d, %v", i, len(v), cap(v), err)
		}
		rest = after
	}
	for cut := range record.HeaderSize + 3 {
		if _, _, err := record.Split(log[:cut]); !errors.Is(err, record.ErrTruncated) {
			t.Fatalf("%d bytes give %v", cut, err)
		}
	}
	for _, c := range []struct {
		at   int
		by   byte
		want error
	}{{8, 0x80, record.ErrLength}, {8, 0x7f, record.ErrTruncated}, {16, 1, record.ErrMagic}, {16, 0xff, record.ErrMagic}} {
		bad := bytes.Clone(log)
		bad[c.at] = c.by
		if _, _, err := record.Split(bad); !errors.Is(err, c.want) {
			t.Errorf("byte %d = %#x gives %v, want %v", c.at, c.by, err, c.want)
		}
	}
	short := bytes.Clone(log)
	copy(short[8:], []byte{0, 0, 0, record.HeaderSize - record.PrefixSize - 1})
	if _, _, err := record.Split(short); !errors.Is(err, record.ErrLength) {
		t.Errorf("a batch shorter than its header gives %v", err)
	}
}

func TestEveryFlippedBitIsSeen(t *testing.T) {
	v := build(t, record.NewBuilder(), someRecords(rand.New(rand.NewPCG(7, 8)), 2))
	for i := 17; i < len(v); i++ { // from the CRC on: what is before is the broker's
		for bit := range 8 {
			v[i] ^= 1 << bit
			if err := v.VerifyCRC(); !errors.Is(err, record.ErrCRC) {
				t.Fatalf("bit %d of byte %d: %v", bit, i, err)
			}
			v[i] ^= 1 << bit
		}
	}
	v.SetBaseOffset(123456789)
	v.SetLeaderEpoch(77)
	if err := v.VerifyCRC(); err != nil || v.BaseOffset() != 123456789 || v.LeaderEpoch() != 77 {
		t.Fatalf("base offset and epoch are outside the CRC: %v", err)
	}
	v.StampLogAppendTime(555)
	if err := v.VerifyCRC(); err != nil || v.MaxTimestamp() != 555 || v.Attributes().TimestampType() != record.LogAppendTime {
		t.Fatalf("after StampLogAppendTime: %v", err)
	}
}

func TestRecordsOfALogAppendTimeBatchHaveItsTime(t *testing.T) {
	v := build(t, record.NewBuilder(), someRecords(rand.New(rand.NewPCG(9, 9)), 3))
	v.StampLogAppendTime(777)
	var it record.Iterator
	if err := it.Reset(v, record.Bound{}); err != nil {
		t.Fatal(err)
	}
	for it.Next() {
		if it.Record().Timestamp != 777 {
			t.Fatalf("timestamp %d", it.Record().Timestamp)
		}
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
}

func TestKafkasPartitioner(t *testing.T) {
	// The hashes are those of Kafka's UtilsTest.testMurmur2.
	for key, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string": -1486304829, "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, "abc": 479470107,
	} {
		if got := record.Murmur2([]byte(key)); got != want {
			t.Errorf("Murmur2(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestNamesOfCodecs(t *testing.T) {
	for c := record.CompressionProducer; c <= record.CompressionZstd; c++ {
		if got, err := record.ParseCompression(c.String()); err != nil || got != c {
			t.Errorf("%v: %v, %v", c, got, err)
		}
	}
	if _, err := record.ParseCompression("none"); err == nil {
		t.Error("compression.type=none is called uncompressed")
	}
}
