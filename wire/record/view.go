package record

import (
	"encoding/binary"
	"fmt"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Sizes of a batch, in bytes.
const (
	// HeaderSize is the size of a batch's header: no batch is smaller.
	HeaderSize = 61
	// PrefixSize is the size of baseOffset and batchLength, enough to know where
	// a batch ends.
	PrefixSize = 12
	// Magic is the version of the only batch format that is served.
	Magic = 2
)

// Where each field of the header begins.
const (
	atBaseOffset      = 0
	atLength          = 8
	atLeaderEpoch     = 12
	atMagic           = 16
	atCRC             = 17
	atAttributes      = 21
	atLastOffsetDelta = 23
	atBaseTimestamp   = 27
	atMaxTimestamp    = 35
	atProducerID      = 43
	atProducerEpoch   = 51
	atBaseSequence    = 53
	atCount           = 57
)

// View is exactly one batch, header and records, read in place. It is made by
// [Split]; its accessors do not check bounds again and do not allocate.
type View []byte

// Header is the header of a batch, decoded.
type Header struct {
	BaseOffset      ident.Offset
	Length          int32 // bytes after this field: the batch's size minus PrefixSize
	LeaderEpoch     ident.LeaderEpoch
	Magic           int8
	CRC             uint32
	Attributes      Attributes
	LastOffsetDelta int32
	BaseTimestamp   ident.Millis
	MaxTimestamp    ident.Millis
	ProducerID      ident.ProducerID
	ProducerEpoch   ident.ProducerEpoch
	BaseSequence    ident.Sequence
	Count           int32
}

// LastOffset is the offset of the batch's last record, or of the record that was
// last before compaction.
func (h *Header) LastOffset() ident.Offset { return h.BaseOffset + ident.Offset(h.LastOffsetDelta) }

// LastSequence is the sequence of the batch's last record, NoSequence without
// idempotence.
func (h *Header) LastSequence() ident.Sequence {
	if h.BaseSequence == ident.NoSequence {
		return ident.NoSequence
	}
	return h.BaseSequence.Add(h.LastOffsetDelta)
}

// Split cuts the first batch off b and returns it together with what follows.
// It checks the length and the magic and nothing else. [ErrTruncated]: b ends
// before the batch does, which is ordinary at the end of a fetch or of a log.
// [ErrLength], [ErrMagic]: b does not begin with a batch.
func Split(b []byte) (v View, rest []byte, err error) {
	size, err := SizeOf(b)
	if err != nil {
		return nil, b, err
	}
	if len(b) > atMagic && b[atMagic] != Magic {
		return nil, b, fmt.Errorf("batch with magic %d: %w", int8(b[atMagic]), ErrMagic)
	}
	if size > len(b) {
		return nil, b, ErrTruncated
	}
	return View(b[:size:size]), b[size:], nil
}

// SizeOf reads the size of the batch at the front of b, in bytes with its prefix,
// without needing more of it than PrefixSize bytes. Errors as for [Split].
func SizeOf(b []byte) (int, error) {
	if len(b) < PrefixSize {
		return 0, ErrTruncated
	}
	length := int32(binary.BigEndian.Uint32(b[atLength:]))
	if length < HeaderSize-PrefixSize || length > maxLength {
		return 0, fmt.Errorf("batch with length %d: %w", length, ErrLength)
	}
	return PrefixSize + int(length), nil
}

// maxLength keeps a batch's size, prefix included, within an int32, as Kafka's
// file positions are.
const maxLength = 1<<31 - 1 - PrefixSize

// Size is the size of the batch in bytes, header included.
func (v View) Size() int { return len(v) }

// BaseOffset is the offset of the batch's first record.
func (v View) BaseOffset() ident.Offset {
	return ident.Offset(binary.BigEndian.Uint64(v[atBaseOffset:]))
}

// LastOffset is the offset of the batch's last record.
func (v View) LastOffset() ident.Offset { return v.BaseOffset() + ident.Offset(v.LastOffsetDelta()) }

// NextOffset is the offset after the batch.
func (v View) NextOffset() ident.Offset { return v.LastOffset() + 1 }

// LeaderEpoch is the epoch of the leader that appended the batch.
func (v View) LeaderEpoch() ident.LeaderEpoch {
	return ident.LeaderEpoch(binary.BigEndian.Uint32(v[atLeaderEpoch:]))
}

// Magic is the format version; 2 in every View that Split made.
func (v View) Magic() int8 { return int8(v[atMagic]) }

// CRC is the checksum that the batch carries; see [View.VerifyCRC].
func (v View) CRC() uint32 { return binary.BigEndian.Uint32(v[atCRC:]) }

// Attributes of the batch.
func (v View) Attributes() Attributes {
	return Attributes(binary.BigEndian.Uint16(v[atAttributes:]))
}

// LastOffsetDelta is the distance of the last record's offset from BaseOffset.
func (v View) LastOffsetDelta() int32 {
	return int32(binary.BigEndian.Uint32(v[atLastOffsetDelta:]))
}

// BaseTimestamp is what the records' timestamp deltas are added to.
func (v View) BaseTimestamp() ident.Millis {
	return ident.Millis(binary.BigEndian.Uint64(v[atBaseTimestamp:]))
}

// MaxTimestamp is the greatest timestamp of the batch.
func (v View) MaxTimestamp() ident.Millis {
	return ident.Millis(binary.BigEndian.Uint64(v[atMaxTimestamp:]))
}

// ProducerID is the idempotent producer, or NoProducerID.
func (v View) ProducerID() ident.ProducerID {
	return ident.ProducerID(binary.BigEndian.Uint64(v[atProducerID:]))
}

// ProducerEpoch is the incarnation of the producer, or NoProducerEpoch.
func (v View) ProducerEpoch() ident.ProducerEpoch {
	return ident.ProducerEpoch(binary.BigEndian.Uint16(v[atProducerEpoch:]))
}

// BaseSequence is the sequence of the first record, or NoSequence.
func (v View) BaseSequence() ident.Sequence {
	return ident.Sequence(binary.BigEndian.Uint32(v[atBaseSequence:]))
}

// Count is the number of records that the header claims.
func (v View) Count() int32 { return int32(binary.BigEndian.Uint32(v[atCount:])) }

// Records is the section of records, compressed or not. It aliases the batch.
func (v View) Records() []byte { return v[HeaderSize:] }

// Header decodes the whole header.
func (v View) Header() Header {
	return Header{
		BaseOffset:      v.BaseOffset(),
		Length:          int32(binary.BigEndian.Uint32(v[atLength:])),
		LeaderEpoch:     v.LeaderEpoch(),
		Magic:           v.Magic(),
		CRC:             v.CRC(),
		Attributes:      v.Attributes(),
		LastOffsetDelta: v.LastOffsetDelta(),
		BaseTimestamp:   v.BaseTimestamp(),
		MaxTimestamp:    v.MaxTimestamp(),
		ProducerID:      v.ProducerID(),
		ProducerEpoch:   v.ProducerEpoch(),
		BaseSequence:    v.BaseSequence(),
		Count:           v.Count(),
	}
}

// SetBaseOffset writes the base offset into the batch. It is outside the CRC.
func (v View) SetBaseOffset(o ident.Offset) {
	binary.BigEndian.PutUint64(v[atBaseOffset:], uint64(o))
}

// SetLeaderEpoch writes the leader's epoch into the batch. It is outside the CRC.
func (v View) SetLeaderEpoch(e ident.LeaderEpoch) {
	binary.BigEndian.PutUint32(v[atLeaderEpoch:], uint32(e))
}

// StampLogAppendTime gives the whole batch one timestamp, as a topic with
// message.timestamp.type=LogAppendTime asks: it sets the timestamp-type bit and
// maxTimestamp, leaves the records as they are (readers ignore their deltas then),
// and writes the CRC anew.
func (v View) StampLogAppendTime(now ident.Millis) {
	v.setAttributes(v.Attributes().WithTimestampType(LogAppendTime))
	v.setMaxTimestamp(now)
	v.setCRC()
}

func (v View) setAttributes(a Attributes) {
	binary.BigEndian.PutUint16(v[atAttributes:], uint16(a))
}

func (v View) setMaxTimestamp(ts ident.Millis) {
	binary.BigEndian.PutUint64(v[atMaxTimestamp:], uint64(ts))
}

func (v View) setCRC() { binary.BigEndian.PutUint32(v[atCRC:], v.checksum()) }

// Encode writes the header into the first HeaderSize bytes of b as it stands,
// CRC included.
func (h *Header) Encode(b []byte) {
	_ = b[HeaderSize-1]
	binary.BigEndian.PutUint64(b[atBaseOffset:], uint64(h.BaseOffset))
	binary.BigEndian.PutUint32(b[atLength:], uint32(h.Length))
	binary.BigEndian.PutUint32(b[atLeaderEpoch:], uint32(h.LeaderEpoch))
	b[atMagic] = byte(h.Magic)
	binary.BigEndian.PutUint32(b[atCRC:], h.CRC)
	binary.BigEndian.PutUint16(b[atAttributes:], uint16(h.Attributes))
	binary.BigEndian.PutUint32(b[atLastOffsetDelta:], uint32(h.LastOffsetDelta))
	binary.BigEndian.PutUint64(b[atBaseTimestamp:], uint64(h.BaseTimestamp))
	binary.BigEndian.PutUint64(b[atMaxTimestamp:], uint64(h.MaxTimestamp))
	binary.BigEndian.PutUint64(b[atProducerID:], uint64(h.ProducerID))
	binary.BigEndian.PutUint16(b[atProducerEpoch:], uint16(h.ProducerEpoch))
	binary.BigEndian.PutUint32(b[atBaseSequence:], uint32(h.BaseSequence))
	binary.BigEndian.PutUint32(b[atCount:], uint32(h.Count))
}
