package cluster

import (
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// What people do in the model of replicas: reassignments among it.

// operate is what people do meanwhile: other configs, elections, a stop in order.
func (s *stage) operate() {
	s.t.Helper()
	switch s.rng.Intn(9) {
	case 5, 6, 7, 8:
		s.reassign()
	case 0, 1:
		name, value := "min.insync.replicas", fmt.Sprint(1+s.rng.Intn(3))
		if s.rng.Intn(4) == 0 {
			name, value = "write.caching", fmt.Sprint(s.rng.Intn(2) == 0)
		}
		cmd := &IncrementalAlterConfigs{Resources: []ConfigChange{{Resource: topicResource("t"), Ops: []ConfigOp{{Name: name, Op: OpSet, Value: &value}}}}}
		s.tell(&cmd.Ask, cmd, func(Reply) { reached["configs"]++ })
	case 2, 3:
		cmd := &ElectLeaders{All: true, Unclean: s.rng.Intn(6) == 0}
		s.tell(&cmd.Ask, cmd, func(Reply) { reached["asked elections"]++ })
	case 4:
		p := s.puppets[s.rng.Intn(len(s.puppets))]
		p.leaves = p.up && p.epoch != 0
	}
}

// reassign asks for a random move of a partition, or takes one back.
func (s *stage) reassign() {
	s.t.Helper()
	want := Reassignment{PartitionRef: PartitionRef{"t", int32(s.rng.Intn(stagePartitions))}}
	if s.rng.Intn(3) > 0 {
		for _, at := range s.rng.Perm(len(s.puppets))[:2+s.rng.Intn(2)] { // of a lone replica, whatever is left of it is what there is
			want.Replicas = append(want.Replicas, s.puppets[at].id)
		}
		s.targets[want.Partition] = append(s.targets[want.Partition], want.Replicas)
	}
	cmd := &AlterReassignments{Partitions: []Reassignment{want}}
	s.tell(&cmd.Ask, cmd, func(r Reply) {
		if r.Err != nil || r.Body.(*AlterReassignmentsReply).Partitions[0].Err != nil {
			return
		}
		reached["moves"]++
		if want.Replicas == nil {
			reached["moves cancelled"]++
		}
	})
}

// checkMove: replicas go only when all who stay have what was committed, and are who was asked for, be it in this very record; or when a move is taken back and
// the old ones have it; never the last that has it. A full one of those who stay is let out of the ISR again in the same record.
func (s *stage) checkMove(old, now *Partition, i int) {
	s.t.Helper()
	removed := except(old.Replicas, now.Replicas)
	if len(removed) == 0 {
		return
	}
	reached["moves done"]++
	if now.Reassigning() {
		s.t.Fatalf("partition %d: %v are gone while replicas are being moved: %s", i, removed, describePartition(now))
	}
	asked := slices.ContainsFunc(s.targets[i], func(target []ident.BrokerID) bool { return slices.Equal(target, now.Replicas) })
	done := asked && len(except(except(now.Replicas, now.ISR), now.Full)) == 0
	back := len(except(now.Replicas, old.Replicas)) == 0 && len(except(old.Adding, removed)) == 0
	if !done && !back {
		s.t.Fatalf("partition %d: from %s to %s", i, describePartition(old), describePartition(now))
	}
	if old.Leader != ident.NoBroker && now.Leader == ident.NoBroker && !slices.Contains(now.ELR, old.Leader) {
		s.t.Fatalf("partition %d: broker %d led, and nobody does after a move: %s", i, old.Leader, describePartition(now))
	}
}
