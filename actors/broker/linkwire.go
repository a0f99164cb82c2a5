package broker

import (
	"io"
	"net"
	"sync/atomic"

	"github.com/troupe-broker/troupe/actors/runtime"
)

// linkBatchesMax is how many batches of frames of one connection wait for its link before the connection is read no further.
const linkBatchesMax = 8

// PeerWire is the carrier's hold on a connection between brokers, whatever carries the bytes: a kernel's socket and its reader, or a simulated network. For a
// connection that this side dials, the carrier tells by Connected or Failed how that went; it offers the bytes that arrive by Receive, tells by Writable and
// Stalled what its Transport promises to tell, and ends the connection by End. All methods are called by one goroutine at a time; none waits.
type PeerWire struct {
	link    *runtime.Ref
	runner  *runtime.Runner
	in      linkIntake
	pending atomic.Int32  // batches that the link has not handled
	room    chan struct{} // holds a token after one was
	credit  chan struct{}
	scrap   []byte // where the bytes go that nobody will look at
	told    bool   // the link knows that what comes makes no sense

	received atomic.Int64 // bytes
	held     atomic.Bool  // this side does not read: the link has enough to do, or memory is short
	over     bool
}

// linkBroken tells a link that its connection carries what is no frame.
type linkBroken struct{ reason error }

// linkConnected tells a link that its connection is there.
type linkConnected struct{ transport Transport }

// linkFailed tells a link that it could not be connected.
type linkFailed struct{ reason error }

// Bytes implements runtime.Message.
func (*linkBroken) Bytes() int    { return 0 }
func (*linkConnected) Bytes() int { return 0 }
func (*linkFailed) Bytes() int    { return 0 }

// Reject implements runtime.Rejecter: nobody wants the connection any more.
func (m *linkConnected) Reject(error) { m.transport.Close() }

// creditGranted implements claimant.
func (w *PeerWire) creditGranted() {
	select {
	case w.credit <- struct{}{}:
	default:
	}
}

// creditRevoked implements claimant. The memory of links is not taken back: who may have it is few, and a link that stalls is closed by its probe.
func (*PeerWire) creditRevoked() {}

// handled is called by the link, from wherever it runs, for each batch of frames.
func (w *PeerWire) handled() {
	w.pending.Add(-1)
	select {
	case w.room <- struct{}{}:
	default:
	}
}

func (w *PeerWire) full() bool { return w.pending.Load() >= linkBatchesMax }

// Connected tells that the connection is there.
func (w *PeerWire) Connected(to Transport) {
	_ = w.runner.Send(w.link, &linkConnected{transport: to}) // Reject closes it
	w.runner.Run()
}

// Failed tells that there will be no connection, and why. An error that is syscall.ECONNREFUSED says that nobody listens there.
func (w *PeerWire) Failed(reason error) {
	if w.over {
		return
	}
	w.over = true
	_ = w.runner.Send(w.link, &linkFailed{reason: reason}) // a link that has stopped does not care
	w.runner.Run()
}

// Receive takes in the first bytes of b and returns how many. It takes fewer than all when the link has enough to do, or memory is short: the carrier offers the
// rest again later, and asks with nothing to offer as long as Waits. An error says that the connection has ended.
func (w *PeerWire) Receive(b []byte) (n int, err error) {
	if w.over {
		return 0, net.ErrClosed
	}
	defer func() { w.held.Store(w.in.waiting || w.full()) }()
	for !w.full() {
		if w.in.waiting && !w.in.granted() {
			break
		}
		if n == len(b) {
			w.in.unused()
			break
		}
		got := copy(w.space(), b[n:])
		n += got
		w.took(got)
	}
	w.runner.Run()
	return n, nil
}

// Waits tells that the broker holds back what it has received until memory is free.
func (w *PeerWire) Waits() bool { return !w.over && w.in.waiting }

// Takes tells that Receive would take bytes now.
func (w *PeerWire) Takes() bool { return !w.over && !w.in.waiting && !w.full() }

// space is where the next bytes go.
func (w *PeerWire) space() []byte {
	if w.in.broken == nil {
		return w.in.space()
	}
	if w.scrap == nil {
		w.scrap = make([]byte, linkChunkMin)
	}
	return w.scrap
}

// took passes on what n received bytes completed.
func (w *PeerWire) took(n int) {
	w.received.Add(int64(n))
	if n == 0 || w.told {
		return
	}
	err := w.in.advance(n)
	if f := w.in.take(); f != nil {
		f.wire = w
		w.pending.Add(1)
		_ = w.runner.Send(w.link, f) // Reject lets go of them
	}
	if err != nil {
		w.told = true
		w.in.close()
		_ = w.runner.Send(w.link, &linkBroken{reason: err}) // a link that has stopped knows
	}
}

// Writable tells the link that more can be written.
func (w *PeerWire) Writable() { _ = w.link.Post(signalWritable) } // one that has stopped does not write

// Stalled tells the link that the peer took nothing for too long.
func (w *PeerWire) Stalled() { _ = w.link.Post(&hangup{reason: errStalled, broken: true}) } // one that has stopped knows

// End ends the input, once: with io.EOF or nil after the peer closed in order.
func (w *PeerWire) End(reason error) {
	if w.over {
		return
	}
	w.over = true
	if reason == nil {
		reason = io.EOF
	}
	w.in.close()
	_ = w.runner.Send(w.link, &hangup{reason: reason}) // one that has stopped knows
	w.runner.Run()
}

// linkReader is the blocking half of a transport of this machine.
type linkReader interface {
	Transport
	receive(space func() []byte, nothing func()) (int, error)
	done() <-chan struct{}
	adopt(link *runtime.Ref) // who is told when more can be written
}

// read is the goroutine of a connection of this machine, until it ends.
func (w *PeerWire) read(from linkReader) {
	space, parking := w.space, w.in.unused // bound once: each binding is an allocation
	for {
		for w.full() {
			w.held.Store(true)
			<-w.room
		}
		w.held.Store(false)
		n, err := from.receive(space, parking)
		switch {
		case err != nil:
			w.End(err)
			return
		case n > 0:
			w.took(n)
		default:
			w.held.Store(true)
			select {
			case <-w.credit:
				w.in.granted()
			case <-from.done():
				w.End(net.ErrClosed)
				return
			}
		}
		w.runner.Run()
	}
}
