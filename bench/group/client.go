package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// answerMax bounds what a target may make the generator allocate, in bytes.
const answerMax = 16 << 20

// client is one connection of a member that speaks the protocol without a library: what is measured is the broker, and not a library's timers.
type client struct {
	conn      net.Conn
	read      *bufio.Reader
	formatter *kmsg.RequestFormatter
	frame     []byte
	next      int32
}

func dial(ctx context.Context, addr, id string) (*client, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &client{conn: c, read: bufio.NewReader(c), formatter: kmsg.NewRequestFormatter(kmsg.FormatterClientID(id))}, nil
}

// leave closes the connection. What it was for is over, so an error says nothing.
func (c *client) leave() { _ = c.conn.Close() }

// send writes a request and returns its correlation id.
func (c *client) send(r kmsg.Request) (int32, error) {
	c.next++
	c.frame = c.formatter.AppendRequest(c.frame[:0], r, c.next)
	_, err := c.conn.Write(c.frame)
	return c.next, err
}

// receive reads the answer to r, which must be the oldest one without an answer.
func (c *client) receive(r kmsg.Request, correlation int32) (kmsg.Response, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.read, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n < 4 || n > answerMax {
		return nil, fmt.Errorf("an answer of %d bytes", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(c.read, b); err != nil {
		return nil, err
	}
	if got := int32(binary.BigEndian.Uint32(b)); got != correlation {
		return nil, fmt.Errorf("answer %d, %d was due", got, correlation)
	}
	b = b[4:]
	answer := r.ResponseKind()
	answer.SetVersion(r.GetVersion())
	if answer.IsFlexible() {
		if len(b) == 0 || b[0] != 0 {
			return nil, errors.New("an answer with tagged fields in its header")
		}
		b = b[1:]
	}
	return answer, answer.ReadFrom(b)
}

// ask sends one request and waits for its answer, for patience at most.
func ask[R kmsg.Response](c *client, r kmsg.Request, patience time.Duration) (R, error) {
	var none R
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return none, err
	}
	id, err := c.send(r)
	if err != nil {
		return none, err
	}
	answer, err := c.receive(r, id)
	if err != nil {
		return none, fmt.Errorf("%s: %w", kmsg.NameForKey(r.Key()), err)
	}
	return answer.(R), nil
}

// awaitCoordinator asks until the group has a coordinator that has loaded.
func awaitCoordinator(ctx context.Context, addr, group string) error {
	c, err := dial(ctx, addr, "bench")
	if err != nil {
		return err
	}
	defer c.leave()
	for range 600 {
		f := kmsg.NewPtrFindCoordinatorRequest()
		f.Version, f.CoordinatorKeys = 4, []string{group}
		found, err := ask[*kmsg.FindCoordinatorResponse](c, f, patience)
		if err != nil {
			return err
		}
		if len(found.Coordinators) == 1 && found.Coordinators[0].ErrorCode == 0 {
			fetch := kmsg.NewPtrOffsetFetchRequest()
			fetch.Version, fetch.Groups = 8, []kmsg.OffsetFetchRequestGroup{{Group: group}}
			got, err := ask[*kmsg.OffsetFetchResponse](c, fetch, patience)
			if err != nil {
				return err
			}
			if len(got.Groups) == 1 && got.Groups[0].ErrorCode == 0 {
				return nil
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fmt.Errorf("group %s has no coordinator", group)
}

// failed names an error code that ends a measurement.
func failed(what string, code int16) error {
	return fmt.Errorf("%s: %w", what, kerr.ErrorForCode(code))
}
