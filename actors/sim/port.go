package sim

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// stalledMax is how long a client may take no byte of an answer; a kernel would tell the broker's socket.
const stalledMax = 30 * time.Second

// port is the broker's side of a connection: the Handler of what the network brings, and the Transport of the session.
type port struct {
	host   *host
	end    *End
	link   carried // nil: refused
	client *client
	stall  runtime.Alarm
	lose   bool // break the connection instead of writing
	allow  int  // not 0: close the connection when so many bytes are written
	over   bool
}

// carried is the broker's hold on a connection, be it of a client or of another broker.
type carried interface {
	Receive(b []byte) (int, error)
	Waits() bool
	Takes() bool
	Writable()
	Stalled()
	End(reason error)
}

// errRefused is what connecting to a broker says that does not listen.
var errRefused = errors.New("connection refused")

// dial connects a client to the broker, if that listens.
func (h *host) dial(c *client) (*End, error) {
	if h.broker == nil || h.node.Running() == nil || !h.broker.Ready() {
		return nil, errRefused
	}
	p := &port{host: h, client: c}
	near, far := h.run.world.Net.Connect(c.name, c, h.node.Name, p)
	p.end = far
	link, err := h.broker.Connect(p, h.source(byte(c.plan.Number)))
	if err != nil {
		near.Abort()
		return nil, err
	}
	p.link = link
	h.ports, h.touched = append(h.ports, p), true
	return near, nil
}

// source is an address that a connection comes from.
func (h *host) source(number byte) netip.AddrPort {
	h.dials++
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 1 + number}), uint16(1024+(h.dials-1)%60_000))
}

// Receive implements Handler.
func (p *port) Receive(b []byte) int {
	if p.host.frozen {
		return 0 // it stays in the buffer of the kernel
	}
	p.host.touched = true
	n, err := p.link.Receive(b)
	if err != nil {
		p.over = true // the session closes the connection when it has answered what it understood
		return len(b)
	}
	return n
}

// poll lets the broker go on that held back what it had received, or could take no more. It tells whether there was such a thing.
func (p *port) poll() bool {
	switch {
	case p.over:
		return false
	case p.link.Waits():
		if _, err := p.link.Receive(nil); err != nil {
			p.over = true
		}
		return true
	case len(p.end.in) > 0 && p.link.Takes():
		p.end.Resume()
		return true
	}
	return false
}

// Writable implements Handler.
func (p *port) Writable() {
	if p.stall != nil {
		p.stall.Cancel()
	}
	p.host.touched = true
	p.link.Writable()
}

// Closed implements Handler.
func (p *port) Closed(err error) {
	p.over, p.host.touched = true, true
	if p.link == nil {
		return
	}
	if errors.Is(err, ErrReset) {
		err = io.EOF
	}
	p.link.End(err)
}

// Write implements broker.Transport.
func (p *port) Write(vec [][]byte, _ bool) (int, error) {
	if p.host.node.Running() == nil {
		return 0, io.ErrClosedPipe // a dead process writes nothing
	}
	if p.lose {
		p.lose = false
		p.end.Cut()
	}
	total := 0
	for _, b := range vec {
		if p.allow > 0 {
			if len(b) >= p.allow {
				n, err := p.end.Write(b[:p.allow])
				p.host.run.counted("answer truncated")
				p.Close()
				return total + n, errors.Join(err, io.ErrClosedPipe)
			}
			p.allow -= len(b)
		}
		n, err := p.end.Write(b)
		total += n
		if err != nil {
			return total, err
		}
		if n < len(b) {
			break
		}
	}
	return total, nil
}

// SendFile implements broker.Transport. The simulated disk has no descriptors to send from.
func (p *port) SendFile(uintptr, int64, int) (int, error) { return 0, errors.ErrUnsupported }

// ZeroCopy implements broker.Transport.
func (p *port) ZeroCopy() bool { return true }

// WhenWritable implements broker.Transport.
func (p *port) WhenWritable() {
	if p.stall == nil {
		p.stall = p.host.node.Clock.NewAlarm(p.link.Stalled)
	}
	p.stall.Set(stalledMax)
}

// Close implements broker.Transport.
func (p *port) Close() {
	p.end.Close()
	if p.over {
		return
	}
	p.over = true
	p.host.run.world.after(0, func() { p.link.End(net.ErrClosed) })
}
