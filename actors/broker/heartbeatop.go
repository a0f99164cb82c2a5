package broker

import (
	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// heartbeatOp is one Heartbeat request from its frame to its answer. Members of classic groups send nothing but heartbeats for most of their lives, always
// the same, on a connection of their own: so a session keeps one operation and its strings, and a steady heartbeat allocates nothing. It is the message to
// the coordinator too, and comes back as one.
type heartbeatOp struct {
	request
	handler.Heartbeat
	session *runtime.Ref
	out     bool // at the coordinator, or on its way back
	back    bool // on its way back
}

// Bytes implements runtime.Message.
func (*heartbeatOp) Bytes() int { return 0 }

// Reject implements runtime.Rejecter. On the way back nobody waits any more.
func (op *heartbeatOp) Reject(err error) {
	if op.back {
		op.frame.chunk.release()
		return
	}
	op.back = true
	op.Refuse(coordinatorRefusal(err))
	if err := op.session.Post(op); err != nil {
		return // Post has rejected op, which was all there was to do
	}
}

// asks implements inquiry.
func (op *heartbeatOp) asks() coord.Command { return &op.Command }

// stepped implements inquiry: it is used again.
func (*heartbeatOp) stepped() {}

// answered implements inquiry.
func (op *heartbeatOp) answered(t *runtime.Turn, a coord.Answer) {
	op.back = true
	op.Answer(a)
	_ = t.Send(op.session, op) // Reject lets go
}

// startHeartbeat begins a Heartbeat request.
func (s *session) startHeartbeat(t *runtime.Turn, r request, body []byte) (operation, error) {
	op := s.heart
	if op == nil {
		op = &heartbeatOp{session: s.self}
		s.heart = op
	}
	if err := op.Decode(r.header.Version, body); err != nil {
		return nil, err
	}
	op.request, op.out, op.back = r, true, false
	ref, code := s.shared.coordinator(op.Command.Group)
	if code != wire.NoError {
		op.Code, op.out = code, false
		return op, nil
	}
	_ = t.Send(ref, op) // Reject answers
	return op, nil
}

// granted takes in an answer.
func (s *session) granted(op *heartbeatOp) { op.out = false }

// ready implements operation.
func (op *heartbeatOp) ready() bool { return !op.out }

// overlaps implements operation.
func (op *heartbeatOp) overlaps() bool { return false }

// hurry implements operation: it is answered when it is.
func (op *heartbeatOp) hurry(*runtime.Turn) {}

// abandon implements operation.
func (op *heartbeatOp) abandon() bool { return op.ready() }

// encode implements operation.
func (op *heartbeatOp) encode(s *session) error {
	if !s.shared.leasedNow() {
		op.Refuse(wire.NotCoordinator) // see leaving
	}
	at, dst := s.beginAnswer(&op.request, outputMin)
	return s.endAnswer(at, op.AppendTo(dst, op.header.Version), 0)
}

// recycle implements operation.
func (op *heartbeatOp) recycle() {
	op.frame.chunk.release()
	op.request = request{}
}
