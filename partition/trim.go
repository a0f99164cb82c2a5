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
	m.reply(out, c.Request, ReplyDeleteRecords, wire.NoError).DeleteRecords = DeleteRecordsReply{LowWatermark: m.logStart}
}

// trim follows retention.
func (m *Machine) trim(c *Trim, out *Out) {
	if m.role == Stopped || m.cut.open || c.Start <= m.logStart {
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
