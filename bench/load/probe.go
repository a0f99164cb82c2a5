package load

import (
	"context"
	"errors"
	"time"
)

// Probe asks a broker that may not be up yet to acknowledge one record, acks=all.
type Probe struct {
	Addr      string
	Topic     string
	Partition int32
}

// probePause is the time between two tries. It is the probe's resolution.
const probePause = 500 * time.Microsecond

// Until tries until a record is acknowledged, ctx ends, or gone is closed (the broker's
// process has ended). It keeps its connection while the broker answers with an error,
// as it does while a partition is not led yet.
func (p Probe) Until(ctx context.Context, gone <-chan struct{}) error {
	batch, _ := Payload{RecordBytes: 100, RequestBytes: 100}.Batch()
	frame, _ := produceFrame(p.Topic, p.Partition, -1, batch)
	var c *conn
	defer func() {
		if c != nil {
			c.leave()
		}
	}()
	var last error
	for {
		if c == nil {
			c, last = dial(ctx, p.Addr)
		}
		if c != nil {
			if _, last = produceOnce(c, frame, p.Topic); last == nil {
				return nil
			}
			if !isRefused(last) {
				c.leave()
				c = nil
			}
		}
		select {
		case <-time.After(probePause):
		case <-gone:
			return errors.Join(errors.New("the broker's process has ended"), last)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), last)
		}
	}
}

// refused is an answer with an error code.
type refused struct{ error }

func isRefused(err error) bool {
	_, ok := errors.AsType[*refused](err)
	return ok
}

// produceOnce sends one request and wants it acknowledged. The answer may take as long as a produce may, and a stall.
func produceOnce(c *conn, frame []byte, topic string) (offset int64, err error) {
	if err := c.SetDeadline(time.Now().Add(stallMax)); err != nil {
		return -1, err
	}
	if _, err := c.Write(frame); err != nil {
		return -1, err
	}
	body, err := c.response()
	if err != nil {
		return -1, err
	}
	if offset, err = produceAck(body, topic); err != nil {
		return -1, &refused{err}
	}
	return offset, nil
}
