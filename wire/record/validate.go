package record

import "github.com/troupe-broker/troupe/wire/ident"

// Depth says how far [Validate] looks into a batch.
type Depth int8

const (
	// DepthDefault checks the header and the CRC, walks the records of
	// uncompressed batches, and decompresses and walks those batches whose header
	// is doubtful: maxTimestamp below baseTimestamp, equal to it with more than
	// one record, or absent; a LogAppendTime bit from a client; a compacted topic.
	DepthDefault Depth = iota
	// DepthHeader checks the header and the CRC only.
	DepthHeader
	// DepthFull decompresses and walks every batch, as Kafka does.
	DepthFull
)

// Compression is a topic's compression.type.
type Compression int8

// CompressionProducer keeps what the producer sent; the others convert.
const (
	CompressionProducer Compression = iota
	CompressionNone
	CompressionGzip
	CompressionSnappy
	CompressionLz4
	CompressionZstd
)

// Rules are what a partition demands of a batch. The zero value is the default
// depth, CreateTime, no conversion and no limit on size or timestamps.
type Rules struct {
	Depth            Depth
	Internal         bool  // the broker's own batch: control batches and LogAppendTime bits are its business
	Compacted        bool  // every record needs a key
	ZstdRefused      bool  // the request is older than the codec: Produce below version 7
	MaxMessageBytes  int32 // max.message.bytes, of the batch as stored; 0: no limit
	SegmentBytes     int32 // segment.bytes; 0: no limit
	TimestampType    TimestampType
	TimestampBefore  int64 // message.timestamp.before.max.ms; 0: no limit
	TimestampAfter   int64 // message.timestamp.after.max.ms; 0: no limit
	Compression      Compression
	CompressionLevel int   // compression.<codec>.level; 0: the codec's default
	Bound            Bound // of decompression; zero: the default
}

// Bound limits what the records of one batch may decompress to: the smaller of
// Max and Ratio × compressed size + Slack, all in bytes. Zero fields take the
// defaults.
type Bound struct {
	Max   int64 // default 64 MiB
	Ratio int64 // default 64
	Slack int64 // default 2 MiB
}

// Result is what [Validate] found.
type Result struct {
	Batch             View         // what to append: the bytes given, or the converted ones in the scratch buffer
	Header            Header       // of Batch
	Converted         bool         // Batch lies in the scratch buffer
	LogAppendTime     ident.Millis // the time given to the whole batch; NoTimestamp with CreateTime
	MaxTimestampDelta int32        // offset delta of the first record with the greatest timestamp, or LastOffsetDelta when the records were not walked
	Walked            bool         // the records were looked at
}

// Reason says why a batch was refused; each stands for one Kafka error code.
type Reason int8

// The reasons, with the error code that answers each.
const (
	ReasonCorrupt           Reason = iota + 1 // CORRUPT_MESSAGE
	ReasonInvalidRecord                       // INVALID_RECORD
	ReasonTooLarge                            // MESSAGE_TOO_LARGE
	ReasonListTooLarge                        // RECORD_LIST_TOO_LARGE
	ReasonTimestamp                           // INVALID_TIMESTAMP
	ReasonCompression                         // UNSUPPORTED_COMPRESSION_TYPE
	ReasonUnsupportedFormat                   // UNSUPPORTED_FOR_MESSAGE_FORMAT
)

// RecordError blames one record of a batch (KIP-467).
type RecordError struct {
	Index   int32  // of the record in the batch, from 0
	Message string // what is wrong with it
}

// Invalid is the error of a refused batch.
type Invalid struct {
	Reason  Reason
	Message string        // for the client
	Records []RecordError // the records to blame, at most a few; empty: the batch as a whole
	Err     error         // the cause, when there is one
}
