package broker

import (
	"maps"
	"slices"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// heldAnswer is an answer that waits until what it says is committed.
type heldAnswer struct {
	to       inquiry
	after    uint64 // entries of the shard
	answer   coord.Answer
	deadline ident.Instant
}

// heldAnswers is a queue: after and deadline never fall from one to the next.
type heldAnswers struct {
	list []heldAnswer
	head int
}

func (h *heldAnswers) push(a heldAnswer) { h.list = append(h.list, a) }

func (h *heldAnswers) len() int { return len(h.list) - h.head }

func (h *heldAnswers) pop() heldAnswer {
	a := h.list[h.head]
	h.list[h.head] = heldAnswer{}
	h.head++
	if h.head == len(h.list) {
		h.list, h.head = h.list[:0], 0
	}
	return a
}

// release hands out the answers whose entries are committed.
func (h *heldAnswers) release(committed uint64, out func(inquiry, coord.Answer)) {
	for h.len() > 0 && h.list[h.head].after <= committed {
		a := h.pop()
		out(a.to, a.answer)
	}
}

// expire gives up the answers that have waited too long. What they would have said may become true all the same.
func (h *heldAnswers) expire(now ident.Instant, out func(inquiry)) {
	for h.len() > 0 && h.list[h.head].deadline <= now {
		out(h.pop().to)
	}
}

// deadline is that of the first.
func (h *heldAnswers) deadline() (ident.Instant, bool) {
	if h.len() == 0 {
		return 0, false
	}
	return h.list[h.head].deadline, true
}

// drop gives up all answers.
func (h *heldAnswers) drop(out func(inquiry)) {
	for h.len() > 0 {
		out(h.pop().to)
	}
	h.list = nil
}

// sortedIDs lists who waits in the order in which they asked.
func sortedIDs(parked map[ident.RequestID]inquiry) []ident.RequestID {
	return slices.Sorted(maps.Keys(parked))
}

// refusedNotAvailable answers, among others, what could not be committed in time. Kafka, too, says COORDINATOR_NOT_AVAILABLE where it means REQUEST_TIMED_OUT, which not all
// clients expect of a coordinator (CoordinatorOperationExceptionHelper.java).
var refusedNotAvailable = &coord.ErrorReply{Code: wire.CoordinatorNotAvailable}

// appendRefusal is what clients hear when an append failed with a code: look the coordinator up again, or try again.
func appendRefusal(code wire.ErrorCode) wire.ErrorCode {
	switch code {
	case wire.NotLeaderOrFollower, wire.FencedLeaderEpoch, wire.UnknownTopicOrPartition, wire.UnknownTopicID:
		return wire.NotCoordinator
	default: // a full disk, too few replicas, a replica offline: they may recover, and the coordinator stays here
		return wire.CoordinatorNotAvailable
	}
}
