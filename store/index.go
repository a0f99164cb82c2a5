package store

import (
	"encoding/binary"

	"github.com/troupe-broker/troupe/wire/ident"
)

// offsetIndex is a segment's .index file: 8-byte entries of the last offset of a
// batch, relative to the segment's base, and the position at which that batch
// begins. It is sparse, about one entry for each index.interval.bytes, and both
// columns rise. (Kafka: OffsetIndex.java)
type offsetIndex struct {
	table
	base ident.Offset
}

const offsetEntrySize = 8

// place is an entry of the offset index: the batch that ends with offset begins at
// pos. The place {base-1, 0} stands for the segment's beginning.
type place struct {
	offset ident.Offset
	pos    int64
}

func newOffsetIndex(fs FS, name string, base ident.Offset) offsetIndex {
	return offsetIndex{table: newTable(fs, name, offsetEntrySize), base: base}
}

// add appends an entry.
func (x *offsetIndex) add(last ident.Offset, pos int64) error {
	b, err := x.append()
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint32(b, uint32(last-x.base))
	binary.BigEndian.PutUint32(b[4:], uint32(pos))
	return nil
}

func (x *offsetIndex) decode(b []byte) place {
	return place{
		offset: x.base + ident.Offset(int32(binary.BigEndian.Uint32(b))),
		pos:    int64(int32(binary.BigEndian.Uint32(b[4:]))),
	}
}

// entry returns entry i; -1 is the segment's beginning.
func (x *offsetIndex) entry(i int) (place, error) {
	if i < 0 {
		return place{offset: x.base - 1}, nil
	}
	b, err := x.at(i)
	if err != nil {
		return place{}, err
	}
	return x.decode(b), nil
}

// byOffset finds the last entry at or below o.
func (x *offsetIndex) byOffset(o ident.Offset) (place, error) {
	n, err := x.search(func(b []byte) bool { return x.decode(b).offset <= o })
	if err != nil {
		return place{}, err
	}
	return x.entry(n - 1)
}

// byPosition finds the last entry at or below position pos.
func (x *offsetIndex) byPosition(pos int64) (place, error) {
	n, err := x.search(func(b []byte) bool { return x.decode(b).pos <= pos })
	if err != nil {
		return place{}, err
	}
	return x.entry(n - 1)
}

// cutTo drops the entries of batches that end at or above offset o, or begin at or
// above pos.
func (x *offsetIndex) cutTo(o ident.Offset, pos int64) error {
	n, err := x.search(func(b []byte) bool {
		p := x.decode(b)
		return p.offset < o && p.pos < pos
	})
	if err != nil {
		return err
	}
	return x.cut(n)
}

// full tells whether the file may not grow by another entry within bytesMax.
func (x *offsetIndex) full(bytesMax int32) bool {
	return x.count() >= int(bytesMax)/offsetEntrySize
}
