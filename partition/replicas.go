package partition

import (
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// replica is what the leader knows of one assigned replica.
type replica struct {
	Replica
	inISR   bool // in the committed ISR
	pending bool // its addition is proposed; never together with inISR

	// What a follower reported in this leader epoch; ident.NoOffset: nothing yet.
	// flushed <= end, except that a report may lower neither.
	end        ident.Offset
	flushed    ident.Offset
	generation ident.Generation
}

// replicaSet is the assignment and how far everybody is.
type replicaSet struct {
	all     []replica // in order of assignment
	isrSize int32     // committed members
	// proposed is set while a larger ISR waits for the controller's word.
	proposed bool
}

// assign takes over the metadata record. Reports of followers survive a change
// inside a leader epoch; a new epoch starts without any. A proposal ends either way:
// the record carries its outcome.
func (s *replicaSet) assign(c *Become, self ident.BrokerID, newEpoch bool) {
	old := s.all
	s.all = make([]replica, 0, len(c.Replicas))
	s.isrSize, s.proposed = 0, false
	for _, r := range c.Replicas {
		next := replica{Replica: r, end: ident.NoOffset, flushed: ident.NoOffset}
		if i := slices.IndexFunc(old, func(o replica) bool { return o.Replica == r }); i >= 0 && !newEpoch {
			next.end, next.flushed, next.generation = old[i].end, old[i].flushed, old[i].generation
		}
		if slices.Contains(c.ISR, r.Broker) {
			next.inISR = true
			s.isrSize++
		}
		s.all = append(s.all, next)
	}
	if int(s.isrSize) != len(c.ISR) {
		panic(fmt.Sprintf("partition: ISR %v is not a subset of the %d replicas", c.ISR, len(c.Replicas)))
	}
	if c.Leader == self && s.find(self) == nil {
		panic(fmt.Sprintf("partition: broker %d leads a partition it has no replica of", self))
	}
}

// find returns the replica on a broker, or nil.
func (s *replicaSet) find(b ident.BrokerID) *replica {
	for i := range s.all {
		if s.all[i].Broker == b {
			return &s.all[i]
		}
	}
	return nil
}

// reported is the end of a replica that counts in the given mode.
func (r *replica) reported(strict bool) ident.Offset {
	if strict {
		return r.flushed
	}
	return r.end
}

// minISR is how many members the committed ISR needs before anything is
// acknowledged to all.
func (m *Machine) minISR() int32 {
	return min(m.config.MinISR, int32(len(m.replicas.all)))
}

// enoughReplicas tells whether the committed ISR is large enough.
func (m *Machine) enoughReplicas() bool { return m.replicas.isrSize >= m.minISR() }

// advance raises the high watermark as far as the reports allow, and answers
// whoever waited for that.
//
// Pending members count although the controller may refuse them: it may also have
// committed them already and elect one of them as soon as this leader fails.
func (m *Machine) advance(out *Out) {
	if !m.enoughReplicas() {
		return
	}
	next := m.ownEnd()
	for i := range m.replicas.all {
		r := &m.replicas.all[i]
		if r.Broker != m.broker && (r.inISR || r.pending) {
			next = min(next, r.reported(m.mode.strict))
		}
	}
	if next <= m.highWatermark {
		return
	}
	m.highWatermark = next
	m.sizes.advance(next)
	m.acknowledge(out)
	m.wakeFetches(out)
}

// progress takes in a follower's report.
func (m *Machine) progress(c *Progress, out *Out) {
	if m.role == Stopped {
		return
	}
	r := m.replicas.find(c.Broker)
	if m.role != Leading || r == nil || c.Broker == m.broker || c.LeaderEpoch != m.leaderEpoch ||
		c.BrokerEpoch != r.BrokerEpoch || c.Generation < r.generation {
		out.note(Note{Kind: NoteStaleProgress, LeaderEpoch: c.LeaderEpoch})
		return
	}
	// A report beyond our own log is about bytes we do not have; they will not count.
	end := min(c.End, m.end)
	flushed := min(c.Flushed, end)
	if c.Generation > r.generation {
		r.generation, r.end, r.flushed = c.Generation, end, flushed
	} else {
		r.end, r.flushed = max(r.end, end), max(r.flushed, flushed)
	}
	m.advance(out)
	m.proposeISR(out)
}

// proposeISR asks for every follower that has caught up to be added. One proposal
// is out at a time.
func (m *Machine) proposeISR(out *Out) {
	if m.role != Leading || m.replicas.proposed {
		return
	}
	found := false
	for i := range m.replicas.all {
		r := &m.replicas.all[i]
		// Below the epoch's start a follower may still have to truncate; below the
		// high watermark it lacks records that were acknowledged.
		if !r.inISR && r.Broker != m.broker && r.reported(m.mode.strict) >= max(m.epochStart, m.highWatermark) {
			r.pending, found = true, true
		}
	}
	if !found {
		return
	}
	m.replicas.proposed = true
	isr := make([]Replica, 0, len(m.replicas.all))
	for i := range m.replicas.all {
		if r := &m.replicas.all[i]; r.inISR || r.pending {
			isr = append(isr, r.Replica)
		}
	}
	out.Propose = append(out.Propose, Proposal{LeaderEpoch: m.leaderEpoch, PartitionEpoch: m.partitionEpoch, ISR: isr})
}
