package broker

import (
	"errors"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// What a partition does besides serving: retention, deletion, closing.

// retain deletes closed segments that are too old or too many.
func (p *partitionActor) retain(t *runtime.Turn) {
	if p.machine == nil || p.file == nil {
		return // it has not been opened, or is being closed: the alarm had gone off before
	}
	p.retention.Reset(millis(p.shared.settings.Load().RetentionCheckMs))
	if p.file.RetentionWaits(p.now.Wall, p.machine.Offsets().HighWatermark) {
		p.lendForRetention(t) // and then retainNow
		return
	}
	p.retainNow(t)
}

// retainNow does it, when it is known which segments are due.
func (p *partitionActor) retainNow(t *runtime.Turn) {
	trimmed, err := p.file.ApplyRetention(p.now.Wall, p.machine.Offsets().HighWatermark)
	switch {
	case store.IsRetriable(err):
		p.shared.sampled.refused(p.replica, err)
	case err != nil:
		p.fail(t, err)
		p.carryOut(t)
		return
	}
	p.segments = p.file.Segments()
	if trimmed.Segments > 0 {
		p.log.Info().Int("segments", trimmed.Segments).Int64("bytes", trimmed.Bytes).Int64("offset", int64(trimmed.Start)).Msg("retention deleted segments")
		p.askFlush(t)
	}
	if trimmed.Start > p.machine.Offsets().LogStart {
		p.trim.Start = trimmed.Start
		p.step(t, &p.trim)
	}
}

// deleteLog removes a log and its directory, on the recovery pool.
type deleteLog struct {
	replica *replica
	file    *store.Log // nil: it could not be opened
}

// Bytes implements runtime.Message.
func (*deleteLog) Bytes() int { return 0 }

// Reject implements runtime.Rejecter: the next start finds a directory of a topic that does not exist, and removes it.
func (j *deleteLog) Reject(err error) { _ = j.replica.ref.Post(&removed{err: err}) }

// do implements job.
func (j *deleteLog) do(t *runtime.Turn) {
	drop := func() error { return j.replica.dir.store.DeleteLog(j.file) }
	if j.file == nil {
		drop = func() error { return j.replica.dir.store.DeleteUnopened(j.replica.tp, j.replica.id) }
	}
	_ = t.Send(j.replica.ref, &removed{err: drop()})
}

// remove ends the replica because its topic was deleted, or the partition is kept elsewhere.
func (p *partitionActor) remove(t *runtime.Turn, code wire.ErrorCode) {
	if p.machine == nil {
		// If it stayed, the directory could not say that every log in it was closed clean, and all would be read at the next start.
		p.removing = true
		_ = p.replica.dir.recovery.give(t, &deleteLog{replica: p.replica}) // Reject says so
		return
	}
	if p.file == nil {
		return // it is being closed, since the broker stops: the same
	}
	p.refusal = code
	p.machine.Step(p.now, &partition.Stop{Code: p.refusal}, &p.out)
	p.carryOut(t)
	p.stopCleaning()
	file := p.file
	p.machine, p.file = nil, nil
	p.settled(t)
	p.retention.Stop()
	_ = p.replica.dir.recovery.give(t, &deleteLog{replica: p.replica, file: file}) // Reject says so
}

// removedLog ends the actor when its files are gone.
func (p *partitionActor) removedLog(t *runtime.Turn, m *removed) {
	if m.err != nil {
		p.log.Warn().Err(m.err).Msg("the log of a deleted topic could not be removed; the next start does it")
		if p.replica.dir.store.Offline() != nil {
			p.shared.lost(t, p.replica.dir, m.err)
		}
	}
	t.Stop()
}

// closeLog closes a log clean, on the recovery pool.
type closeLog struct {
	replica *replica
	file    *store.Log
	done    func(error)
}

// Bytes implements runtime.Message.
func (*closeLog) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (j *closeLog) Reject(err error) { j.done(err) }

// do implements job.
func (j *closeLog) do(*runtime.Turn) { j.done(j.file.Close(true)) }

// errUnheard keeps a stop from being called clean: the next start would call the replica whole.
var errUnheard = errors.New("the controller has not heard that the log is not whole")

// close ends the replica because the broker stops: everybody who waits is sent elsewhere, then the log is synced and closed.
func (p *partitionActor) close(t *runtime.Turn, m *closePartition) {
	if p.machine == nil {
		m.done(nil)
		t.Stop()
		return
	}
	p.machine.Step(p.now, &partition.Stop{Code: wire.NotLeaderOrFollower}, &p.out)
	p.carryOut(t)
	p.settled(t)
	p.stopCleaning()
	p.retention.Stop()
	done := m.done
	if p.confessing {
		done = func(err error) { m.done(errors.Join(err, errUnheard)) }
	}
	p.shared.inspection.close(p)
	// The machine refuses everything from now on, and still knows the producers for the last snapshot.
	p.closing = &closeLog{replica: p.replica, file: p.file, done: done}
	p.file = nil
	p.shut(t)
}

// shut closes the log of a partition that was told to, when no share of it is with the flusher any more: closing syncs the rest, and all of it counts as durable
// then.
func (p *partitionActor) shut(t *runtime.Turn) {
	if p.shares == 0 {
		_ = p.replica.dir.recovery.give(t, p.closing) // Reject says so
		p.closing = nil
	}
}

// forgetStrict sees that the mark "strict, confirmed" of a replica is not on disk any more, on the recovery pool. The mark itself is set and taken back by the
// partition, in its turns, so that it does not matter which job is done first.
type forgetStrict struct {
	replica *replica
	epoch   ident.LeaderEpoch
}

// strictMarked tells that the mark is removed, durably.
type strictMarked struct {
	epoch ident.LeaderEpoch
	err   error
}

// Bytes implements runtime.Message.
func (*forgetStrict) Bytes() int { return 0 }
func (*strictMarked) Bytes() int { return 0 }

// Owed implements runtime.Owed.
func (*strictMarked) Owed() {}

// do implements job.
func (j *forgetStrict) do(t *runtime.Turn) {
	err := j.replica.dir.store.ForgetStrict(j.replica.tp)
	_ = t.Send(j.replica.ref, &strictMarked{epoch: j.epoch, err: err}) // a partition that has stopped does not report
}

const (
	// unmarkFirst and unmarkLongest bound the pause before the mark is tried to be removed again, which doubles.
	unmarkFirst   = 100 * time.Millisecond
	unmarkLongest = 5 * time.Second
)

// unmark asks for the mark to be removed. If the broker stops before that is done, it stays as it was, which the next start finds.
func (p *partitionActor) unmark(t *runtime.Turn) {
	_ = p.replica.dir.recovery.give(t, &forgetStrict{replica: p.replica, epoch: p.unmarking})
}

// marked tells the machine that the mark is gone. Until then only flushed bytes of a leader count, and a follower does not ask; so on a full disk it is tried
// again, for as long as the mark is to go.
func (p *partitionActor) marked(t *runtime.Turn, m *strictMarked) {
	switch {
	case m.epoch != p.unmarking || p.machine == nil:
	case m.err == nil:
		p.unmarking = ident.NoLeaderEpoch
		p.step(t, &partition.StrictCleared{LeaderEpoch: m.epoch})
	case p.replica.dir.store.Offline() != nil:
		p.shared.lost(t, p.replica.dir, m.err)
	default:
		if p.unmarkPause == 0 {
			p.log.Warn().Err(m.err).Msg("the mark of the strict mode cannot be removed; until it is, a leader here counts flushed records only, and a follower fetches none")
		}
		p.unmarkPause = min(max(2*p.unmarkPause, unmarkFirst), unmarkLongest)
		if p.unmarkAgain == nil {
			p.unmarkAgain = t.NewTimer(signalUnmark)
		}
		p.unmarkAgain.Reset(p.unmarkPause)
	}
}
