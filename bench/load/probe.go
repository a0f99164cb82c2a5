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
			if last = p.once(c, frame); last == nil {
				return nil
			}
			if _, answered := errors.AsType[*refused](last); !answered {
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

func (p Probe) once(c *conn, frame []byte) error {
	if err := c.SetDeadline(time.Now().Add(stallMax)); err != nil {
		return err
	}
	if _, err := c.Write(frame); err != nil {
		return err
	}
	body, err := c.response()
	if err != nil {
		return err
	}
	if _, err := produceAck(body, p.Topic); err != nil {
		return &refused{err}
	}
	return nil
}
