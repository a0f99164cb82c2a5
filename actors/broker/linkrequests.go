package broker

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// linkRequestsMax is how many requests of one link may be unanswered.
const linkRequestsMax = 4096

// errLinkLate says that the other broker has not answered in time. What was asked for may have been done all the same.
var errLinkLate = errors.New("the other broker did not answer in time")

// errLinkBusy says that too many requests to the other broker are unanswered.
var errLinkBusy = errors.New("too many requests to the other broker are unanswered")

// linkResponse is what came of a request.
type linkResponse struct {
	err  error // there is no answer: the link has ended, or it was too late; what was asked for may have been done
	code wire.ErrorCode
	text string
	body []byte // the callee's
}

// linkRequest asks something of the other broker. Body is not changed any more.
type linkRequest struct {
	body []byte
	wait time.Duration
	// answer is called once, from anywhere, and may only enqueue.
	answer func(linkResponse)

	id  uint64
	due ident.Instant
}

// Bytes implements runtime.Message.
func (m *linkRequest) Bytes() int { return len(m.body) }

// Reject implements runtime.Rejecter.
func (m *linkRequest) Reject(err error) { m.answer(linkResponse{err: err}) }

// say implements outgoing.
func (m *linkRequest) say(l *linkActor) {
	q := &l.requests
	if n := len(m.body); n > peer.RequestMax {
		m.answer(linkResponse{code: wire.InvalidRequest, text: fmt.Sprintf(
			"it takes %d bytes on its way to the controller, broker %d, and at most %d get there: ask that broker itself, or for less at a time", n, l.info.peer.Broker, peer.RequestMax)})
		return
	}
	if len(q.open) >= linkRequestsMax {
		m.Reject(errLinkBusy)
		return
	}
	m.due = l.now + ident.Instant(m.wait)
	q.last++
	m.id = q.last
	q.open = append(q.open, m)
	if len(m.body) <= peer.PieceMax {
		l.append(m.piece(0))
	} else {
		q.large = append(q.large, m)
	}
	if q.armed == 0 || m.due < q.armed {
		q.armed = m.due
		q.timer.Reset(m.wait)
	}
}

// piece is what of the request goes into one frame.
func (m *linkRequest) piece(from int) *peer.Request {
	return &peer.Request{
		ID: m.id, DeadlineMs: int32(min(m.wait.Milliseconds(), 1<<31-1)), Offset: uint64(from), Total: uint64(len(m.body)),
		Body: m.body[from:min(len(m.body), from+peer.PieceMax)],
	}
}

// linkRequests are the requests of a link that are not answered.
type linkRequests struct {
	last  uint64
	open  []*linkRequest // by id, rising
	timer *runtime.Timer
	armed ident.Instant // when the timer goes off; 0: it is not armed

	large []*linkRequest // larger than a piece, to be sent, so that what is urgent goes between; the first may be partly
	sent  int            // bytes of that
	in    linkPieces     // of the other side's
}

func (q *linkRequests) start(t *runtime.Turn, held *atomic.Int64) {
	q.timer = t.NewTimer(signalDue)
	q.in = linkPieces{what: "request", max: peer.RequestMax, held: held}
}

// piece appends the next piece of the first large request, and says whether there was one. One that was given up meanwhile is sent all the same: the other side
// would miss the rest.
func (q *linkRequests) piece(l *linkActor) bool {
	if len(q.large) == 0 {
		return false
	}
	m := q.large[0]
	p := m.piece(q.sent)
	l.append(p)
	if q.sent += len(p.Body); q.sent == len(m.body) {
		q.large[0] = nil
		q.large, q.sent = q.large[1:], 0
	}
	return true
}

// answered passes on an answer; one that is too late has nobody.
func (q *linkRequests) answered(m *peer.Response) {
	i, ok := slices.BinarySearchFunc(q.open, m.ID, func(r *linkRequest, id uint64) int { return cmp.Compare(r.id, id) })
	if !ok {
		return
	}
	r := q.open[i]
	q.open = slices.Delete(q.open, i, i+1)
	r.answer(linkResponse{code: m.Result, text: m.Text, body: bytes.Clone(m.Body)})
}

// expire gives up what has waited long enough.
func (q *linkRequests) expire(t *runtime.Turn) {
	now, _ := t.Now()
	q.armed = 0
	q.open = slices.DeleteFunc(q.open, func(r *linkRequest) bool {
		if r.due <= now {
			r.answer(linkResponse{err: errLinkLate})
			return true
		}
		if q.armed == 0 || r.due < q.armed {
			q.armed = r.due
		}
		return false
	})
	if q.armed != 0 {
		q.timer.Reset(time.Duration(q.armed - now))
	}
}

// fail gives up all of them.
func (q *linkRequests) fail(reason error) {
	open := q.open
	q.open, q.large, q.sent = nil, nil, 0
	for _, r := range open {
		r.answer(linkResponse{err: reason})
	}
}
