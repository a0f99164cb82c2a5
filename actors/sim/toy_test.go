package sim_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/actors/sim"
)

// The toy: a server whose one actor adds numbers, and clients that send numbers over
// connections and wait for the sum. It is small enough to see whether the world around
// it behaves, and it keeps its sum on a "disk" that survives a crash.

const frame = 8

// toyServer is the server of one node, through its lives.
type toyServer struct {
	world *sim.World
	node  *sim.Node
	disk  uint64 // survives
	adder *runtime.Ref
	from  *runtime.Runner
	ends  map[*toyLine]bool
	bug   uint64 // adding this number is a bug
}

// add asks the adder; done gets the sum after it.
type add struct {
	n    uint64
	done func(sum uint64, err error)
}

func (*add) Bytes() int { return frame }

func (a *add) Reject(err error) { a.done(0, err) }

// Turn is the adder's.
func (s *toyServer) Turn(_ *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		a := m.(*add)
		if s.bug != 0 && a.n == s.bug {
			panic(fmt.Sprintf("cannot add %d", a.n))
		}
		s.disk += a.n
		a.done(s.disk, nil)
	}
}

func (s *toyServer) boot() error {
	sys := s.node.Boot(zerolog.Nop())
	s.ends = make(map[*toyLine]bool)
	s.from = runtime.NewRunner(sys)
	var err error
	s.adder, err = sys.Spawn(nil, runtime.Spec{Name: "adder", Kind: "toy.adder", Behaviour: s})
	return err
}

// toyLine is the server's side of a connection.
type toyLine struct {
	server *toyServer
	end    *sim.End
	out    []byte
}

func (l *toyLine) Receive(b []byte) int {
	n := 0
	for ; len(b)-n >= frame; n += frame {
		a := &add{n: binary.BigEndian.Uint64(b[n:])}
		a.done = func(sum uint64, err error) {
			if err != nil {
				l.end.Abort()
				return
			}
			l.out = binary.BigEndian.AppendUint64(l.out, sum)
			l.flush()
		}
		_ = l.server.from.Send(l.server.adder, a) // a refusal was answered
	}
	l.server.from.Run()
	return n
}

func (l *toyLine) Writable() { l.flush() }

func (l *toyLine) Closed(error) { l.end.Close() }

func (l *toyLine) flush() {
	n, err := l.end.Write(l.out)
	if err == nil {
		l.out = l.out[n:]
	}
}

// toyClient sends numbers, one at a time, on a new connection after each break.
type toyClient struct {
	world  *sim.World
	server *toyServer
	name   string
	rand   *rand.Rand
	end    *sim.End
	left   int
	sent   uint64 // all that was sent, answered or not
	acked  uint64
	last   uint64 // sum
	breaks int
	wrong  error
	in     []byte
	asked  uint64
}

func newToyClient(w *sim.World, s *toyServer, name string, asks int) *toyClient {
	c := &toyClient{world: w, server: s, name: name, rand: w.Rand("client/" + name), left: asks}
	c.connect()
	return c
}

func (c *toyClient) Receive(b []byte) int {
	if len(b) < frame {
		return 0
	}
	sum := binary.BigEndian.Uint64(b)
	if sum < c.last+c.asked {
		c.wrong = fmt.Errorf("%s: sum %d after %d and %d more", c.name, sum, c.last, c.asked)
	}
	c.last = sum
	c.acked += c.asked
	c.ask()
	return frame
}

func (c *toyClient) Writable() {}

func (c *toyClient) Closed(err error) {
	c.breaks++
	if errors.Is(err, io.EOF) {
		c.wrong = errors.New("the server closed")
		return
	}
	c.connect()
}

func (c *toyClient) connect() {
	if c.server.node.Running() == nil {
		c.world.After(10*time.Millisecond, c.name+" tries again", c.connect)
		return
	}
	line := &toyLine{server: c.server}
	c.in = nil
	c.end, line.end = c.world.Net.Connect(c.name, c, c.server.node.Name, line)
	c.server.ends[line] = true
	c.ask()
}

func (c *toyClient) ask() {
	if c.left == 0 {
		c.end.Close()
		return
	}
	c.left--
	c.asked = c.rand.Uint64N(1000) + 1
	c.sent += c.asked
	if _, err := c.end.Write(binary.BigEndian.AppendUint64(nil, c.asked)); err != nil && !errors.Is(err, sim.ErrReset) {
		c.wrong = err
	}
}
