package broker

import (
	"errors"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// How a replica gets back what is damaged, from the leader that it follows. A damaged leader hands over first (tellDamage), and is a follower then. The log is not
// on loan meanwhile: what is sound goes on being served, and new records come in.
//
//	partition ── BeginRepair ──> worker ── copies what is sound, until batches are wanted ──> partition ── RangeAsk ──> leader
//	                             worker <── takes the batches, wants more, or copies the rest ── partition <── RangeAnswer
//	partition <── all of it is on disk ── worker
//	    └── SwapRepaired, and the next range, until the replica is sound
//
// What does not work is tried again, with pauses, for as long as something is damaged. Only what is committed is fetched, and a batch only where it has the leader
// epoch that this log knows for its offset.

const (
	repairFirst   = 100 * time.Millisecond // from the discovery to the first try: the leadership may have to move
	repairLongest = 10 * time.Second       // between two tries; the pause doubles
	// repairWait is the pause while there is nobody to ask, or others are mended.
	repairWait = time.Second
	// repairAnswer is how long the leader may take, which has to read from its disk.
	repairAnswer = 5 * time.Second
	// repairBytes is how many bytes of batches one answer has at most, unless the first is larger.
	repairBytes = 1 << 20
	// repairsMax is how many replicas of a data directory are mended at a time.
	repairsMax = 4
)

// repairing is what a partition has to do with its damage.
type repairing struct {
	timer *runtime.Timer // nil: nothing was ever damaged
	pause time.Duration
	skip  ident.Offset // of ranges below it, none is tried in this round
	run   *repairRun   // nil: none is under way
	asked ident.Generation
	why   string // the last try was in vain, for people
}

// repairRun is one range that is being mended.
type repairRun struct {
	replica    *replica
	repair     *store.Repair
	leader     ident.BrokerID
	epoch      ident.LeaderEpoch
	generation ident.Generation
	ticket     ident.Generation // of the ask that is unanswered; 0: none is
	over       bool             // what the worker brings back is of no use
}

// Messages of a repair.
type (
	// repairWork is a piece for the worker: batches to put in, if there are any, and then what comes next.
	repairWork struct {
		run     *repairRun
		batches []byte
		next    ident.Offset
		shape   uint64 // of the leader's log
		put     bool
	}
	// repairWorked is what came of it.
	repairWorked struct {
		run  *repairRun
		step store.RepairStep
		err  error
	}
	// rangeGiven is the leader's answer. The batches are the message's.
	rangeGiven struct{ answer peer.RangeAnswer }
)

// Bytes implements runtime.Message.
func (*repairWork) Bytes() int   { return 0 }
func (*repairWorked) Bytes() int { return 0 }
func (m *rangeGiven) Bytes() int { return len(m.answer.Payload) }

// Owed implements runtime.Owed.
func (*repairWorked) Owed() {}

// Reject implements runtime.Rejecter: the broker stops.
func (j *repairWork) Reject(err error) { (&repairWorked{run: j.run, err: err}).Reject(err) }

// Reject implements runtime.Rejecter: the partition has stopped.
func (m *repairWorked) Reject(error) { m.run.end() }

// end lets go of a run, once the worker is done with it.
func (r *repairRun) end() {
	r.repair.Abandon()
	r.replica.dir.repairs.Add(-1)
}

// do implements job.
func (j *repairWork) do(t *runtime.Turn) {
	m := &repairWorked{run: j.run}
	if j.put {
		m.err = j.run.repair.Put(j.batches, j.next, j.shape)
	}
	if m.err == nil {
		m.step, m.err = j.run.repair.Work()
	}
	_ = t.Send(j.run.replica.ref, m) // Reject ends it
}

// repairMessage is a message about damage, repairs or ranges.
type repairMessage interface {
	runtime.Message
	take(p *partitionActor, t *runtime.Turn)
}

// repairSoon sees to it that what is damaged is mended. It may be called often.
func (p *partitionActor) repairSoon(t *runtime.Turn) {
	if p.shared.links == nil || p.mending.run != nil || p.mending.timer != nil && p.mending.pause > 0 {
		return
	}
	p.repairAfter(t, repairFirst)
}

func (p *partitionActor) repairAfter(t *runtime.Turn, pause time.Duration) {
	if p.mending.timer == nil {
		p.mending.timer = t.NewTimer(signalRepair)
	}
	p.mending.pause = pause
	p.mending.timer.Reset(pause)
}

// repairLater tries again after a longer pause.
func (p *partitionActor) repairLater(t *runtime.Turn) {
	p.repairAfter(t, min(max(2*p.mending.pause, repairFirst), repairLongest))
}

// repairDue begins with the next range, or gives up waiting for the leader.
func (p *partitionActor) repairDue(t *runtime.Turn) {
	m := &p.mending
	if run := m.run; run != nil {
		if run.ticket == 0 {
			return // the worker has it
		}
		m.why = notAnswered
		p.stopRepair()
	}
	if p.machine == nil || p.file == nil || len(p.file.Damage()) == 0 {
		m.pause = 0
		return
	}
	if p.machine.Role() != partition.Following || p.machine.Cutting() || p.machine.Leader() == ident.NoBroker || p.replica.dir.repairs.Load() >= repairsMax {
		p.repairAfter(t, repairWait)
		return
	}
	r, err := p.file.BeginRepair(m.skip, p.now.Wall)
	if err != nil {
		p.repairRefused(t, err)
		return
	}
	if r == nil {
		m.skip = 0
		p.repairLater(t)
		return
	}
	p.replica.dir.repairs.Add(1)
	m.run = &repairRun{
		replica: p.replica, repair: r, leader: p.machine.Leader(), epoch: p.machine.LeaderEpoch(), generation: p.file.Generation(),
	}
	p.giveRepair(t, &repairWork{run: m.run})
	p.sawRoll(t, p.file.End()) // the segment that has the range, if it was the active one
	p.carryOut(t)
}

// repairRefused deals with an error of the log's part in a repair.
func (p *partitionActor) repairRefused(t *runtime.Turn, err error) {
	if errors.Is(err, store.ErrRepairOver) || store.IsRetriable(err) {
		p.repairLater(t)
		return
	}
	p.fail(t, err)
	p.carryOut(t)
}

func (p *partitionActor) giveRepair(t *runtime.Turn, j *repairWork) {
	j.run.ticket = 0
	if p.replica.dir.recovery.give(t, j) != nil { // Reject has ended it
		p.mending.run = nil
		p.repairLater(t)
	}
}

// still tells whether a run is about the log and the leader that it began with.
func (p *partitionActor) still(r *repairRun) bool {
	return p.machine != nil && p.file != nil && !p.machine.Cutting() && p.machine.Role() == partition.Following && p.machine.Leader() == r.leader &&
		p.machine.LeaderEpoch() == r.epoch && p.file.Generation() == r.generation
}

// stopRepair ends the run that is under way: now, or when the worker brings it back.
func (p *partitionActor) stopRepair() {
	run := p.mending.run
	if run == nil {
		return
	}
	p.mending.run = nil
	if run.ticket != 0 {
		run.ticket = 0
		run.end()
		return
	}
	run.over = true
}

// take goes on where the worker has got to.
func (m *repairWorked) take(p *partitionActor, t *runtime.Turn) {
	run := m.run
	switch {
	case run.over || !p.still(run):
		if !run.over {
			p.mending.run = nil
		}
		run.end()
		if p.machine != nil {
			p.repairAfter(t, repairFirst)
		}
	case m.err != nil:
		p.repairFailed(t, run, m.err)
	case m.step == store.RepairAgain:
		p.giveRepair(t, &repairWork{run: run})
	case m.step == store.RepairWants:
		p.askRange(t, run)
	default:
		p.swapRepaired(t, run)
	}
}

// askRange asks the leader for the next batches.
func (p *partitionActor) askRange(t *runtime.Turn, run *repairRun) {
	want := run.repair.Wants()
	p.mending.asked++
	run.ticket = p.mending.asked
	p.shared.links.send(t, run.leader, peer.Data, &linkMessage{&peer.RangeAsk{
		Topic: p.replica.id, Partition: p.replica.tp.Partition, LeaderEpoch: run.epoch, Ticket: run.ticket, From: want.From, To: want.To, BytesMax: repairBytes, Copies: run.repair.Renews(),
	}})
	p.mending.timer.Reset(repairAnswer) // if nothing comes
}

// take takes in what the leader has sent.
func (m *rangeGiven) take(p *partitionActor, t *runtime.Turn) {
	a, run := &m.answer, p.mending.run
	if p.tookRecords(t, a) {
		return
	}
	if run == nil || run.ticket == 0 || a.Ticket != run.ticket || a.LeaderEpoch != run.epoch {
		return // too late
	}
	want := run.repair.Wants()
	switch {
	case a.Result == wire.NoError && a.High >= want.To && (a.Next > want.From || len(a.Payload) > 0):
		p.mending.timer.Stop()
		p.giveRepair(t, &repairWork{run: run, batches: a.Payload, next: a.Next, shape: a.Shape, put: true})
		return
	case a.Result != wire.NoError:
		p.mending.why = "the leader cannot give the records: " + a.Result.String()
		p.log.Info().Int64("offset", int64(want.From)).Int64("end", int64(want.To)).Int16("code", int16(a.Result)).
			Msg("the leader cannot give what is damaged here; it is asked again")
		p.mending.skip = run.repair.Range().To // another range may be there
	}
	p.stopRepair()
	p.repairLater(t)
}

// repairFailed deals with what the worker ran into.
func (p *partitionActor) repairFailed(t *runtime.Turn, run *repairRun, err error) {
	bad := run.repair.Unsound()
	p.mending.run, p.mending.skip = nil, run.repair.Range().To
	run.end()
	switch {
	case errors.Is(err, store.ErrDamaged) && bad.From < bad.To:
		p.mending.skip = 0
		p.condemn(t, bad) // and then all of it is mended
		p.repairAfter(t, repairFirst)
		return
	case errors.Is(err, store.ErrRepairOver), errors.Is(err, store.ErrClosed):
		p.log.Info().Err(err).Msg("the repair of damaged records begins again after a pause")
	case store.IsRetriable(err):
		p.mending.why = err.Error()
		p.shared.sampled.refused(p.replica, err)
	case errors.Is(err, store.ErrFormat):
		p.mending.why = "what the leader has at these offsets does not belong into this log: it is of another leader epoch"
		p.log.Warn().Err(err).Msg("what the leader sent for a damaged range does not belong there; it is asked for again")
	default:
		if p.machine != nil {
			p.fail(t, err)
			p.carryOut(t)
		}
		return
	}
	p.repairLater(t)
}

// swapRepaired puts what was mended in its place.
func (p *partitionActor) swapRepaired(t *runtime.Turn, run *repairRun) {
	if run.repair.Renews() {
		p.swapRenewed(t, run)
		return
	}
	left, err := p.file.SwapRepaired(run.repair, p.now.Wall)
	p.swapped(t, run, left, err)
}

// swapped goes on after what was mended is in its place, or is not.
func (p *partitionActor) swapped(t *runtime.Turn, run *repairRun, left store.OffsetRange, err error) {
	r := run.repair.Range()
	p.mending.run = nil
	run.end()
	if err != nil {
		p.repairRefused(t, err)
		return
	}
	if left.From < left.To {
		r.To = left.From
	}
	p.log.Info().Int64("offset", int64(r.From)).Int64("end", int64(r.To)).Int32("leader", int32(run.leader)).Msg("damaged records were fetched again, and are in their place")
	p.segments = p.file.Segments()
	p.replica.stats.repaired.Add(1)
	p.sounder(t)
	p.mending.pause, p.mending.why = 0, ""
	if len(p.file.Damage()) > 0 {
		p.repairAfter(t, time.Millisecond)
	}
}

// sounder tells how much is damaged yet, and the controller if that is nothing.
func (p *partitionActor) sounder(t *runtime.Turn) {
	n := len(p.file.Damage())
	p.replica.stats.damaged.Store(int64(n))
	if n == 0 {
		p.tellMark(t, cluster.MarkSound)
	}
}
