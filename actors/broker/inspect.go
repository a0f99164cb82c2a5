package broker

import (
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Inspection lets a simulation look into a broker between two steps, when none of its actors runs: it reads their state without asking them. A World that
// carries one has it attached by Start. It costs production a nil check per turn of a partition, and of a coordinator.
type Inspection struct {
	shared     *shared
	controller *controllerActor
	partitions []*partitionActor // alive, in the order of their start
	turned     []*partitionActor // had a turn since the last Check
	decided    bool              // so had the controller

	coordinators []*coordinatorActor // alive, in the order of their start
	coordinated  []*coordinatorActor // had a turn since the last Coordinated
}

// PartitionState is what one hosted replica looks like.
type PartitionState struct {
	ident.TopicPartition
	ID          ident.TopicID
	LeaderEpoch ident.LeaderEpoch
	Offsets     partition.Offsets
	Serving     bool // it has its log; else the offsets mean nothing
}

// add and the other hooks are no-ops without an inspection.
func (i *Inspection) add(p *partitionActor) {
	if i != nil {
		i.partitions = append(i.partitions, p)
	}
}

func (i *Inspection) remove(p *partitionActor) {
	if i != nil {
		i.partitions = slices.DeleteFunc(i.partitions, func(q *partitionActor) bool { return q == p })
		i.turned = slices.DeleteFunc(i.turned, func(q *partitionActor) bool { return q == p })
	}
}

func (i *Inspection) turn(p *partitionActor) {
	if i != nil && !slices.Contains(i.turned, p) {
		i.turned = append(i.turned, p)
	}
}

func (i *Inspection) turnController() {
	if i != nil {
		i.decided = true
	}
}

// Check verifies the machines that had a turn since the last Check, and that shells, logs and published metadata agree with them. The error names the
// first broken invariant.
func (i *Inspection) Check() error {
	for _, p := range i.turned {
		if err := p.check(); err != nil {
			return fmt.Errorf("partition %s: %w", p.replica.tp, err)
		}
	}
	i.turned = i.turned[:0]
	if !i.decided {
		return nil
	}
	i.decided = false
	if v := i.controller.voter; v != nil {
		if err := v.Check(); err != nil {
			return fmt.Errorf("controller: %w", err)
		}
	}
	if published, committed := i.shared.image.Load().Index(), i.controller.image().Index(); published > committed {
		return fmt.Errorf("metadata: the image of index %d is published, %d is committed", published, committed)
	}
	return nil
}

// check verifies the machine, and that the log is where it believes.
func (p *partitionActor) check() error {
	if p.machine == nil {
		return nil
	}
	if err := p.machine.Check(); err != nil {
		return err
	}
	if p.file == nil || p.lent {
		return nil
	}
	o := p.machine.Offsets()
	if p.file.Start() != o.LogStart || p.file.End() != o.End || max(p.file.Flushed(), p.file.Start()) != o.Flushed {
		return fmt.Errorf("the log runs from %d to %d, flushed to %d; the machine believes %d to %d, flushed to %d",
			p.file.Start(), p.file.End(), p.file.Flushed(), o.LogStart, o.End, o.Flushed)
	}
	return nil
}

// Partitions lists the replicas that are hosted now, in the order of their start.
func (i *Inspection) Partitions() []PartitionState {
	var out []PartitionState
	for _, p := range i.partitions {
		s := PartitionState{TopicPartition: p.replica.tp, ID: p.replica.id, Serving: p.machine != nil && p.file != nil}
		if s.Serving {
			s.LeaderEpoch, s.Offsets = p.machine.LeaderEpoch(), p.machine.Offsets()
		}
		out = append(out, s)
	}
	return out
}

// Image is the newest committed metadata.
func (i *Inspection) Image() *cluster.Image { return i.controller.image() }

// Usage is what the clients of a broker take of it.
type Usage struct {
	Connections   int64 // sessions that live
	CreditBytes   int64 // of the request memory that are taken
	CreditWaiting int   // claims that wait for some
	SlotBusy      bool  // the reserved slot for a large frame is taken
	Parked        int   // requests that wait in partitions
}

// Usage counts what is taken now.
func (i *Inspection) Usage() Usage {
	c := i.shared.credit.use()
	u := Usage{Connections: i.shared.metrics.open.Load(), CreditBytes: c.UsedBytes, CreditWaiting: c.Waiting, SlotBusy: c.SlotBusy}
	for _, p := range i.partitions {
		u.Parked += len(p.parked) + len(p.waiting)
	}
	return u
}
