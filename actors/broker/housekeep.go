package broker

import (
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
	file    *store.Log
}

// Bytes implements runtime.Message.
func (*deleteLog) Bytes() int { return 0 }

// Reject implements runtime.Rejecter: the next start finds a directory of a topic that does not exist, and removes it.
func (j *deleteLog) Reject(err error) { _ = j.replica.ref.Post(&removed{err: err}) }

// do implements job.
func (j *deleteLog) do(t *runtime.Turn) {
	_ = t.Send(j.replica.ref, &removed{err: j.replica.dir.store.DeleteLog(j.file)})
}

// remove ends the replica because its topic was deleted, or the partition is kept elsewhere.
func (p *partitionActor) remove(t *runtime.Turn, code wire.ErrorCode) {
	if p.machine == nil {
		t.Stop() // an offline log is found, and removed, at the next start
		return
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
	file := p.file
	// The machine refuses everything from now on, and still knows the producers for the last snapshot.
	p.file = nil
	p.retention.Stop()
	_ = p.replica.dir.recovery.give(t, &closeLog{replica: p.replica, file: file, done: m.done}) // Reject says so
}

// markStrict writes the mark "strict, confirmed" of a replica, or removes it, on the recovery pool.
type markStrict struct {
	replica *replica
	epoch   ident.LeaderEpoch
	on      bool
}

// strictMarked tells that the mark is removed, durably.
type strictMarked struct {
	epoch ident.LeaderEpoch
	err   error
}

// Bytes implements runtime.Message.
func (*markStrict) Bytes() int   { return 0 }
func (*strictMarked) Bytes() int { return 0 }

// do implements job.
func (j *markStrict) do(t *runtime.Turn) {
	if j.on {
		j.replica.dir.store.ConfirmStrict(j.replica.tp) // setting it late is safe, so nobody waits for it
		return
	}
	err := j.replica.dir.store.SetStrict(j.replica.tp, false)
	_ = t.Send(j.replica.ref, &strictMarked{epoch: j.epoch, err: err}) // a partition that has stopped does not report
}

// marked tells the machine that the mark is gone. Without that it goes on counting flushed bytes only, which is safe.
func (p *partitionActor) marked(t *runtime.Turn, m *strictMarked) {
	switch {
	case m.err == nil:
		p.step(t, &partition.StrictCleared{LeaderEpoch: m.epoch})
	case p.replica.dir.store.Offline() != nil:
		p.shared.lost(t, p.replica.dir, m.err)
	default:
		p.log.Warn().Err(m.err).Msg("the mark of the strict mode could not be written; only flushed records of this replica count until it is")
	}
}
