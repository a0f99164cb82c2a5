package records_test

import (
	"testing"

	"github.com/troupe-broker/troupe/group/records"
)

// BenchmarkDecode is the price of loading a coordinator, a record at a time.
func BenchmarkDecode(b *testing.B) {
	for _, g := range goldens() {
		if g.read {
			continue
		}
		key, val := g.bytes(b)
		b.Run("record="+g.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := records.Decode(key, val); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAppend is the price of a record on its way into a batch.
func BenchmarkAppend(b *testing.B) {
	for _, g := range goldens() {
		if g.read || g.entry.Tombstone() {
			continue
		}
		b.Run("record="+g.name, func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				buf = g.entry.AppendValue(g.entry.AppendKey(buf[:0]))
			}
		})
	}
}
