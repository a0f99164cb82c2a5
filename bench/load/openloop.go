package load

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// OpenLoop sends small requests at a fixed rate, whatever the broker does.
type OpenLoop struct {
	Addr  string
	Topic string
	Acks  int16
	// RecordBytes is the value's size, at least 8 (the intended time).
	RecordBytes int
	// RatePerSecond (of records) and Duration fix the schedule: record i is due at i/rate.
	RatePerSecond int
	Duration      time.Duration
	// Batch is how many records go in a request, 0 means 1. A request is due when its last record is: the time in which a client collects the others is
	// no broker's.
	Batch int
	// InFlightMax bounds the requests without an answer. A full window blocks the
	// sender, and the wait counts against every request that was due meanwhile.
	InFlightMax int
}

// Latencies are in nanoseconds, from the time each request was due.
type Latencies struct {
	// Ack ends when the produce answer was read, EndToEnd when a consumer that was
	// long-polling had the record.
	Ack, EndToEnd *hdrhistogram.Histogram
	// Service starts when the request really left: the gap to Ack is the generator's
	// or the window's lateness.
	Service *hdrhistogram.Histogram
}

const latencyMax = int64(60 * time.Second)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1_000, latencyMax, 3) }

type due struct{ intended, sent time.Duration }

// Run drives the schedule, and returns when the last answer and the last record have
// come back. The topic must be empty.
func (o OpenLoop) Run(ctx context.Context) (Latencies, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	per := int64(max(1, o.Batch))
	count := int64(o.RatePerSecond) * int64(o.Duration) / int64(time.Second) / per
	value := make([]byte, max(8, o.RecordBytes))
	var records []byte
	for i := range per {
		records = appendRecord(records, int(i), value)
	}
	frame, batchAt := produceFrame(o.Topic, 0, o.Acks, sealBatch(records, int(per)))
	stampAt := len(frame) - 1 - len(value) // the value is followed by the header count alone

	producer, err := dial(ctx, o.Addr)
	if err != nil {
		return Latencies{}, err
	}
	consumer, err := dial(ctx, o.Addr)
	if err != nil {
		producer.leave()
		return Latencies{}, err
	}
	stop := context.AfterFunc(ctx, func() { producer.leave(); consumer.leave() })
	defer stop()
	deadline := time.Now().Add(o.Duration + stallMax)
	for _, c := range []*conn{producer, consumer} {
		if err := c.SetDeadline(deadline); err != nil {
			return Latencies{}, err
		}
	}

	lat := Latencies{Ack: newHistogram(), EndToEnd: newHistogram(), Service: newHistogram()}
	waiting := make(chan due, max(1, o.InFlightMax))
	start := time.Now()
	var both sync.WaitGroup
	fail := func(err error) {
		if err != nil {
			cancel(err)
		}
	}
	both.Go(func() { fail(o.readAcks(producer, count, waiting, start, lat)) })
	both.Go(func() { fail(o.consume(consumer, count, start, lat)) })
	for i := range count {
		at := time.Duration((i+1)*per-1) * time.Second / time.Duration(o.RatePerSecond)
		if d := at - time.Since(start); d > 0 {
			time.Sleep(d)
		}
		binary.BigEndian.PutUint64(frame[stampAt:], uint64(at))
		stampCRC(frame[batchAt:])
		setCorrelation(frame, uint32(i))
		sent := time.Since(start)
		select {
		case waiting <- due{at, sent}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		if _, err := producer.Write(frame); err != nil {
			fail(fmt.Errorf("send request %d: %w", i, err))
			break
		}
	}
	both.Wait()
	return lat, context.Cause(ctx)
}

func (o OpenLoop) readAcks(c *conn, count int64, waiting <-chan due, start time.Time, lat Latencies) error {
	for range count {
		body, err := c.response()
		if err != nil {
			return err
		}
		if _, err := produceAck(body, o.Topic); err != nil {
			return err
		}
		now := time.Since(start)
		d := <-waiting
		if err := record(lat.Ack, now-d.intended); err != nil {
			return err
		}
		if err := record(lat.Service, now-d.sent); err != nil {
			return err
		}
	}
	return nil
}

func (o OpenLoop) consume(c *conn, count int64, start time.Time, lat Latencies) error {
	frame, offsetAt := fetchFrame(o.Topic, 500, 1<<20)
	per := int64(max(1, o.Batch))
	for next := int64(0); next < count*per; {
		binary.BigEndian.PutUint64(frame[offsetAt:], uint64(next))
		if _, err := c.Write(frame); err != nil {
			return err
		}
		body, err := c.response()
		if err != nil {
			return err
		}
		records, err := fetchRecords(body, o.Topic)
		if err != nil {
			return err
		}
		now := time.Since(start)
		for batch, rest, ok := nextBatch(records); ok; batch, rest, ok = nextBatch(rest) {
			if end := batchEnd(batch); end != next+per {
				return fmt.Errorf("consumer at offset %d got a batch that ends at %d", next, end)
			}
			next += per
			value := batch[len(batch)-1-max(8, o.RecordBytes):]
			if err := record(lat.EndToEnd, now-time.Duration(binary.BigEndian.Uint64(value))); err != nil {
				return err
			}
		}
	}
	return nil
}

func record(h *hdrhistogram.Histogram, d time.Duration) error {
	return h.RecordValue(min(max(int64(d), 1_000), latencyMax))
}
