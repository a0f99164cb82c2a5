package record_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/wire/record"
)

// ofSize builds a batch of about size bytes of records of 1 KiB each, half of
// which compresses away.
func ofSize(b *testing.B, codec record.Codec, size int) record.View {
	b.Helper()
	builder := record.NewBuilder()
	builder.Codec = codec
	value := make([]byte, 1000)
	for i := range value[:500] {
		value[i] = byte(i * i)
	}
	for i := 0; i < max(1, size/1024); i++ {
		builder.Append(now+1, []byte(fmt.Sprintf("key-%04d", i)), value)
	}
	return build(b, builder, []given{{ts: now}})
}

func BenchmarkValidate(b *testing.B) {
	for _, depth := range depths {
		for _, codec := range codecs {
			for _, size := range []int{1 << 10, 64 << 10, 1 << 20} {
				b.Run(fmt.Sprintf("depth=%v/codec=%v/batch=%dKiB", depth, codec, size>>10), func(b *testing.B) {
					v := ofSize(b, codec, size)
					r := rules(func(r *record.Rules) { r.Depth = depth; r.MaxMessageBytes = 2 << 20 })
					b.SetBytes(int64(len(v)))
					b.ReportAllocs()
					for b.Loop() {
						if _, err := record.Validate(nil, v, now, r); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

func BenchmarkConvert(b *testing.B) {
	for to := record.CompressionNone; to <= record.CompressionZstd; to++ {
		b.Run(fmt.Sprintf("to=%v", to), func(b *testing.B) {
			from := record.CodecGzip
			if to == record.CompressionGzip {
				from = record.CodecNone
			}
			v := ofSize(b, from, 64<<10)
			r := rules(func(r *record.Rules) { r.Compression = to })
			var scratch []byte
			b.SetBytes(int64(len(v)))
			b.ReportAllocs()
			for b.Loop() {
				res, err := record.Validate(scratch, v, now, r)
				if err != nil {
					b.Fatal(err)
				}
				scratch = res.Batch
			}
		})
	}
}

func BenchmarkStampLogAppendTime(b *testing.B) {
	v := ofSize(b, record.CodecNone, 64<<10)
	b.SetBytes(int64(len(v)))
	for b.Loop() {
		v.StampLogAppendTime(now)
	}
}

func BenchmarkIterate(b *testing.B) {
	for _, codec := range codecs {
		b.Run(fmt.Sprintf("codec=%v", codec), func(b *testing.B) {
			v := ofSize(b, codec, 64<<10)
			var it record.Iterator
			b.SetBytes(int64(len(v)))
			b.ReportAllocs()
			for b.Loop() {
				if err := it.Reset(v, record.Bound{}); err != nil {
					b.Fatal(err)
				}
				for it.Next() {
				}
				if it.Err() != nil {
					b.Fatal(it.Err())
				}
			}
		})
	}
}

func BenchmarkBuild(b *testing.B) {
	value := bytes.Repeat([]byte("v"), 1000)
	builder := record.NewBuilder()
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		for range 64 {
			builder.Append(now, value[:16], value)
		}
		var err error
		if dst, err = builder.Finish(dst[:0]); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(dst)))
}
