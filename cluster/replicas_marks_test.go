package cluster

import (
	"slices"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// What the model of replicas does with brokers that live, and of which a replica does not, or not quite.

// harm puts a replica out of service, finds it damaged, or fills its disk. The broker goes on, and says so until it is heard.
func (s *stage) harm(p *puppet, i int) {
	c := &p.copies[i]
	if c.mark == MarkOffline {
		return
	}
	if s.rng.Intn(2) == 0 {
		c.full = !c.full
		return
	}
	if c.mark++; s.rng.Intn(2) == 0 {
		c.mark = MarkOffline
	}
	if c.mark == MarkOffline {
		c.leading, c.pending = -1, nil
	}
	reached[[...]string{"", "damaged", "offline"}[c.mark]]++
}

// tellMarks tells the controller what it has not heard, again and again until an answer comes. An answer to an older word than the last says nothing of what
// the record has by now.
func (s *stage) tellMarks(p *puppet) {
	s.t.Helper()
	if p.image == nil || !p.registeredIn(p.image) {
		return
	}
	cmd := &MarkReplicas{Broker: p.id, Epoch: p.epoch}
	for i := range p.copies {
		if c := &p.copies[i]; (c.mark != c.marked || c.full != c.toldFull || c.told != nil) && s.partition(p.image, i).HasReplica(p.id) {
			cmd.Replicas = append(cmd.Replicas, ReplicaMark{ReplicaRef{ident.TopicID{7}, int32(i)}, c.mark, c.full})
			c.told = cmd
		}
	}
	if len(cmd.Replicas) == 0 {
		return
	}
	s.tell(&cmd.Ask, cmd, func(r Reply) {
		if r.Err != nil || p.epoch != cmd.Epoch {
			return
		}
		m := s.newest()
		for _, said := range cmd.Replicas {
			i := int(said.Partition)
			c := &p.copies[i]
			if c.told != cmd {
				continue
			}
			c.marked, c.toldFull, c.told = said.Mark, said.Full, nil
			reached["marked"]++
			part := s.partition(m, i)
			if said.Full && said.Mark != MarkOffline && p.registeredIn(m) && part.HasReplica(p.id) {
				reached["full"]++
				if !slices.Contains(part.Full, p.id) {
					s.t.Fatalf("partition %d: broker %d was heard to be full: %s", i, p.id, describePartition(part))
				}
			}
			if said.Mark == MarkOffline && p.registeredIn(m) && part.HasReplica(p.id) && (part.InSync(p.id) || !slices.Contains(part.Offline, p.id)) {
				s.t.Fatalf("partition %d: broker %d was heard to be out of service: %s", i, p.id, describePartition(part))
			}
		}
	})
}

// resign lets a leader ask for another one. Where there is none it leads on.
func (s *stage) resign(p *puppet, i int) {
	s.t.Helper()
	c, part := &p.copies[i], s.partition(p.image, i)
	cmd := &ChangeISR{Broker: p.id, Epoch: p.epoch, Partitions: []ISRChange{{
		Topic: ident.TopicID{7}, Partition: int32(i), LeaderEpoch: c.leading, PartitionEpoch: part.Epoch, Resign: true,
	}}}
	s.tell(&cmd.Ask, cmd, func(r Reply) {
		if r.Err != nil {
			return
		}
		switch got := r.Body.(*ChangeISRReply).Partitions[0]; {
		case got.Err == nil:
			reached["resigned"]++
			if got.Leader == p.id || got.Leader == ident.NoBroker || got.LeaderEpoch != cmd.Partitions[0].LeaderEpoch+1 || slices.Contains(got.ISR, p.id) {
				s.t.Fatalf("partition %d: broker %d resigned, and broker %d leads epoch %d with the ISR %v", i, p.id, got.Leader, got.LeaderEpoch, got.ISR)
			}
		case got.Err.Code == wire.EligibleLeadersNotAvailable:
			reached["cannot resign"]++
		}
	})
}
