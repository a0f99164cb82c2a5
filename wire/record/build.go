package record

import (
	"errors"
	"fmt"
	"math"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Builder writes record batches, one after the other: set its fields, Append
// records, Finish. It is for tests, the command line and internal topics; batches
// of clients are never rebuilt.
type Builder struct {
	BaseOffset    ident.Offset // 0 in a Produce request
	LeaderEpoch   ident.LeaderEpoch
	Codec         Codec
	Level         int           // of the codec, in Kafka's scale; 0: its default
	TimestampType TimestampType // LogAppendTime: the greatest timestamp counts for all records
	Transactional bool
	Control       bool
	ProducerID    ident.ProducerID
	ProducerEpoch ident.ProducerEpoch
	BaseSequence  ident.Sequence

	records       []byte
	count         int32
	baseTimestamp ident.Millis
	maxTimestamp  ident.Millis
}

// NewBuilder returns a builder of uncompressed batches at offset 0 without leader
// epoch and producer, as a plain producer sends them.
func NewBuilder() *Builder {
	return &Builder{
		LeaderEpoch: ident.NoLeaderEpoch,
		ProducerID:  ident.NoProducerID, ProducerEpoch: ident.NoProducerEpoch, BaseSequence: ident.NoSequence,
	}
}

// KeyValue is one header of a record to be built; a nil Value is null.
type KeyValue struct {
	Key   string
	Value []byte
}

// Append adds a record; a nil key or value is null. The bytes are copied.
func (b *Builder) Append(ts ident.Millis, key, value []byte, headers ...KeyValue) {
	if b.count == 0 {
		b.baseTimestamp, b.maxTimestamp = ts, ts
	}
	b.maxTimestamp = max(b.maxTimestamp, ts)
	delta := int64(ts - b.baseTimestamp)
	size := 1 + varintSize(delta) + varintSize(int64(b.count)) + bytesSize(key) + bytesSize(value) + varintSize(int64(len(headers)))
	for i := range headers {
		size += varintSize(int64(len(headers[i].Key))) + len(headers[i].Key) + bytesSize(headers[i].Value)
	}
	r := appendVarint(b.records, int64(size))
	r = append(r, 0)
	r = appendVarint(r, delta)
	r = appendVarint(r, int64(b.count))
	r = appendBytes(r, key)
	r = appendBytes(r, value)
	r = appendVarint(r, int64(len(headers)))
	for i := range headers {
		r = appendVarint(r, int64(len(headers[i].Key)))
		r = append(r, headers[i].Key...)
		r = appendBytes(r, headers[i].Value)
	}
	b.records = r
	b.count++
}

func bytesSize(b []byte) int {
	if b == nil {
		return varintSize(-1)
	}
	return varintSize(int64(len(b))) + len(b)
}

func appendBytes(dst, b []byte) []byte {
	if b == nil {
		return appendVarint(dst, -1)
	}
	return append(appendVarint(dst, int64(len(b))), b...)
}

// Count is the number of records appended since the last Finish.
func (b *Builder) Count() int { return int(b.count) }

// Size is the size in bytes that the batch would have without compression.
func (b *Builder) Size() int { return HeaderSize + len(b.records) }

// Finish appends the batch to dst and returns the extended slice. The builder
// forgets the records but keeps its fields, ready for the next batch. A batch
// needs a record.
func (b *Builder) Finish(dst []byte) ([]byte, error) {
	if b.count == 0 {
		return nil, errors.New("a batch needs a record")
	}
	h := Header{
		BaseOffset:  b.BaseOffset,
		LeaderEpoch: b.LeaderEpoch,
		Magic:       Magic,
		Attributes: Attributes(0).WithCodec(b.Codec).WithTimestampType(b.TimestampType).
			WithTransactional(b.Transactional).WithControl(b.Control),
		LastOffsetDelta: b.count - 1,
		BaseTimestamp:   b.baseTimestamp,
		MaxTimestamp:    b.maxTimestamp,
		ProducerID:      b.ProducerID,
		ProducerEpoch:   b.ProducerEpoch,
		BaseSequence:    b.BaseSequence,
		Count:           b.count,
	}
	dst, _, err := seal(dst, h, b.Level, b.records)
	if err != nil {
		return nil, err
	}
	b.records = b.records[:0]
	b.count = 0
	return dst, nil
}

// seal appends a batch to dst: the header, whose Length and CRC it fills in, and
// the records, compressed with the codec of the header's attributes. It returns
// the extended slice and the batch in it.
func seal(dst []byte, h Header, level int, plain []byte) ([]byte, View, error) {
	at := len(dst)
	dst = append(dst, make([]byte, HeaderSize)...)
	dst, err := compress(dst, h.Attributes.Codec(), level, plain)
	if err != nil {
		return nil, nil, err
	}
	size := len(dst) - at
	if size > math.MaxInt32 {
		return nil, nil, fmt.Errorf("a batch of %d bytes: %w", size, ErrLength)
	}
	h.Length = int32(size - PrefixSize)
	v := View(dst[at:])
	h.Encode(v)
	v.setCRC()
	return dst, v, nil
}
