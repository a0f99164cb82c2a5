package dump

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/troupe-broker/troupe/wire/record"
)

// Batch is one record batch of a segment.
type Batch struct {
	Position      int64    `json:"position"`
	Size          int      `json:"size"`
	BaseOffset    int64    `json:"base_offset"`
	LastOffset    int64    `json:"last_offset"`
	Count         int32    `json:"count"`
	LeaderEpoch   int32    `json:"leader_epoch"`
	Codec         string   `json:"codec"`
	TimestampType string   `json:"timestamp_type"`
	BaseTimestamp int64    `json:"base_timestamp"`
	MaxTimestamp  int64    `json:"max_timestamp"`
	ProducerID    int64    `json:"producer_id"`
	ProducerEpoch int16    `json:"producer_epoch"`
	BaseSequence  int32    `json:"base_sequence"`
	Transactional bool     `json:"transactional"`
	Control       bool     `json:"control"`
	CRC           uint32   `json:"crc"`
	Valid         *bool    `json:"crc_valid,omitempty"` // with Options.Check
	Records       []Record `json:"records,omitempty"`   // with Options.Records
}

// Record is one record of a batch. Bytes that are not UTF-8 travel as base64.
type Record struct {
	Offset      int64    `json:"offset"`
	Timestamp   int64    `json:"timestamp"`
	Key         *string  `json:"key"`
	KeyBase64   []byte   `json:"key_base64,omitempty"`
	Value       *string  `json:"value"`
	ValueBase64 []byte   `json:"value_base64,omitempty"`
	Headers     []Header `json:"headers,omitempty"`
}

// Header is one header of a record.
type Header struct {
	Key         string  `json:"key"`
	Value       *string `json:"value"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

// Reserved is space behind the last batch that was allocated and not written.
type Reserved struct {
	Position int64 `json:"position"`
	Bytes    int64 `json:"reserved_bytes"`
}

// batches walks a segment. visit gets each batch and its position; the view is valid during the call. reserved is the
// number of zero bytes at the end, from position end on.
func batches(path string, visit func(v record.View, at int64) error) (end, reserved int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	size, at := info.Size(), int64(0)
	var buf []byte
	for at < size {
		head := make([]byte, min(record.HeaderSize, size-at))
		if _, err := f.ReadAt(head, at); err != nil {
			return at, 0, err
		}
		if zeros(head) {
			rest, err := zeroRest(f, at, size)
			if err == nil && rest >= 0 {
				err = &DamageError{path, rest, "bytes behind reserved space"}
			}
			return at, size - at, err
		}
		if len(head) < record.HeaderSize {
			return at, 0, &DamageError{path, at, fmt.Sprintf("%d bytes, too few for the header of a batch", len(head))}
		}
		n, err := record.SizeOf(head)
		if err != nil {
			return at, 0, &DamageError{path, at, err.Error()}
		}
		if int64(n) > size-at {
			return at, 0, &DamageError{path, at, fmt.Sprintf("a batch of %d bytes, and %d are left: a torn write", n, size-at)}
		}
		if cap(buf) < n {
			buf = make([]byte, n) // no more than the file has
		}
		if _, err := f.ReadAt(buf[:n], at); err != nil {
			return at, 0, err
		}
		v, _, err := record.Split(buf[:n])
		if err != nil {
			return at, 0, &DamageError{path, at, err.Error()}
		}
		if err := visit(v, at); err != nil {
			return at, 0, err
		}
		at += int64(n)
	}
	return at, 0, nil
}

func zeros(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// zeroRest returns the position of the first byte from at on that is not zero, or -1.
func zeroRest(f io.ReaderAt, at, size int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for at < size {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		for i, c := range buf[:n] {
			if c != 0 {
				return at + int64(i), nil
			}
		}
		at += int64(n)
		if err != nil && !errors.Is(err, io.EOF) {
			return -1, err
		}
		if n == 0 {
			break
		}
	}
	return -1, nil
}

func readSegment(path string, o Options, emit func(item any) error) error {
	var it record.Iterator
	defer it.Close()
	var bad error // the first batch that fails its checksum; those behind it are still shown
	end, reserved, err := batches(path, func(v record.View, at int64) error {
		b := batch(v, at)
		if o.Check {
			valid := true
			if err := v.VerifyCRC(); err != nil {
				valid = false
				if bad == nil {
					bad = &DamageError{path, at, err.Error()}
				}
			}
			b.Valid = &valid
		}
		if o.Records {
			if err := records(&it, v, &b); err != nil {
				return &DamageError{path, at, err.Error()}
			}
		}
		return emit(b)
	})
	if reserved > 0 {
		if emitErr := emit(Reserved{Position: end, Bytes: reserved}); err == nil {
			err = emitErr
		}
	}
	if err != nil {
		return err
	}
	return bad
}

func batch(v record.View, at int64) Batch {
	h := v.Header()
	return Batch{
		Position: at, Size: v.Size(), BaseOffset: int64(h.BaseOffset), LastOffset: int64(v.LastOffset()), Count: h.Count,
		LeaderEpoch: int32(h.LeaderEpoch), Codec: h.Attributes.Codec().String(), TimestampType: h.Attributes.TimestampType().String(),
		BaseTimestamp: int64(h.BaseTimestamp), MaxTimestamp: int64(h.MaxTimestamp), ProducerID: int64(h.ProducerID),
		ProducerEpoch: int16(h.ProducerEpoch), BaseSequence: int32(h.BaseSequence),
		Transactional: h.Attributes.Transactional(), Control: h.Attributes.Control(), CRC: h.CRC,
	}
}

// records decodes the records of a batch. What the records decompress to is bounded as it is for a client.
func records(it *record.Iterator, v record.View, b *Batch) error {
	if err := it.Reset(v, record.Bound{}); err != nil {
		return err
	}
	for it.Next() {
		r := it.Record()
		d := Record{Offset: int64(r.Offset), Timestamp: int64(r.Timestamp)}
		d.Key, d.KeyBase64 = text(r.Key)
		d.Value, d.ValueBase64 = text(r.Value)
		for h := r.Headers(); h.Next(); {
			dh := Header{Key: string(h.Key())}
			dh.Value, dh.ValueBase64 = text(h.Value())
			d.Headers = append(d.Headers, dh)
		}
		b.Records = append(b.Records, d)
	}
	return it.Err()
}

// text copies bytes: as a string when they are UTF-8, else as bytes.
func text(b []byte) (*string, []byte) {
	switch {
	case b == nil:
		return nil, nil
	case utf8.Valid(b):
		s := string(b)
		return &s, nil
	}
	return nil, append([]byte(nil), b...)
}
