package load

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"
)

// Replay is a closed-loop run of pre-encoded Produce requests to one partition.
type Replay struct {
	Addr  string
	Topic string
	// Partition of the topic.
	Partition int32
	// Acks is -1 or 1; the generator needs an answer to each request.
	Acks int16
	Payload
	// InFlight is how many requests wait for an answer at any time.
	InFlight int
	// BytesTotal ends the run: the batch bytes to send, at least one request.
	BytesTotal int64
}

// Produced is what a Replay did.
type Produced struct {
	Requests, Records, Bytes int64
	Elapsed                  time.Duration
	// Offsets is false when the target is a floor that assigns none; otherwise each
	// answer was checked to name the offset right after the one before.
	Offsets bool
}

// Run sends until BytesTotal is reached and every answer has come. It checks each
// answer's error code and that the offsets are gapless: a broker that loses, repeats
// or reorders gives an error and no figure.
func (r Replay) Run(ctx context.Context) (Produced, error) {
	batch, records := r.Batch()
	frame, _ := produceFrame(r.Topic, r.Partition, r.Acks, batch)
	c, err := dial(ctx, r.Addr)
	if err != nil {
		return Produced{}, err
	}
	defer c.leave()
	stop := context.AfterFunc(ctx, c.leave)
	defer stop()

	requests := max(1, r.BytesTotal/int64(len(batch)))
	p := Produced{Requests: requests, Records: requests * int64(records), Bytes: requests * int64(len(batch))}
	var sent, answered int64
	next := int64(-1)
	start := time.Now()
	for answered < requests {
		if answered%1024 == 0 {
			if err := c.SetDeadline(time.Now().Add(stallMax)); err != nil {
				return p, err
			}
		}
		for sent < requests && sent-answered < int64(r.InFlight) {
			setCorrelation(frame, uint32(sent))
			if _, err := c.Write(frame); err != nil {
				return p, fmt.Errorf("send request %d: %w", sent, err)
			}
			sent++
		}
		body, err := c.response()
		if err != nil {
			return p, err
		}
		if got := binary.BigEndian.Uint32(body); got != uint32(answered) {
			return p, fmt.Errorf("answer %d carries correlation id %d", answered, got)
		}
		offset, err := produceAck(body, r.Topic)
		if err != nil {
			return p, fmt.Errorf("request %d: %w", answered, err)
		}
		if next >= 0 && offset >= 0 && offset != next {
			return p, fmt.Errorf("request %d got offset %d, want %d", answered, offset, next)
		}
		if offset >= 0 {
			p.Offsets, next = true, offset+int64(records)
		}
		answered++
	}
	p.Elapsed = time.Since(start)
	return p, nil
}
