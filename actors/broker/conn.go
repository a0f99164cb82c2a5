package broker

import (
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// conn is a TCP connection: the socket, and the goroutine that reads it. The goroutine parses every request that is in its buffer, gives them to the session,
// and runs the turns that follow from them in place; while it waits for bytes it holds no buffer.
type conn struct {
	line
	socket *socket
	credit chan struct{}
}

var (
	errStalled  = &limitError{codeStalledWrite, "the peer took no byte of an answer for 30 s"}
	errRevoked  = &limitError{codeStalledRead, "a request stopped arriving while others waited for its memory"}
	errWithheld = &limitError{codeStalledWrite, "the peer took no byte of an answer while others waited for its memory"}
	errIdle     = &limitError{codeIdle, "nothing was asked for connections.max.idle.ms"}
	errDrained  = errors.New("the broker stops")
)

// creditGranted implements claimant.
func (c *conn) creditGranted() {
	select {
	case c.credit <- struct{}{}:
	default:
	}
}

// read is the connection's goroutine.
func (c *conn) read() {
	runner := runtime.NewRunner(c.shared.system)
	c.ended(c.receive(runner), runner)
	runner.Run()
}

// receive feeds the session until the connection ends.
func (c *conn) receive(runner *runtime.Runner) error {
	space, parking := c.in.space, c.parking // bound once: each binding is an allocation
	for {
		c.gate.wait()
		n, err := c.socket.receive(space, parking)
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
