package broker

import (
	"cmp"
	"errors"
	"slices"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// cleanerActor has logs compacted: it asks the partitions of compacted topics how dirty they are, and has the dirtiest cleaned, as many at a time as
// log.cleaner.threads says. It waits for no disk itself.
//
//	idle ── log.cleaner.backoff.ms ──> asks all compacted partitions ── all have answered ──> begins runs, or idle
//	a run:  partition (BeginClean) ──> recovery pool (Work) ──> partition (SwapCleaned) ──> pool … ──> partition (EndClean) ──> cleaner, which asks again
//
// A log with a damaged batch is told of, once, and left alone until the broker is restarted.
type cleanerActor struct {
	shared *shared
	log    zerolog.Logger
	timer  *runtime.Timer
	pace   *pacer

	missing int // answers
	found   []*cleanFound
	running map[*replica]bool
	bad     map[*replica]bool
	ended   bool // a run has ended well since the last survey: look again at once
}

// Messages of the cleaner and its partitions.
type (
	// cleanLook asks a partition how dirty its log is.
	cleanLook struct {
		replica *replica
		cleaner *runtime.Ref
	}
	// cleanFound is the answer; without anything dirty when the partition has no log.
	cleanFound struct {
		replica   *replica
		cleanable store.Cleanable
		err       error
	}
	// cleanJob is one run: the partition begins it, the pool works, the partition takes what was done, in turns.
	cleanJob struct {
		replica *replica
		cleaner *runtime.Ref
		options store.CleanOptions
		pace    *pacer
		file    *store.Log
		began   ident.Instant
		run     *store.CleanRun // nil: to be begun
		step    store.CleanStep
		err     error
	}
	// cleanWork is a job while it is the pool's.
	cleanWork struct{ *cleanJob }
	// cleanEnded tells the cleaner what came of a run.
	cleanEnded struct {
		replica *replica
		stats   store.CleanStats
		took    ident.Instant
		err     error
	}
)

// Bytes implements runtime.Message.
func (*cleanLook) Bytes() int  { return 0 }
func (*cleanFound) Bytes() int { return 0 }
func (*cleanJob) Bytes() int   { return 0 }
func (*cleanEnded) Bytes() int { return 0 }

// Reject implements runtime.Rejecter: a partition that has stopped has no log.
func (l *cleanLook) Reject(error) {
	_ = l.cleaner.Post(&cleanFound{replica: l.replica}) // a cleaner that has stopped does not count
}

// Reject implements runtime.Rejecter: the partition, or the pool, has stopped.
func (j *cleanJob) Reject(err error) {
	if j.run != nil {
		j.run.Abandon()
	}
	_ = j.cleaner.Post(&cleanEnded{replica: j.replica, err: errors.Join(store.ErrCleanAborted, err)}) // the same
}

// Started implements runtime.Starter.
func (c *cleanerActor) Started(t *runtime.Turn) {
	c.running, c.bad = make(map[*replica]bool), make(map[*replica]bool)
	c.timer = t.NewTimer(signalTick)
	c.rest()
}

// rest waits for the next survey.
func (c *cleanerActor) rest() {
	c.timer.Reset(millis(max(c.values().BackoffMs, 1)))
}

func (c *cleanerActor) values() *config.CleanerValues { return &c.shared.settings.Load().Cleaner }

// Turn implements runtime.Behaviour.
func (c *cleanerActor) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case signal:
			c.survey(t)
		case *cleanFound:
			c.missing--
			c.found = append(c.found, m)
			if c.missing == 0 {
				c.begin(t)
			}
		case *cleanEnded:
			c.end(t, m)
		default:
			panic("broker: the cleaner got a message that it does not know")
		}
	}
}

// survey asks every compacted partition that is not being cleaned.
func (c *cleanerActor) survey(t *runtime.Turn) {
	if c.missing > 0 {
		return
	}
	c.ended, c.found = false, c.found[:0]
	var ask []*replica
	bad := make(map[*replica]bool)
	for _, e := range c.shared.topics.Load().all() {
		for _, r := range e.replicas {
			if r == nil {
				continue
			}
			if c.bad[r] {
				bad[r] = true
			}
			if e.rules.Compacted && !c.bad[r] && !c.running[r] {
				ask = append(ask, r)
			}
		}
	}
	c.bad = bad // a deleted topic takes its entry along
	c.shared.metrics.cleaner.uncleanable.Store(int64(len(bad)))
	if len(c.running) >= c.values().Threads || len(ask) == 0 {
		c.rest()
		return
	}
	c.missing = len(ask)
	for _, r := range ask {
		_ = t.Send(r.ref, &cleanLook{replica: r, cleaner: t.Self()}) // Reject answers
	}
}

// begin begins runs of the dirtiest logs that are due.
func (c *cleanerActor) begin(t *runtime.Turn) {
	v := c.values()
	top := 0.0
	var due []*cleanFound
	for _, f := range c.found {
		top = max(top, f.cleanable.Ratio())
		switch {
		case errors.Is(f.err, store.ErrDamaged):
			c.condemn(f.replica, f.err)
		case f.cleanable.Due:
			due = append(due, f)
		}
	}
	c.shared.metrics.cleaner.dirtiest.Store(int64(top * 100))
	slices.SortStableFunc(due, func(a, b *cleanFound) int { return cmp.Compare(b.cleanable.Ratio(), a.cleanable.Ratio()) })
	due = due[:min(len(due), max(v.Threads-len(c.running), 0))]
	for _, f := range due {
		c.running[f.replica] = true
		j := &cleanJob{replica: f.replica, cleaner: t.Self(), pace: c.pace}
		j.options = store.CleanOptions{
			MapBytes: v.MapBytes / int64(v.Threads), LoadFactor: v.LoadFactor, BufferBytes: v.BufferBytes / v.Threads,
		}
		_ = t.Send(f.replica.ref, j) // Reject ends it
	}
	clear(c.found)
	if len(due) == 0 {
		c.rest()
	}
}

// end takes note of a run. After one that has cleaned something there may be more to do; others are tried again after the pause.
func (c *cleanerActor) end(t *runtime.Turn, m *cleanEnded) {
	delete(c.running, m.replica)
	n := &c.shared.metrics.cleaner
	n.read.Add(m.stats.BytesRead)
	n.written.Add(m.stats.BytesWritten)
	n.dropped.Add(m.stats.Dropped)
	log := c.log.With().Str("topic", m.replica.tp.Topic).Int32("partition", m.replica.tp.Partition).Logger()
	switch {
	case m.err == nil:
		n.runs.Add(1)
		n.lastNanos.Store(int64(m.took))
		log.Info().Int64("offset", int64(m.stats.From)).Int64("end", int64(m.stats.To)).Int64("records", m.stats.Records).Int64("dropped", m.stats.Dropped).
			Int64("bytes", m.stats.BytesRead).Int64("written", m.stats.BytesWritten).Int("segments", m.stats.Segments).Msg("log compacted")
		if m.stats.Keyless > 0 {
			log.Warn().Int64("records", m.stats.Keyless).Msg("records without a key were dropped: a compacted topic cannot keep them")
		}
	case errors.Is(m.err, store.ErrDamaged):
		c.condemn(m.replica, m.err)
	case errors.Is(m.err, store.ErrCleanAborted):
		n.aborted.Add(1)
		log.Debug().Err(m.err).Msg("compaction aborted")
	case m.replica.dir.store.Offline() != nil:
		c.shared.lost(t, m.replica.dir, m.err)
	default:
		n.aborted.Add(1)
		c.shared.sampled.refused(m.replica, m.err)
	}
	if m.err == nil && m.stats.To > m.stats.From {
		c.survey(t)
		return
	}
	c.rest()
}

// condemn leaves a log alone.
func (c *cleanerActor) condemn(r *replica, err error) {
	c.bad[r] = true
	c.shared.metrics.cleaner.uncleanable.Store(int64(len(c.bad)))
	c.log.Error().Err(err).Str("topic", r.tp.Topic).Int32("partition", r.tp.Partition).Msg("the log is not compacted any more; it grows until this is mended and the broker restarted")
}

// look tells the cleaner how dirty the log is.
func (p *partitionActor) look(t *runtime.Turn, m *cleanLook) {
	f := &cleanFound{replica: p.replica}
	if p.machine != nil && p.file != nil && p.cleaning == nil {
		f.cleanable, f.err = p.file.Cleanable(p.now.Wall, p.machine.Offsets().HighWatermark)
	}
	_ = t.Send(m.cleaner, f) // a cleaner that has stopped does not count
}

// clean does the partition's part of a run, and gives it to the pool again, or back to the cleaner.
func (p *partitionActor) clean(t *runtime.Turn, j *cleanJob) {
	if p.machine == nil || p.file == nil || (j.run != nil && j.file != p.file) {
		j.Reject(nil)
		return
	}
	switch {
	case j.run == nil:
		p.beginClean(j)
	case j.err == nil && j.step == store.CleanSwap:
		j.err = p.file.SwapCleaned(j.run, p.now.Wall)
		p.segments = p.file.Segments()
	}
	if j.err == nil && j.run != nil && j.step != store.CleanDone {
		_ = p.replica.dir.recovery.give(t, &cleanWork{j}) // Reject ends it
		return
	}
	e := &cleanEnded{replica: p.replica, err: j.err}
	if j.run != nil {
		e.stats, e.took = p.file.EndClean(j.run), p.now.Mono-j.began
	}
	p.cleaning = nil
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
}

// do implements job.
func (w *cleanWork) do(t *runtime.Turn) {
	j := w.cleanJob
	_, wall := t.System().Now()
	j.step, j.err = j.run.Work(wall)
	if j.err == nil && j.step == store.CleanAgain {
		_ = j.replica.dir.recovery.give(t, w) // Reject ends it
		return
	}
	_ = t.Send(j.replica.ref, j) // Reject ends it
}
