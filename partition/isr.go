package partition

import (
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// lagClock is the clock of replica.lag.time.max.ms for one follower. It stands while
// the follower is caught up: its ask is parked at the log end, on a live connection,
// and what counts of its log reaches that far too. It runs from the moment that an
// answer leaves, the connection drops or the ask is withdrawn.
//
// Under load a follower is never there: each answer finds a longer log. So it was also
// caught up at the time at which the log ended where it is now, as in Kafka
// (Replica.updateFetchStateOrThrow).
type lagClock struct {
	stands   bool
	caughtUp ident.Instant // the last time it was, if the clock runs
	target   ident.Offset  // the log end at targetAt
	targetAt ident.Instant
}

// start lets the clock run from now.
func (c *lagClock) start(now ident.Instant, end ident.Offset) {
	*c = lagClock{caughtUp: now, target: end, targetAt: now}
}

// reclock follows what happened to a follower.
func (m *Machine) reclock(now Now, r *replica, out *Out) {
	reported := r.reported(m.mode.strict)
	caughtUp := r.parked.open && reported >= m.end
	switch {
	case caughtUp:
		r.clock.stands = true
	case r.clock.stands:
		r.clock.start(now.Mono, m.end)
		m.armLag(now, out)
	case reported >= r.clock.target:
		r.clock.start(now.Mono, m.end)
		r.clock.caughtUp = r.clock.targetAt
	}
}

// overdue tells whether a follower has been behind for too long.
func (m *Machine) overdue(r *replica, now ident.Instant) bool {
	return m.config.LagNanos > 0 && !r.clock.stands && now-r.clock.caughtUp >= ident.Instant(m.config.LagNanos)
}

// armLag arms the alarm for the first clock of a member that runs out, unless it is
// armed: it goes off once per span at most, and not at all when nothing moves.
// Clocks that have run out already wait for a proposal to end, which looks at them.
func (m *Machine) armLag(now Now, out *Out) {
	if m.lagAlarm != never || m.config.LagNanos <= 0 {
		return
	}
	for i := range m.replicas.all {
		r := &m.replicas.all[i]
		if r.inISR && r.Broker != m.broker && !r.clock.stands && !m.overdue(r, now.Mono) {
			m.lagAlarm = min(m.lagAlarm, r.clock.caughtUp+ident.Instant(m.config.LagNanos))
		}
	}
	if m.lagAlarm != never {
		out.Arm = append(out.Arm, Alarm{Key: AlarmLag, At: m.lagAlarm})
	}
}

// isrProposal is the proposal that waits for the controller's word.
type isrProposal struct {
	open bool
	Proposal
	outdated bool // what is known of the replicas has changed since: its refusal says nothing
	// What was refused waits. Whoever is to be dropped holds up acks=all, so it does not wait
	// for those who were to be added.
	joins, leaves holdOff
	refused       []Replica // the set that was refused last; nil: none since one was accepted
}

// holdOff is the pause after a refusal. Each refusal is a record of the metadata log, and
// its reason may last: so each pause is twice as long as the one before.
type holdOff struct {
	until ident.Instant
	pause int64 // in nanoseconds
}

// holdOffMax bounds the pause after a refusal, in nanoseconds.
const holdOffMax = 30_000_000_000

// extend begins a pause; the first one takes that long.
func (h *holdOff) extend(now ident.Instant, first int64) {
	h.pause = max(min(2*h.pause, holdOffMax), first)
	h.until = now + ident.Instant(h.pause)
}

// forgive ends the pauses: what was refused may be taken now.
func (p *isrProposal) forgive() {
	p.joins, p.leaves, p.refused, p.outdated = holdOff{}, holdOff{}, nil, false
}

// proposeISR asks for every follower that has caught up, has room and is not barred, to be
// added, and for every member that has been behind for too long to be dropped. One
// proposal is out at a time.
//
// Kafka's leader looks in its own metadata, too, before it proposes anybody
// (Partition.isReplicaIsrEligible): a fenced broker that goes on fetching would have it
// propose for as long as that lasts.
func (m *Machine) proposeISR(now Now, out *Out) {
	if m.role != Leading || m.proposed.open {
		return
	}
	mayJoin, mayLeave := now.Mono >= m.proposed.joins.until, now.Mono >= m.proposed.leaves.until
	joining, leaving := int32(0), int32(0)
	for i := range m.replicas.all {
		r := &m.replicas.all[i]
		switch {
		case r.Broker == m.broker:
		case r.inISR && m.overdue(r, now.Mono):
			if !mayLeave {
				continue
			}
			r.leaving, r.asks = true, false
			leaving++
		// Below the epoch's start a follower may still have to truncate; below the
		// high watermark it lacks records that were acknowledged.
		case mayJoin && !r.inISR && !r.full && !r.barred && r.verified && (r.asks || r.clock.stands) && r.reported(m.mode.strict) >= max(m.epochStart, m.highWatermark):
			r.pending = true
			joining++
		}
	}
	if joining+leaving == 0 {
		return
	}
	isr := make([]Replica, 0, len(m.replicas.all))
	for i := range m.replicas.all {
		if r := &m.replicas.all[i]; r.inISR && !r.leaving || r.pending {
			isr = append(isr, r.Replica)
		}
	}
	again := slices.Equal(isr, m.proposed.refused) // it has been told
	if joining > 0 && !again {
		out.note(Note{Kind: NoteISRExpands, Count: joining, LeaderEpoch: m.leaderEpoch})
	}
	if leaving > 0 && !again {
		out.note(Note{Kind: NoteISRShrinks, Count: leaving, LeaderEpoch: m.leaderEpoch})
	}
	m.propose(now, Proposal{LeaderEpoch: m.leaderEpoch, PartitionEpoch: m.partitionEpoch, ISR: isr}, out)
}

// propose sends a proposal, and will send it again.
func (m *Machine) propose(now Now, p Proposal, out *Out) {
	m.proposed.open, m.proposed.Proposal = true, p
	out.Propose = append(out.Propose, p)
	m.armPropose(now, out)
}

// armPropose arms the next look at the proposal.
func (m *Machine) armPropose(now Now, out *Out) {
	if m.config.ProposeRetryNanos <= 0 {
		return
	}
	m.proposeAlarm = now.Mono + ident.Instant(m.config.ProposeRetryNanos)
	out.Arm = append(out.Arm, Alarm{Key: AlarmPropose, At: m.proposeAlarm})
}

// armHolds arms the look at what may be proposed when a pause ends.
func (m *Machine) armHolds(now Now, out *Out) {
	m.proposeAlarm = never
	for _, h := range [...]*holdOff{&m.proposed.joins, &m.proposed.leaves} {
		if h.until > now.Mono {
			m.proposeAlarm = min(m.proposeAlarm, h.until)
		}
	}
	if m.proposeAlarm != never {
		out.Arm = append(out.Arm, Alarm{Key: AlarmPropose, At: m.proposeAlarm})
	}
}

// retryProposal sends the proposal again, or makes the one that had to wait.
func (m *Machine) retryProposal(now Now, out *Out) {
	m.proposeAlarm = never
	if !m.proposed.open {
		if m.proposeISR(now, out); !m.proposed.open {
			m.armHolds(now, out)
		}
		return
	}
	out.Propose = append(out.Propose, m.proposed.Proposal)
	m.armPropose(now, out)
}

// closeProposal ends the proposal, because a record with a higher partition epoch is
// there: with the change or without it. It ends by no answer, as Kafka's does: an answer
// may be lost, and after a refusal a copy of the proposal that is still on its way could be
// accepted; the record makes all copies void. After a refusal the next one waits, lest
// the metadata log grow by a record for each turn, unless the record has changed what
// was refused.
func (m *Machine) closeProposal(now Now, c *Become, out *Out) {
	p := &m.proposed
	was := *p
	p.open, p.Proposal = false, Proposal{}
	switch {
	case c.LeaderEpoch > m.leaderEpoch || m.replicas.differs(c) || was.open && (was.outdated || was.is(c.ISR)):
		p.forgive()
	case was.open:
		m.holdOff(now, was.ISR)
	}
	m.armHolds(now, out)
}

// is tells whether a set is the one that was proposed.
func (p *isrProposal) is(isr []ident.BrokerID) bool {
	return len(isr) == len(p.ISR) && !slices.ContainsFunc(p.ISR, func(r Replica) bool { return !slices.Contains(isr, r.Broker) })
}

// holdOff lets what was refused wait.
func (m *Machine) holdOff(now Now, isr []Replica) {
	if m.config.ProposeRetryNanos <= 0 {
		return
	}
	h := &m.proposed.leaves
	for i := range m.replicas.all {
		if m.replicas.all[i].pending {
			h = &m.proposed.joins
		}
	}
	h.extend(now.Mono, m.config.ProposeRetryNanos)
	m.proposed.refused = isr
}

// startClocks lets the clocks of all members run from now, those of a new epoch.
func (m *Machine) startClocks(now Now, out *Out) {
	for i := range m.replicas.all {
		r := &m.replicas.all[i]
		if !r.clock.stands && (r.inISR && !r.wasMember) {
			r.clock.start(now.Mono, m.end)
		}
		r.wasMember = r.inISR
	}
	m.lagAlarm = never
	m.armLag(now, out)
}

// checkLag proposes to drop the members whose clocks have run out.
func (m *Machine) checkLag(now Now, out *Out) {
	m.lagAlarm = never
	if m.role != Leading {
		return
	}
	m.proposeISR(now, out)
	m.armLag(now, out)
}
