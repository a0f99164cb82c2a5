package cluster

import (
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// What the model of replicas checks: the ghost log of what was committed, against the newest metadata.

// newest is the newest image that any voter has published.
func (s *stage) newest() *Image { return s.images[len(s.images)-1] }

// check looks at the metadata, one image after the other.
func (s *stage) check() {
	s.t.Helper()
	for _, m := range s.images[s.looked:] {
		s.looked++
		s.look(m)
	}
}

func (s *stage) look(m *Image) {
	s.t.Helper()
	if t, ok := m.Topic("t"); !ok || len(t.Partitions) != stagePartitions {
		return
	}
	for _, p := range s.puppets {
		b, ok := m.Broker(p.id)
		if ok && s.seen != nil {
			if old, known := s.seen.Broker(p.id); known && old.Epoch != b.Epoch && p.up && b.Incarnation[0] == p.run { // what died meanwhile may lose more
				s.registered(p, m)
			}
		}
	}
	for i := range stagePartitions {
		if s.seen != nil {
			s.checkElection(m, i)
		}
		s.checkSets(m, i)
		s.stillServes(s.partition(m, i), i)
	}
	s.seen = m
}

// registered: what was lost is out of the sets from here on.
func (s *stage) registered(p *puppet, m *Image) {
	s.t.Helper()
	for i := range p.copies {
		c, part := &p.copies[i], s.partition(m, i)
		if c.lossy && !c.late && !slices.Contains(part.Unverified, p.id) && (part.InSync(p.id) || slices.Contains(part.ELR, p.id)) {
			s.t.Fatalf("broker %d lost records of partition %d, registered again and is in ISR %v or ELR %v", p.id, i, part.ISR, part.ELR)
		}
	}
}

// holds tells whether a replica has everything that is committed.
func (s *stage) holds(b ident.BrokerID, i int) bool {
	c := &s.puppets[b-1].copies[i]
	g := s.ghost[i]
	return len(c.log) >= len(g) && slices.Equal(c.log[:len(g)], g)
}

// service is what a leader that really came to lead could commit with.
type service struct {
	epoch ident.LeaderEpoch
	by    []ident.BrokerID // ISR ∪ ELR of the newest record that it is known to have heard, and of all behind it; nil: nobody ever led
}

// serves notes that a leader has heard that it leads.
func (s *stage) serves(part *Partition, i int) {
	if v := &s.served[i]; v.by == nil || part.LeaderEpoch >= v.epoch {
		*v = service{part.LeaderEpoch, append(slices.Clone(part.ISR), part.ELR...)}
	}
	s.stillServes(s.partition(s.newest(), i), i)
}

// heard notes what a heartbeat told the controller: its broker leads what its image says, a partition too that it cannot open.
func (s *stage) heard(p *puppet) {
	n := s.controller()
	if n == nil || p.image == nil || !p.registeredIn(p.image) {
		return
	}
	if told, ok := n.c.sessions[p.id]; !ok || !told.alive || told.applied < p.image.Index() {
		return
	}
	for i := range p.copies {
		if part := s.partition(p.image, i); part.Leader == p.id {
			s.serves(part, i)
		}
	}
}

// stillServes takes in another record under which the same leader leads. Until it has heard of it, it commits nothing that those lack who could take its place before.
func (s *stage) stillServes(part *Partition, i int) {
	if v := &s.served[i]; v.by != nil && part.LeaderEpoch == v.epoch && part.Leader != ident.NoBroker {
		for _, b := range slices.Concat(part.ISR, part.ELR) {
			if !slices.Contains(v.by, b) {
				v.by = append(v.by, b)
			}
		}
	}
}

// checkElection forgets what a declared loss took: all that the new leader does not have on stable storage. It never reported the rest, so its broker may come
// back without it and as whole as before.
func (s *stage) checkElection(m *Image, i int) {
	s.t.Helper()
	old, now := s.partition(s.seen, i), s.partition(m, i)
	s.checkMove(old, now, i)
	if now.LeaderEpoch < old.LeaderEpoch || now.Epoch < old.Epoch {
		s.t.Fatalf("partition %d went back from %s to %s", i, describePartition(old), describePartition(now))
	}
	switch {
	case now.Leader == ident.NoBroker:
		return
	case now.Leader == old.Leader: // another write mode, or fewer replicas, begin an epoch too: the record still tells of the election before
		if v := &s.served[i]; v.by != nil && v.epoch == old.LeaderEpoch {
			v.epoch = now.LeaderEpoch
		}
		return
	case now.Election == ElectionClean:
		return
	}
	if now.Election == ElectionPossibleLoss && s.puppets[now.Leader-1].registeredIn(m) { // who died after its report may have lost more
		s.checkFarthest(old, now.Leader, i)
	}
	if now.Election == ElectionUnclean { // whoever asked for it does without what the others have
		s.served[i] = service{now.LeaderEpoch, []ident.BrokerID{now.Leader}}
	}
	reached["declared losses"]++
	s.uncl[i] = now.LeaderEpoch
	c, g := &s.puppets[now.Leader-1].copies[i], s.ghost[i]
	n := 0
	for n < min(c.flushed, len(g)) && c.log[n] == g[n] {
		n++
	}
	s.ghost[i] = g[:n:n]
}

// checkFarthest: where nobody was whole, the one that reaches farthest leads, of all who were in the sets of the record and of the last leader that came to
// lead. One that was elected and never heard of it has committed nothing.
func (s *stage) checkFarthest(old *Partition, leader ident.BrokerID, i int) {
	s.t.Helper()
	if c := &s.puppets[leader-1].copies[i]; c.flushed < len(c.log) {
		s.t.Fatalf("partition %d: broker %d was elected by its report, of which only %d of %d batches are durable", i, leader, c.flushed, len(c.log))
	}
	reach := func(b ident.BrokerID) *Report {
		c := &s.puppets[b-1].copies[i]
		return &Report{LastEpoch: c.lastEpoch(), End: ident.Offset(len(c.log))}
	}
	for _, b := range append(slices.Clone(old.LastKnownELR), s.served[i].by...) {
		if old.HasReplica(b) && reach(b).compare(reach(leader)) > 0 {
			s.t.Fatalf("partition %d: broker %d leads and reaches %v, broker %d reaches %v: %s", i, leader, *reach(leader), b, *reach(b), describePartition(old))
		}
		reached["compared"]++
	}
}

// checkSets holds ISR and ELR against the ghost (CandidateCompleteness): whoever is in them, and did not lose what it had said it has, has everything.
func (s *stage) checkSets(m *Image, i int) {
	s.t.Helper()
	part := s.partition(m, i)
	for _, b := range append(slices.Clone(part.ISR), part.ELR...) {
		if c := &s.puppets[b-1].copies[i]; !c.lossy && !s.holds(b, i) {
			s.t.Fatalf("partition %d: broker %d is in ISR or ELR and has %v of %v committed: %s", i, b, c.log, s.ghost[i], describePartition(part))
		}
	}
	for _, b := range part.ISR {
		if broker, ok := m.Broker(b); !ok || !broker.active() {
			s.t.Fatalf("partition %d: broker %d is in the ISR and not live", i, b)
		}
	}
	if len(part.ISR) >= int(part.MinISR) && len(part.ELR) > 0 {
		s.t.Fatalf("partition %d has an ELR beside a full ISR: %s", i, describePartition(part))
	}
}
