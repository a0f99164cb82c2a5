package record

import "fmt"

// Codec says how the records of a batch are compressed: bits 0 to 2 of the
// attributes.
type Codec int8

// The codecs of Kafka (CompressionType.java).
const (
	CodecNone Codec = iota
	CodecGzip
	CodecSnappy
	CodecLz4
	CodecZstd
)

var codecNames = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// Valid tells whether Kafka knows the codec.
func (c Codec) Valid() bool { return c >= CodecNone && c <= CodecZstd }

// String prints Kafka's name of the codec.
func (c Codec) String() string {
	if !c.Valid() {
		return fmt.Sprintf("codec(%d)", int8(c))
	}
	return codecNames[c]
}

// TimestampType says who set the timestamps of a batch.
type TimestampType int8

// CreateTime: the producer, record by record. LogAppendTime: the broker, one for
// the whole batch.
const (
	CreateTime TimestampType = iota
	LogAppendTime
)

// String prints Kafka's name, as in message.timestamp.type.
func (t TimestampType) String() string {
	if t == LogAppendTime {
		return "LogAppendTime"
	}
	return "CreateTime"
}

// Attributes is the attributes field of a batch: codec in bits 0 to 2, then one
// bit each for timestamp type, transactional, control and delete horizon
// (DefaultRecordBatch.java). Higher bits are unused.
type Attributes int16

const (
	attributeCodecMask     Attributes = 0x07
	attributeLogAppendTime Attributes = 0x08
	attributeTransactional Attributes = 0x10
	attributeControl       Attributes = 0x20
	attributeDeleteHorizon Attributes = 0x40
)

// Codec is the compression of the records; it may be one that Kafka does not know.
func (a Attributes) Codec() Codec { return Codec(a & attributeCodecMask) }

// TimestampType says who set the timestamps.
func (a Attributes) TimestampType() TimestampType {
	if a&attributeLogAppendTime != 0 {
		return LogAppendTime
	}
	return CreateTime
}

// Transactional tells whether the batch belongs to a transaction.
func (a Attributes) Transactional() bool { return a&attributeTransactional != 0 }

// Control tells whether the batch carries a marker instead of a client's records.
func (a Attributes) Control() bool { return a&attributeControl != 0 }

// HasDeleteHorizon tells whether baseTimestamp holds the time at which compaction
// may drop the batch's tombstones (KIP-534).
func (a Attributes) HasDeleteHorizon() bool { return a&attributeDeleteHorizon != 0 }

// WithCodec returns the attributes with another codec.
func (a Attributes) WithCodec(c Codec) Attributes {
	return a&^attributeCodecMask | Attributes(c)&attributeCodecMask
}

// WithTimestampType returns the attributes with another timestamp type.
func (a Attributes) WithTimestampType(t TimestampType) Attributes {
	if t == LogAppendTime {
		return a | attributeLogAppendTime
	}
	return a &^ attributeLogAppendTime
}

// WithTransactional returns the attributes with the transactional bit set or not.
func (a Attributes) WithTransactional(on bool) Attributes {
	if on {
		return a | attributeTransactional
	}
	return a &^ attributeTransactional
}

// WithControl returns the attributes with the control bit set or not.
func (a Attributes) WithControl(on bool) Attributes {
	if on {
		return a | attributeControl
	}
	return a &^ attributeControl
}
