package broker

import (
	"errors"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// A truncation waits for the disk, so that it happens on the recovery pool of the directory, with the log on loan. The machine has lowered its offsets before
// and does nothing that needs the log until it hears that it is done. Regions that were handed out and reach above the cut become void: a session or a link
// that comes to one drops its connection (output).

// cutLog truncates a log, or begins it anew.
type cutLog struct {
	replica *replica
	file    *store.Log
	to      ident.Offset
	anew    bool
	rebuild bool // read the state of idempotent producers again
	max     int  // of them
}

// logCut ends the loan.
type logCut struct {
	end       ident.Offset
	producers *partition.Producers
	err       error
	undone    bool // the job was not taken: the broker stops
}

// Bytes implements runtime.Message.
func (*cutLog) Bytes() int { return 0 }
func (*logCut) Bytes() int { return 0 }

// Owed implements runtime.Owed.
func (*logCut) Owed() {}

// Reject implements runtime.Rejecter.
func (j *cutLog) Reject(error) { _ = j.replica.ref.Post(&logCut{undone: true}) } // one that has stopped has no log

// do implements job.
func (j *cutLog) do(t *runtime.Turn) {
	_, wall := t.System().Now()
	_ = t.Send(j.replica.ref, j.cut(wall)) // one that has stopped has no log
}

func (j *cutLog) cut(wall ident.Millis) *logCut {
	m := &logCut{end: j.to}
	if j.anew {
		m.err = j.file.Restart(j.to, wall)
	} else {
		// One that is tried again for its producers is cut already, at the base of a batch, which may lie below.
		m.end, m.err = j.file.Truncate(min(j.to, j.file.End()), wall)
	}
	if m.err == nil && j.rebuild {
		m.producers = partition.NewProducers(j.max)
		err := j.file.ReplayProducers(
			func(_ ident.Offset, entries []record.ProducerEntry) { m.producers.Load(entries, wall) },
			func(v record.View) { m.producers.Replay(v.BaseOffset(), partition.InfoOf(v), wall) },
		)
		if !errors.Is(err, store.ErrDamaged) { // what damaged batches said of their producers is lost with them
			m.err = err
		}
	}
	return m
}

// cut gives the log to the pool to be truncated.
func (p *partitionActor) cut(t *runtime.Turn, w *partition.Write) {
	p.lent = true
	p.stopCleaning()
	_ = p.replica.dir.recovery.give(t, &cutLog{ // Reject says so
		replica: p.replica, file: p.file, to: w.Offset, anew: w.Kind == partition.WriteRestart, rebuild: w.Rebuild, max: p.settings.machine.ProducersMax,
	})
}

// wasCut takes the log back.
func (p *partitionActor) wasCut(t *runtime.Turn, m *logCut) {
	p.lent = false
	switch {
	case m.undone:
		p.machine.Step(p.now, &partition.TruncateFailed{}, &p.out)
	case store.IsRetriable(m.err):
		p.shared.sampled.refused(p.replica, m.err)
		p.machine.Step(p.now, &partition.TruncateFailed{}, &p.out)
	case m.err != nil:
		p.fail(t, m.err)
	default:
		p.segments = p.file.Segments()
		p.machine.Step(p.now, &partition.Truncated{
			Generation: p.file.Generation(), End: m.end, Flushed: p.file.Flushed(), Producers: m.producers,
		}, &p.out)
		p.askFlush(t) // the new segment's name
	}
	if p.refuseAll != nil {
		p.stop(t, p.refuseAll)
	}
	p.carryOut(t)
	p.shareLate(t)
	p.takeWaiting(t)
}
