package record

import "github.com/troupe-broker/troupe/wire/ident"

// FirstAtOrAfter finds the first record of v whose timestamp is at or after ts and
// whose offset is at or after from, as ListOffsets asks, inside compressed batches
// too. found is false when there is none. Errors are those of [Iterator.Err].
func FirstAtOrAfter(v View, ts ident.Millis, from ident.Offset) (offset ident.Offset, timestamp ident.Millis, found bool, err error) {
	if v.MaxTimestamp() < ts || v.LastOffset() < from {
		return ident.NoOffset, ident.NoTimestamp, false, nil
	}
	offset, timestamp = ident.NoOffset, ident.NoTimestamp
	err = lookThrough(v, func(r *Record) bool {
		if r.Timestamp < ts || r.Offset < from {
			return true
		}
		offset, timestamp, found = r.Offset, r.Timestamp, true
		return false
	})
	return offset, timestamp, found, err
}

// MaxTimestamp finds the greatest timestamp among the records of v and the first
// offset that has it; NoOffset and NoTimestamp in a batch without records.
func MaxTimestamp(v View) (offset ident.Offset, timestamp ident.Millis, err error) {
	offset, timestamp = ident.NoOffset, ident.NoTimestamp
	err = lookThrough(v, func(r *Record) bool {
		if offset == ident.NoOffset || r.Timestamp > timestamp {
			offset, timestamp = r.Offset, r.Timestamp
		}
		return true
	})
	return offset, timestamp, err
}

// lookThrough walks the records of v until visit has seen enough.
func lookThrough(v View, visit func(*Record) bool) error {
	if v.Attributes().Codec() != CodecNone {
		decompressing <- struct{}{}
		defer func() { <-decompressing }()
	}
	var it Iterator
	defer it.Close()
	if err := it.Reset(v, Bound{}); err != nil {
		return err
	}
	for it.Next() {
		if !visit(it.Record()) {
			return nil
		}
	}
	return it.Err()
}
