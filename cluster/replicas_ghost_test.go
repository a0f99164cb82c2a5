package cluster

import (
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// What the model of replicas checks: the ghost log of what was committed, against the newest metadata.

// newest is the newest image that any voter has published.
func (s *stage) newest() *Image {
	m := s.seen
	for _, n := range s.nodes {
		if n.image != nil && (m == nil || n.image.Index() > m.Index()) {
			m = n.image
		}
	}
	return m
}

// check looks at the newest metadata.
func (s *stage) check() {
	s.t.Helper()
	m := s.newest()
	if m == s.seen || m == nil {
		return
	}
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
	}
	s.seen = m
}

// registered: what was lost is out of the sets from here on.
func (s *stage) registered(p *puppet, m *Image) {
	s.t.Helper()
	for i := range p.copies {
		c, part := &p.copies[i], s.partition(m, i)
		if c.lossy && !slices.Contains(part.Unverified, p.id) && (part.InSync(p.id) || slices.Contains(part.ELR, p.id)) {
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

// checkElection forgets what a declared loss took.
func (s *stage) checkElection(m *Image, i int) {
	s.t.Helper()
	old, now := s.partition(s.seen, i), s.partition(m, i)
	if now.LeaderEpoch < old.LeaderEpoch || now.Epoch < old.Epoch {
		s.t.Fatalf("partition %d went back from %s to %s", i, describePartition(old), describePartition(now))
	}
	if now.LeaderEpoch == old.LeaderEpoch || now.Leader == ident.NoBroker {
		return
	}
	if now.Election == ElectionClean {
		return
	}
	if now.Election == ElectionPossibleLoss {
		s.checkFarthest(old, now.Leader, i)
	}
	reached["declared losses"]++
	s.uncl[i] = now.LeaderEpoch
	c, g := &s.puppets[now.Leader-1].copies[i], s.ghost[i]
	n := 0
	for n < min(len(c.log), len(g)) && c.log[n] == g[n] {
		n++
	}
	s.ghost[i] = g[:n:n]
}

// checkFarthest: where nobody was whole, the one that reaches farthest leads, of all who could have led.
func (s *stage) checkFarthest(old *Partition, leader ident.BrokerID, i int) {
	s.t.Helper()
	reach := func(b ident.BrokerID) *Report {
		c := &s.puppets[b-1].copies[i]
		r := &Report{LastEpoch: ident.NoLeaderEpoch, End: ident.Offset(len(c.log))}
		if len(c.log) > 0 {
			r.LastEpoch = c.log[len(c.log)-1].epoch
		}
		return r
	}
	for _, b := range old.LastKnownELR {
		if reach(b).compare(reach(leader)) > 0 {
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
