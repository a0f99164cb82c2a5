package record

import "errors"

// What can be wrong with the bytes of a batch. Functions wrap these; compare with
// errors.Is.
var (
	// ErrTruncated: the bytes end before the batch does.
	ErrTruncated = errors.New("the bytes end inside a batch")
	// ErrLength: the declared length of a batch is below that of an empty one,
	// or negative, or too great.
	ErrLength = errors.New("not the length of a record batch")
	// ErrMagic: the batch has another format than magic 2.
	ErrMagic = errors.New("only record batches of magic 2 are served")
	// ErrCRC: the batch's checksum is wrong.
	ErrCRC = errors.New("the batch is damaged: checksum mismatch")
	// ErrCodec: the attributes name a compression that Kafka does not know.
	ErrCodec = errors.New("unknown compression codec")
	// ErrRecord: a record does not parse.
	ErrRecord = errors.New("malformed record")
	// ErrCount: the batch holds more or fewer records than its header says.
	ErrCount = errors.New("record count differs from the header's")
	// ErrDecompress: the compressed section does not decompress.
	ErrDecompress = errors.New("the records do not decompress")
	// ErrBound: the records decompress to more bytes than allowed.
	ErrBound = errors.New("the records decompress to more than allowed")
)
