package broker

import (
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire/ident"
)

// handOver asks the seat of a broker that stops to give up the controller, if it is here. done is told once: somebody else is the controller, or nobody could
// take over in time.
type handOver struct{ done func() }

// Bytes implements runtime.Message.
func (*handOver) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (m *handOver) Reject(error) { m.done() }

// handOverMax bounds the wait for a successor. Raft gives up after an election timeout, a second; then its successor has to be elected.
const handOverMax = ident.Instant(3 * time.Second)

// handingOver is under way while done is not nil.
type handingOver struct {
	done  func()
	until ident.Instant
}

// beginHandOver resigns. The successor acts after a few round trips; without that the others would have to notice that this broker is gone first, and elect.
func (c *controllerActor) beginHandOver(t *runtime.Turn, m *handOver) {
	if !c.leads() {
		m.done()
		return
	}
	now, _ := t.Now()
	c.handing = handingOver{done: m.done, until: now + handOverMax}
	c.step(t, &cluster.Resign{})
}

// lookAfterHandOver ends it when somebody else is the controller: until then this voter's word may be needed for that.
func (c *controllerActor) lookAfterHandOver(t *runtime.Turn) {
	if c.handing.done == nil {
		return
	}
	now, _ := t.Now()
	leader := c.leader()
	over := leader != ident.NoBroker && leader != c.shared.identity.Broker
	if !over && now < c.handing.until && (!c.leads() || c.voter.HandingOver()) {
		return
	}
	c.handing.done()
	c.handing = handingOver{}
}
