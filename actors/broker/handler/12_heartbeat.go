package handler

import (
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// Heartbeat (12), versions 0 to 4.
//
// As in Kafka: while a coordinator loads its groups, every heartbeat is granted: a member's group is not lost, only not read yet, and
// COORDINATOR_LOAD_IN_PROGRESS would end a Java consumer with an exception.

// Heartbeat is one heartbeat of a member of a classic group, from the request to the answer. It is used again and again: members send the same for most of
// their lives, and what a heartbeat has in common with the one before is not copied again. The operation that waits for the coordinator is in the broker
// package.
type Heartbeat struct {
	Command coord.Heartbeat
	Code    wire.ErrorCode

	body wire.HeartbeatRequest
}

// Decode reads a request.
func (h *Heartbeat) Decode(version int16, body []byte) error {
	if err := h.body.Decode(version, body); err != nil {
		return err
	}
	h.Command.Generation = h.body.Generation
	keep(&h.Command.Group, h.body.Group)
	keep(&h.Command.Member, h.body.Member)
	keep(&h.Command.Instance, h.body.Instance)
	h.Code = wire.NoError
	return nil
}

// keep makes a string of bytes, which it mostly is already.
func keep(s *string, b []byte) {
	if *s != string(b) {
		*s = string(b)
	}
}

// Answer takes the coordinator's answer.
func (h *Heartbeat) Answer(a coord.Answer) {
	answerOf(a, func(a *coord.HeartbeatReply) { h.Code = a.Code }, h.Refuse)
}

// Refuse takes what a coordinator that cannot take the request says.
func (h *Heartbeat) Refuse(code wire.ErrorCode) {
	if code == wire.CoordinatorLoadInProgress {
		code = wire.NoError
	}
	h.Code = code
}

// AppendTo appends the body of the response.
func (h *Heartbeat) AppendTo(dst []byte, version int16) []byte {
	return wire.AppendHeartbeatResponse(dst, version, h.Code)
}
