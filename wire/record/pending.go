package record

import "github.com/troupe-broker/troupe/wire/ident"

// Next advances to the next header.
func (h *HeaderIterator) Next() bool { panic("not written yet") }

// Validate checks one batch, already cut to size by [Split], by r's rules, the
// leader's work before an append. now is the broker's wall clock. It may write
// into batch: LogAppendTime and a corrected maxTimestamp are stamped in place and
// the CRC with them. When compression.type asks for another codec, the converted
// batch is built in scratch's storage, which grows as needed; hand the Result's
// Batch back as the next scratch to reuse it. Base offset and leader epoch are
// left for the one who appends. A refused batch gives an *[Invalid].
//
// batch must hold exactly one batch as a producer sent it; an empty one, two, or
// trailing bytes are refused.
func Validate(scratch, batch []byte, now ident.Millis, r *Rules) (Result, error) {
	panic("not written yet")
}

// Error prints the message.
func (e *Invalid) Error() string { return e.Message }

// Unwrap gives the cause.
func (e *Invalid) Unwrap() error { return e.Err }

// Iterator walks the records of one batch. The zero value is ready for Reset.
//
//	var it record.Iterator
//	defer it.Close()
//	if err := it.Reset(view, record.Bound{}); err != nil { … }
//	for it.Next() {
//		r := it.Record()
//	}
//	if err := it.Err(); err != nil { … }
type Iterator struct{ rec Record }

// Reset starts a walk over v.
func (it *Iterator) Reset(v View, bound Bound) error { panic("not written yet") }

// Next moves to the next record and tells whether there is one.
func (it *Iterator) Next() bool { panic("not written yet") }

// Record is the current record.
func (it *Iterator) Record() *Record { return &it.rec }

// Err says why Next returned false: nil at the batch's end.
func (it *Iterator) Err() error { panic("not written yet") }

// Close gives the iterator's buffers back.
func (it *Iterator) Close() { panic("not written yet") }

// FirstAtOrAfter finds the first record of v whose timestamp is at or after ts
// and whose offset is at or after from. found is false when there is none.
func FirstAtOrAfter(v View, ts ident.Millis, from ident.Offset) (offset ident.Offset, timestamp ident.Millis, found bool, err error) {
	panic("not written yet")
}

// MaxTimestamp finds the greatest timestamp of v and the offset of the first
// record that has it.
func MaxTimestamp(v View) (offset ident.Offset, timestamp ident.Millis, err error) {
	panic("not written yet")
}

// Builder writes one batch. Set the exported fields, Reset, then Append records,
// then Finish. A Builder is reused by Reset.
type Builder struct {
	BaseOffset    ident.Offset
	LeaderEpoch   ident.LeaderEpoch
	Codec         Codec
	Level         int // of the codec, 0 for its default
	TimestampType TimestampType
	Transactional bool
	Control       bool
	ProducerID    ident.ProducerID
	ProducerEpoch ident.ProducerEpoch
	BaseSequence  ident.Sequence
}

// NewBuilder returns a builder of uncompressed batches without a producer id.
func NewBuilder() *Builder {
	return &Builder{LeaderEpoch: ident.NoLeaderEpoch, ProducerID: ident.NoProducerID, ProducerEpoch: ident.NoProducerEpoch, BaseSequence: ident.NoSequence}
}

// KeyValue is one header of a record to be built; a nil Value is null.
type KeyValue struct {
	Key   string
	Value []byte
}

// Append adds a record; nil key or value are null. The bytes are copied.
func (b *Builder) Append(ts ident.Millis, key, value []byte, headers ...KeyValue) {
	panic("not written yet")
}

// Count is the number of records appended since the last Reset.
func (b *Builder) Count() int { panic("not written yet") }

// Size is the number of bytes that the records take before compression, header
// included.
func (b *Builder) Size() int { panic("not written yet") }

// Finish appends the batch to dst and returns the extended slice. The builder is
// then ready for the next batch.
func (b *Builder) Finish(dst []byte) ([]byte, error) { panic("not written yet") }

// Murmur2 is the hash of Kafka's default partitioner.
func Murmur2(key []byte) int32 { panic("not written yet") }

// PartitionFor is the partition that Kafka's default partitioner gives a key.
func PartitionFor(key []byte, partitions int32) int32 { panic("not written yet") }
