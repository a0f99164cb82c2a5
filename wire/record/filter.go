package record

import (
	"encoding/binary"
	"math"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Filter rewrites batches without some of their records, as compaction does. What is
// left keeps its offsets: the batch's base offset, last offset delta, sequence and
// epochs stay, so that the records that went are gaps and nothing else. Its zero value
// is ready, and it can be used again and again. (Kafka: MemoryRecords.filterTo)
type Filter struct {
	Bound Bound // of decompression

	plain []byte // the records that are kept, encoded
	fresh []byte // the same, with other timestamp deltas
}

// Filtered is what a Filter left of a batch.
type Filtered struct {
	// Batch is the batch itself when nothing changed, else it lies in the destination;
	// nil when no record is left.
	Batch View
	// Same tells that it is the batch itself.
	Same          bool
	Kept, Dropped int32
	// Horizon tells that the delete horizon was set now.
	Horizon bool
}

// Run keeps the records of v that keep accepts. When a tombstone is among them and the
// batch has no delete horizon yet, it gets horizon, unless that is NoTimestamp
// (KIP-534): baseTimestamp holds it then, and the records' deltas count from it. A
// compressed batch is compressed again with its codec. dst is scratch; the view lies in
// what it was grown to, which is returned. The record that keep sees is valid during
// the call. Errors are those of [Iterator.Err]; nothing has been lost then.
func (f *Filter) Run(dst []byte, v View, horizon ident.Millis, keep func(*Record) bool) (Filtered, []byte, error) {
	var it Iterator
	defer it.Close()
	if err := it.Reset(v, f.Bound); err != nil {
		return Filtered{}, dst, err
	}
	var out Filtered
	f.plain = f.plain[:0]
	tombstones, top := false, ident.NoTimestamp
	for it.Next() {
		r := it.Record()
		if !keep(r) {
			out.Dropped++
			continue
		}
		if out.Kept == 0 || r.Timestamp > top {
			top = r.Timestamp
		}
		out.Kept++
		tombstones = tombstones || r.Value == nil
		f.plain = appendVarint(f.plain, int64(len(it.body)))
		f.plain = append(f.plain, it.body...)
	}
	if err := it.Err(); err != nil {
		return Filtered{}, dst, err
	}
	out.Horizon = tombstones && horizon != ident.NoTimestamp && !v.Attributes().HasDeleteHorizon()
	switch {
	case out.Kept == 0:
		return out, dst, nil
	case out.Dropped == 0 && !out.Horizon:
		out.Batch, out.Same = v, true
		return out, dst, nil
	}
	h := v.Header()
	h.Count = out.Kept
	if h.Attributes.TimestampType() == CreateTime {
		h.MaxTimestamp = top
	}
	records := f.plain
	if out.Horizon {
		f.rebase(int64(h.BaseTimestamp) - int64(horizon))
		records = f.fresh
		h.BaseTimestamp, h.Attributes = horizon, h.Attributes|attributeDeleteHorizon
	}
	dst, b, err := seal(dst[:0], h, 0, records)
	if err != nil {
		return Filtered{}, dst, err
	}
	out.Batch = b
	return out, dst, nil
}

// rebase writes the kept records with by added to each timestamp delta. It may wrap
// around, and so does the addition of whoever reads it.
func (f *Filter) rebase(by int64) {
	f.fresh = f.fresh[:0]
	for rest := f.plain; len(rest) > 0; {
		size, n := readVarint(rest)
		body := rest[n : n+int(size)]
		rest = rest[n+int(size):]
		// The iterator has parsed it: attributes, timestamp delta, the rest.
		delta, n := readVarlong(body[1:])
		f.fresh = appendVarint(f.fresh, int64(len(body)-n+varintSize(delta+by)))
		f.fresh = append(f.fresh, body[0])
		f.fresh = binary.AppendVarint(f.fresh, delta+by)
		f.fresh = append(f.fresh, body[1+n:]...)
	}
}

// Emptied makes of v a batch without records in dst's storage: offsets, sequence,
// producer, epochs and greatest timestamp stay. Compaction leaves it where a producer's
// last sequence, or a log's last offset, would be forgotten. (Kafka:
// DefaultRecordBatch.writeEmptyHeader)
func Emptied(dst []byte, v View) View {
	h := v.Header()
	h.Attributes = h.Attributes.WithCodec(CodecNone) &^ attributeDeleteHorizon
	h.BaseTimestamp = ident.NoTimestamp
	h.Length, h.Count = HeaderSize-PrefixSize, 0
	b := View(append(dst[:0], make([]byte, HeaderSize)...))
	h.Encode(b)
	b.setCRC()
	return b
}

// DeleteHorizon is the time from which compaction may drop the batch's tombstones; the
// greatest time when none is set.
func (v View) DeleteHorizon() ident.Millis {
	if !v.Attributes().HasDeleteHorizon() {
		return math.MaxInt64
	}
	return v.BaseTimestamp()
}
