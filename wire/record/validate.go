package record

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/troupe-broker/troupe/wire/ident"
)

// decompressing bounds how many batches are decompressed on behalf of the broker
// at a time, whoever asks. More than one for each processor would not be faster,
// only larger: each may hold a Bound's worth of memory. Whoever has a place never
// waits for anything else, so the wait for one is a wait for a processor.
var decompressing = make(chan struct{}, runtime.GOMAXPROCS(0))

// Validate checks one batch by the rules, which is a leader's work before it
// appends. now is the broker's wall clock.
//
// batch holds what a Produce request brings for a partition: exactly one batch.
// Validate may write into it. It stamps LogAppendTime, a corrected maxTimestamp (a
// producer may leave that wrong; lists by time and retention depend on it) and a
// cleared timestamp-type bit, each with the CRC. Base offset and leader epoch are
// left to the one who appends. When the topic wants another codec, the converted
// batch is built in the storage of scratch, which grows as needed: hand Result.Batch
// back as the next scratch to reuse it.
//
// A refused batch gives an *[Invalid]; there are no other errors. Without
// decompression or refusal nothing is allocated.
func Validate(scratch, batch []byte, now ident.Millis, r *Rules) (Result, error) {
	v, err := single(batch)
	if err != nil {
		return Result{}, err
	}
	h := v.Header()
	if err := checkHeader(v, &h, now, r); err != nil {
		return Result{}, err
	}
	target := r.Compression.codec(h.Attributes.Codec())
	convert := target != h.Attributes.Codec()
	res := Result{LogAppendTime: ident.NoTimestamp, MaxTimestampDelta: h.LastOffsetDelta}
	if convert || r.walks(&h, now) {
		w := walk{rules: r, now: now, count: h.Count, control: h.Attributes.Control()}
		if h.Attributes.Codec() != CodecNone {
			w.recordBytesMax = r.RecordBytesMax
			decompressing <- struct{}{}
			defer func() { <-decompressing }()
		}
		if convert {
			w.keep = plains.Get().(*[]byte)
			defer w.release()
		}
		if err := w.run(v); err != nil {
			return Result{}, err
		}
		res.Walked = true
		res.MaxTimestampDelta = w.maxDelta
		h.MaxTimestamp = w.maxTimestamp
		if convert {
			h.Attributes = h.Attributes.WithCodec(target)
			return w.converted(scratch, h, res)
		}
	}
	stamp(&h, &res, r, now)
	if h.Attributes != v.Attributes() || h.MaxTimestamp != v.MaxTimestamp() {
		v.setAttributes(h.Attributes)
		v.setMaxTimestamp(h.MaxTimestamp)
		v.setCRC()
		h.CRC = v.CRC()
	}
	res.Batch, res.Header = v, h
	return res, nil
}

// single cuts the one batch out of what a partition was sent.
func single(batch []byte) (View, error) {
	v, rest, err := Split(batch)
	switch {
	case errors.Is(err, ErrLength):
		return nil, refuseBytes(ReasonCorrupt, err)
	case errors.Is(err, ErrMagic):
		return nil, refuseBytes(ReasonInvalidRecord, err)
	case err != nil || len(rest) > 0:
		return nil, refuse(ReasonInvalidRecord, "a Produce request brings exactly one whole record batch for a partition; these %d bytes are not one", len(batch))
	}
	return v, nil
}

// checkHeader does what every depth does: sizes, CRC, and what the header says of
// itself. The order is Kafka's, so that a batch with two faults gets its answer.
func checkHeader(v View, h *Header, now ident.Millis, r *Rules) error {
	switch {
	case !r.Internal && h.BaseOffset != 0:
		return refuse(ReasonInvalidRecord, "the base offset of a batch in a Produce request is 0, this one has %d", h.BaseOffset)
	case len(v) > int(r.MaxMessageBytes):
		return refuse(ReasonTooLarge, "the batch has %d bytes, max.message.bytes allows %d", len(v), r.MaxMessageBytes)
	}
	if err := v.VerifyCRC(); err != nil {
		return refuseBytes(ReasonCorrupt, err)
	}
	codec := h.Attributes.Codec()
	switch {
	case h.Count <= 0 || h.LastOffsetDelta != h.Count-1:
		return refuse(ReasonInvalidRecord, "the header counts %d records and a last offset delta of %d; a batch has records, and as many as offsets", h.Count, h.LastOffsetDelta)
	case h.Attributes.Control() && !r.Internal:
		return refuse(ReasonInvalidRecord, "clients do not write control batches")
	case h.Attributes.HasDeleteHorizon():
		return refuse(ReasonInvalidRecord, "the delete horizon is set by compaction, not by who writes a batch")
	case h.ProducerID >= 0 && !h.Attributes.Control() && (h.BaseSequence < 0 || h.ProducerEpoch < 0):
		return refuse(ReasonInvalidRecord, "producer %d sends base sequence %d and epoch %d; neither may be negative", h.ProducerID, h.BaseSequence, h.ProducerEpoch)
	case h.ProducerID < 0 && h.Attributes.Transactional():
		return refuse(ReasonInvalidRecord, "a transactional batch without a producer id")
	case !codec.Valid():
		return refuse(ReasonCompression, "%v: %v", codec, ErrCodec)
	case codec == CodecZstd && r.ZstdRefused:
		return refuse(ReasonCompression, "zstd needs version 7 of Produce or later")
	case h.Attributes.TimestampType() == LogAppendTime && r.TimestampType == LogAppendTime && !r.Internal:
		return refuse(ReasonTimestamp, "a producer does not set the timestamp type to LogAppendTime")
	case r.Depth == DepthHeader && r.TimestampType == CreateTime && r.outOfRange(h.MaxTimestamp, now):
		return refuse(ReasonTimestamp, "the batch's maxTimestamp %d is out of range; message.timestamp.before.max.ms and message.timestamp.after.max.ms are around %d", h.MaxTimestamp, now)
	case r.Compression == CompressionProducer && len(v) > int(r.SegmentBytes):
		return refuse(ReasonListTooLarge, "the batch has %d bytes, segment.bytes is %d", len(v), r.SegmentBytes)
	}
	return nil
}

// walks decides whether the records are to be looked at.
func (r *Rules) walks(h *Header, now ident.Millis) bool {
	switch r.Depth {
	case DepthHeader:
		return false
	case DepthFull:
		return true
	case DepthDefault:
	}
	return h.Attributes.Codec() == CodecNone ||
		r.Compacted ||
		r.RecordBytesMax > 0 ||
		h.Attributes.TimestampType() == LogAppendTime ||
		h.MaxTimestamp == ident.NoTimestamp ||
		h.MaxTimestamp < h.BaseTimestamp ||
		h.MaxTimestamp == h.BaseTimestamp && h.Count > 1 ||
		r.TimestampType == CreateTime && (r.outOfRange(h.MaxTimestamp, now) || r.outOfRange(h.BaseTimestamp, now))
}

// outOfRange tells whether a record's timestamp is refused.
func (r *Rules) outOfRange(ts, now ident.Millis) bool {
	if ts == ident.NoTimestamp {
		return false
	}
	age := int64(now - ts)
	// The difference of two timestamps overflows only when they have different
	// signs; it then has the sign of the wrong side.
	if (now < 0) != (ts < 0) && (age < 0) != (now < 0) {
		return true
	}
	return age > r.TimestampBeforeMax || age < 0 && -age > r.TimestampAfterMax
}

// stamp gives the header the timestamp type of the topic, and the time with it.
func stamp(h *Header, res *Result, r *Rules, now ident.Millis) {
	h.Attributes = h.Attributes.WithTimestampType(r.TimestampType)
	if r.TimestampType == LogAppendTime {
		h.MaxTimestamp = now
		res.LogAppendTime = now
		res.MaxTimestampDelta = 0 // all records have it; the first is meant
	}
}

// walk looks at the records of one batch.
type walk struct {
	rules   *Rules
	now     ident.Millis
	count   int32 // of the records, by the header
	control bool
	keep    *[]byte // collects the records, uncompressed, for conversion

	recordBytesMax int64 // 0: no limit; an uncompressed record has none beyond its batch's

	index        int32
	maxTimestamp ident.Millis
	maxDelta     int32
	blamed       []RecordError
	blames       int // how many records are to blame, listed or not
	reason       Reason
}

// plains are buffers for the uncompressed records of a batch that is converted.
var plains = sync.Pool{New: func() any { return new([]byte) }}

func (w *walk) release() {
	if cap(*w.keep) <= windowKept {
		*w.keep = (*w.keep)[:0]
		plains.Put(w.keep)
	}
}

// run walks v and collects what is wrong with single records; what is wrong with
// the bytes ends it.
func (w *walk) run(v View) error {
	if w.keep == nil && v.Attributes().Codec() == CodecNone && w.skim(v) {
		return nil
	}
	var it Iterator
	defer it.Close()
	if err := it.Reset(v, w.rules.Bound); err != nil {
		return refuseBytes(ReasonInvalidRecord, err)
	}
	// A client's records carry the time of their creation, whatever the batch's
	// timestamp-type bit says: the bit is about to be cleared.
	it.appendTime = false
	w.maxTimestamp = ident.NoTimestamp
	for ; it.Next(); w.index++ {
		w.look(it.Record(), len(it.body))
		if w.keep != nil {
			*w.keep = appendVarint(*w.keep, int64(len(it.body)))
			*w.keep = append(*w.keep, it.body...)
		}
	}
	switch err := it.Err(); {
	case errors.Is(err, ErrDecompress):
		return refuseBytes(ReasonCorrupt, err)
	case err != nil:
		return refuseBytes(ReasonInvalidRecord, err)
	case w.blames > 0:
		return w.blame()
	}
	return nil
}

func (w *walk) look(rec *Record, size int) {
	switch {
	case w.recordBytesMax > 0 && int64(size) > w.recordBytesMax:
		w.fault(ReasonInvalidRecord, func() string {
			return fmt.Sprintf("it has %d bytes decompressed, max.decompressed.message.bytes allows %d", size, w.recordBytesMax)
		})
	case rec.OffsetDelta != w.index:
		w.fault(ReasonInvalidRecord, func() string {
			return fmt.Sprintf("its offset delta is %d; the offsets of a new batch have no gaps", rec.OffsetDelta)
		})
	case w.rules.Compacted && rec.Key == nil && !w.control:
		w.fault(ReasonInvalidRecord, func() string { return "a record of a compacted topic needs a key" })
	case w.rules.TimestampType == CreateTime && w.rules.outOfRange(rec.Timestamp, w.now):
		w.fault(ReasonTimestamp, func() string {
			return fmt.Sprintf("its timestamp %d is out of range; message.timestamp.before.max.ms and message.timestamp.after.max.ms are around %d", rec.Timestamp, w.now)
		})
	}
	if w.index == 0 || rec.Timestamp > w.maxTimestamp {
		w.maxTimestamp, w.maxDelta = rec.Timestamp, rec.OffsetDelta
	}
}

// fault blames the current record. The first one's reason answers for the batch.
func (w *walk) fault(reason Reason, message func() string) {
	if w.blames == 0 {
		w.reason = reason
	}
	w.blames++
	if len(w.blamed) < RecordErrorsMax {
		w.blamed = append(w.blamed, RecordError{Index: w.index, Message: message()})
	}
}

func (w *walk) blame() error {
	e := refuse(w.reason, "%d of %d records are refused; the first is record %d: %s", w.blames, w.count, w.blamed[0].Index, w.blamed[0].Message)
	e.Records = w.blamed
	return e
}

// converted builds the batch anew with the codec that h names. The records themselves stay
// as they are, byte for byte.
func (w *walk) converted(scratch []byte, h Header, res Result) (Result, error) {
	stamp(&h, &res, w.rules, w.now)
	_, v, err := seal(scratch[:0], h, w.rules.CompressionLevel, *w.keep)
	switch {
	case err != nil:
		return Result{}, refuseBytes(ReasonCompression, err)
	case len(v) > int(w.rules.MaxMessageBytes):
		return Result{}, refuse(ReasonTooLarge, "the batch has %d bytes as %v, max.message.bytes allows %d", len(v), h.Attributes.Codec(), w.rules.MaxMessageBytes)
	case len(v) > int(w.rules.SegmentBytes):
		return Result{}, refuse(ReasonListTooLarge, "the batch has %d bytes as %v, segment.bytes is %d", len(v), h.Attributes.Codec(), w.rules.SegmentBytes)
	}
	res.Batch, res.Header, res.Converted = v, v.Header(), true
	return res, nil
}
