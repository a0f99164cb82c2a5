package broker_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// benchBatch is an uncompressed batch of records of 1000 bytes, about size bytes in all.
func benchBatch(size int) []byte {
	b := record.NewBuilder()
	value := bytes.Repeat([]byte("troupe! "), 125)
	for b.Append(ident.Millis(1_700_000_000_000), nil, value); b.Size()+1010 < size; {
		b.Append(ident.Millis(1_700_000_000_000), nil, value)
	}
	out, err := b.Finish(nil)
	if err != nil {
		panic(err)
	}
	return out
}

// BenchmarkProduce sends pre-encoded requests, eight in flight, and reads the answers. The client runs in the same process: use the profile, not the time,
// to see what the broker costs.
func BenchmarkProduce(b *testing.B) {
	for _, caching := range []bool{true, false} {
		for _, size := range []int{1 << 10, 64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("caching=%v/request=%d", caching, size), func(b *testing.B) {
				r := start(b)
				r.createTopic("bench", 1, "write.caching", fmt.Sprint(caching), "retention.bytes", "268435456", "segment.bytes", "134217728", "max.message.bytes", "4000000")
				req := produce(7, 1, "bench", 0, benchBatch(size))
				f := frame(7, req)
				c := r.raw()
				answer := make([]byte, 4+4+4+2+5+4+4+2+8+8+8+4)
				b.SetBytes(int64(len(f)))
				b.ReportAllocs()
				sent, answered := 0, 0
				for b.Loop() {
					for ; sent < answered+8; sent++ {
						if _, err := c.Write(f); err != nil {
							b.Fatal(err)
						}
					}
					if _, err := io.ReadFull(c, answer); err != nil {
						b.Fatal(err)
					}
					if code := int16(binary.BigEndian.Uint16(answer[4+4+4+2+5+4+4:])); code != 0 {
						b.Fatalf("error %d", code)
					}
					answered++
				}
				b.StopTimer()
			})
		}
	}
}
