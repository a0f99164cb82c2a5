package broker

import "sync/atomic"

// frameQueue holds the requests of a session that were not begun. It keeps no memory when it is empty for long: a queue is short.
type frameQueue struct {
	frames []frame
	head   int
}

func (q *frameQueue) empty() bool { return q.head == len(q.frames) }

func (q *frameQueue) push(f frame) { q.frames = append(q.frames, f) }

func (q *frameQueue) front() frame { return q.frames[q.head] }

func (q *frameQueue) pop() {
	q.frames[q.head] = frame{}
	q.head++
	if q.empty() {
		q.frames, q.head = q.frames[:0], 0
	}
}

// drop lets go of all requests.
func (q *frameQueue) drop() {
	for !q.empty() {
		q.front().chunk.release()
		q.pop()
	}
}

// gate stops the reader of a connection while its session can take no more requests.
type gate struct {
	closed atomic.Bool
	opened chan struct{} // holds a token after an opening; nil: nobody waits
}

func newGate() *gate { return &gate{opened: make(chan struct{}, 1)} }

func (g *gate) set(closed bool) {
	if g.closed.Swap(closed) && !closed {
		select {
		case g.opened <- struct{}{}:
		default:
		}
	}
}

// wait returns when the gate is open.
func (g *gate) wait() {
	for g.closed.Load() {
		<-g.opened
	}
}
