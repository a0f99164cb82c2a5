package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// batch is one record batch that a client made. Its records carry its id, which is unique in the run, so that whoever
// reads one knows where it comes from.
type batch struct {
	id        uint64
	client    *client
	topic     string
	partition int32
	bytes     []byte // as it was sent
	count     int32
	codec     record.Codec
	values    [][]byte

	// Of an idempotent producer.
	idempotent bool
	pid        int64
	epoch      int16
	sequence   int32
	astray     bool   // it was sent by name to a broker that may lead a former topic of that name, not having heard that it was deleted
	next       *batch // the one that follows it in its partition

	acks       int16
	attempts   int           // times it was sent
	first      ident.Instant // when it was sent first
	lives      int           // of the broker, at that time
	connection int           // on which it was sent last
	era        int           // of its partition, at that time
	inFlight   bool
	refused    bool // the broker said that it will never take it
	result     *acked
}

// acked is what the broker said of a batch.
type acked struct {
	base     ident.Offset // -1: it did not say
	at       ident.Instant
	promised bool // not even a power cut may take it
}

// makeBatch builds a batch of up to size bytes of values.
func (r *run) makeBatch(c *client, topic string, partition int32, size int, build func(*record.Builder)) *batch {
	r.batches++
	b := &batch{id: r.batches, client: c, topic: topic, partition: partition, codec: record.Codec(c.plan.Codec)}
	w := record.NewBuilder()
	w.Codec = b.codec
	if build != nil {
		build(w)
	}
	_, wall := c.clock.Now()
	wall += ident.Millis(c.plan.Ahead / time.Millisecond)
	count := 1 + c.rand.IntN(1+size/100)
	for i := range count {
		v := make([]byte, 12+c.rand.IntN(max(size/count, 13)))
		binary.BigEndian.PutUint64(v, b.id)
		binary.BigEndian.PutUint32(v[8:], uint32(i))
		filler(c.rand, v[12:])
		b.values = append(b.values, v)
		w.Append(wall+ident.Millis(i), nil, v)
	}
	b.count = int32(count)
	out, err := w.Finish(nil)
	if err != nil {
		panic("sim: a batch that does not build: " + err.Error())
	}
	b.bytes = out
	r.sent[b.id] = b
	return b
}

// filler fills bytes with something that compresses a little.
func filler(r *rand.Rand, b []byte) {
	c := byte(r.Uint32())
	for i := range b {
		if i%16 == 0 {
			c = byte(r.Uint32())
		}
		b[i] = c
	}
}

// idOf finds the batch that a batch in a log came from: the id in its first record.
func idOf(v record.View) (uint64, error) {
	var it record.Iterator
	defer it.Close()
	if err := it.Reset(v, record.Bound{}); err != nil {
		return 0, err
	}
	if !it.Next() {
		return 0, fmt.Errorf("no record: %w", it.Err())
	}
	value := it.Record().Value
	if len(value) < 12 {
		return 0, fmt.Errorf("a record of %d bytes, which nobody sent", len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

// same verifies that a batch in the log is what was sent: byte for byte if nothing entitles the broker to change it,
// else record for record.
func (b *batch) same(v record.View, mayConvert, mayStamp bool) error {
	const at = 16 // base offset and leader epoch are the broker's; its length is implied by the rest
	if !mayConvert && !mayStamp {
		if !bytes.Equal(v[at:], b.bytes[at:]) {
			return fmt.Errorf("batch %d differs from what was sent: %d bytes, %d were sent", b.id, len(v), len(b.bytes))
		}
		return nil
	}
	if v.Count() != b.count {
		return fmt.Errorf("batch %d has %d records, %d were sent", b.id, v.Count(), b.count)
	}
	if b.idempotent && (int64(v.ProducerID()) != b.pid || int16(v.ProducerEpoch()) != b.epoch || int32(v.BaseSequence()) != b.sequence) {
		return fmt.Errorf("batch %d came back as producer %d/%d sequence %d, sent as %d/%d sequence %d", b.id, v.ProducerID(), v.ProducerEpoch(), v.BaseSequence(), b.pid, b.epoch, b.sequence)
	}
	var it record.Iterator
	defer it.Close()
	if err := it.Reset(v, record.Bound{}); err != nil {
		return err
	}
	for i := 0; it.Next(); i++ {
		if i >= len(b.values) || !bytes.Equal(it.Record().Value, b.values[i]) {
			return fmt.Errorf("batch %d: record %d differs from what was sent", b.id, i)
		}
	}
	return it.Err()
}
