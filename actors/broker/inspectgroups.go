package broker

import (
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// CoordinatorState is what one coordinator looks like.
type CoordinatorState struct {
	ident.TopicPartition      // of __consumer_offsets
	Serving              bool // it has a shard
	Settled              bool // and everything that the shard has proposed is committed
	coordinator          *coordinatorActor
}

// Entries is the hard state of the shard, as group.Shard.Entries tells it.
func (s *CoordinatorState) Entries() []records.Entry { return s.coordinator.shard.Entries() }

// Check verifies the machines of the shard.
func (s *CoordinatorState) Check() error {
	if err := s.coordinator.shard.Check(); err != nil {
		return fmt.Errorf("coordinator of %s: %w", s.TopicPartition, err)
	}
	return nil
}

// addCoordinator and the other hooks are no-ops without an inspection.
func (i *Inspection) addCoordinator(c *coordinatorActor) {
	if i != nil {
		i.coordinators = append(i.coordinators, c)
	}
}

func (i *Inspection) removeCoordinator(c *coordinatorActor) {
	if i != nil {
		i.coordinators = slices.DeleteFunc(i.coordinators, func(d *coordinatorActor) bool { return d == c })
	}
}

func (i *Inspection) turnCoordinator(c *coordinatorActor) {
	if i != nil && !slices.Contains(i.coordinated, c) {
		i.coordinated = append(i.coordinated, c)
	}
}

// Coordinated lists the coordinators that had a turn since the last call, and are still there.
func (i *Inspection) Coordinated() []CoordinatorState {
	if len(i.coordinated) == 0 {
		return nil
	}
	var out []CoordinatorState
	for _, c := range i.coordinated {
		if slices.Contains(i.coordinators, c) {
			s := CoordinatorState{TopicPartition: c.replica.tp, Serving: c.state == coordinatorServing, coordinator: c}
			s.Settled = s.Serving && !c.writing && len(c.pending) == 0
			out = append(out, s)
		}
	}
	i.coordinated = i.coordinated[:0]
	return out
}
