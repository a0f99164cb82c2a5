package broker

import (
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// listening is an actor that remembers what it is told.
type listening struct{ told chan runtime.Message }

func (l *listening) Turn(_ *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		l.told <- m
	}
}

// pair is both ends of a TCP connection.
func pair(t *testing.T) (server, client *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return s.(*net.TCPConn), c.(*net.TCPConn)
}

func TestASocketSaysWhenItCanBeWrittenAgainAndWhenNobodyReads(t *testing.T) {
	sys := runtime.NewSystem(runtime.Options{})
	l := &listening{told: make(chan runtime.Message, 16)}
	ref, err := sys.Spawn(nil, runtime.Spec{Name: "listening", Kind: "test", Behaviour: l})
	if err != nil {
		t.Fatal(err)
	}
	server, client := pair(t)
	defer func() { _ = client.Close() }()
	var group sync.WaitGroup
	s, err := newSocket(server, sys.Clock(), func(f func()) { group.Go(f) })
	if err != nil {
		t.Fatal(err)
	}
	s.self, s.stall = ref, 300*time.Millisecond
	data := make([]byte, 1<<20)
	fill := func() {
		t.Helper()
		for range 1000 {
			n, err := s.Write([][]byte{data[:100], data}, false)
			if err != nil {
				t.Fatal(err)
			}
			if n < 100+len(data) {
				return
			}
		}
		t.Fatal("a socket that nobody reads takes everything")
	}
	told := func() runtime.Message {
		t.Helper()
		select {
		case m := <-l.told:
			return m
		case <-time.After(10 * time.Second):
			t.Fatal("nothing was told")
			return nil
		}
	}
	fill()
	s.WhenWritable()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for buf := make([]byte, 1<<20); ; {
			if _, err := client.Read(buf); err != nil {
				return
			}
		}
	}()
	if m := told(); m != signalWritable {
		t.Errorf("told %v, want that it can be written", m)
	}
	time.Sleep(s.stall + 50*time.Millisecond)
	if _, err := s.Write([][]byte{data[:100]}, false); err != nil {
		t.Errorf("long after a wait that ended well, a write fails: %v", err)
	}
	if err := client.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	<-drained
	m := runtime.Message(signalWritable)
	for m == signalWritable { // the kernel may still find room on the other side
		fill()
		s.WhenWritable()
		m = told()
	}
	if h, ok := m.(*hangup); !ok || !errors.Is(h.reason, errStalled) || !h.broken {
		t.Errorf("told %v, want that nobody reads", m)
	}
	s.Close()
	s.Close() // twice does no harm
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	group.Wait()
	if err := sys.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
