package broker

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire"
)

// callOp is a request that a handler of the handler package answers: every API but Produce, Fetch and Heartbeat.
type callOp struct {
	request
	call     handler.Call
	session  *session
	response kmsg.Response
	closed   error // the handler closes the connection instead
	done     bool
}

// startCall begins a request with its handler.
func (s *session) startCall(t *runtime.Turn, r request, body []byte) (operation, error) {
	answer := handler.For(int16(r.header.Key))
	if answer == nil {
		return nil, &wire.UnsupportedError{Key: r.header.Key, Version: r.header.Version}
	}
	decoded, err := wire.DecodeBody(r.header.Key, r.header.Version, body)
	if err != nil {
		return nil, err
	}
	return s.run(t, r, answer, decoded), nil
}

// startUnknownApiVersions answers an ApiVersions request of a version that is not known as the handler answers version 0, whose body every client reads.
func (s *session) startUnknownApiVersions(r request) operation {
	r.header.Version = 0
	return &callOp{request: r, session: s, response: handler.UnsupportedApiVersions(), done: true}
}

func (s *session) run(t *runtime.Turn, r request, answer handler.Func, decoded kmsg.Request) *callOp {
	mono, wall := t.Now()
	op := &callOp{request: r, session: s}
	op.call = handler.Call{
		Key: int16(r.header.Key), Version: r.header.Version, Correlation: r.header.CorrelationID, Request: decoded, Client: &s.client,
		Env: &handler.Env{
			Broker: s.shared.identity.Broker, Cluster: s.shared.clusterID(), Image: s.shared.image.Load(), Static: s.shared.static,
			Now: handler.Now{Mono: mono, Wall: wall}, Ports: &s.ports,
		},
	}
	op.call.Begin(op)
	s.ports.turn = t
	answer(&op.call)
	s.ports.turn = nil
	if waitsForMembers(r.header.Key) {
		op.letGo()
	}
	return op
}

// waitsForMembers tells whether an answer can take as long as a rebalance does.
func waitsForMembers(k wire.Key) bool { return k == wire.KeyJoinGroup || k == wire.KeySyncGroup }

// letGo gives the memory of the request back, with its credit, long before the answer: members that wait for others must not keep those out. Their commands
// have copies of what they need.
func (op *callOp) letGo() {
	op.call.Request, op.header.ClientID = nil, nil
	op.frame.chunk.release()
	op.frame = frame{}
}

// Respond implements handler.Outcome.
func (op *callOp) Respond(_ *handler.Call, response kmsg.Response) {
	op.response, op.done = response, true
}

// Close implements handler.Outcome.
func (op *callOp) Close(_ *handler.Call, reason error) {
	op.closed, op.done = reason, true
}

func (op *callOp) ready() bool { return op.done }

// overlaps implements operation: commits of offsets, like records, wait for the disk, and those that come together can wait together. The mailbox of their
// coordinator keeps their order.
func (op *callOp) overlaps() bool { return op.header.Key == wire.KeyOffsetCommit }

func (op *callOp) encode(s *session) error {
	if op.closed != nil {
		return op.closed
	}
	if op.response == nil {
		return s.reason // given up by hurry: nothing that follows can be answered either
	}
	at, dst := s.beginAnswer(&op.request, outputMin)
	return s.endAnswer(at, op.response.AppendTo(dst), 0)
}

// hurry implements operation: a handler asks for what does not take long, but for what waits for other members of a group. Nobody waits for that any more.
func (op *callOp) hurry(*runtime.Turn) {
	op.done = op.done || op.session.closing && waitsForMembers(op.header.Key)
}

// abandon implements operation. No answer function runs any more, so that nobody looks at the request.
func (op *callOp) abandon() bool { return true }

func (op *callOp) recycle() {
	if op.frame.chunk != nil {
		op.frame.chunk.release()
	}
}
