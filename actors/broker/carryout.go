package broker

import (
	"errors"
	"fmt"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// carryOut does what the machine asks, in the order it states, and empties the bundle. If that takes the replica offline, the machine's last answers are
// given first.
func (p *partitionActor) carryOut(t *runtime.Turn) {
	o := &p.out
	for i := 0; i < len(o.Persist) && !p.lost; i++ { // a step in the middle may add to it
		p.persist(t, &o.Persist[i])
	}
	if o.Flush && !p.lost {
		p.askFlush(t)
	}
	for i := range o.Propose {
		_ = t.Send(p.shared.isr, &wishISR{replica: p.replica, proposal: o.Propose[i]}) // gone only when the broker stops
	}
	if n := len(o.Condition); n > 0 {
		p.tellFull(t, o.Condition[n-1].Full)
	}
	for p.replied < len(o.Reply) { // counted in p: after a fault the next call goes on behind the one that had it
		r := &o.Reply[p.replied]
		p.replied++
		p.reply(t, r)
	}
	p.speak(t)
	for _, a := range o.Arm {
		p.arm(t, a)
	}
	for _, n := range o.Note {
		p.note(t, n)
	}
	o.Reset()
	p.replied = 0
	if p.lost {
		p.letGo()
		p.settled(t)
	}
}

// speak says to the leader, or the followers, what there is to say. Of several reports only the last counts.
func (p *partitionActor) speak(t *runtime.Turn) {
	o := &p.out
	for i := range o.Withdraw {
		p.takeBack(t, o.Withdraw[i])
	}
	for i := range o.Ask {
		p.inquire(t, &o.Ask[i])
	}
	if n := len(o.Report); n > 0 {
		p.report(t, &o.Report[n-1])
	}
	for i := range o.Watermark {
		p.mark(t, &o.Watermark[i])
	}
}

// persist changes the log.
func (p *partitionActor) persist(t *runtime.Turn, w *partition.Write) {
	switch w.Kind {
	case partition.WriteBatch:
		p.writeBatch(t, w)
	case partition.WriteReplica:
		p.writeReplica(t)
	case partition.WriteTruncate, partition.WriteRestart:
		p.cut(t, w)
	case partition.WriteEpoch:
		p.file.AssignEpoch(w.LeaderEpoch, w.Offset)
	case partition.WriteEpochsCut:
		p.file.CutEpochs(w.Offset)
	case partition.WriteRoom:
		p.lookForRoom(t, w)
	case partition.WriteStart:
		if err := p.file.SetStart(w.Offset); err != nil {
			p.fail(t, err)
			return
		}
		p.askFlush(t)
	case partition.WriteStrictConfirmed:
		p.unmarking = ident.NoLeaderEpoch
		p.file.SetStrict(true)
		_ = t.Send(p.replica.dir.flusher, signalStrict) // refused: it is written a minute later
	case partition.WriteStrictCleared:
		p.unmarking, p.unmarkPause = w.LeaderEpoch, 0
		p.file.SetStrict(false)
		p.unmark(t)
	default:
		panic(fmt.Sprintf("broker: partition %s wants an unknown write %d", p.replica.tp, w.Kind))
	}
}

// writeBatch appends the batch of the current message and tells the machine what came of it.
func (p *partitionActor) writeBatch(t *runtime.Turn, w *partition.Write) {
	_, batch := p.current.(batchWrite).appending()
	batch.SetBaseOffset(w.Offset)
	batch.SetLeaderEpoch(w.LeaderEpoch)
	p.writing = true
	err := p.file.Append(batch, p.now.Wall)
	p.writing = false
	if err != nil {
		p.failed = partition.AppendFailed{Code: wire.KafkaStorageError, Full: store.IsRetriable(err)}
		p.machine.Step(p.now, &p.failed, &p.out)
		if !store.IsRetriable(err) {
			p.fail(t, err)
			return
		}
		p.shared.sampled.refused(p.replica, err)
		return
	}
	s := &p.replica.stats
	s.appendedBytes.Add(int64(len(batch)))
	s.appendedRecords.Add(int64(batch.Count()))
	s.appendedBatches.Add(1)
	p.machine.Step(p.now, &p.appended, &p.out)
	p.sawRoll(t, w.Offset)
}

// lookForRoom finds out whether a batch could be appended.
func (p *partitionActor) lookForRoom(t *runtime.Turn, w *partition.Write) {
	err := p.file.Room(int(w.Bytes), p.now.Wall)
	p.space.Room = err == nil
	p.machine.Step(p.now, &p.space, &p.out)
	switch {
	case err == nil:
	case store.IsRetriable(err):
		p.shared.sampled.refused(p.replica, err)
	default:
		p.fail(t, err)
		return
	}
	p.sawRoll(t, w.Offset)
}

// sawRoll looks whether a segment has begun, which begins at base.
func (p *partitionActor) sawRoll(t *runtime.Turn, base ident.Offset) {
	if n := p.file.Segments(); n != p.segments {
		p.segments = n
		p.rolled.Base = base
		p.machine.Step(p.now, &p.rolled, &p.out)
		p.askFlush(t) // what is closed will not be written again: let it reach the disk
	}
}

// reply sends an answer to whoever waits for it.
func (p *partitionActor) reply(t *runtime.Turn, r *partition.Reply) {
	switch m := p.waiter(r.Request).(type) {
	case batchWrite:
		m.appended(t, r)
	case *fetchRead:
		p.replyFetch(t, m, r)
	case *groupRead:
		p.replyGroups(t, m, r)
	case *followerAsk:
		p.replyAsk(t, m, r)
	case *question:
		p.replyQuestion(t, m, r)
	}
}

// replyFetch reads what the machine allows and sends it.
func (p *partitionActor) replyFetch(t *runtime.Turn, f *fetchRead, r *partition.Reply) {
	f.Code = r.Code
	f.HighWatermark, f.LastStable, f.LogStart = r.Fetch.HighWatermark, r.Fetch.LastStable, r.Fetch.LogStart
	f.Leader, f.LeaderEpoch = r.Leader, r.LeaderEpoch
	f.upTo = r.Fetch.UpTo
	f.Elsewhere, f.Preferred = r.Code == wire.NoError && r.Fetch.Preferred != ident.NoBroker, r.Fetch.Preferred
	f.Diverging = wire.EpochEnd{Known: r.Fetch.Diverging, Epoch: r.Fetch.DivergingEpoch, EndOffset: r.Fetch.DivergingEnd}
	f.from, f.most = r.Fetch.From, int(r.Fetch.BytesMax)
	f.present = false
	if r.Code == wire.NoError && f.from < f.upTo {
		if f.bad = wire.CorruptMessage; p.machine.Role() == partition.Following {
			f.bad = wire.NotLeaderOrFollower // the leader has it, and sends nobody here while this replica is damaged
		}
		if !p.read(t, f) {
			return // it goes on when the disk has been read
		}
	}
	f.back = true
	_ = t.Send(f.session, f)
}

// firstBatch is the size of the first batch of a region.
func firstBatch(r *store.Region) int {
	head := r.Mapped()
	if head == nil {
		var prefix [record.PrefixSize]byte
		if n, _ := r.ReadAt(prefix[:], 0); n < len(prefix) {
			return r.Len()
		}
		head = prefix[:]
	}
	size, err := record.SizeOf(head)
	if err != nil {
		return r.Len() // what cannot be understood is sent whole or not at all
	}
	return min(size, r.Len())
}

// readRefusal is the code for records that could not be read.
func (p *partitionActor) readRefusal(t *runtime.Turn, err error) wire.ErrorCode {
	switch {
	case errors.Is(err, store.ErrOffsetOutOfRange):
		return wire.OffsetOutOfRange
	case errors.Is(err, store.ErrDamaged):
		p.replica.stats.damagedReads.Add(1)
		p.tellDamage(t)
		return wire.CorruptMessage
	case store.IsRetriable(err):
		p.shared.sampled.refused(p.replica, err)
		return wire.KafkaStorageError
	}
	p.fail(t, err)
	return wire.KafkaStorageError
}

// arm sets a wake-up.
func (p *partitionActor) arm(t *runtime.Turn, a partition.Alarm) {
	timer := p.timers[a.Key]
	if timer == nil {
		timer = t.NewTimer(signalTick)
		p.timers[a.Key] = timer
	}
	timer.Reset(duration(max(a.At-p.now.Mono, 0)))
}

// fail deals with an error of the log that is not a full disk: the replica goes out of service, and the others of its directory when the store has given
// that up.
func (p *partitionActor) fail(t *runtime.Turn, err error) {
	if p.replica.dir.store.Offline() != nil {
		p.shared.lost(t, p.replica.dir, err)
	}
	p.stop(t, err)
}

// note makes log lines and facts of what happened.
func (p *partitionActor) note(t *runtime.Turn, n partition.Note) {
	switch n.Kind {
	case partition.NoteBecameLeader:
		p.log.Debug().Int64("epoch", int64(n.LeaderEpoch)).Int64("offset", int64(n.Offset)).Msg("leading")
	case partition.NoteBecameFollower:
		p.log.Debug().Int64("epoch", int64(n.LeaderEpoch)).Msg("not leading")
	case partition.NoteProduceFull:
		p.shared.sampled.warn(codeProduceFull, p.replica, "too many acks=all writes wait; one was refused")
	case partition.NoteFetchFull:
		p.shared.sampled.warn(codeFetchFull, p.replica, "too many fetches wait; one was answered early")
	case partition.NoteProducerEvicted:
		p.shared.sampled.warn(codeProducersFull, p.replica, "too many idempotent producers; the quietest was forgotten")
	case partition.NoteISRShrinks:
		p.shared.metrics.isr.shrinks.Add(1)
		p.log.Info().Int64("epoch", int64(n.LeaderEpoch)).Int32("members", n.Count).Msg("replicas that have been behind for too long are proposed to leave the ISR")
	case partition.NoteISRExpands:
		p.shared.metrics.isr.expands.Add(1)
		p.log.Info().Int64("epoch", int64(n.LeaderEpoch)).Int32("members", n.Count).Msg("replicas that have caught up are proposed to join the ISR")
	case partition.NoteTruncating:
		p.log.Info().Int64("epoch", int64(n.LeaderEpoch)).Int64("offset", int64(n.Offset)).Msg("truncating what the leader does not have")
	case partition.NoteStartingAnew:
		p.log.Warn().Int64("epoch", int64(n.LeaderEpoch)).Int64("offset", int64(n.Offset)).Msg("beginning the log anew where the leader's log begins")
	case partition.NoteTruncatedCommitted:
		p.log.Error().Int64("epoch", int64(n.LeaderEpoch)).Int64("offset", int64(n.Offset)).
			Msg(codeCommittedCut + ": the leader lacks records that were committed here, up to this offset; this replica gives them up")
	case partition.NoteSyncHung:
		p.log.Error().Int64("epoch", int64(n.LeaderEpoch)).Msg(codeSyncHung + ": a sync of this log has hung for replica.lag.time.max.ms; another replica should lead")
	case partition.NoteFull:
		p.log.Warn().Int64("epoch", int64(n.LeaderEpoch)).Int64("offset", int64(n.Offset)).
			Msg(codeDiskFull + ": nothing can be appended to this replica: others should lead, and be in sync, until there is room")
	case partition.NoteRoom:
		p.log.Info().Int64("epoch", int64(n.LeaderEpoch)).Int64("offset", int64(n.Offset)).Msg("there is room for this replica again")
	case partition.NoteBadAnswer:
		p.shared.sampled.warn(codeBadAnswer, p.replica, "the leader sent an answer that no leader gives; it was ignored")
	default: // the others are for transcripts
	}
	p.shared.facts.partition(t, p.replica, n)
}
