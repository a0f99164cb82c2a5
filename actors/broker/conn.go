package broker

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// conn is a TCP connection: the socket, and the goroutine that reads it. The goroutine parses every request that is in its buffer, gives them to the session,
// and runs the turns that follow from them in place; while it waits for bytes it holds no buffer.
type conn struct {
	*feed
	socket  *socket
	shared  *shared
	peer    netip.Addr
	active  atomic.Int64 // ident.Instant of the last bytes
	credit  chan struct{}
	revoked atomic.Bool
}

var (
	errStalled = &limitError{codeStalledWrite, "the peer took no byte of an answer for 30 s"}
	errRevoked = &limitError{codeStalledRead, "a request stopped arriving while others waited for its memory"}
	errIdle    = &limitError{codeIdle, "nothing was asked for connections.max.idle.ms"}
	errDrained = errors.New("the broker stops")
)

// creditGranted implements claimant.
func (c *conn) creditGranted() {
	select {
	case c.credit <- struct{}{}:
	default:
	}
}

// creditRevoked implements claimant: closing the socket makes the reader let go.
func (c *conn) creditRevoked() {
	c.revoked.Store(true)
	c.socket.Close()
}

// read is the connection's goroutine.
func (c *conn) read() {
	runner := runtime.NewRunner(c.shared.system)
	reason := c.receive(runner)
	if c.revoked.Load() {
		reason = errRevoked
	}
	c.in.close()
	// A peer that only stopped sending may still read; if it does not, the next write says so. A session that has stopped knows.
	_ = runner.Send(c.session, &hangup{reason: reason})
	runner.Run()
}

// receive feeds the session until the connection ends.
func (c *conn) receive(runner *runtime.Runner) error {
	for {
		c.gate.wait()
		n, err := c.socket.receive(c.in.space, c.parking)
		switch {
		case err != nil:
			return ending(err)
		case n > 0:
			c.active.Store(int64(c.now()))
			err = c.took(n, runner)
		default:
			if err = c.await(); err == nil {
				_, err = c.granted(runner)
			}
		}
		runner.Run()
		if err != nil {
			return err
		}
	}
}

// parking is called before the goroutine parks: a buffer into which nothing was read is given back, a request that has begun is on the clock.
func (c *conn) parking() {
	c.in.unused()
	if c.in.partial() {
		c.in.stall(c.now())
	}
}

// await waits for credit, or for this side to close the connection. A peer that goes away meanwhile is noticed by the next read.
func (c *conn) await() error {
	select {
	case <-c.credit:
		return nil
	case <-c.socket.closed:
		return net.ErrClosed
	}
}

// ending sorts the end of a connection: what the peer or this side did on purpose is not worth a line.
func ending(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || isReset(err) {
		return io.EOF
	}
	return err
}

// isReset says whether the peer ended the connection without a word.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
