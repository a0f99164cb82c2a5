package partition

import "github.com/troupe-broker/troupe/wire/ident"

// resigning is the wish of a leader to be one no more: its own sync hangs, and acks=all
// with it. What this replica cannot make durable, another may.
//
// It leads until a record says who else does. Unlike a proposal of an ISR the wish adds
// nobody who would have to be counted, so it need not stay pending: it is said again
// after pauses that grow, and whenever the record of the partition has changed, for
// somebody may have joined. The controller writes nothing where nobody could take over.
type resigning struct {
	wanted bool
	pause  int64 // before it is said again, in nanoseconds
}

// checkSync looks whether the own sync hangs.
func (m *Machine) checkSync(now Now, out *Out) {
	m.syncAlarm = never
	if m.syncSince == never || m.end <= m.flushed || m.config.LagNanos <= 0 {
		return
	}
	if now.Mono-m.syncSince < ident.Instant(m.config.LagNanos) {
		m.armSync(m.syncSince, out)
		return
	}
	if m.role == Leading {
		out.note(Note{Kind: NoteSyncHung, LeaderEpoch: m.leaderEpoch})
		if !m.resigning.wanted && len(m.replicas.all) > 1 {
			m.resigning.wanted = true
			m.proposeResign(now, out)
		}
	}
	m.armSync(now.Mono, out)
}

// armSync arms the look at a sync that was asked for at since.
func (m *Machine) armSync(since ident.Instant, out *Out) {
	if m.syncAlarm != never || m.config.LagNanos <= 0 {
		return
	}
	m.syncAlarm = since + ident.Instant(m.config.LagNanos)
	out.Arm = append(out.Arm, Alarm{Key: AlarmSync, At: m.syncAlarm})
}

// proposeResign asks for another leader, and will ask again.
func (m *Machine) proposeResign(now Now, out *Out) {
	m.resignAlarm = never
	r := &m.resigning
	if m.role != Leading || !r.wanted {
		return
	}
	out.Propose = append(out.Propose, Proposal{LeaderEpoch: m.leaderEpoch, PartitionEpoch: m.partitionEpoch, Resign: true})
	if r.pause = 2 * r.pause; r.pause == 0 {
		r.pause = m.config.ProposeRetryNanos
	}
	if r.pause = min(r.pause, max(m.config.LagNanos, m.config.ProposeRetryNanos)); r.pause <= 0 {
		return
	}
	m.resignAlarm = now.Mono + ident.Instant(r.pause)
	out.Arm = append(out.Arm, Alarm{Key: AlarmResign, At: m.resignAlarm})
}

// resignAnew says the wish again, because the partition's record has changed.
func (m *Machine) resignAnew(now Now, out *Out) {
	if m.resigning.wanted {
		m.resigning.pause = 0
		m.proposeResign(now, out)
	}
}

// goOnLeading takes the wish back.
func (m *Machine) goOnLeading() {
	m.resigning = resigning{}
	m.resignAlarm = never
}
