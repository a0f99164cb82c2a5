package broker

import (
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// partitionActor is one hosted replica: a partition.Machine that decides, a store.Log that keeps, and this shell, which does what the machine asks.
//
//	opening ── opened ──> serving ── a fault, a lost directory ──> offline   answers everything with KAFKA_STORAGE_ERROR
//	   └── the log cannot be opened ──────────────────────────────────┘
//	any ── remove ──> the log is deleted ──> stopped
//
// While the log is being opened, on the I/O pool, messages wait here.
type partitionActor struct {
	replica   *replica
	log       zerolog.Logger
	shared    *shared
	root      *runtime.Ref
	settings  topicSettings
	become    *partition.Become // the newest one
	held      bool              // the log of a deleted topic of this name has to go first
	opening   bool              // the log is being opened
	lent      bool              // the log is on loan to a search, or to be truncated
	waiting   []runtime.Message // for the log
	refuseAll error             // why the log is not to be used, when it comes
	condition cluster.Mark      // as the controller was told
	full      bool              // likewise: nothing can be appended

	machine *partition.Machine // nil: offline, or opening
	file    *store.Log         // nil with machine
	refusal wire.ErrorCode     // of everything, when there is no machine
	lost    bool               // the machine was stopped; let go of it when its last answers are given
	writing bool               // a batch is being appended
	now     partition.Now
	out     partition.Out
	replied int // replies of out that were given
	timers  [partition.AlarmRoom + 1]*runtime.Timer

	current runtime.Message // whose command is being stepped, if it has a request id
	id      ident.RequestID // of current; 0: it has been answered
	parked  map[ident.RequestID]runtime.Message

	followers []*linkInfo     // by which each follower that asks has asked last
	asks      ident.RequestID // of followers, so far

	segments int       // of the log, to see it roll
	dirty    bool      // the flusher was asked and has not come yet
	passed   bool      // it came while the log was on loan
	shares   int       // of the log, that the flusher has
	closing  *closeLog // waits for them
	whole    bool      // it has all it ever told a leader, by its recovery
	// unverified: the controller waits to hear that.
	unverified bool
	confessing bool            // the controller took it for whole, and has not heard yet that it is not
	unready    bool            // clients, and Root at the start, wait until this replica is as durable as it was found
	cleaning   *store.CleanRun // under way; nil: none
	copying    copying         // of the log by followers
	retention  *runtime.Timer
	reopen     *runtime.Timer // tries again to open the log
	removing   bool           // what is there of a log that was not opened is being removed
	firsts     firsts         // of producers, refused until then
	mending    repairing
	comparing  comparing
	checking   *replicaCheck // under way; nil: none
	checked    *replicaCheck // the newest that is over; nil: none

	unmarking   ident.LeaderEpoch // whose cached mode waits for the mark "strict, confirmed" to be gone; NoLeaderEpoch: none does
	unmarkPause time.Duration     // before that is tried again; 0: it has not failed
	unmarkAgain *runtime.Timer

	appended  partition.Appended // commands that are used again and again
	failed    partition.AppendFailed
	space     partition.Looked
	flushed   partition.Flushed
	rolled    partition.Rolled
	trim      partition.Trim
	configure partition.Configure
}

// Messages of a partition, besides produceWrite, fetchRead, unpark, question, groupWrite, groupRead, and those of other brokers (replicalinks.go).
type (
	// becomePartition is the partition's newest record in the metadata, or another registration of one of its replicas.
	becomePartition struct {
		command    *partition.Become
		unverified bool // the controller waits to hear how the replica came out of its recovery
	}
	// configurePartition carries changed settings.
	configurePartition struct{ settings topicSettings }
	// takeOffline ends the service of a replica whose directory is lost.
	takeOffline struct{ reason error }
	// removePartition deletes the replica and all its records, because its topic was deleted, or the partition is kept elsewhere.
	removePartition struct{ code wire.ErrorCode }
	// removed tells that the log is gone.
	removed struct{ err error }
	// closePartition closes the log for a clean stop. done is told, once.
	closePartition struct{ done func(error) }
	// synced is the result of a flush round.
	synced struct{ result store.SyncResult }
)

// Bytes implements runtime.Message.
func (*becomePartition) Bytes() int    { return 0 }
func (*configurePartition) Bytes() int { return 0 }
func (*takeOffline) Bytes() int        { return 0 }
func (*removePartition) Bytes() int    { return 0 }
func (*removed) Bytes() int            { return 0 }
func (*closePartition) Bytes() int     { return 0 }
func (*synced) Bytes() int             { return 0 }

// Owed implements runtime.Owed: orders of Root, and what the partition has asked for.
func (*becomePartition) Owed()    {}
func (*configurePartition) Owed() {}
func (*takeOffline) Owed()        {}
func (*removePartition) Owed()    {}
func (*removed) Owed()            {}
func (*closePartition) Owed()     {}
func (*synced) Owed()             {}

// Reject implements runtime.Rejecter: the partition has stopped, so that nothing is open.
func (c *closePartition) Reject(error) { c.done(nil) }

// Started implements runtime.Starter.
func (p *partitionActor) Started(t *runtime.Turn) {
	p.parked = make(map[ident.RequestID]runtime.Message)
	p.shared.inspection.add(p)
	p.refusal, p.unmarking = wire.KafkaStorageError, ident.NoLeaderEpoch
	if p.refuseAll != nil {
		p.unready = true
		p.unopened(t, p.refuseAll)
		return
	}
	p.opening, p.unready = true, true
	if !p.held {
		p.open(t)
	}
}

// Turn implements runtime.Behaviour.
func (p *partitionActor) Turn(t *runtime.Turn, batch []runtime.Message) {
	p.now.Mono, p.now.Wall = t.Now()
	for i, m := range batch {
		p.take(t, m)
		batch[i] = nil
	}
	p.publish()
	p.shared.inspection.turn(p)
}

// take handles one message; those that ask wait until the log is open.
func (p *partitionActor) take(t *runtime.Turn, m runtime.Message) {
	switch m := m.(type) {
	case *opened:
		p.openedLog(t, m)
		return
	case *becomePartition:
		p.unverified = m.unverified
		p.became(t, m)
		p.verify(t)
		return
	case *configurePartition:
		p.configured(t, m.settings)
		return
	case *takeOffline:
		p.offline(t, m.reason)
		return
	case signal:
		if m == signalOpen {
			if !p.removing {
				p.open(t)
			}
			return
		}
	case *found:
		p.returned(t, m)
		return
	case *logCut:
		p.wasCut(t, m)
		return
	case *logRenewed:
		p.wasRenewed(t, m)
		return
	case *confessed:
		p.wasConfessed(t)
		return
	case *beginShare:
		if p.lent {
			p.passRound(t, m)
			return
		}
	case *synced:
		if p.lent {
			p.waiting = append(p.waiting, &synced{result: m.result}) // the flusher may use m again before the log is back
			return
		}
	}
	if p.opening || p.lent || p.unready && asks(m) {
		p.wait(m)
		return
	}
	switch m := m.(type) {
	case *produceWrite:
		p.append(t, m)
	case *groupWrite:
		p.append(t, m)
	case *groupRead:
		p.readGroups(t, m)
	case *fetchRead:
		p.fetch(t, m)
	case *readAgain:
		p.readOnceMore(t, m.read)
	case *groupsAgain:
		p.readGroupsAgain(t, m.read)
	case *followerAsk:
		p.asked(t, m)
	case *asksAgain:
		p.readForFollowerAgain(t, m.ask)
	case *followerProgress:
		p.step(t, &m.command)
		followerProgresses.Put(m)
	case *withdrawn:
		if !m.link.voided.Load() {
			p.step(t, &m.command)
		}
	case *leaderAnswer:
		p.answered(t, m)
	case *leaderMark:
		p.step(t, &m.command)
		leaderMarks.Put(m)
	case *linkChanged:
		p.linked(t, m)
	case repairMessage:
		m.take(p, t)
	case *unpark:
		p.unpark(t, m)
	case *question:
		p.answer(t, m)
	case *beginShare:
		p.beginSync(t, m)
	case *cleanLook:
		p.look(t, m)
	case *cleanJob:
		p.clean(t, m)
	case *synced:
		p.syncedLog(t, m)
	case *strictMarked:
		p.marked(t, m)
	case *removePartition:
		p.remove(t, m.code)
	case *removed:
		p.removedLog(t, m)
	case *closePartition:
		p.close(t, m)
	case signal:
		p.signalled(t, m)
	default:
		panic(fmt.Sprintf("broker: a partition got a %T", m))
	}
}

// asks tells whether a message is a client's. Clients wait until what recovery found is durable: before, the high watermark is lower than they were told.
func asks(m runtime.Message) bool {
	switch m.(type) {
	case *produceWrite, *groupWrite, *groupRead, *fetchRead, *unpark, *question:
		return true
	}
	return false
}

func (p *partitionActor) signalled(t *runtime.Turn, m signal) {
	switch m {
	case signalTick:
		if p.machine != nil {
			p.machine.Tick(p.now, &p.out)
			p.carryOut(t)
		}
	case signalRetain:
		p.retain(t)
	case signalRepair:
		p.repairDue(t)
	case signalCompare:
		p.compareEnds(notAnswered)
	case signalUnmark:
		if p.machine != nil && p.unmarking != ident.NoLeaderEpoch {
			p.unmark(t)
		}
	default:
		panic(fmt.Sprintf("broker: a partition got signal %d", m))
	}
}

// wait keeps a message until the log can be used again. The mailbox does not bound what it has handed over, so this does, likewise.
func (p *partitionActor) wait(m runtime.Message) {
	_, owed := m.(runtime.Owed)
	if r, ok := m.(runtime.Rejecter); ok && !owed && len(p.waiting) >= waitersMax {
		r.Reject(runtime.ErrFull)
		return
	}
	p.waiting = append(p.waiting, m)
}

// takeWaiting handles what has waited, as long as the log is there. Some of it may have to wait on.
func (p *partitionActor) takeWaiting(t *runtime.Turn) {
	waiting := p.waiting
	p.waiting = nil
	for i, m := range waiting {
		if p.opening || p.lent {
			p.waiting = append(p.waiting, waiting[i:]...)
			return
		}
		p.take(t, m)
	}
}

// Stopped implements runtime.Stopper: what still waits is answered.
func (p *partitionActor) Stopped(*runtime.Turn) {
	p.shared.inspection.remove(p)
	for _, m := range p.waiting {
		if r, ok := m.(runtime.Rejecter); ok {
			r.Reject(runtime.ErrStopped)
		}
	}
	p.waiting = nil
	p.compareEnds("")
}

// Stopping implements runtime.Stopper.
func (p *partitionActor) Stopping(*runtime.Turn) {}

// step gives the machine a command that nobody waits for, and does what it asks.
func (p *partitionActor) step(t *runtime.Turn, c partition.Command) {
	if p.machine == nil {
		return
	}
	p.machine.Step(p.now, c, &p.out)
	p.carryOut(t)
}

// ask gives the machine the command of a message, whose answer may come at once or later.
func (p *partitionActor) ask(t *runtime.Turn, m runtime.Message, id ident.RequestID, c partition.Command) {
	p.current, p.id = m, id
	p.machine.Step(p.now, c, &p.out)
	p.carryOut(t)
	if p.id != 0 {
		p.parked[id] = m
	}
	p.current, p.id = nil, 0
}

// waiter finds whom a reply is for, and forgets that it waits.
func (p *partitionActor) waiter(id ident.RequestID) runtime.Message {
	if id == p.id {
		p.id = 0
		return p.current
	}
	m, ok := p.parked[id]
	if !ok {
		panic(fmt.Sprintf("broker: partition %s answered request %d, which nobody asked", p.replica.tp, id))
	}
	delete(p.parked, id)
	return m
}

// batchWrite is a message that brings a batch: a client's produceWrite or a coordinator's groupWrite. It goes back with the outcome.
type batchWrite interface {
	runtime.Message
	appending() (*partition.Append, record.View)
	appended(t *runtime.Turn, r *partition.Reply) // the machine's answer
	offline(t *runtime.Turn, code wire.ErrorCode) // there is no machine
}

// append appends a batch.
func (p *partitionActor) append(t *runtime.Turn, w batchWrite) {
	command, _ := w.appending()
	if p.machine == nil {
		p.firsts.note(&command.Batch)
		w.offline(t, p.refusal)
		return
	}
	p.ask(t, w, command.Request, command)
}

// fetch reads, or waits for something to read.
func (p *partitionActor) fetch(t *runtime.Turn, r *fetchRead) {
	if p.machine == nil {
		r.Refuse(p.refusal)
		r.back = true
		_ = t.Send(r.session, r)
		return
	}
	p.ask(t, r, r.command.Request, &r.command)
}

func (p *partitionActor) unpark(t *runtime.Turn, u *unpark) {
	p.step(t, &u.command)
	unparks.Put(u)
}

// became applies the newest record of the partition, now or when the log is open.
func (p *partitionActor) became(t *runtime.Turn, m *becomePartition) {
	p.become = m.command
	if p.replica.stats.offline.Load() {
		p.refuseOffline()
	}
	if p.lent {
		p.wait(m)
		return
	}
	p.step(t, m.command)
}

// configured applies changed settings.
func (p *partitionActor) configured(t *runtime.Turn, s topicSettings) {
	p.settings = s
	if p.machine == nil || p.file == nil {
		return
	}
	if p.lent {
		p.wait(&configurePartition{settings: s})
		return
	}
	p.file.Configure(s.log)
	if !s.log.Compact {
		p.stopCleaning()
	}
	p.configure.Config = s.machine
	p.step(t, &p.configure)
}

// publish updates what others read without asking.
func (p *partitionActor) publish() {
	s := &p.replica.stats
	if p.machine == nil || p.file == nil || p.lent {
		return
	}
	o := p.machine.Offsets()
	s.start.Store(int64(o.LogStart))
	s.end.Store(int64(o.End))
	s.high.Store(int64(o.HighWatermark))
	s.flushed.Store(int64(o.Flushed))
	s.leading.Store(p.machine.Role() == partition.Leading)
	s.sizeBytes.Store(p.file.Size())
	s.segments.Store(int64(p.segments))
}
