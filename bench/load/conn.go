package load

import (
	"bufio"
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

func dial(addr string) (*conn, error) {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, r: bufio.NewReaderSize(c, 64<<10)}, nil
}

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
