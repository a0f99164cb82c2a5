package record_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// wrap puts a section of records, already compressed, into a batch that claims
// count records.
func wrap(codec record.Codec, count int32, section []byte) record.View {
	h := record.Header{
		Length: int32(record.HeaderSize - record.PrefixSize + len(section)), Magic: record.Magic, LeaderEpoch: -1,
		Attributes: record.Attributes(0).WithCodec(codec), LastOffsetDelta: count - 1, BaseTimestamp: now, MaxTimestamp: now,
		ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, Count: count,
	}
	v := append(make([]byte, record.HeaderSize), section...)
	h.Encode(v)
	seal(v)
	return v
}

// pack compresses with each codec's own library and settings other than ours.
var pack = map[string]struct {
	codec record.Codec
	do    func(tb testing.TB, plain []byte) []byte
}{
	"gzip in two members": {record.CodecGzip, func(tb testing.TB, plain []byte) []byte {
		tb.Helper()
		var out bytes.Buffer
		for _, half := range [][]byte{plain[:len(plain)/2], plain[len(plain)/2:]} {
			w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
			if err == nil {
				_, err = w.Write(half)
			}
			if err == nil {
				err = w.Close()
			}
			if err != nil {
				tb.Fatal(err)
			}
		}
		return out.Bytes()
	}},
	"bare snappy": {record.CodecSnappy, func(_ testing.TB, plain []byte) []byte { return snappy.Encode(nil, plain) }},
	"snappy in two xerial streams of small blocks": {record.CodecSnappy, func(_ testing.TB, plain []byte) []byte {
		var out []byte
		for half := range slices.Chunk(plain, len(plain)/2+1) {
			out = append(out, 0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1)
			for chunk := range slices.Chunk(half, 100) {
				block := snappy.Encode(nil, chunk)
				out = binary.BigEndian.AppendUint32(out, uint32(len(block)))
				out = append(out, block...)
			}
		}
		return out
	}},
	"lz4 with dependent megabyte blocks and checksums": {record.CodecLz4, func(tb testing.TB, plain []byte) []byte {
		tb.Helper()
		var out bytes.Buffer
		w := lz4.NewWriter(&out)
		if err := w.Apply(lz4.BlockSizeOption(lz4.Block1Mb), lz4.ChecksumOption(true), lz4.BlockChecksumOption(true), lz4.SizeOption(uint64(len(plain)))); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write(plain); err != nil {
			tb.Fatal(err)
		}
		if err := w.Close(); err != nil {
			tb.Fatal(err)
		}
		return out.Bytes()
	}},
	"zstd streamed with a large window": {record.CodecZstd, func(tb testing.TB, plain []byte) []byte {
		tb.Helper()
		var out bytes.Buffer
		w, err := zstd.NewWriter(&out, zstd.WithWindowSize(1<<27), zstd.WithEncoderConcurrency(1))
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write(plain); err != nil {
			tb.Fatal(err)
		}
		if err := w.Close(); err != nil {
			tb.Fatal(err)
		}
		return out.Bytes()
	}},
}

func TestOtherWritersFramingsAreRead(t *testing.T) {
	b := record.NewBuilder()
	records := keyed(3000)
	plain := build(t, b, records).Records()
	for name, p := range pack {
		var it record.Iterator
		if err := it.Reset(wrap(p.codec, 3000, p.do(t, plain)), record.Bound{}); err != nil {
			t.Fatal(err)
		}
		n := 0
		for ; it.Next(); n++ {
			if !bytes.Equal(it.Record().Value, records[n].value) {
				t.Fatalf("%s: record %d differs", name, n)
			}
		}
		if it.Err() != nil || n != 3000 {
			t.Errorf("%s: %d records, %v", name, n, it.Err())
		}
		it.Close()
	}
}

// allocated is how many bytes f allocates, garbage included.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// A bomb is a section that is small and decompresses to a lot. It must be refused
// after the bound, and must not cost more memory than a few times the bound.
func TestBombsStopAtTheBound(t *testing.T) {
	const size = 16 << 20
	bound := record.Bound{Max: 1 << 20, Slack: 1 << 20}
	one := binary.AppendVarint(nil, size) // one record as long as the bomb
	bomb := append(one, make([]byte, size)...)
	for name, p := range pack {
		section := p.do(t, bomb)
		v := wrap(p.codec, 1, section)
		var it record.Iterator
		var err error
		cost := allocated(func() {
			if err = it.Reset(v, bound); err != nil {
				return
			}
			for it.Next() {
			}
			err = it.Err()
			it.Close()
		})
		if !errors.Is(err, record.ErrBound) {
			t.Errorf("%s: %d bytes that become %d give %v", name, len(section), size, err)
		}
		if cost > 16<<20 {
			t.Errorf("%s: %d bytes were allocated for a bound of %d", name, cost, bound.Max)
		}
		r := rules(func(r *record.Rules) { r.Depth, r.Bound, r.MaxMessageBytes = record.DepthFull, bound, 1<<30 })
		var invalid *record.Invalid
		if _, err := record.Validate(nil, v, now, r); !errors.As(err, &invalid) || invalid.Reason != record.ReasonInvalidRecord || !errors.Is(err, record.ErrBound) {
			t.Errorf("%s: Validate gives %v", name, err)
		}
	}
}

func TestAHighRatioIsBoundedByTheBytesThatCame(t *testing.T) {
	b := record.NewBuilder()
	b.Codec = record.CodecZstd
	b.Append(now, nil, make([]byte, 4<<20))
	v, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	for slack, want := range map[int64]error{1 << 20: record.ErrBound, 5 << 20: nil} {
		var it record.Iterator
		if err := it.Reset(v, record.Bound{Slack: slack}); err != nil {
			t.Fatal(err)
		}
		for it.Next() {
		}
		if !errors.Is(it.Err(), want) {
			t.Errorf("%d bytes with slack %d: %v", len(v), slack, it.Err())
		}
		it.Close()
	}
}

// Lengths that lie must not size an allocation.
func TestLyingLengthsCostNothing(t *testing.T) {
	snappyHuge := append(binary.AppendUvarint(nil, 1<<31), 0, 'x')
	xerial := func(block []byte) []byte {
		out := []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1}
		return append(binary.BigEndian.AppendUint32(out, uint32(len(block))), block...)
	}
	zstdFrame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0x40, 0, 0, 0, 0, 1, 0, 0} // 1 GiB of content, an empty last block
	recordHuge := binary.AppendVarint(nil, 1<<30)
	gz := pack["gzip in two members"].do(t, recordHuge)
	for _, c := range []struct {
		name    string
		codec   record.Codec
		section []byte
	}{
		{"bare snappy that declares 2 GiB", record.CodecSnappy, snappyHuge},
		{"framed snappy that declares 2 GiB", record.CodecSnappy, xerial(snappyHuge)},
		{"a xerial block past the end", record.CodecSnappy, xerial(snappyHuge)[:17]},
		{"zstd that declares 1 GiB", record.CodecZstd, zstdFrame},
		{"a record of 1 GiB in gzip", record.CodecGzip, gz},
		{"a record of 1 GiB", record.CodecNone, recordHuge},
		{"an empty section", record.CodecGzip, nil},
		{"an empty section", record.CodecLz4, nil},
		{"an empty section", record.CodecSnappy, nil},
		{"an empty section", record.CodecZstd, nil},
		{"an empty section", record.CodecNone, nil},
		{"noise", record.CodecGzip, []byte("noise")},
		{"noise", record.CodecLz4, []byte("noise")},
		{"noise", record.CodecZstd, []byte("noise")},
		{"noise", record.CodecSnappy, []byte("\xffnoise")},
	} {
		v := wrap(c.codec, 1, c.section)
		var it record.Iterator
		var err error
		cost := allocated(func() {
			if err = it.Reset(v, record.Bound{}); err == nil && !it.Next() {
				err = it.Err()
			}
			it.Close()
		})
		if err == nil || !errors.Is(err, record.ErrDecompress) && !errors.Is(err, record.ErrRecord) && !errors.Is(err, record.ErrCount) && !errors.Is(err, record.ErrBound) {
			t.Errorf("%v, %s: %v", c.codec, c.name, err)
		}
		if cost > 1<<20 {
			t.Errorf("%v, %s: %d bytes were allocated", c.codec, c.name, cost)
		}
	}
}

func TestBytesAfterTheLastRecordAreSeen(t *testing.T) {
	plain := build(t, record.NewBuilder(), keyed(2)).Records()
	for name, p := range pack {
		for _, c := range []struct {
			plain []byte
			count int32
			want  error
		}{
			{append(bytes.Clone(plain), 0), 2, record.ErrCount},
			{plain, 1, record.ErrCount},
			{plain, 3, record.ErrCount},
			{plain[:len(plain)-1], 2, record.ErrRecord},
			{plain, 2, nil},
		} {
			var it record.Iterator
			if err := it.Reset(wrap(p.codec, c.count, p.do(t, c.plain)), record.Bound{}); err != nil {
				t.Fatal(err)
			}
			for it.Next() {
			}
			if !errors.Is(it.Err(), c.want) {
				t.Errorf("%s, %d bytes for %d records: %v, want %v", name, len(c.plain), c.count, it.Err(), c.want)
			}
			it.Close()
		}
	}
}

// Compaction may leave a header without records, for its last offset or sequence.
func TestABatchWithoutRecordsIsWalked(t *testing.T) {
	for _, codec := range codecs {
		v := wrap(codec, 0, nil)
		put32(v, 23, 7)
		seal(v)
		var it record.Iterator
		if err := it.Reset(v, record.Bound{}); err != nil || it.Next() || it.Err() != nil {
			t.Errorf("%v: %v, %v", codec, err, it.Err())
		}
		if offset, at, err := record.MaxTimestamp(v); offset != ident.NoOffset || at != ident.NoTimestamp || err != nil {
			t.Errorf("%v: greatest timestamp %d at %d, %v", codec, at, offset, err)
		}
		if _, _, found, err := record.FirstAtOrAfter(v, 0, 0); found || err != nil {
			t.Errorf("%v: found %v, %v", codec, found, err)
		}
		if v.LastOffset() != 7 {
			t.Errorf("%v: last offset %d", codec, v.LastOffset())
		}
	}
}

// A record that fills the window exactly, spans two fills, or is far larger than
// the first window must come out whole.
func TestRecordsLargerThanTheWindow(t *testing.T) {
	for _, codec := range codecs {
		for _, size := range []int{64<<10 - 9, 64<<10 - 8, 64 << 10, 200_000, 1_000_000} {
			b := record.NewBuilder()
			b.Codec = codec
			values := [][]byte{bytes.Repeat([]byte{1}, 10), bytes.Repeat([]byte{2, 3, 5, 7}, size/4), bytes.Repeat([]byte{4}, 70_000), {5}}
			for _, v := range values {
				b.Append(now, nil, v)
			}
			v, err := b.Finish(nil)
			if err != nil {
				t.Fatal(err)
			}
			var it record.Iterator
			if err := it.Reset(v, record.Bound{}); err != nil {
				t.Fatal(err)
			}
			for i, want := range values {
				if !it.Next() || !bytes.Equal(it.Record().Value, want) {
					t.Fatalf("%v, size %d: record %d: %v", codec, size, i, it.Err())
				}
			}
			if it.Next() || it.Err() != nil {
				t.Fatalf("%v, size %d: %v", codec, size, it.Err())
			}
			it.Close()
		}
	}
}

func TestLookingForTimestamps(t *testing.T) {
	for _, codec := range codecs {
		b := record.NewBuilder()
		b.Codec, b.BaseOffset = codec, 100
		for _, ts := range []ident.Millis{50, 40, 70, 60, 70, 10} {
			b.Append(ts, nil, []byte("v"))
		}
		bytes, err := b.Finish(nil)
		if err != nil {
			t.Fatal(err)
		}
		v := record.View(bytes)
		for _, c := range []struct {
			ts     ident.Millis
			from   ident.Offset
			offset ident.Offset
			at     ident.Millis
			found  bool
		}{
			{0, 0, 100, 50, true},
			{50, 0, 100, 50, true},
			{51, 0, 102, 70, true},
			{55, 103, 103, 60, true},
			{70, 103, 104, 70, true},
			{70, 105, -1, -1, false},
			{10, 105, 105, 10, true},
			{71, 0, -1, -1, false},
			{0, 106, -1, -1, false},
		} {
			offset, at, found, err := record.FirstAtOrAfter(v, c.ts, c.from)
			if err != nil || offset != c.offset || at != c.at || found != c.found {
				t.Errorf("%v: first at or after %d from %d: %d %d %v %v", codec, c.ts, c.from, offset, at, found, err)
			}
		}
		if offset, at, err := record.MaxTimestamp(v); err != nil || offset != 102 || at != 70 {
			t.Errorf("%v: greatest timestamp %d at %d, %v", codec, at, offset, err)
		}
		v.StampLogAppendTime(99)
		if offset, at, found, err := record.FirstAtOrAfter(v, 98, 103); err != nil || offset != 103 || at != 99 || !found {
			t.Errorf("%v: LogAppendTime: %d %d %v %v", codec, offset, at, found, err)
		}
		if offset, at, err := record.MaxTimestamp(v); err != nil || offset != 100 || at != 99 {
			t.Errorf("%v: LogAppendTime: %d %d %v", codec, offset, at, err)
		}
	}
	if _, _, _, err := record.FirstAtOrAfter(wrap(record.CodecGzip, 1, []byte("noise")), 0, 0); !errors.Is(err, record.ErrDecompress) {
		t.Errorf("a damaged batch gives %v", err)
	}
}
