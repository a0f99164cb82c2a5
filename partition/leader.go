package partition

import (
	"fmt"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// acksAll is acks=all (or -1): the answer waits for the in-sync replicas.
const acksAll = -1

// proposal is a batch handed to the shell, until its outcome is stepped. Nothing
// else changes before: a batch that could not be written has left no trace.
type proposal struct {
	open     bool
	batch    BatchInfo
	producer int32 // slot of the producer, noSlot: a new one or none
	acks     int16
	deadline ident.Instant
	result   appendResult

	// Of a follower, instead of all others.
	replicated []ReplicaBatch
	replayed   int // of these, whose producers' state is up to date
}

// appendResult is what an acknowledgement will say.
type appendResult struct {
	request       ident.RequestID
	baseOffset    ident.Offset
	logAppendTime ident.Millis
	duplicate     bool
}

// append checks a batch and hands it back to be written. The order of the checks is
// the order in which a client can do something about them.
func (m *Machine) append(now Now, c *Append, out *Out) {
	if code := m.refusal(); code != wire.NoError {
		m.refuseAppend(c, code, out)
		return
	}
	if c.Acks < acksAll || c.Acks > 1 {
		m.refuseAppend(c, wire.InvalidRequiredAcks, out)
		return
	}
	if c.Acks == acksAll && !m.enoughReplicas() {
		m.expectFirst(now, &c.Batch, out)
		m.refuseAppend(c, wire.NotEnoughReplicas, out)
		return
	}
	if c.Batch.Control {
		m.refuseAppend(c, wire.InvalidRecord, out)
		return
	}
	if c.Batch.Transactional {
		m.refuseAppend(c, wire.InvalidTxnState, out)
		return
	}
	slot := noSlot
	if c.Batch.ProducerID >= 0 {
		verdict := m.producers.check(&c.Batch)
		if verdict.code != wire.NoError {
			m.refuseAppend(c, verdict.code, out)
			return
		}
		if verdict.duplicate != nil {
			m.appendDuplicate(c, verdict.duplicate, out)
			return
		}
		slot = verdict.slot
	}
	if c.Acks == acksAll && m.produces.len() >= m.config.ProduceWaitersMax {
		out.note(Note{Kind: NoteProduceFull})
		m.expectFirst(now, &c.Batch, out)
		m.refuseAppend(c, wire.RequestTimedOut, out)
		return
	}
	m.proposal = proposal{
		replicated: m.proposal.replicated[:0],
		open:       true, batch: c.Batch, producer: slot, acks: c.Acks, deadline: c.Deadline,
		result: appendResult{request: c.Request, baseOffset: m.end, logAppendTime: c.LogAppendTime},
	}
	out.Persist = append(out.Persist, Write{Kind: WriteBatch, Request: c.Request, Offset: m.end, LeaderEpoch: m.leaderEpoch})
}

// appended takes the written batch into the state.
func (m *Machine) appended(now Now, out *Out) {
	p := &m.proposal
	p.open = false
	if n := len(p.replicated); n > 0 {
		m.foundRoom()
		m.replicated(now, n, out)
		m.heed(out)
		m.goOn(out)
		return
	}
	m.foundRoom()
	m.end += ident.Offset(p.batch.LastOffsetDelta) + 1
	m.sizes.add(m.end, p.batch.Bytes)
	if p.batch.ProducerID >= 0 {
		m.producers.add(p.producer, &p.batch, p.result.baseOffset, now.Wall, out)
		m.armProducers(now, out)
	}
	m.askFlush(now, out)
	m.answerAsks(now, out)
	m.advance(out)
	if p.acks == acksAll && m.highWatermark < m.end {
		m.park(parkedProduce{appendResult: p.result, upTo: m.end, deadline: p.deadline}, out)
		return
	}
	m.replyAppend(out, &p.result, wire.NoError)
}

// appendFailed refuses the batch that could not be written.
func (m *Machine) appendFailed(now Now, c *AppendFailed, out *Out) {
	m.proposal.open = false
	if c.Code == wire.NoError {
		panic("partition: AppendFailed with NoError; the producer would take the batch for written")
	}
	if n := len(m.proposal.replicated); n > 0 {
		refused := m.proposal.replicated[min(max(c.Written, 0), n-1)].Bytes
		m.replicated(now, c.Written, out)
		m.heed(out)
		if c.Full {
			m.outOfRoom(now, refused, out)
		}
		m.report(out)
		m.askLater(now, out)
		return
	}
	if c.Full {
		m.outOfRoom(now, m.proposal.batch.Bytes, out)
	}
	m.expectFirst(now, &m.proposal.batch, out)
	m.replyAppend(out, &appendResult{
		request: m.proposal.result.request, baseOffset: ident.NoOffset, logAppendTime: ident.NoTimestamp,
	}, c.Code)
}

// appendDuplicate answers a repeated batch as its original, which may itself still
// wait for the in-sync replicas: an acknowledgement of the repetition must mean as
// much.
func (m *Machine) appendDuplicate(c *Append, original *batchMark, out *Out) {
	result := appendResult{
		request: c.Request, baseOffset: original.base(), logAppendTime: ident.NoTimestamp, duplicate: true,
	}
	if c.LogAppendTime != ident.NoTimestamp {
		result.logAppendTime = original.timestamp // the stamp the original got
	}
	if c.Acks != acksAll || original.lastOffset < m.highWatermark {
		m.replyAppend(out, &result, wire.NoError)
		return
	}
	if m.produces.len() >= m.config.ProduceWaitersMax {
		out.note(Note{Kind: NoteProduceFull})
		m.refuseAppend(c, wire.RequestTimedOut, out)
		return
	}
	m.park(parkedProduce{appendResult: result, upTo: original.lastOffset + 1, deadline: c.Deadline}, out)
}

// expectFirst remembers a producer whose very first batch is refused for now. It has
// more batches under way: taken as it comes, the second would go before the first,
// which could then never be written.
func (m *Machine) expectFirst(now Now, b *BatchInfo, out *Out) {
	if b.ProducerID >= 0 && m.producers.expectFirst(b, now.Wall) {
		m.armProducers(now, out)
	}
}

// refuseAppend answers a batch that was not written.
func (m *Machine) refuseAppend(c *Append, code wire.ErrorCode, out *Out) {
	m.replyAppend(out, &appendResult{
		request: c.Request, baseOffset: ident.NoOffset, logAppendTime: ident.NoTimestamp,
	}, code)
}

// replyAppend answers a produce.
func (m *Machine) replyAppend(out *Out, a *appendResult, code wire.ErrorCode) {
	m.reply(out, a.request, ReplyAppend, code).Append = AppendReply{
		BaseOffset:    a.baseOffset,
		LogAppendTime: a.logAppendTime,
		LogStart:      m.logStart,
		Duplicate:     a.duplicate,
	}
}

// flushedTo takes in what a sync has made safe.
func (m *Machine) flushedTo(now Now, c *Flushed, out *Out) {
	if m.role == Stopped {
		return
	}
	if c.Generation != m.generation || m.cut.open {
		out.note(Note{Kind: NoteStaleFlush, Offset: c.End})
		return
	}
	if c.End > m.end {
		panic(fmt.Sprintf("partition: flushed to %d, but the log ends at %d", c.End, m.end))
	}
	m.syncSince = never // it has returned; whatever is dirty now waits for another
	m.goOnLeading()
	if c.End <= m.flushed {
		return
	}
	m.flushed = c.End
	m.confirmStrict(out)
	switch m.role {
	case Leading:
		m.advance(out)
	case Following:
		m.report(out)
	default:
		return
	}
	if m.ownEnd() < m.end {
		m.askFlush(now, out) // batches came in while the sync ran
	}
}

// askFlush asks for a sync when the mode or the topic's flush settings want one.
func (m *Machine) askFlush(now Now, out *Out) {
	if m.mode.strict || m.mode.clearing || m.mode.confirmAt != ident.NoOffset || int64(m.end-m.flushed) >= m.config.FlushMessages {
		m.flush(now, out)
		return
	}
	m.armFlush(now, out)
}

// flush asks for a sync, and for a look at whether it returns.
func (m *Machine) flush(now Now, out *Out) {
	out.Flush = true
	if m.syncSince == never {
		m.syncSince = now.Mono
		m.armSync(now.Mono, out)
	}
}

// armFlush arms flush.ms, unless it runs already.
func (m *Machine) armFlush(now Now, out *Out) {
	if m.config.FlushNanos <= 0 || m.flushAlarm != never || m.mode.strict {
		return
	}
	m.flushAlarm = now.Mono + ident.Instant(m.config.FlushNanos)
	out.Arm = append(out.Arm, Alarm{Key: AlarmFlush, At: m.flushAlarm})
}
