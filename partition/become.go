package partition

import (
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// become applies the partition's metadata record.
func (m *Machine) become(now Now, c *Become, out *Out) {
	if m.role == Stopped {
		return
	}
	if m.cut.open {
		m.becomeLater(c)
		return
	}
	// Until the first Become the log says which epoch was reached: after a restart the
	// metadata log is replayed from its last snapshot, through records of long ago.
	if c.LeaderEpoch < max(m.leaderEpoch, m.epochs.last()) ||
		c.LeaderEpoch == m.leaderEpoch && c.PartitionEpoch <= m.partitionEpoch {
		if !m.reregister(now, c, out) {
			out.note(Note{Kind: NoteStaleBecome, LeaderEpoch: c.LeaderEpoch})
		}
		return
	}
	newEpoch := c.LeaderEpoch > m.leaderEpoch
	if !newEpoch && (c.Leader != m.leader || c.Strict != m.mode.strict) {
		panic(fmt.Sprintf("partition: leader epoch %d had leader %d and write.caching=%v, now it has leader %d and %v",
			c.LeaderEpoch, m.leader, !m.mode.strict, c.Leader, !c.Strict))
	}
	m.closeProposal(now, c, out) // before the record is taken over: it may change what the proposal was about
	m.leader, m.leaderEpoch, m.partitionEpoch = c.Leader, c.LeaderEpoch, c.PartitionEpoch
	for _, r := range m.replicas.assign(c, m.broker, newEpoch) {
		switch {
		case !r.parked.open:
		case newEpoch:
			m.replyAsk(out, r.parked.request, wire.FencedLeaderEpoch, r.parked.from, r.parked.from, 0)
		default:
			m.silence(out, r.parked.request)
		}
	}
	if newEpoch {
		m.enterMode(c.Strict, out)
	}
	switch {
	case newEpoch && c.Leader == m.broker:
		m.lead(now, out)
	case newEpoch:
		m.follow(now, out)
	case m.role == Leading:
		out.note(Note{Kind: NoteISRChanged, LeaderEpoch: m.leaderEpoch, Count: m.replicas.isrSize})
		m.startClocks(now, out)
		m.failShortOfReplicas(out)
		m.advance(out)
		m.finishDeletes(out)
		m.proposeISR(now, out)
		m.resignAnew(now, out)
	default:
		m.askOn(out)
	}
	m.takeEarly(now, out)
}

// reregister takes over new registrations of replicas from a record that is otherwise
// known, and who is barred. What a replica said under its former one says nothing any more
// (KIP-903); a proposal that names it stays as it is, for the controller to refuse.
func (m *Machine) reregister(now Now, c *Become, out *Out) bool {
	if c.LeaderEpoch != m.leaderEpoch || c.PartitionEpoch != m.partitionEpoch || len(c.Replicas) != len(m.replicas.all) {
		return false
	}
	for i, r := range c.Replicas {
		if r.Broker != m.replicas.all[i].Broker || r.BrokerEpoch < m.replicas.all[i].BrokerEpoch {
			return false // an older record: registrations rise
		}
	}
	if !m.replicas.differs(c) {
		return false
	}
	for i, r := range c.Replicas {
		old := &m.replicas.all[i]
		old.barred = slices.Contains(c.Barred, r.Broker)
		if r == old.Replica {
			continue
		}
		m.voidAsk(old, out)
		next := fresh(r)
		next.inISR, next.pending, next.leaving, next.wasMember = old.inISR, old.pending, old.leaving, old.wasMember
		next.full, next.damaged, next.barred = old.full, old.damaged, old.barred
		next.clock.start(now.Mono, m.end)
		*old = next
	}
	m.proposed.forgive()
	m.proposed.outdated = m.proposed.open
	m.armLag(now, out)
	m.askOn(out)
	m.proposeISR(now, out)
	return true
}

// lead begins a leadership. Produces that wait from an earlier one of this broker
// go on waiting: the batches are still in the log, since only a follower truncates.
func (m *Machine) lead(now Now, out *Out) {
	if m.role != Leading {
		m.sizes.reset(m.end)
		if m.syncSince != never {
			m.syncSince = now.Mono // it gets its time before this leadership is given up for it
		}
	}
	m.role = Leading
	m.epochStart = m.end
	m.follower.begin()
	m.askAlarm = never
	// The entry is written even when no batch follows: after two elections without
	// a write in between, a follower must still find where this epoch began.
	if m.epochs.assign(m.leaderEpoch, m.end) {
		out.Persist = append(out.Persist, Write{Kind: WriteEpoch, Offset: m.end, LeaderEpoch: m.leaderEpoch})
	}
	out.note(Note{Kind: NoteBecameLeader, Offset: m.epochStart, LeaderEpoch: m.leaderEpoch})
	if m.end > m.flushed {
		m.askFlush(now, out)
	}
	if m.producers.Len() > 0 {
		m.armProducers(now, out)
	}
	m.startClocks(now, out)
	m.failShortOfReplicas(out)
	m.advance(out)
	m.answerFetches(out)
	m.finishDeletes(out)
	m.resignAnew(now, out)
}

// mode is write.caching and how far its change has come.
//
// The mark on disk that says "strict, confirmed" lets a restarted replica count as
// whole. So it may be set only when everything below the start of the first strict
// epoch is flushed, and must be gone before anything unflushed counts.
type mode struct {
	strict    bool
	marked    bool         // the mark is, or may still be, on disk
	lapsed    bool         // it does not hold: its removal was asked for, and is not known to be done
	clearing  bool         // waits for StrictCleared of the current leader epoch
	confirmAt ident.Offset // flushed end that confirms the mode; NoOffset: nothing to confirm
}

// enterMode applies the mode of a new leader epoch.
func (m *Machine) enterMode(strict bool, out *Out) {
	wasConfirming := m.mode.confirmAt != ident.NoOffset
	m.mode.strict = strict
	if !strict {
		m.mode.confirmAt = ident.NoOffset
		if m.mode.marked {
			m.mode.clearing, m.mode.lapsed = true, true
			out.Persist = append(out.Persist, Write{Kind: WriteStrictCleared, Offset: m.end, LeaderEpoch: m.leaderEpoch})
		}
		return
	}
	// The removal may be done already, or may fail: the mark is made anew, and has to be removed all the same before anything unflushed counts.
	m.mode.clearing = false
	if m.mode.marked && !m.mode.lapsed {
		return
	}
	if !wasConfirming {
		m.mode.confirmAt = m.end
	}
	m.confirmStrict(out)
}

// confirmStrict asks for the mark once the flushed end allows it.
func (m *Machine) confirmStrict(out *Out) {
	if m.mode.confirmAt == ident.NoOffset || m.flushed < m.mode.confirmAt || m.cut.open {
		return // or the log has more than the machine counts, and nobody says that it is flushed
	}
	m.mode.confirmAt = ident.NoOffset
	m.mode.marked, m.mode.lapsed = true, false
	out.Persist = append(out.Persist, Write{Kind: WriteStrictConfirmed, Offset: m.flushed, LeaderEpoch: m.leaderEpoch})
	out.note(Note{Kind: NoteStrictConfirmed, Offset: m.flushed, LeaderEpoch: m.leaderEpoch})
}

// strictCleared lets unflushed bytes of this replica count.
func (m *Machine) strictCleared(c *StrictCleared, out *Out) {
	if !m.mode.clearing || c.LeaderEpoch != m.leaderEpoch {
		return
	}
	m.mode.clearing, m.mode.marked, m.mode.lapsed = false, false, false
	switch m.role {
	case Leading:
		m.advance(out)
	case Following:
		m.askOn(out)
	default:
	}
}

// ownEnd is what this replica reports of its own log.
func (m *Machine) ownEnd() ident.Offset {
	if m.mode.strict || m.mode.clearing {
		return m.flushed
	}
	return m.end
}
