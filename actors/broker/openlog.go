package broker

import (
	"errors"
	"fmt"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// openLog opens the log of a replica, on the recovery pool of its directory.
type openLog struct {
	replica   *replica
	config    store.LogConfig
	producers func(dst []record.ProducerEntry) []record.ProducerEntry
	wall      ident.Millis
	max       int // of producers
}

// opened is what came of it.
type opened struct {
	file      *store.Log
	recovery  store.Recovery
	producers *partition.Producers
	strict    bool // it has the mark "strict, confirmed"
	err       error
}

// Bytes implements runtime.Message.
func (*openLog) Bytes() int { return 0 }
func (*opened) Bytes() int  { return 0 }

// Owed implements runtime.Owed.
func (*opened) Owed() {}

// Reject implements runtime.Rejecter.
func (j *openLog) Reject(err error) { _ = j.replica.ref.Post(&opened{err: err}) }

// Reject implements runtime.Rejecter: the replica was stopped before its log came.
func (o *opened) Reject(error) {
	if o.file != nil {
		// The log is as recovery left it; closing it unclean changes nothing.
		_ = o.file.Close(false)
	}
}

// do implements job.
func (j *openLog) do(t *runtime.Turn) {
	o := &opened{producers: partition.NewProducers(j.max)}
	hooks := store.LogHooks{
		Producers:  j.producers,
		OnSnapshot: func(_ ident.Offset, entries []record.ProducerEntry) { o.producers.Load(entries, j.wall) },
		OnBatch:    func(v record.View) { o.producers.Replay(v.BaseOffset(), partition.InfoOf(v), j.wall) },
	}
	open := func() {
		o.file, o.recovery, o.err = j.replica.dir.store.OpenLog(j.replica.tp, j.replica.id, j.config, hooks, j.wall)
	}
	if open(); errors.Is(o.err, store.ErrStray) {
		open() // what was in the way has been set aside
	}
	o.strict = j.replica.dir.store.Strict(j.replica.tp) // here, because the directory is locked while its checkpoints are written
	_ = t.Send(j.replica.ref, o)                        // Reject closes what nobody takes
}

// open asks the pool for the log.
func (p *partitionActor) open(t *runtime.Turn) {
	p.held, p.opening = false, true
	_, wall := t.Now()
	j := &openLog{replica: p.replica, config: p.settings.log, wall: wall, max: p.settings.machine.ProducersMax}
	j.producers = func(dst []record.ProducerEntry) []record.ProducerEntry {
		if p.machine == nil {
			return dst
		}
		return p.machine.SnapshotProducers(dst)
	}
	_ = p.replica.dir.recovery.give(t, j) // Reject says so
}

// openedLog begins service, or goes offline.
func (p *partitionActor) openedLog(t *runtime.Turn, o *opened) {
	p.opening = false
	switch {
	case store.IsRetriable(o.err):
		p.openLater(t, o.err)
	case o.err != nil:
		p.unopened(t, o.err)
	case p.refuseAll != nil:
		o.Reject(nil)
		p.unopened(t, p.refuseAll)
	default:
		p.serve(t, o)
	}
	p.takeWaiting(t)
}

// openRetry is the pause before a log is opened again that could not be for lack of space or descriptors.
const openRetry = time.Second

// openLater refuses service until the log can be opened, which is tried again and again: nothing is wrong with what is stored.
func (p *partitionActor) openLater(t *runtime.Turn, err error) {
	p.replica.stats.offline.Store(true)
	p.tellMark(t, cluster.MarkOffline)
	p.refuseOffline()
	p.shared.sampled.refused(p.replica, err)
	if p.reopen == nil {
		p.reopen = t.NewTimer(signalOpen)
	}
	p.reopen.Reset(openRetry)
	p.settled(t)
}

// unopened leaves the replica offline: everybody hears KAFKA_STORAGE_ERROR.
func (p *partitionActor) unopened(t *runtime.Turn, err error) {
	p.replica.stats.offline.Store(true)
	p.tellMark(t, cluster.MarkOffline)
	p.refuseOffline()
	p.log.Error().Err(err).Msg(codeReplicaOffline + ": the log could not be opened; the replica is offline, the others serve")
	if p.replica.dir.store.Offline() != nil {
		p.shared.lost(t, p.replica.dir, err)
	}
	p.settled(t)
}

// serve starts the machine on the log.
func (p *partitionActor) serve(t *runtime.Turn, o *opened) {
	p.file = o.file
	p.replica.stats.offline.Store(false)
	p.file.Configure(p.settings.log)
	p.segments = p.file.Segments()
	state := partition.LogState{
		Start: p.file.Start(), End: p.file.End(), Flushed: p.file.Flushed(), Generation: p.file.Generation(),
		// What is flushed need not be committed: the high watermark comes from the in-sync replicas, or from the leader.
		HighWatermark:   p.file.Start(),
		StrictConfirmed: o.strict,
	}
	for _, e := range p.file.Epochs(nil) {
		state.Epochs = append(state.Epochs, partition.EpochStart{Epoch: e.Epoch, Start: e.Start})
	}
	p.firsts.tell(o.producers, p.now.Wall)
	p.machine = partition.New(partition.Options{Broker: p.shared.identity.Broker, Log: state, Config: p.settings.machine, Producers: o.producers})
	p.whole = p.replica.dir.whole(&o.recovery, state.StrictConfirmed)
	if p.replica.dir.misnamed(&o.recovery) {
		p.whole = false
		p.confess(t)
	}
	p.tellRecovery(&o.recovery)
	p.replica.stats.damaged.Store(int64(len(p.file.Damage())))
	if len(p.file.Damage()) > 0 {
		p.tellMark(t, cluster.MarkDamaged)
		p.repairSoon(t)
	} else {
		p.tellMark(t, cluster.MarkSound)
	}
	p.retention = t.NewTimer(signalRetain)
	p.retention.Reset(millis(p.shared.settings.Load().RetentionCheckMs))
	if p.become != nil {
		p.step(t, p.become)
	}
	if state.End > state.Flushed {
		p.unready = true // also when Root does not wait any more, because the log opens late
		p.askFlush(t)    // what recovery took from the page cache counts when a sync has returned
		return
	}
	p.settled(t)
}

// settled tells Root, once for each opening of the log, that the replica serves, or never will: everything recovery found is on stable storage.
func (p *partitionActor) settled(t *runtime.Turn) {
	if !p.unready || p.confessing {
		return
	}
	p.unready = false
	_ = t.Send(p.root, &replicaReady{replica: p.replica}) // Root is gone only when the broker stops
	p.takeWaiting(t)
	p.verify(t)
}

func (p *partitionActor) tellRecovery(r *store.Recovery) {
	if r.CutBytes > 0 {
		p.log.Warn().Int64("bytes", r.CutBytes).Int64("offset", int64(r.End)).Msg("the log had a torn tail, which was never acknowledged as durable; it was cut off")
	}
	for _, d := range r.Damage {
		p.log.Error().Int64("offset", int64(d.From)).Int64("end", int64(d.To)).
			Msg(codeDamage + ": records below the durable mark are damaged; reading them answers CORRUPT_MESSAGE")
	}
	if r.IndexesRebuilt > 0 {
		p.log.Info().Int("segments", r.IndexesRebuilt).Msg("index files were missing or wrong and were built anew")
	}
	p.log.Debug().Str("mode", fmt.Sprint(r.Mode)).Int64("offset", int64(r.End)).Int64("batches", r.Batches).Msg("log open")
}
