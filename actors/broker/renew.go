package broker

import (
	"encoding/binary"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// A compacted log whose damage cannot be mended by itself gets all of its compacted part from the leader (store, renew.go). Putting it in its place waits for the
// disk, so that it happens on the recovery pool of the directory, with the log on loan. The leader's log has to stay as it is meanwhile: its shape tells, and with it the
// run of the leader's broker.

// shape is that of the log here, as another broker is told.
func (p *partitionActor) shape() uint64 {
	run := &p.shared.identity.Incarnation
	return (p.file.Shape() ^ binary.LittleEndian.Uint64(run[:8])) | 1 // 0 is: not told
}

// swapRenewed puts the compacted part in its place.
type swapRenewed struct {
	run  *repairRun
	file *store.Log
}

// logRenewed ends the loan.
type logRenewed struct {
	run    *repairRun
	left   store.OffsetRange
	err    error
	undone bool // the job was not taken: the broker stops
}

// Bytes implements runtime.Message.
func (*swapRenewed) Bytes() int { return 0 }
func (*logRenewed) Bytes() int  { return 0 }

// Owed implements runtime.Owed.
func (*logRenewed) Owed() {}

// Reject implements runtime.Rejecter.
func (j *swapRenewed) Reject(error) {
	_ = j.run.replica.ref.Post(&logRenewed{run: j.run, undone: true}) // Reject ends the run
}

// Reject implements runtime.Rejecter: the partition has stopped.
func (m *logRenewed) Reject(error) { m.run.end() }

// do implements job.
func (j *swapRenewed) do(t *runtime.Turn) {
	_, wall := t.System().Now()
	m := &logRenewed{run: j.run}
	m.left, m.err = j.file.SwapRepaired(j.run.repair, wall)
	_ = t.Send(j.run.replica.ref, m) // Reject ends the run
}

// swapRenewed gives the log to the pool.
func (p *partitionActor) swapRenewed(t *runtime.Turn, run *repairRun) {
	p.lent = true
	_ = p.replica.dir.recovery.give(t, &swapRenewed{run: run, file: p.file}) // Reject says so
}

// wasRenewed takes the log back.
func (p *partitionActor) wasRenewed(t *runtime.Turn, m *logRenewed) {
	p.lent = false
	switch {
	case m.undone:
		p.mending.run = nil
		m.run.end()
	case p.machine == nil || p.file == nil:
		m.run.end()
	default:
		p.swapped(t, m.run, m.left, m.err)
	}
	if p.refuseAll != nil {
		p.stop(t, p.refuseAll)
	}
	p.carryOut(t)
	p.shareLate(t)
	p.takeWaiting(t)
}

// copying keeps the cleaner from a leader's log that a follower copies (RangeAsk.Copies): each compaction makes the copy begin again, and one of a large log would
// never end.
type copying struct {
	first, last ident.Instant // ask of those that came one after the other; 0: none
}

const (
	// copyPause is how long after an ask a copy counts as given up.
	copyPause = ident.Instant(4 * repairAnswer)
	// copyHoldMax is how long a copy holds the cleaner up in all. The log is compacted once then, which the next one has to outrun.
	copyHoldMax = ident.Instant(30 * time.Minute)
)

// asked notes an ask.
func (c *copying) asked(now ident.Instant) {
	if !c.underWay(now) {
		c.first = now
	}
	c.last = now
}

func (c *copying) underWay(now ident.Instant) bool { return c.last != 0 && now < c.last+copyPause }

// holds tells whether the log is to stay as it is.
func (c *copying) holds(now ident.Instant) bool { return c.underWay(now) && now < c.first+copyHoldMax }

// cleaned notes that the log was compacted all the same: the copy begins again.
func (c *copying) cleaned() { c.first = c.last }
