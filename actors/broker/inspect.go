package broker

import (
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// Inspection lets a simulation look into a broker between two steps, when none of its actors runs: it reads their state without asking them. A World that
// carries one has it attached by Start. It costs production a nil check per turn of a partition, and of a coordinator.
type Inspection struct {
	shared     *shared
	controller *controllerActor
	partitions []*partitionActor // alive, in the order of their start
	hosted     map[*partitionActor]int
	replicas   int               // that were hosted so far
	turned     []*partitionActor // had a turn since the last Check
	closed     []PartitionState  // see Closed
	decided    bool              // so had the controller

	coordinators []*coordinatorActor // alive, in the order of their start
	coordinated  []*coordinatorActor // had a turn since the last Coordinated
}

// PartitionState is what one hosted replica looks like.
type PartitionState struct {
	ident.TopicPartition
	ID          ident.TopicID
	LeaderEpoch ident.LeaderEpoch
	Leads       bool // this broker leads it, as far as it knows
	Offsets     partition.Offsets
	Serving     bool // it has its log; else the offsets mean nothing
	Lent        bool // its log is being cut or replaced
	Hosted      int  // how many replicas this process had hosted with it: one that is moved away and comes back is another
}

// Batch is one batch in the log of a replica.
type Batch struct {
	Base, Last ident.Offset
	Epoch      ident.LeaderEpoch
	CRC        uint32
}

// add and the other hooks are no-ops without an inspection.
func (i *Inspection) add(p *partitionActor) {
	if i != nil {
		if i.hosted == nil {
			i.hosted = make(map[*partitionActor]int)
		}
		i.replicas++
		i.hosted[p] = i.replicas
		i.partitions = append(i.partitions, p)
	}
}

func (i *Inspection) remove(p *partitionActor) {
	if i != nil {
		i.partitions = slices.DeleteFunc(i.partitions, func(q *partitionActor) bool { return q == p })
		i.turned = slices.DeleteFunc(i.turned, func(q *partitionActor) bool { return q == p })
		delete(i.hosted, p)
	}
}

func (i *Inspection) turn(p *partitionActor) {
	if i != nil && !slices.Contains(i.turned, p) {
		i.turned = append(i.turned, p)
	}
}

func (i *Inspection) close(p *partitionActor) {
	if i != nil {
		i.closed = append(i.closed, i.state(p))
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
	if p.file == nil || p.lent || p.machine.Cutting() {
		return nil // a full disk refuses to cut, too
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
		out = append(out, i.state(p))
	}
	return out
}

// Turned lists those that had a turn since the last Check.
func (i *Inspection) Turned() []PartitionState {
	var out []PartitionState
	for _, p := range i.turned {
		out = append(out, i.state(p))
	}
	return out
}

// Closed lists the replicas whose logs are closed since the broker stops, as they were then: the turn that closes a log may have done more with it before.
func (i *Inspection) Closed() []PartitionState { return i.closed }

func (i *Inspection) state(p *partitionActor) PartitionState {
	s := PartitionState{TopicPartition: p.replica.tp, ID: p.replica.id, Serving: p.machine != nil && p.file != nil, Lent: p.lent, Hosted: i.hosted[p]}
	if s.Serving {
		s.LeaderEpoch, s.Offsets, s.Leads = p.machine.LeaderEpoch(), p.machine.Offsets(), p.machine.Role() == partition.Leading
	}
	return s
}

// Batches appends the batches that a replica hosted here has from an offset on, as its log reads them.
func (i *Inspection) Batches(dst []Batch, id ident.TopicID, number int32, from ident.Offset) ([]Batch, error) {
	for _, p := range i.partitions {
		if p.replica.id != id || p.replica.tp.Partition != number || p.file == nil || p.lent {
			continue
		}
		for end := p.file.End(); from < end; {
			r, err := p.file.Read(from, end, 1<<20, true)
			if err != nil {
				return dst, err
			}
			if r.Len() == 0 {
				break
			}
			b := make([]byte, r.Len())
			if n := copy(b, r.Mapped()); n == 0 {
				_, err = r.ReadAt(b, 0)
			}
			from = r.Next()
			r.Release()
			for len(b) > 0 && err == nil {
				var v record.View
				if v, b, err = record.Split(b); err == nil {
					dst = append(dst, Batch{Base: v.BaseOffset(), Last: v.LastOffset(), Epoch: v.LeaderEpoch(), CRC: v.CRC()})
				}
			}
			if err != nil {
				return dst, err
			}
		}
	}
	return dst, nil
}

// Image is the newest committed metadata.
func (i *Inspection) Image() *cluster.Image { return i.controller.image() }

// Epoch is that of this run's registration, as soon as the broker has heard of it.
func (i *Inspection) Epoch() ident.BrokerEpoch { return ident.BrokerEpoch(i.shared.epoch.Load()) }

// Controls tells that this broker is the controller, as far as it knows.
func (i *Inspection) Controls() bool {
	return i.controller.voter != nil && i.controller.voter.Leading()
}

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
