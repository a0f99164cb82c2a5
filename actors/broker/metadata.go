package broker

import (
	"sync/atomic"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
)

// metadataActor publishes committed images. Root hears of each change first and makes the partitions reachable; then the image is published, for everybody
// to read without asking; then the answers of the controller leave that belong to it. So a client that hears "created", or reads of a topic, reaches it.
type metadataActor struct {
	image *atomic.Pointer[cluster.Image]
	root  *runtime.Ref
	// queue holds what came after a change that Root has not applied yet.
	queue    []runtime.Message
	applying bool
}

// Messages of the metadata actor.
type (
	// committed is one change of the metadata.
	committed struct {
		image *cluster.Image
		delta *cluster.Delta
	}
	// applied tells that Root has applied the change it was given.
	applied struct{}
	// settledReply is an answer of the controller, behind the changes that led to it.
	settledReply struct {
		answer func(cluster.Reply)
		reply  cluster.Reply
	}
)

// Bytes implements runtime.Message.
func (*committed) Bytes() int    { return 0 }
func (*applied) Bytes() int      { return 0 }
func (*settledReply) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (s *settledReply) Reject(err error) {
	s.answer(cluster.Reply{Request: s.reply.Request, Err: &cluster.Error{Code: wire.NotController, Message: "the broker stops: " + err.Error()}})
}

// Turn implements runtime.Behaviour.
func (m *metadataActor) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, msg := range batch {
		if _, ok := msg.(*applied); ok {
			m.publish(t)
			continue
		}
		m.queue = append(m.queue, msg)
	}
	m.goOn(t)
}

// goOn takes what is queued, up to a change, which Root applies first.
func (m *metadataActor) goOn(t *runtime.Turn) {
	for len(m.queue) > 0 && !m.applying {
		switch msg := m.queue[0].(type) {
		case *committed:
			m.applying = true
			_ = t.Send(m.root, msg) // Root is gone only when the broker stops
			return                  // it stays at the front until it is applied
		case *settledReply:
			msg.answer(msg.reply)
		default:
			panic("broker: the metadata actor got a message that it does not know")
		}
		m.shift()
	}
}

func (m *metadataActor) shift() {
	m.queue[0] = nil
	m.queue = m.queue[1:]
	if len(m.queue) == 0 {
		m.queue = nil
	}
}

// publish makes the image at the front of the queue the one that everybody reads.
func (m *metadataActor) publish(*runtime.Turn) {
	m.image.Store(m.queue[0].(*committed).image)
	m.applying = false
	m.shift()
}

// Stopping implements runtime.Stopper: answers that wait leave all the same.
func (m *metadataActor) Stopping(*runtime.Turn) {
	for _, msg := range m.queue {
		if r, ok := msg.(*settledReply); ok {
			r.answer(r.reply)
		}
	}
	m.queue = nil
}

// Stopped implements runtime.Stopper.
func (m *metadataActor) Stopped(*runtime.Turn) {}
