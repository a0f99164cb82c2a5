package store

import (
	"encoding/binary"

	"github.com/troupe-broker/troupe/wire/ident"
)

// timeIndex is a segment's .timeindex file: 12-byte entries of a timestamp and the
// offset, relative to the segment's base, of the last record of the batch that
// brought it; no batch up to there has a greater timestamp. Both columns rise.
// When a segment is closed its greatest timestamp is added. (Kafka: TimeIndex.java)
type timeIndex struct {
	table
	base ident.Offset
	last moment // of the last entry, as far as it was added by this process
}

const timeEntrySize = 12

// moment is an entry of the time index. {NoTimestamp, base} stands for none.
type moment struct {
	timestamp ident.Millis
	offset    ident.Offset // last offset of the batch
}

func newTimeIndex(fs FS, name string, base ident.Offset) timeIndex {
	return timeIndex{table: newTable(fs, name, timeEntrySize), base: base, last: moment{ident.NoTimestamp, base}}
}

// add appends an entry, unless its timestamp does not exceed the last one's.
func (x *timeIndex) add(m moment) error {
	if m.timestamp <= x.last.timestamp || m.offset < x.last.offset {
		return nil
	}
	b, err := x.append()
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint64(b, uint64(m.timestamp))
	binary.BigEndian.PutUint32(b[8:], uint32(m.offset-x.base))
	x.last = m
	return nil
}

func (x *timeIndex) decode(b []byte) moment {
	return moment{
		timestamp: ident.Millis(binary.BigEndian.Uint64(b)),
		offset:    x.base + ident.Offset(int32(binary.BigEndian.Uint32(b[8:]))),
	}
}

// entry returns entry i; -1 is none.
func (x *timeIndex) entry(i int) (moment, error) {
	if i < 0 {
		return moment{ident.NoTimestamp, x.base}, nil
	}
	b, err := x.at(i)
	if err != nil {
		return moment{}, err
	}
	return x.decode(b), nil
}

// before finds the last entry with a timestamp below ts: no record up to its
// offset is at or after ts.
func (x *timeIndex) before(ts ident.Millis) (moment, error) {
	n, err := x.search(func(b []byte) bool { return x.decode(b).timestamp < ts })
	if err != nil {
		return moment{}, err
	}
	return x.entry(n - 1)
}

// cutTo drops the entries at or above offset o.
func (x *timeIndex) cutTo(o ident.Offset) error {
	n, err := x.search(func(b []byte) bool { return x.decode(b).offset < o })
	if err != nil {
		return err
	}
	if err := x.cut(n); err != nil {
		return err
	}
	x.last, err = x.entry(n - 1)
	return err
}

// reset drops file and contents, to be built anew.
func (x *timeIndex) reset() error {
	x.last = moment{ident.NoTimestamp, x.base}
	return x.forget()
}

// full tells whether the file may not grow by another entry within bytesMax; one
// is kept free for closing the segment.
func (x *timeIndex) full(bytesMax int32) bool {
	return x.count() >= int(bytesMax)/timeEntrySize-1
}
