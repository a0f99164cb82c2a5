package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

const (
	streamBytesMax = 512 << 10 // an exchange of membersMax members takes about 170 KB
	streamsMax     = 32        // at a time, accepted ones
	nodesMax       = 4 * membersMax
	headerBytesMax = 64 // of an exchange: three keys and three small values
	headerFields   = 3
)

var (
	errStream      = errors.New("not a gossip stream of ours")
	errStreamLong  = fmt.Errorf("%w: more than %d bytes", errStream, streamBytesMax)
	errSealed      = errors.New("it is sealed, and this broker has no key")
	errUnsealed    = errors.New("it is not sealed, and this broker has a key")
	errStreamLabel = fmt.Errorf("%w of the stream", errLabel)
)

// stream is one gossip connection. What is read from it is measured, and looked at until it is clear what the library would make of it; the byte that
// makes it bad is never handed on.
type stream struct {
	net.Conn
	gate   gate
	refuse func(error) // told once why the stream is no good
	closed func()
	once   sync.Once
}

// Read reads like the connection, and fails once the other side has sent what it must not.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if bad := s.gate.pass(p[:n]); bad != nil {
		if s.refuse != nil {
			s.refuse(bad)
			s.refuse = nil
		}
		return 0, bad
	}
	return n, err
}

// Write writes like the connection. When that fails the stream is closed: the library forgets to when it cannot even write the label.
func (s *stream) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	if err != nil {
		err = errors.Join(err, s.Close())
	}
	return n, err
}

// Close closes the connection for its user, who is the library. The second time it does nothing.
func (s *stream) Close() error {
	var err error
	s.once.Do(func() {
		err = s.Conn.Close()
		s.closed()
	})
	return err
}

// gate follows the beginning of a stream: a label if the other side dialled, the type of the one message, and for an exchange in the clear the header, by
// which the library sizes its memory.
type gate struct {
	label  string // expected first; "" on the way back
	sealed bool   // expected after it
	head   []byte // the beginning, until it is understood
	open   bool   // it is, and was good
	count  int
}

func (g *gate) pass(b []byte) error {
	if !g.open {
		g.head = append(g.head, b[:min(len(b), g.headMax()-len(g.head))]...)
		err := g.inspect()
		switch {
		case err == nil:
			g.open, g.head = true, nil
		case !errors.Is(err, io.ErrUnexpectedEOF):
			return err
		case len(g.head) == g.headMax():
			return fmt.Errorf("%w: its header does not end", errStream)
		}
	}
	if g.count += len(b); g.count > streamBytesMax {
		return errStreamLong
	}
	return nil
}

func (g *gate) headMax() int { return 2 + len(g.label) + 1 + headerBytesMax }

// inspect returns io.ErrUnexpectedEOF while the head is too short to tell.
func (g *gate) inspect() error {
	b := g.head
	if g.label != "" {
		want := append([]byte{msgLabel, byte(len(g.label))}, g.label...)
		if n := min(len(b), len(want)); !bytes.Equal(b[:n], want[:n]) {
			return errStreamLabel
		}
		if len(b) < len(want) {
			return io.ErrUnexpectedEOF
		}
		b = b[len(want):]
	}
	if len(b) == 0 {
		return io.ErrUnexpectedEOF
	}
	kind, b := b[0], b[1:]
	switch {
	case kind == msgEncrypted && g.sealed:
		return nil
	case kind == msgEncrypted:
		return errSealed
	case g.sealed:
		return errUnsealed
	}
	switch kind {
	case msgPing, msgAck, msgError:
		return nil
	case msgPushPull:
		return inspectHeader(b)
	}
	return fmt.Errorf("%w: message type %d", errStream, kind)
}

// inspectHeader reads the map before the members of an exchange: how many there are, how much else follows, and whether this is a join.
func inspectHeader(b []byte) error {
	dec := msgpack.NewDecoder(bytes.NewReader(b))
	fields, err := dec.DecodeMapLen()
	if err == nil && (fields < 0 || fields > headerFields) {
		err = fmt.Errorf("%w: a header of %d fields", errStream, fields)
	}
	for i := 0; err == nil && i < fields; i++ {
		var n int
		if n, err = dec.DecodeBytesLen(); err != nil {
			break
		}
		if n < 0 || n > headerBytesMax {
			return fmt.Errorf("%w: a field whose name has %d bytes", errStream, n)
		}
		name := make([]byte, n)
		if err = dec.ReadFull(name); err != nil {
			break
		}
		var value int
		switch string(name) {
		case "Join":
			_, err = dec.DecodeBool()
		case "Nodes":
			if value, err = dec.DecodeInt(); err == nil && (value < 0 || value > nodesMax) {
				return fmt.Errorf("%w: an exchange of %d members", errStream, value)
			}
		case "UserStateLen":
			if value, err = dec.DecodeInt(); err == nil && value != 0 {
				return fmt.Errorf("%w: an exchange with %d bytes of something else", errStream, value)
			}
		default:
			return fmt.Errorf("%w: a header with %.16q", errStream, name)
		}
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	case err != nil && !errors.Is(err, errStream):
		return fmt.Errorf("%w: %w", errStream, err)
	}
	return err
}
