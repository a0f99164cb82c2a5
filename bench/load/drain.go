package load

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"
)

// Drain reads partition 0 from offset 0 again and again, and forgets what it read
// after checking it.
type Drain struct {
	Addr  string
	Topic string
	// BytesMax is both the request's and the partition's limit.
	BytesMax int32
	// BytesTotal ends the run: the record bytes to receive.
	BytesTotal int64
	// End is where reading starts over: an offset that the partition holds all
	// records below of.
	End int64
	// BytesPerSecond is the pace of the reader, who waits between two requests to keep it; 0: as fast as it can.
	BytesPerSecond int64
}

// Drained is what a Drain did.
type Drained struct {
	Requests, Bytes int64
	Elapsed         time.Duration
}

// Run fetches until BytesTotal is reached. One request is in flight, as a consumer has
// it; each batch's CRC and the order of offsets are checked.
func (d Drain) Run(ctx context.Context) (Drained, error) {
	frame, offsetAt := fetchFrame(d.Topic, 1000, d.BytesMax)
	c, err := dial(ctx, d.Addr)
	if err != nil {
		return Drained{}, err
	}
	defer c.leave()
	stop := context.AfterFunc(ctx, c.leave)
	defer stop()

	var res Drained
	next := int64(0)
	start := time.Now()
	for res.Bytes < d.BytesTotal {
		if res.Requests%1024 == 0 {
			if err := c.SetDeadline(time.Now().Add(stallMax)); err != nil {
				return res, err
			}
		}
		setCorrelation(frame, uint32(res.Requests))
		binary.BigEndian.PutUint64(frame[offsetAt:], uint64(next))
		if _, err := c.Write(frame); err != nil {
			return res, fmt.Errorf("send fetch %d: %w", res.Requests, err)
		}
		body, err := c.response()
		if err != nil {
			return res, err
		}
		records, err := fetchRecords(body, d.Topic)
		if err != nil {
			return res, fmt.Errorf("fetch at offset %d: %w", next, err)
		}
		whole := false
		for batch, rest, ok := nextBatch(records); ok; batch, rest, ok = nextBatch(rest) {
			if err := checkCRC(batch); err != nil {
				return res, err
			}
			if base := int64(binary.BigEndian.Uint64(batch)); base > next {
				return res, fmt.Errorf("fetch at offset %d answered offset %d", next, base)
			}
			next, whole = batchEnd(batch), true
			res.Bytes += int64(len(batch))
		}
		if !whole {
			return res, fmt.Errorf("fetch at offset %d answered no whole batch", next)
		}
		if next >= d.End {
			next = 0
		}
		res.Requests++
		if d.BytesPerSecond > 0 {
			ahead := time.Duration(float64(res.Bytes)/float64(d.BytesPerSecond)*float64(time.Second)) - time.Since(start)
			if ahead > 0 {
				wait(ctx, ahead)
			}
		}
	}
	res.Elapsed = time.Since(start)
	return res, nil
}
