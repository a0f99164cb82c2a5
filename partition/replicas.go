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
	leaving bool // its removal is proposed; only together with inISR
	full    bool // it cannot append: the record says so
	damaged bool // it cannot read all it has: likewise
	barred  bool // the controller would not take it into the ISR
	// wasMember: the clock has been started for its membership.
	wasMember bool

	// What a follower reported in this leader epoch; ident.NoOffset: nothing that
	// counts yet. flushed <= end, except that a report may lower neither.
	end        ident.Offset
	flushed    ident.Offset
	start      ident.Offset // the log start; 0 until it is reported
	generation ident.Generation
	verified   bool // an ask of this generation has shown that the log is a prefix of ours
	// early is the greatest Progress that came before the ask of its generation.
	early    Report
	hasEarly bool

	parked parkedAsk
	// What the follower was told last; ident.NoOffset: nothing.
	toldHigh  ident.Offset
	toldStart ident.Offset
	// asks: it has asked since it was proposed to leave, lost its connection or took its
	// ask back. Without a sign of life it is not proposed to join.
	asks  bool
	clock lagClock
}

// parkedAsk is a follower's ask that waits for the log to grow.
type parkedAsk struct {
	open     bool
	request  ident.RequestID
	from     ident.Offset
	bytesMax int32
}

// fresh is a replica of which nothing is known.
func fresh(r Replica) replica {
	return replica{
		Replica: r, end: ident.NoOffset, flushed: ident.NoOffset, toldHigh: ident.NoOffset, toldStart: ident.NoOffset,
	}
}

// replicaSet is the assignment and how far everybody is.
type replicaSet struct {
	all     []replica // in order of assignment
	isrSize int32     // committed members
	minISR  int32     // of the record; 0: it says nothing
}

// assign takes over the metadata record. Reports of followers survive a change
// inside a leader epoch; a new epoch starts without any. It returns the replicas that
// are no more what they were, whose asks are void.
func (s *replicaSet) assign(c *Become, self ident.BrokerID, newEpoch bool) (gone []replica) {
	old := s.all
	s.all = make([]replica, 0, len(c.Replicas))
	s.isrSize, s.minISR = 0, c.MinISR
	for _, r := range c.Replicas {
		next := fresh(r)
		if i := slices.IndexFunc(old, func(o replica) bool { return o.Replica == r }); i >= 0 && !newEpoch {
			next = old[i]
			old[i].parked.open = false
		}
		next.inISR, next.pending, next.leaving = false, false, false
		next.full, next.damaged = slices.Contains(c.Full, r.Broker), slices.Contains(c.Damaged, r.Broker)
		next.barred = slices.Contains(c.Barred, r.Broker)
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
	return old
}

// differs tells whether a record says something else than is known of any replica that
// decides whether the controller takes it into an ISR.
func (s *replicaSet) differs(c *Become) bool {
	if len(c.Replicas) != len(s.all) {
		return true
	}
	for i, r := range c.Replicas {
		if old := &s.all[i]; r != old.Replica || slices.Contains(c.Barred, r.Broker) != old.barred || slices.Contains(c.Full, r.Broker) != old.full {
			return true
		}
	}
	return false
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

// renew begins another generation of the follower's log: what it reported of the
// former one says nothing any more.
func (r *replica) renew(g ident.Generation) {
	r.generation, r.verified = g, false
	r.end, r.flushed, r.start = ident.NoOffset, ident.NoOffset, 0
	r.toldHigh, r.toldStart = ident.NoOffset, ident.NoOffset
}

// merge takes in a report of the current generation that counts. What lies beyond our
// own end are bytes we do not have.
func (r *replica) merge(end, flushed, ours ident.Offset) {
	end = min(end, ours)
	r.end, r.flushed = max(r.end, end), max(r.flushed, min(flushed, end))
}

// minISR is how many members the committed ISR needs before anything is
// acknowledged to all.
func (m *Machine) minISR() int32 {
	if m.replicas.minISR > 0 {
		return m.replicas.minISR
	}
	return min(m.config.MinISR, int32(len(m.replicas.all)))
}

// enoughReplicas tells whether the committed ISR is large enough.
func (m *Machine) enoughReplicas() bool { return m.replicas.isrSize >= m.minISR() }

// advance raises the high watermark as far as the reports allow, and answers
// whoever waited for that.
//
// Pending members count although the controller may refuse them: it may also have
// committed them already and elect one of them as soon as this leader fails. Members
// that are proposed to leave count until the controller has let them go.
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
	m.tellFollowers(out)
}

// progress takes in a follower's report.
func (m *Machine) progress(now Now, c *Progress, out *Out) {
	if m.role == Stopped {
		return
	}
	if c.LeaderEpoch > m.leaderEpoch {
		m.keepProgress(c, out)
		return
	}
	r := m.replicas.find(c.Broker)
	if m.role != Leading || r == nil || c.Broker == m.broker || c.LeaderEpoch != m.leaderEpoch ||
		!m.registered(r, c.BrokerEpoch) || c.Generation < r.generation || !sound(c.End, c.Flushed) {
		out.note(Note{Kind: NoteStaleProgress, LeaderEpoch: c.LeaderEpoch})
		return
	}
	if c.Generation > r.generation || !r.verified {
		// It travels on another connection than the ask that will verify it.
		if !r.hasEarly || r.early.Generation < c.Generation {
			r.early, r.hasEarly = c.Report, true
		} else if r.early.Generation == c.Generation {
			r.early.End, r.early.Flushed = max(r.early.End, c.End), max(r.early.Flushed, c.Flushed)
			r.early.LogStart = max(r.early.LogStart, c.LogStart)
		}
		return
	}
	r.merge(c.End, c.Flushed, m.end)
	r.start = max(r.start, min(c.LogStart, r.end))
	m.finishDeletes(out)
	m.reclock(now, r, out)
	m.advance(out)
	m.proposeISR(now, out)
}

// registered tells whether a report under a broker epoch is one of the replica that
// the metadata log means (KIP-903).
func (m *Machine) registered(r *replica, e ident.BrokerEpoch) bool {
	return e == r.BrokerEpoch && e != ident.NoBrokerEpoch
}

// sound tells whether ends can be those of a log.
func sound(end, flushed ident.Offset) bool { return 0 <= flushed && flushed <= end }
