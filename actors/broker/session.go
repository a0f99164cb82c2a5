package broker

import (
	"errors"
	"io"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// overlapMax is how many requests of one connection may be under way at once. A client keeps five in flight; more would only hold memory.
const overlapMax = 64

// session is the actor of one connection. The intake sends it complete requests; it begins them in order, and writes the answers in order.
//
// Kafka works on one request of a connection at a time. So does a session, but for runs of Produce requests: these overlap, because each waits for a
// disk, and partitions keep their order. Whatever else comes waits until everything before it is answered. While something waits, or answers cannot be
// written, the gate is closed and the connection is not read.
//
//	open ── the peer hangs up, a request cannot be parsed, the broker stops ──> closing ── everything received is done and answered ──> stopped
//
// A peer that hangs up may have sent writes with acks=0 just before: what was received completely is done all the same, and only the answers are lost.
type session struct {
	shared    *shared
	self      *runtime.Ref
	id        uint64
	transport Transport
	gate      *gate
	client    handler.Client
	ports     ports
	left      func() // told when the session has stopped

	waiting  frameQueue  // complete requests that were not begun
	ops      []operation // begun, in the order of the requests
	out      output
	debt     claim  // for the memory of out, while the peer does not take it
	requests uint32 // how many ids were given to partitions
	heart    *heartbeatOp

	fetchTimer *runtime.Timer
	fetchArmed ident.Instant // when the timer goes off; 0: it is not armed

	closing  bool  // nothing more is read; finish and stop
	mute     bool  // nothing more can be written
	reason   error // why
	stopping bool  // no more messages will come
}

// operation is one request that was begun.
type operation interface {
	requested() *request
	ready() bool             // the answer can be encoded
	overlaps() bool          // the next request may begin before this one is answered, if it is of the same kind
	encode(s *session) error // appends the answer to the output; an error closes the connection
	hurry(t *runtime.Turn)   // do not wait for anything that need not be
	abandon() bool           // the session stops: false when a partition still has a part of it, which lets go when it lands
	recycle()                // lets go of the request
}

// request is what every operation knows of its request.
type request struct {
	header wire.RequestHeader
	frame  frame
	began  ident.Instant
}

func (r *request) requested() *request { return r }

// hangup tells a session that no more requests will come. broken says that nothing can be written either.
type hangup struct {
	reason error
	broken bool
}

// Bytes implements runtime.Message.
func (*hangup) Bytes() int { return 0 }

// Started implements runtime.Starter.
func (s *session) Started(t *runtime.Turn) {
	s.self = t.Self()
	s.debt.owner = debtor{s}
}

// Turn implements runtime.Behaviour.
func (s *session) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		s.take(t, m)
	}
	s.advance(t)
}

func (s *session) take(t *runtime.Turn, m runtime.Message) {
	switch m := m.(type) {
	case *requests:
		s.arrived(m)
	case *produceWrite:
		s.produced(m)
	case *fetchRead:
		s.fetched(m)
	case *heartbeatOp:
		s.granted(m)
	case *continuation:
		s.ports.turn = t
		m.run()
		s.ports.turn = nil
	case *hangup:
		s.hungUp(t, m)
	case signal:
		s.signalled(t, m)
	default:
		panic("broker: a session got a message that it does not know")
	}
}

func (s *session) signalled(t *runtime.Turn, m signal) {
	switch m {
	case signalWritable, signalProceed, signalWarm:
		s.out.resume()
	case signalFetchDue:
		s.fetchDue(t)
	case signalHurry:
		for _, op := range s.ops {
			op.hurry(t)
		}
	case signalDrain:
		s.close(t, errDrained)
	case signalIdle:
		if len(s.ops) == 0 && s.waiting.empty() && s.out.empty() {
			s.close(t, errIdle)
		}
	default:
		panic("broker: a session got a signal that it does not know")
	}
}

// arrived queues complete requests.
func (s *session) arrived(r *requests) {
	for i := range r.frames {
		s.waiting.push(r.frames[i])
	}
	r.recycle()
}

// hungUp ends the input. The bytes of a broken connection are not worth writing.
func (s *session) hungUp(t *runtime.Turn, h *hangup) {
	if h.broken {
		s.silence()
	}
	s.close(t, h.reason)
}

// close begins the end: what was received is finished, without waiting for more than it needs.
func (s *session) close(t *runtime.Turn, reason error) {
	if s.closing {
		return
	}
	s.closing, s.reason = true, reason
	for _, op := range s.ops {
		op.hurry(t)
	}
}

// silence gives the connection up: answers are thrown away from now on.
func (s *session) silence() {
	s.mute = true
	s.transport.Close()
	s.out.drop()
}

// advance does what the messages of a turn made possible: go on with fetches, encode answers, begin requests, in this order, until nothing moves; then it
// writes.
func (s *session) advance(t *runtime.Turn) {
	for more := true; more; {
		s.answer(t)
		for s.begin(t) {
			s.answer(t)
		}
		full := s.out.full()
		s.write(t)
		more = full && s.out.empty() // what was held back can go on
	}
	s.settle(t)
}

// answer encodes the answers that are ready, up to the first that is not.
func (s *session) answer(t *runtime.Turn) {
	n := 0
	for _, op := range s.ops {
		if f, ok := op.(*fetchOp); ok {
			f.goOn(t, s)
		}
		if !op.ready() {
			break
		}
		if err := op.encode(s); err != nil {
			s.refuse(t, err)
		}
		s.observe(t, op)
		op.recycle()
		n++
	}
	if n > 0 {
		rest := copy(s.ops, s.ops[n:])
		clear(s.ops[rest:])
		s.ops = s.ops[:rest]
	}
	if s.mute {
		s.out.drop()
	}
}

// begin starts the requests that may start now, and says whether one can be answered already.
func (s *session) begin(t *runtime.Turn) (again bool) {
	for !s.waiting.empty() && s.out.state != outputBlocked && !s.out.full() {
		f := s.waiting.front()
		if len(s.ops) > 0 && !s.mayOverlap(f) {
			return again
		}
		s.waiting.pop()
		op, err := s.start(t, f)
		if err != nil {
			f.chunk.release()
			s.refuse(t, err)
			return true
		}
		if s.closing {
			op.hurry(t)
		}
		s.ops = append(s.ops, op)
		again = again || op.ready()
	}
	return again
}

// mayOverlap says whether a request may begin though others are under way.
func (s *session) mayOverlap(f frame) bool {
	last := s.ops[len(s.ops)-1]
	return len(s.ops) < overlapMax && f.api.Key == last.requested().header.Key && last.overlaps()
}

// start parses the header of a request and begins it.
func (s *session) start(t *runtime.Turn, f frame) (operation, error) {
	header, body, err := wire.ParseRequestHeader(f.body)
	if err != nil {
		var unsupported *wire.UnsupportedError
		if errors.As(err, &unsupported) && header.Key == wire.KeyApiVersions && header.API != nil {
			return s.startUnknownApiVersions(request{header: header, frame: f}), nil
		}
		return nil, err
	}
	began, _ := t.Now()
	r := request{header: header, frame: f, began: began}
	s.client.Name(header.ClientID)
	switch header.Key {
	case wire.KeyProduce:
		return s.startProduce(t, r, body)
	case wire.KeyFetch:
		return s.startFetch(t, r, body)
	case wire.KeyHeartbeat:
		return s.startHeartbeat(t, r, body)
	default:
		return s.startCall(t, r, body)
	}
}

// refuse closes the connection over a request that cannot be answered. Requests before it are answered first, as a client that reads its answers in order
// expects; those behind it are not looked at.
func (s *session) refuse(t *runtime.Turn, err error) {
	s.waiting.drop()
	s.close(t, err)
	s.reason = err
}

// write sends what can be sent.
func (s *session) write(t *runtime.Turn) {
	if s.mute {
		return
	}
	blocked := s.out.state
	if err := s.out.write(s.transport); err != nil {
		s.silence()
		s.close(t, ending(err))
		return
	}
	switch s.out.state {
	case outputBlocked:
		if blocked != outputBlocked {
			s.transport.WhenWritable()
		}
	case outputMore:
		if blocked != outputMore {
			_ = t.Send(s.self, signalProceed) // refused only when the session stops
		}
	case outputCold:
		if blocked != outputCold {
			s.shared.warm(t, s.self, s.out.cold)
		}
	case outputReady: // all of it is out
	}
}

// settle opens or closes the gate, and stops a session that has nothing left to do.
func (s *session) settle(t *runtime.Turn) {
	s.gate.set(s.closing || !s.waiting.empty() || s.out.state == outputBlocked || len(s.ops) >= overlapMax)
	s.owe(t)
	if s.closing && len(s.ops) == 0 && s.waiting.empty() && s.out.empty() {
		t.Stop()
	}
}

// owe keeps the memory of answers that the peer does not take on the account of the pool: as long as it is held, others are read less.
func (s *session) owe(t *runtime.Turn) {
	owed := int64(0)
	if !s.out.empty() {
		owed = s.out.memory()
	}
	if owed == 0 && s.debt.bytes == 0 {
		return
	}
	mono, _ := t.Now()
	s.shared.credit.owe(&s.debt, owed, mono)
}

// debtor hears when the pool wants the memory of a session's answers back.
type debtor struct{ session *session }

// creditGranted implements claimant: a debt never waits.
func (debtor) creditGranted() {}

// creditRevoked implements claimant.
func (d debtor) creditRevoked() { _ = d.session.self.Post(&hangup{reason: errWithheld, broken: true}) } // one that has stopped owes nothing

// Stopping implements runtime.Stopper: the session stops because everything is done, because of a bug, or because the broker does not wait any more.
func (s *session) Stopping(t *runtime.Turn) {
	s.stopping = true
	s.transport.Close()
	s.waiting.drop()
	s.out.drop()
	s.owe(t)
	s.gate.set(false)
	for _, op := range s.ops {
		op.hurry(t)
		if op.abandon() {
			op.recycle()
		}
	}
	s.ops = nil
	if s.reason != nil && !errors.Is(s.reason, io.EOF) && !errors.Is(s.reason, errDrained) {
		s.shared.closed(&s.client, s.reason)
	}
}

// Stopped implements runtime.Stopper. Operations that are still out let go of their requests when they land.
func (s *session) Stopped(t *runtime.Turn) {
	s.shared.facts.closed(t, &s.client)
	s.left()
}

// nextRequest gives a partition a name for something it will answer, unique among all that are open.
func (s *session) nextRequest() ident.RequestID {
	s.requests++
	if s.requests == 0 {
		s.requests = 1
	}
	return ident.RequestID(s.id<<32 | uint64(s.requests))
}

// beginAnswer appends the header of an answer to the output.
func (s *session) beginAnswer(r *request, sizeHint int) (at int, dst []byte) {
	dst = s.out.begin(sizeHint)
	return len(dst), wire.BeginResponse(dst, r.header.API, r.header.Version, r.header.CorrelationID)
}

// endAnswer ends the answer at dst[at:], to which regions of so many bytes belong.
func (s *session) endAnswer(at int, dst []byte, regions int64) error {
	err := wire.EndResponse(dst, at, regions)
	s.out.end(dst)
	return err
}
