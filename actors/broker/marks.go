package broker

import (
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
)

// What the controller has to know of a replica whose broker lives: that it is out of service, so that another member leads and nobody waits for this one; or
// that records of it are damaged, or nothing can be appended to it, so that it leads only where nobody else can. The marks last as long as this run: the next one
// says anew what it finds.

// replicaMark is the state of a replica, for the controller.
type replicaMark struct {
	replica *replica
	cluster.ReplicaMark
}

// Bytes implements runtime.Message.
func (*replicaMark) Bytes() int { return 0 }

func (m *replicaMark) of() *replica { return m.replica }

// tellMark tells the controller of the replica, once for each change.
func (p *partitionActor) tellMark(t *runtime.Turn, m cluster.Mark) {
	p.tell(t, m, p.full && m != cluster.MarkOffline)
}

// tellFull tells the controller whether anything can be appended.
func (p *partitionActor) tellFull(t *runtime.Turn, full bool) { p.tell(t, p.condition, full) }

func (p *partitionActor) tell(t *runtime.Turn, m cluster.Mark, full bool) {
	if p.condition == m && p.full == full {
		return
	}
	p.condition, p.full = m, full
	_ = t.Send(p.shared.isr, &replicaMark{replica: p.replica, ReplicaMark: cluster.ReplicaMark{ // gone only when the broker stops
		ReplicaRef: cluster.ReplicaRef{Topic: p.replica.id, Partition: p.replica.tp.Partition}, Mark: m, Full: full,
	}})
}
