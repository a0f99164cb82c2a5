package broker

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// comparedBatch is a batch with records at these offsets, from base on; values are their offsets, but for what other says.
func comparedBatch(t *testing.T, codec record.Codec, base, last ident.Offset, epoch ident.LeaderEpoch, offsets []ident.Offset, other map[ident.Offset]string) []byte {
	t.Helper()
	b := record.NewBuilder()
	b.Codec = codec
	for o := base; o <= last; o++ {
		value := fmt.Sprint("record ", int64(o))
		if v, ok := other[o]; ok {
			value = v
		}
		b.Append(ident.Millis(o), []byte("k"), []byte(value), record.KeyValue{Key: "h", Value: []byte("v")})
	}
	out, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := record.Split(out)
	if err != nil {
		t.Fatal(err)
	}
	v.SetBaseOffset(base)
	v.SetLeaderEpoch(epoch)
	keep := map[ident.Offset]bool{}
	for _, o := range offsets {
		keep[o] = true
	}
	if offsets == nil {
		return v
	}
	var f record.Filter
	left, _, err := f.Run(nil, v, ident.NoTimestamp, func(r *record.Record) bool { return keep[r.Offset] })
	if err != nil {
		t.Fatal(err)
	}
	if left.Batch == nil {
		return record.Emptied(nil, v)
	}
	return left.Batch
}

func TestRecordsAreComparedWhateverBatchesTheyLieIn(t *testing.T) {
	batch := func(base, last ident.Offset, keep ...ident.Offset) []byte {
		return comparedBatch(t, record.CodecNone, base, last, 3, keep, nil)
	}
	join := func(batches ...[]byte) (out []byte) {
		for _, b := range batches {
			out = append(out, b...)
		}
		return out
	}
	found := func(list ...difference) differences { return differences{list: list} }
	rng := func(from, to ident.Offset, kind string) difference {
		return difference{store.OffsetRange{From: from, To: to}, kind}
	}
	opaque := batch(5, 9)
	opaque[len(opaque)-1] = 7 // more headers, or a longer one, than there are bytes
	opaque[record.HeaderSize] = 0x7e
	dense := record.NewBuilder() // allowed on the wire, and more than may be unpacked of so few bytes
	dense.Codec = record.CodecZstd
	dense.Append(5, []byte("k"), make([]byte, 8<<20))
	packed, err := dense.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	record.View(packed).SetBaseOffset(5)
	for name, c := range map[string]struct {
		mine, theirs    []byte
		from, to, whole ident.Offset
		want            differences
	}{
		"the same":                        {join(batch(0, 4), batch(5, 9)), join(batch(0, 4), batch(5, 9)), 0, 10, 0, differences{}},
		"compressed otherwise":            {batch(0, 4), comparedBatch(t, record.CodecZstd, 0, 4, 3, nil, nil), 0, 5, 0, differences{}},
		"nothing at all":                  {nil, nil, 0, 5, 0, differences{}},
		"another record":                  {batch(0, 4), comparedBatch(t, record.CodecNone, 0, 4, 3, nil, map[ident.Offset]string{2: "x", 3: "y"}), 0, 5, 5, found(rng(2, 4, differsRecord))},
		"one with a nil value":            {comparedBatch(t, record.CodecNone, 0, 0, 3, nil, map[ident.Offset]string{0: ""}), comparedBatch(t, record.CodecNone, 0, 0, 3, nil, map[ident.Offset]string{0: "\x00"}), 0, 1, 0, found(rng(0, 1, differsRecord))},
		"of another epoch":                {batch(0, 1), comparedBatch(t, record.CodecNone, 0, 1, 4, nil, nil), 0, 2, 2, found(rng(0, 2, differsRecord))},
		"outside the range":               {batch(0, 4), comparedBatch(t, record.CodecNone, 0, 4, 3, nil, map[ident.Offset]string{0: "x", 4: "y"}), 1, 4, 0, differences{}},
		"compaction here":                 {join(batch(0, 4, 1), batch(5, 9)), join(batch(0, 4), batch(5, 9)), 0, 10, 5, differences{}},
		"compaction there, whole batches": {join(batch(0, 4), batch(5, 9)), batch(5, 9), 0, 10, 5, differences{}},
		"an empty batch":                  {comparedBatch(t, record.CodecNone, 0, 4, 3, []ident.Offset{}, nil), nil, 0, 5, 0, differences{}},
		"another one among compacted":     {batch(0, 4, 1, 3), comparedBatch(t, record.CodecNone, 0, 4, 3, []ident.Offset{0, 3}, map[ident.Offset]string{3: "x"}), 0, 5, 9, found(rng(3, 4, differsRecord))},
		"missing here":                    {join(batch(0, 1), batch(8, 9)), join(batch(0, 1), batch(2, 4), batch(5, 7), batch(8, 9)), 0, 10, 0, found(rng(2, 8, differsMissing))},
		"only here, and some compacted":   {join(batch(0, 4), batch(5, 9)), nil, 0, 10, 7, found(rng(7, 10, differsExtra))},
		"the same that does not parse":    {join(batch(0, 4, 1), opaque), join(batch(0, 4), opaque), 0, 10, 10, differences{}},
		"the same that is too dense":      {join(batch(0, 4, 1), packed), join(batch(0, 4, 3), packed), 0, 6, 6, differences{}},
		"noise behind what both have": {
			append(batch(0, 4), make([]byte, 100)...), append(batch(0, 4), make([]byte, 100)...), 2, 10, 0, found(rng(2, 10, differsOpaque)),
		},
		"nothing but noise in the range": {append(batch(0, 4), 1, 2, 3), append(batch(0, 4), 1, 2, 3), 5, 10, 0, found(rng(5, 10, differsOpaque))},
		"what does not parse, behind it": {join(batch(0, 4), opaque), batch(0, 4), 0, 5, 0, differences{}},
		"another one, and behind it what does not parse": {
			join(batch(0, 4), opaque), join(comparedBatch(t, record.CodecNone, 0, 4, 3, nil, map[ident.Offset]string{4: "x"}), opaque), 0, 10, 0, found(rng(4, 5, differsRecord)),
		},
		"what does not parse": {join(batch(0, 4), opaque), join(batch(0, 4), batch(5, 9)), 0, 10, 0, found(rng(5, 10, differsOpaque))},
	} {
		if got := compareRecords(c.mine, c.theirs, c.from, c.to, c.whole); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestDigestsAreOfTheBatchesInTheRange(t *testing.T) {
	a, b, c := comparedBatch(t, record.CodecNone, 0, 4, 3, nil, nil), comparedBatch(t, record.CodecNone, 5, 9, 3, nil, nil), comparedBatch(t, record.CodecNone, 10, 14, 3, nil, nil)
	all := append(append(append([]byte{}, a...), b...), c...)
	if digestOf(all, 5, 10) != digestOf(b, 0, 100) || digestOf(all, 4, 10) == digestOf(b, 0, 100) || digestOf(all, 0, 15) != digestOf(all, 4, 11) {
		t.Error("the digest is of other batches")
	}
	for name, other := range map[string][]byte{
		"epoch":  comparedBatch(t, record.CodecNone, 5, 9, 4, nil, nil),
		"base":   comparedBatch(t, record.CodecNone, 6, 10, 3, nil, nil),
		"record": comparedBatch(t, record.CodecNone, 5, 9, 3, nil, map[ident.Offset]string{7: "x"}),
		"none":   nil,
	} {
		if digestOf(other, 0, 100) == digestOf(b, 0, 100) {
			t.Errorf("another %s, and the same digest", name)
		}
	}
	if rest := batchesFrom(all, 5); len(rest) != len(b)+len(c) {
		t.Errorf("%d bytes from 5 on", len(rest))
	}
	if rest := batchesFrom(all, 15); rest != nil {
		t.Errorf("%d bytes behind the end", len(rest))
	}
}

func TestDifferencesAreBounded(t *testing.T) {
	var d differences
	for i := range ident.Offset(2*differencesMax + 10) {
		d.add(differences{list: []difference{{store.OffsetRange{From: 2 * i, To: 2*i + 1}, differsRecord}}})
	}
	if len(d.list) != differencesMax || d.more != differencesMax+10 || d.count() != 2*differencesMax+10 {
		t.Errorf("%d and %d more", len(d.list), d.more)
	}
	if !overlaps(d.list, store.OffsetRange{From: 3, To: 5}) || overlaps(d.list, store.OffsetRange{From: 3, To: 4}) {
		t.Error("overlaps")
	}
}
