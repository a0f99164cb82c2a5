package load

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// responseBytesMax bounds what a target may make the generator allocate.
const responseBytesMax = 64 << 20

// stallMax ends a run whose target stops answering.
const stallMax = 60 * time.Second

// conn is one blocking connection that reads length-prefixed responses.
type conn struct {
	net.Conn
	r   *bufio.Reader
	buf []byte
}

func dial(ctx context.Context, addr string) (*conn, error) {
	return dialWithin(ctx, addr, 5*time.Second)
}

func dialWithin(ctx context.Context, addr string, limit time.Duration) (*conn, error) {
	d := net.Dialer{Timeout: limit}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, r: bufio.NewReaderSize(c, 64<<10)}, nil
}

// leave closes the connection. What it was for is over, so an error says nothing.
func (c *conn) leave() { _ = c.Close() }

// response reads one response body, correlation id first. It is valid until the next
// call.
func (c *conn) response() ([]byte, error) {
	size, err := c.r.Peek(4)
	if err != nil {
		return nil, fmt.Errorf("read a response: %w", err)
	}
	n := int(binary.BigEndian.Uint32(size))
	if n < 4 || n > responseBytesMax {
		return nil, fmt.Errorf("response announces %d bytes", n)
	}
	if _, err := c.r.Discard(4); err != nil {
		return nil, err
	}
	if cap(c.buf) < n {
		c.buf = make([]byte, n)
	}
	c.buf = c.buf[:n]
	if _, err := io.ReadFull(c.r, c.buf); err != nil {
		return nil, fmt.Errorf("read a response of %d bytes: %w", n, err)
	}
	return c.buf, nil
}
