package partition

import (
	"fmt"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// deleteRecords moves the log start on an administrator's wish.
func (m *Machine) deleteRecords(c *DeleteRecords, out *Out) {
	code := m.refusal()
	before := c.Before
	if before == ident.NoOffset {
		before = m.highWatermark
	}
	switch {
	case code != wire.NoError:
	case !m.config.DeleteRecords:
		code = wire.PolicyViolation
	case before < 0 || before > m.highWatermark:
		code = wire.OffsetOutOfRange
	}
	if code != wire.NoError {
		m.reply(out, c.Request, ReplyDeleteRecords, code).DeleteRecords = DeleteRecordsReply{LowWatermark: ident.NoOffset}
		return
	}
	if before > m.logStart {
		out.Persist = append(out.Persist, Write{Kind: WriteStart, Offset: before, LeaderEpoch: m.leaderEpoch})
		m.moveStart(before, out)
	}
	d := parkedDelete{request: c.Request, before: before, deadline: c.Deadline}
	switch {
	case c.Deadline <= 0 || m.lowWatermark() >= before:
		m.replyDelete(&d, wire.NoError, out)
		return
	case len(m.deletes) >= m.config.ProduceWaitersMax:
		m.replyDelete(&d, wire.RequestTimedOut, out)
		return
	}
	m.deletes = append(m.deletes, d)
	if d.deadline < m.deleteAlarm {
		m.deleteAlarm = d.deadline
		out.Arm = append(out.Arm, Alarm{Key: AlarmDelete, At: d.deadline})
	}
}

// parkedDelete waits for the members of the ISR to delete, too.
type parkedDelete struct {
	request  ident.RequestID
	before   ident.Offset
	deadline ident.Instant
}

// lowWatermark is the smallest log start of the ISR (Partition.lowWatermarkIfLeader).
func (m *Machine) lowWatermark() ident.Offset {
	low := m.logStart
	for i := range m.replicas.all {
		if r := &m.replicas.all[i]; r.inISR && r.Broker != m.broker {
			low = min(low, r.start)
		}
	}
	return low
}

// replyDelete answers that the log start has moved, or that others have not followed.
func (m *Machine) replyDelete(d *parkedDelete, code wire.ErrorCode, out *Out) {
	low := m.logStart
	switch {
	case code != wire.NoError:
		low = ident.NoOffset
	case d.deadline > 0:
		low = m.lowWatermark()
	}
	m.reply(out, d.request, ReplyDeleteRecords, code).DeleteRecords = DeleteRecordsReply{LowWatermark: low}
}

// finishDeletes answers those whom all members have followed.
func (m *Machine) finishDeletes(out *Out) {
	if len(m.deletes) == 0 {
		return
	}
	low := m.lowWatermark()
	m.sweepDeletes(func(d *parkedDelete) (bool, wire.ErrorCode) { return d.before <= low, wire.NoError }, out)
}

// expireDeletes answers those who have waited for long enough.
func (m *Machine) expireDeletes(now Now, out *Out) {
	m.sweepDeletes(func(d *parkedDelete) (bool, wire.ErrorCode) { return d.deadline <= now.Mono, wire.RequestTimedOut }, out)
	m.deleteAlarm = never
	for i := range m.deletes {
		m.deleteAlarm = min(m.deleteAlarm, m.deletes[i].deadline)
	}
	if m.deleteAlarm != never {
		out.Arm = append(out.Arm, Alarm{Key: AlarmDelete, At: m.deleteAlarm})
	}
}

// refuseDeletes answers all of them with a code.
func (m *Machine) refuseDeletes(code wire.ErrorCode, out *Out) {
	m.sweepDeletes(func(*parkedDelete) (bool, wire.ErrorCode) { return true, code }, out)
	m.deleteAlarm = never
}

// sweepDeletes answers those that done picks.
func (m *Machine) sweepDeletes(done func(*parkedDelete) (bool, wire.ErrorCode), out *Out) {
	kept := m.deletes[:0]
	for i := range m.deletes {
		d := &m.deletes[i]
		if ok, code := done(d); ok {
			m.replyDelete(d, code, out)
		} else {
			kept = append(kept, *d)
		}
	}
	m.deletes = kept
}

// trim follows retention, which goes on while a truncation waits for space: what it frees may be what the other waits for.
func (m *Machine) trim(c *Trim, out *Out) {
	if m.role == Stopped || c.Start <= m.logStart {
		return
	}
	if c.Start > m.highWatermark {
		panic(fmt.Sprintf("partition: retention moved the log start to %d, above the high watermark %d", c.Start, m.highWatermark))
	}
	m.moveStart(c.Start, out)
	m.report(out)
}

// moveStart raises the log start and tells the readers below it.
func (m *Machine) moveStart(start ident.Offset, out *Out) {
	m.logStart = start
	// What was deleted needs no sync any more.
	m.flushed = max(m.flushed, start)
	m.confirmStrict(out)
	m.epochs.trim(start)
	out.note(Note{Kind: NoteLogStart, Offset: start})
	m.sweepFetches(out, func(f *parkedFetch) bool { return f.from < start })
	m.tellFollowers(out)
}
