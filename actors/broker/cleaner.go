package broker

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// cleanerActor has logs compacted: it asks the partitions of compacted topics how dirty they are, and has the dirtiest cleaned, as many at a time as
// log.cleaner.threads says. It waits for no disk itself.
//
//	idle ── log.cleaner.backoff.ms ──> asks all compacted partitions ── all have answered ──> begins runs, as many as there are threads free ──> idle
//	a run:  partition (BeginClean) ──> worker (Work) ──> partition (SwapCleaned) ──> worker … ──> partition (EndClean) ──> cleaner, which asks again
//
// Each run has a worker of the cleaner's own: it may take hours, and nobody who opens or deletes a log is to wait for it.
// A log with a damaged batch is told of, once, and left alone until something of it was mended, or the broker is restarted.
type cleanerActor struct {
	shared *shared
	log    zerolog.Logger
	timer  *runtime.Timer
	pace   *pacer

	missing int // answers
	found   []*cleanFound
	running map[*replica]*runtime.Ref // with the worker of the run
	idle    []*runtime.Ref            // workers
	hired   int                       // workers, ever: for their names
	bad     map[*replica]int64        // with the number of ranges that had been mended
	over    bool                      // the broker stops: nothing is begun any more
	resting []func()                  // are called when no run is left
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
	// cleanJob is one run: the partition begins it, the worker works, the partition takes what was done, in turns.
	cleanJob struct {
		replica *replica
		cleaner *runtime.Ref
		worker  *runtime.Ref
		options store.CleanOptions
		pace    *pacer
		file    *store.Log
		began   ident.Instant
		run     *store.CleanRun // nil: to be begun
		step    store.CleanStep
		err     error
	}
	// cleanWork is a job while it is the worker's.
	cleanWork struct{ *cleanJob }
	// cleanRest asks the cleaner to begin nothing more, and to call done when no run is left.
	cleanRest struct{ done func() }
	// cleanEnded tells the cleaner what came of a run.
	cleanEnded struct {
		replica *replica
		stats   store.CleanStats
		took    ident.Instant
		nothing bool // was to be done
		err     error
	}
)

// Bytes implements runtime.Message.
func (*cleanLook) Bytes() int  { return 0 }
func (*cleanFound) Bytes() int { return 0 }
func (*cleanJob) Bytes() int   { return 0 }
func (*cleanEnded) Bytes() int { return 0 }
func (*cleanRest) Bytes() int  { return 0 }

// Owed implements runtime.Owed: the partition counts it as under way.
func (*cleanJob) Owed() {}

// Reject implements runtime.Rejecter: the cleaner has stopped, and its workers before it.
func (r *cleanRest) Reject(error) { r.done() }

// Reject implements runtime.Rejecter: a partition that has stopped has no log.
func (l *cleanLook) Reject(error) {
	_ = l.cleaner.Post(&cleanFound{replica: l.replica}) // a cleaner that has stopped does not count
}

// Reject implements runtime.Rejecter: the partition, or the worker, has stopped.
func (j *cleanJob) Reject(err error) {
	if j.run != nil {
		j.run.Abandon()
	}
	_ = j.cleaner.Post(&cleanEnded{replica: j.replica, err: errors.Join(store.ErrCleanAborted, err)}) // the same
}

// Started implements runtime.Starter.
func (c *cleanerActor) Started(t *runtime.Turn) {
	c.running, c.bad = make(map[*replica]*runtime.Ref), make(map[*replica]int64)
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
		case *cleanRest:
			c.over, c.resting = true, append(c.resting, m.done)
		default:
			panic("broker: the cleaner got a message that it does not know")
		}
	}
	if c.over && len(c.running) == 0 {
		for _, done := range c.resting {
			done()
		}
		c.resting = nil
	}
}

// survey asks every compacted partition that is not being cleaned.
func (c *cleanerActor) survey(t *runtime.Turn) {
	if c.missing > 0 || c.over {
		return
	}
	c.found = c.found[:0]
	var ask []*replica
	bad := make(map[*replica]int64)
	for _, e := range c.shared.topics.Load().all() {
		for _, r := range e.replicas {
			if r == nil {
				continue
			}
			mended, left := c.bad[r]
			if left = left && mended == r.stats.repaired.Load(); left {
				bad[r] = mended
			}
			if e.rules.Compacted && !left && c.running[r] == nil {
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
		case f.err != nil: // the partition has dealt with the others
			if errors.Is(f.err, store.ErrDamaged) {
				c.condemn(f.replica, f.err)
			}
		case f.cleanable.Due:
			due = append(due, f)
		}
	}
	c.shared.metrics.cleaner.dirtiest.Store(int64(top * 100))
	slices.SortStableFunc(due, func(a, b *cleanFound) int { return cmp.Compare(b.cleanable.Ratio(), a.cleanable.Ratio()) })
	due = due[:min(len(due), max(v.Threads-len(c.running), 0))]
	if c.over {
		due = nil
	}
	for _, f := range due {
		j := &cleanJob{replica: f.replica, cleaner: t.Self(), worker: c.hire(t), pace: c.pace}
		c.running[f.replica] = j.worker
		j.options = store.CleanOptions{
			MapBytes: v.MapBytes / int64(v.Threads), LoadFactor: v.LoadFactor, BufferBytes: v.BufferBytes / v.Threads,
		}
		_ = t.Send(f.replica.ref, j) // Reject ends it
	}
	clear(c.found)
	c.rest() // the next may become due, or another thread be granted, long before a run ends
}

// hire finds an idle worker, or makes one.
func (c *cleanerActor) hire(t *runtime.Turn) *runtime.Ref {
	if n := len(c.idle); n > 0 {
		w := c.idle[n-1]
		c.idle = c.idle[:n-1]
		return w
	}
	spec := blocking(cast("ioworker", "clean-"+strconv.Itoa(c.hired), &ioWorker{}))
	spec.BatchMax = 1
	ref, err := t.Spawn(spec)
	if err != nil {
		panic("broker: a worker of the cleaner could not be spawned: " + err.Error())
	}
	c.hired++
	return ref
}

// release takes a worker back, and dismisses the idle ones that are more than log.cleaner.threads.
func (c *cleanerActor) release(r *replica) {
	w := c.running[r]
	delete(c.running, r)
	if w == nil {
		return
	}
	c.idle = append(c.idle, w)
	for n := len(c.idle); n > 0 && n+len(c.running) > c.values().Threads; n-- {
		c.idle[n-1].Stop()
		c.idle = c.idle[:n-1]
	}
}

// end takes note of a run. After one that has cleaned something there may be more to do; others are tried again after the pause.
func (c *cleanerActor) end(t *runtime.Turn, m *cleanEnded) {
	c.release(m.replica)
	if m.nothing {
		c.rest()
		return
	}
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
	c.bad[r] = r.stats.repaired.Load()
	c.shared.metrics.cleaner.uncleanable.Store(int64(len(c.bad)))
	c.log.Error().Err(err).Str("topic", r.tp.Topic).Int32("partition", r.tp.Partition).Msg("the log is not compacted any more; it grows until this is mended")
}
