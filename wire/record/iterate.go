package record

import (
	"fmt"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Iterator walks the records of one batch. Its zero value is ready for Reset, and
// it can be Reset again and again.
//
//	var it record.Iterator
//	defer it.Close()
//	if err := it.Reset(view, record.Bound{}); err != nil {
//		return err
//	}
//	for it.Next() {
//		use(it.Record())
//	}
//	return it.Err()
//
// An uncompressed batch is read in place. A compressed one is decompressed as the
// walk goes on, into a buffer that is as large as its largest record (zstd, and
// snappy without framing: as large as all of them), never past the bound.
type Iterator struct {
	rec Record

	buf  []byte // read, but not yet walked over
	body []byte // the current record, encoded, without its length
	src  *source
	err  error
	done int32 // records walked over
	left int32 // records to come, by the header

	baseOffset    ident.Offset
	baseTimestamp ident.Millis
	maxTimestamp  ident.Millis
	appendTime    bool
}

// Reset starts a walk over v, which [Split] must have made. It reads the header
// only; what is wrong with the records shows in Next. The error wraps [ErrCodec]
// or [ErrCount].
func (it *Iterator) Reset(v View, bound Bound) error {
	it.Close()
	*it = Iterator{
		left:          v.Count(),
		baseOffset:    v.BaseOffset(),
		baseTimestamp: v.BaseTimestamp(),
		maxTimestamp:  v.MaxTimestamp(),
		appendTime:    v.Attributes().TimestampType() == LogAppendTime,
	}
	if it.left < 0 {
		it.err = fmt.Errorf("a batch of %d records: %w", it.left, ErrCount)
		it.left = 0
		return it.err
	}
	switch codec := v.Attributes().Codec(); {
	case codec == CodecNone:
		it.buf = v.Records()
	case !codec.Valid():
		it.err = fmt.Errorf("%v: %w", codec, ErrCodec)
		it.left = 0
		return it.err
	case it.left == 0 && len(v.Records()) == 0:
		// What compaction leaves of a batch whose offsets or sequences must be
		// remembered: no records, and nothing to decompress.
	default:
		it.src = openSource(codec, v.Records(), bound.allowed(len(v.Records())))
	}
	return nil
}

// Close gives back the iterator's buffers. The current record's bytes are invalid
// afterwards. Closing twice does no harm.
func (it *Iterator) Close() {
	if it.src != nil {
		it.src.close()
		it.src = nil
		it.buf = nil
	}
}

// Record is the current record, valid until the next call of Next or Close.
func (it *Iterator) Record() *Record { return &it.rec }

// Err says why Next returned false: nil when the batch was walked to its end.
// Errors wrap [ErrRecord], [ErrCount], [ErrDecompress] or [ErrBound].
func (it *Iterator) Err() error { return it.err }

// Next moves to the next record and tells whether there is one.
func (it *Iterator) Next() bool {
	if it.left == 0 {
		if it.err == nil {
			it.err = it.ended()
		}
		return false
	}
	body, ok := it.cutRecord()
	if !ok {
		it.left = 0
		return false
	}
	it.body = body
	if fault := it.rec.parse(body); fault != "" {
		it.err = it.badRecord(fault)
		it.left = 0
		return false
	}
	it.rec.Offset = it.baseOffset + ident.Offset(it.rec.OffsetDelta)
	it.rec.Timestamp = it.maxTimestamp
	if !it.appendTime {
		it.rec.Timestamp = it.baseTimestamp + ident.Millis(it.rec.timestampDelta)
	}
	it.done++
	it.left--
	return true
}

// cutRecord takes the bytes of the next record, without their length, off the
// front of the buffer. Not ok: it.err says why.
func (it *Iterator) cutRecord() (body []byte, ok bool) {
	size, n := readVarint(it.buf)
	if n == 0 && it.src != nil {
		if it.err = it.fill(5); it.err != nil {
			return nil, false
		}
		size, n = readVarint(it.buf)
	}
	if n == 0 {
		it.err = it.noRecord()
		return nil, false
	}
	if size < 0 {
		it.err = it.badRecord("its length is negative")
		return nil, false
	}
	end := n + int(size)
	if end > len(it.buf) && it.src != nil {
		if it.err = it.fill(end); it.err != nil {
			return nil, false
		}
	}
	if end > len(it.buf) {
		it.err = it.badRecord("it runs past the batch's end")
		return nil, false
	}
	body = it.buf[n:end:end]
	it.buf = it.buf[end:]
	return body, true
}

// fill decompresses until the buffer holds n bytes or there are no more.
func (it *Iterator) fill(n int) (err error) {
	it.buf, err = it.src.fill(it.buf, n)
	if err != nil {
		return fmt.Errorf("after record %d: %w", it.done, err)
	}
	return nil
}

// noRecord is the error of a batch that has no more bytes, or no length where a
// record should begin.
func (it *Iterator) noRecord() error {
	if len(it.buf) == 0 {
		return fmt.Errorf("the header says %d records, the batch holds %d: %w", it.done+it.left, it.done, ErrCount)
	}
	return it.badRecord("its length is no varint")
}

func (it *Iterator) badRecord(fault string) error {
	return fmt.Errorf("record %d of the batch: %s: %w", it.done, fault, ErrRecord)
}

// ended checks that nothing follows the last record, which for a compressed batch
// also reads the codec's own checksum.
func (it *Iterator) ended() error {
	if it.src != nil {
		if err := it.fill(1); err != nil {
			return err
		}
	}
	if len(it.buf) > 0 {
		return fmt.Errorf("bytes follow the %d records that the header announces: %w", it.done, ErrCount)
	}
	return nil
}
