package record

import (
	"fmt"
	"math"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Depth says how far [Validate] looks into a batch.
type Depth int8

const (
	// DepthDefault checks the header and the CRC, walks the records of
	// uncompressed batches, and decompresses and walks those compressed batches
	// whose header is doubtful: maxTimestamp below baseTimestamp, equal to it with
	// more than one record, absent, or outside the allowed range; a LogAppendTime
	// bit from a client; a compacted topic, where keys matter; a topic that limits
	// the decompressed size of a record.
	DepthDefault Depth = iota
	// DepthHeader checks the header and the CRC and believes the rest, the keys of
	// a compacted topic included.
	DepthHeader
	// DepthFull decompresses and walks every batch, as Kafka does.
	DepthFull
)

// String prints the word that the configuration uses for the depth.
func (d Depth) String() string {
	switch d {
	case DepthDefault:
		return "default"
	case DepthHeader:
		return "header"
	case DepthFull:
		return "full"
	}
	return fmt.Sprintf("depth(%d)", int8(d))
}

// Compression is a topic's compression.type: what its batches are stored as.
type Compression int8

// CompressionProducer stores what the producer sent; the others convert to one
// codec what comes in another.
const (
	CompressionProducer Compression = iota
	CompressionNone
	CompressionGzip
	CompressionSnappy
	CompressionLz4
	CompressionZstd
)

var compressionNames = [...]string{"producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"}

// String prints Kafka's word, as in compression.type.
func (c Compression) String() string {
	if c < 0 || int(c) >= len(compressionNames) {
		return fmt.Sprintf("compression(%d)", int8(c))
	}
	return compressionNames[c]
}

// ParseCompression reads a value of compression.type.
func ParseCompression(name string) (Compression, error) {
	for c, n := range compressionNames {
		if n == name {
			return Compression(c), nil
		}
	}
	return CompressionProducer, fmt.Errorf("compression.type %.20q: want producer, uncompressed, gzip, snappy, lz4 or zstd", name)
}

// codec is what a batch in the codec from is stored as.
func (c Compression) codec(from Codec) Codec {
	if c == CompressionProducer {
		return from
	}
	return Codec(c - CompressionNone)
}

// NoLimit switches off a limit of [Rules] that is a number of milliseconds.
const NoLimit = math.MaxInt64

// Rules are what a partition demands of a batch: its topic's configuration, and
// whence the batch comes. Begin with [DefaultRules].
type Rules struct {
	Depth              Depth
	Internal           bool          // the broker's own batch: it may be a control batch
	ZstdRefused        bool          // the request is older than the codec: Produce below version 7
	Compacted          bool          // cleanup.policy has compact: every record needs a key
	MaxMessageBytes    int32         // max.message.bytes, of the batch as it comes and as it is stored
	SegmentBytes       int32         // segment.bytes
	TimestampType      TimestampType // message.timestamp.type
	TimestampBeforeMax int64         // message.timestamp.before.max.ms, or NoLimit
	TimestampAfterMax  int64         // message.timestamp.after.max.ms, or NoLimit
	Compression        Compression   // compression.type
	CompressionLevel   int           // compression.<codec>.level, in Kafka's scale; 0: the codec's default
	Bound              Bound         // of decompression
	RecordBytesMax     int64         // max.decompressed.message.bytes, of one record of a compressed batch; 0: no limit
}

// DefaultRules are Kafka's defaults for a topic, for a batch from a client.
func DefaultRules() Rules {
	return Rules{
		MaxMessageBytes:    1<<20 + 12,
		SegmentBytes:       1 << 30,
		TimestampBeforeMax: NoLimit,
		TimestampAfterMax:  3_600_000,
	}
}

// Result is what [Validate] found.
type Result struct {
	Batch         View         // what to append: the bytes that were given, or the converted ones in the scratch buffer
	Header        Header       // of Batch
	Converted     bool         // Batch lies in the scratch buffer
	Walked        bool         // the records were looked at
	LogAppendTime ident.Millis // given to the whole batch; NoTimestamp with CreateTime

	// MaxTimestampDelta is the offset delta of the first record with the greatest
	// timestamp; LastOffsetDelta when the records were not walked, which is the
	// answer that a time index may hold as well.
	MaxTimestampDelta int32
}

// Reason says why a batch was refused. Each stands for one Kafka error code.
type Reason int8

// The reasons, with the error code that answers each.
const (
	ReasonCorrupt       Reason = iota + 1 // CORRUPT_MESSAGE
	ReasonInvalidRecord                   // INVALID_RECORD
	ReasonTooLarge                        // MESSAGE_TOO_LARGE
	ReasonListTooLarge                    // RECORD_LIST_TOO_LARGE
	ReasonTimestamp                       // INVALID_TIMESTAMP
	ReasonCompression                     // UNSUPPORTED_COMPRESSION_TYPE
)

// Invalid is the error of a refused batch.
type Invalid struct { //nolint:errname // record.Invalid says at each use what the batch is
	Reason  Reason
	Message string        // for the client
	Records []RecordError // the records to blame, at most RecordErrorsMax; none: the batch as a whole
	Err     error         // what was seen in the bytes, if it was they
}

// RecordError blames one record of a batch (KIP-467).
type RecordError struct {
	Index   int32  // of the record in the batch, from 0
	Message string // what is wrong with it
}

// RecordErrorsMax is how many records of a batch are blamed one by one. A batch is
// refused as a whole; the list helps its author and must not cost more than it.
const RecordErrorsMax = 16

// Error prints the message.
func (e *Invalid) Error() string { return e.Message }

// Unwrap gives what was seen in the bytes.
func (e *Invalid) Unwrap() error { return e.Err }

func refuse(reason Reason, format string, args ...any) *Invalid {
	return &Invalid{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func refuseBytes(reason Reason, err error) *Invalid {
	return &Invalid{Reason: reason, Message: err.Error(), Err: err}
}
