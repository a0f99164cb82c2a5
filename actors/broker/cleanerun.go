package broker

import (
	"errors"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/store"
)

// look tells the cleaner how dirty the log is. When that is not in memory, the log is lent to the pool, which looks first.
func (p *partitionActor) look(t *runtime.Turn, m *cleanLook) {
	switch {
	case p.machine == nil || p.file == nil || p.cleaning != nil || p.copying.holds(p.now.Mono):
		_ = t.Send(m.cleaner, &cleanFound{replica: p.replica}) // a cleaner that has stopped does not count
	case p.cleanWaits():
		p.lendForClean(t, &found{look: m})
	default:
		p.looked(t, m, nil)
	}
}

// looked answers when what there is to know is in memory, or cannot be known.
func (p *partitionActor) looked(t *runtime.Turn, m *cleanLook, err error) {
	f := &cleanFound{replica: p.replica, err: err}
	if err == nil && p.machine != nil && p.file != nil {
		f.cleanable, f.err = p.file.Cleanable(p.now.Wall, p.machine.Offsets().HighWatermark)
	}
	p.sift(t, f.err)
	_ = t.Send(m.cleaner, f) // a cleaner that has stopped does not count
}

func (p *partitionActor) cleanWaits() bool {
	return p.file.CleanWaits(p.now.Wall, p.machine.Offsets().HighWatermark)
}

// lendForClean gives the log to the pool to learn what is dirty.
func (p *partitionActor) lendForClean(t *runtime.Turn, back *found) {
	p.lent = true
	back.replica = p.replica
	_ = p.shared.pool.give(t, &lookUp{file: p.file, back: *back, wall: p.now.Wall, high: p.machine.Offsets().HighWatermark}) // Reject says so
}

// sift deals with an error that looking at the log gave.
func (p *partitionActor) sift(t *runtime.Turn, err error) {
	switch {
	case err == nil:
	case errors.Is(err, store.ErrDamaged):
		p.tellDamage(t)
		p.carryOut(t)
	case store.IsRetriable(err):
		p.shared.sampled.refused(p.replica, err)
	default:
		p.fail(t, err)
		p.carryOut(t)
	}
}

// clean does the partition's part of a run, and gives it to the worker again, or back to the cleaner.
func (p *partitionActor) clean(t *runtime.Turn, j *cleanJob) {
	switch {
	case p.machine == nil || p.file == nil || (j.run != nil && j.file != p.file):
		j.Reject(nil)
	case j.run == nil && p.cleanWaits():
		p.lendForClean(t, &found{clean: j})
	default:
		p.cleanNow(t, j)
	}
}

// cleanNow does it when a run that is to be begun need not wait for the disk.
func (p *partitionActor) cleanNow(t *runtime.Turn, j *cleanJob) {
	if p.machine == nil || p.file == nil {
		j.Reject(nil)
		return
	}
	switch {
	case j.run == nil && j.err == nil:
		p.beginClean(j)
	case j.err == nil && j.step == store.CleanSwap:
		j.err = p.file.SwapCleaned(j.run, p.now.Wall)
		p.segments = p.file.Segments()
		if j.err == nil {
			p.copying.cleaned()
		}
	}
	if j.err == nil && j.run != nil && j.step != store.CleanDone {
		_ = t.Send(j.worker, &cleanWork{j}) // Reject ends it
		return
	}
	e := &cleanEnded{replica: p.replica, err: j.err, nothing: j.run == nil && j.err == nil}
	// A run beside which a repair has put another file in the place of one that it reads has met damage that is none.
	believed := j.run != nil && !j.run.Cancelled()
	if j.run != nil {
		e.stats, e.took = p.file.EndClean(j.run), p.now.Mono-j.began
	}
	p.cleaning = nil
	if believed && errors.Is(j.err, store.ErrDamaged) {
		p.condemn(t, j.run.Unsound())
	}
	if j.err != nil && p.replica.dir.store.Offline() != nil {
		p.fail(t, j.err)
		p.carryOut(t)
	}
	_ = t.Send(j.cleaner, e) // a cleaner that has stopped does not count
}

func (p *partitionActor) beginClean(j *cleanJob) {
	j.options.Throttle = func(n int) {
		if j.pace != nil {
			j.pace.take(n, j.run.Cancelled)
		}
	}
	j.file, j.began = p.file, p.now.Mono
	j.run, j.err = p.file.BeginClean(p.now.Wall, p.machine.Offsets().HighWatermark, j.options)
	p.cleaning = j.run
}

// stopCleaning makes a run that is under way end, because the log is about to be closed, or is not to be compacted any more.
func (p *partitionActor) stopCleaning() {
	if p.cleaning != nil {
		p.cleaning.Cancel()
	}
	p.stopRepair()
}

// do implements job.
func (w *cleanWork) do(t *runtime.Turn) {
	j := w.cleanJob
	for j.step = store.CleanAgain; j.err == nil && j.step == store.CleanAgain; {
		_, wall := t.System().Now()
		j.step, j.err = j.run.Work(wall)
	}
	_ = t.Send(j.replica.ref, j) // Reject ends it
}
