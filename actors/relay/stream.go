package relay

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// stream is one connection: two sockets and what is carried between them.
type stream struct {
	net  *Net
	kind Kind // set before it joins, under net.mu
	way  Way  // from who dialled to the broker

	near *net.TCPConn          // of who dialled
	over atomic.Bool           // reset or ended: nothing is carried any more
	lost atomic.Pointer[Fault] // by whom it has lost something
	deaf [2]atomic.Bool        // near, far: that end hears nothing any more, and what it sends goes nowhere

	mu  sync.Mutex
	far *net.TCPConn // to the broker; nil: not yet
}

func (s *stream) back() Way { return Way{s.way.To, s.way.From} }

// name says who dialled, and for what.
func (s *stream) name(kind Kind, from int) {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	s.kind, s.way.From = kind, from
}

// join takes the second socket; false: the stream is over.
func (s *stream) join(far *net.TCPConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.far = far
	return !s.over.Load()
}

// reset ends the stream with a reset at both ends.
func (s *stream) reset() {
	s.over.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range []*net.TCPConn{s.near, s.far} {
		if c != nil && !s.deaf[i].Load() {
			_ = c.SetLinger(0)
		}
		if c != nil {
			_ = c.Close() // both carriers hear of it
		}
	}
	s.net.mu.Lock()
	s.net.change.Broadcast() // one may be waiting for a way
	s.net.mu.Unlock()
}

// end closes the sockets, as whoever said all that it had to say.
func (s *stream) end() {
	s.over.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.near.Close()
	if s.far != nil {
		_ = s.far.Close()
	}
	s.net.drop(s)
}

// forget resets the socket of one end, and leaves the other end alone.
func (s *stream) forget(one int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.far == nil {
		return
	}
	gone, left := s.near, 1
	if one == s.way.To {
		gone, left = s.far, 0
	}
	s.deaf[left].Store(true)
	_ = gone.SetLinger(0)
	_ = gone.Close()
}

// carry relays both directions until both have ended. first is what was read already of who dialled.
func (s *stream) carry(first []byte) {
	var ends sync.WaitGroup
	ends.Go(func() { s.pump(s.far, s.near, s.way, 0, first) })
	ends.Go(func() { s.pump(s.near, s.far, s.back(), 1, nil) })
	ends.Wait()
}

// pump relays one direction; from is end number one of the two.
func (s *stream) pump(to, from *net.TCPConn, w Way, one int, first []byte) {
	const chunk = 32 << 10
	buf := make([]byte, chunk)
	n, err := copy(buf, first), error(nil)
	for {
		if n == 0 && err == nil {
			n, err = from.Read(buf)
		}
		if s.deaf[one].Load() {
			s.swallow(from)
			return
		}
		e, ok := s.net.await(s.kind, w, &s.over)
		switch {
		case s.deaf[one].Load(): // while it waited
			s.swallow(from)
			return
		case !ok:
			return
		case e.drop != nil && n > 0:
			s.lost.Store(e.drop)
			n = 0
			if err == nil {
				continue
			}
		}
		if late := e.late(n); n > 0 && late > 0 && !s.net.pause(late) {
			return
		}
		if n > 0 {
			if _, failed := to.Write(buf[:n]); failed != nil {
				if s.deaf[one].Load() {
					s.swallow(from)
				} else {
					s.reset()
				}
				return
			}
			n = 0
		}
		switch {
		case err == nil:
		case s.deaf[1-one].Load(): // its own socket is gone, and the other end must not hear of it
			return
		case errors.Is(err, io.EOF) && to.CloseWrite() == nil:
			return // the other direction may go on
		default:
			s.reset()
			return
		}
	}
}

// swallow takes what an end that hears nothing still sends, until it gives up.
func (s *stream) swallow(from *net.TCPConn) {
	_, _ = io.Copy(io.Discard, from) // how it ends does not matter
}
