// Package record reads, checks, converts and writes Kafka record batches of the
// current format (magic 2, KIP-98), the only unit in which records travel, rest
// on disk and are counted.
//
// A batch is a header of 61 bytes and a section of records, which may be
// compressed as a whole:
//
//	 0 baseOffset            int64    set by the broker, outside the CRC
//	 8 batchLength           int32    bytes after this field
//	12 partitionLeaderEpoch  int32    set by the broker, outside the CRC
//	16 magic                 int8     2
//	17 crc                   uint32   CRC-32C of everything below
//	21 attributes            int16    see [Attributes]
//	23 lastOffsetDelta       int32
//	27 baseTimestamp         int64
//	35 maxTimestamp          int64
//	43 producerId            int64
//	51 producerEpoch         int16
//	53 baseSequence          int32
//	57 recordCount           int32
//	61 records
//
// # Vocabulary
//
//   - [View]: the bytes of exactly one batch, read in place.
//   - [Split]: cuts the first batch off a run of bytes.
//   - [Iterator]: walks the records of one batch, decompressing as it goes and
//     never past a bound.
//   - [Validate]: what a leader does with a batch before it appends it, at one of
//     three depths.
//   - [Builder]: writes a batch.
//   - [FirstAtOrAfter], [MaxTimestamp]: look for a timestamp inside a batch.
//
// # Who owns the bytes
//
// Nothing here copies records unless it must (decompression, conversion). A View,
// a [Record], its key, value and headers alias the bytes they were read from; they
// are valid as long as those bytes are, and for records of a compressed batch
// until the Iterator moves on. The only functions that write into a caller's batch
// are the Set and Stamp methods of View and Validate, and they say so.
//
// # What a hostile batch can cost
//
// No length that a batch declares sizes an allocation. Buffers grow as bytes
// really arrive, up to [Bound.Max]; what compression can be trusted to expand to
// is bounded too. The functions that decompress on a broker's behalf
// ([Validate], [FirstAtOrAfter], [MaxTimestamp]) run at most GOMAXPROCS at a
// time, whoever calls them, so that many connections cannot multiply one bound.
package record
