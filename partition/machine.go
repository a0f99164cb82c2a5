package partition

import (
	"fmt"
	"math"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// Now is the time of a turn, on both clocks. Deadlines and alarms use the monotonic
// one, ages of producers the wall clock.
type Now struct {
	Mono ident.Instant
	Wall ident.Millis
}

// never is the instant of an alarm that is not armed.
const never = ident.Instant(math.MaxInt64)

// Role is what this broker is to the partition.
type Role int8

// The roles; see the package comment for how they follow each other.
const (
	// Unassigned is the role between New and the first Become.
	Unassigned Role = iota
	// Leading: appends and serves.
	Leading
	// Following: another broker leads, or none does.
	Following
	// Stopped: answers everything with the code it was stopped with.
	Stopped
)

// Machine is one replica of one partition. It is not safe for concurrent use: its
// actor steps it.
type Machine struct {
	broker ident.BrokerID
	config Config

	// What the metadata log says.
	role           Role
	stopCode       wire.ErrorCode // of a Stopped machine
	leader         ident.BrokerID
	leaderEpoch    ident.LeaderEpoch
	partitionEpoch ident.PartitionEpoch
	epochStart     ident.Offset // where our leadership of leaderEpoch began; <= end

	// The local log.
	logStart      ident.Offset // <= highWatermark
	highWatermark ident.Offset // <= end; never goes back
	end           ident.Offset
	flushed       ident.Offset // <= end
	generation    ident.Generation
	epochs        epochList

	mode     mode
	replicas replicaSet

	// As a follower.
	follower follower
	cut      cut

	// As a leader.
	proposed  isrProposal
	early     []earlyFollower
	syncSince ident.Instant // when a sync was asked for that has not returned; never: none
	resigning resigning

	room room // as either

	// Who waits, and for what.
	proposal  proposal
	produces  produceHeap // each waits for a high watermark above the current one
	fetches   []parkedFetch
	deletes   []parkedDelete
	sizes     sizes
	producers *Producers

	// Alarms as armed last; never: not armed.
	produceAlarm  ident.Instant // <= the first deadline in produces
	flushAlarm    ident.Instant
	producerAlarm ident.Instant
	lagAlarm      ident.Instant // <= the first clock of a member that runs out
	syncAlarm     ident.Instant
	proposeAlarm  ident.Instant
	askAlarm      ident.Instant
	deleteAlarm   ident.Instant
	resignAlarm   ident.Instant
	roomAlarm     ident.Instant
}

// New makes the machine of a replica whose log was opened and recovered. It is
// Unassigned until the first Become.
func New(o Options) *Machine {
	l := o.Log
	if l.Start < 0 || l.Start > l.End || l.Flushed > l.End {
		panic(fmt.Sprintf("partition: a log from %d to %d, flushed to %d, cannot be", l.Start, l.End, l.Flushed))
	}
	m := &Machine{
		broker:        o.Broker,
		config:        o.Config,
		leader:        ident.NoBroker,
		leaderEpoch:   ident.NoLeaderEpoch,
		logStart:      l.Start,
		highWatermark: min(max(l.HighWatermark, l.Start), l.End),
		end:           l.End,
		flushed:       max(l.Flushed, l.Start),
		generation:    l.Generation,
		mode:          mode{marked: l.StrictConfirmed, confirmAt: ident.NoOffset},
		producers:     o.Producers,
		produceAlarm:  never,
		flushAlarm:    never,
		producerAlarm: never,
		lagAlarm:      never,
		syncAlarm:     never,
		proposeAlarm:  never,
		askAlarm:      never,
		deleteAlarm:   never,
		resignAlarm:   never,
		roomAlarm:     never,
		room:          room{refused: never},
		syncSince:     never,
	}
	m.follower.begin()
	for _, e := range l.Epochs {
		m.epochs.assign(e.Epoch, e.Start)
	}
	m.epochs.trim(m.logStart)
	if m.producers == nil {
		m.producers = NewProducers(o.Config.ProducersMax)
	}
	m.producers.max = o.Config.ProducersMax
	m.sizes.reset(m.end)
	return m
}

// Step applies one command and appends what follows from it to out. It never fails:
// a request that cannot be served is answered with a code. A shell that breaks the
// order of a turn, by stepping anything but Appended or AppendFailed after a
// WriteBatch or WriteReplica, is a bug and panics.
func (m *Machine) Step(now Now, c Command, out *Out) {
	switch outcome := isOutcome(c); {
	case m.proposal.open && !outcome:
		panic(fmt.Sprintf("partition: %T between a write of batches and its outcome", c))
	case outcome && !m.proposal.open:
		panic(fmt.Sprintf("partition: %T without a write of batches", c))
	}
	switch c := c.(type) {
	case *Append:
		m.append(now, c, out)
	case *Appended:
		m.appended(now, out)
	case *AppendFailed:
		m.appendFailed(now, c, out)
	case *Flushed:
		m.flushedTo(now, c, out)
	case *Fetch:
		m.fetch(c, out)
	case *Unpark:
		m.unpark(c, out)
	case *Progress:
		m.progress(now, c, out)
	case *Ask:
		m.ask(now, c, out)
	case *Withdraw:
		m.withdraw(now, c, out)
	case *Answered:
		m.answered(now, c, out)
	case *Watermark:
		m.watermark(c, out)
	case *Connected:
		m.connected(c, out)
	case *Disconnected:
		m.disconnected(now, c, out)
	case *Looked:
		m.looked(now, c, out)
	case *Truncated:
		m.truncated(now, c, out)
	case *TruncateFailed:
		m.truncateFailed(now, out)
	case *Rolled:
		m.rolled(c, out)
	case *Become:
		m.become(now, c, out)
	case *Configure:
		m.configure(now, c, out)
	case *DeleteRecords:
		m.deleteRecords(c, out)
	case *Trim:
		m.trim(c, out)
	case *ListOffsets:
		m.listOffsets(c, out)
	case *EpochEnd:
		m.epochEnd(c, out)
	case *DescribeProducers:
		m.describeProducers(c, out)
	case *StrictCleared:
		m.strictCleared(c, out)
	case *Stop:
		m.stop(c, out)
	default:
		panic(fmt.Sprintf("partition: unknown command %T", c))
	}
}

// isOutcome tells whether a command says what came of a WriteBatch.
func isOutcome(c Command) bool {
	_, appended := c.(*Appended)
	_, failed := c.(*AppendFailed)
	return appended || failed
}

// Tick does what time alone makes due: deadlines of parked produces, flush.ms,
// forgotten producers, followers that lag, a sync that hangs, what is to be proposed
// or asked again, a look for room. Calling it early or often does no harm.
func (m *Machine) Tick(now Now, out *Out) {
	if now.Mono >= m.produceAlarm {
		m.expireProduces(now, out)
	}
	if now.Mono >= m.flushAlarm {
		m.flushAlarm = never
		if m.end > m.flushed {
			m.flush(now, out)
			m.armFlush(now, out)
		}
	}
	if now.Mono >= m.producerAlarm {
		m.expireProducers(now, out)
	}
	if now.Mono >= m.lagAlarm {
		m.checkLag(now, out)
	}
	if now.Mono >= m.syncAlarm {
		m.checkSync(now, out)
	}
	if now.Mono >= m.proposeAlarm {
		m.retryProposal(now, out)
	}
	if now.Mono >= m.askAlarm {
		m.askAgain(out)
	}
	if now.Mono >= m.deleteAlarm {
		m.expireDeletes(now, out)
	}
	if now.Mono >= m.resignAlarm {
		m.proposeResign(now, out)
	}
	if now.Mono >= m.roomAlarm {
		m.lookForRoom(now, out)
	}
}

// Role tells what this broker is to the partition now.
func (m *Machine) Role() Role { return m.role }

// Leader is the leader by the last Become that was applied, to whom a follower speaks;
// ident.NoBroker: there is none.
func (m *Machine) Leader() ident.BrokerID { return m.leader }

// LeaderEpoch is the epoch of the last Become that was applied, or
// ident.NoLeaderEpoch.
func (m *Machine) LeaderEpoch() ident.LeaderEpoch { return m.leaderEpoch }

// Offsets is a reading of the machine's offsets, for answers and metrics.
type Offsets struct {
	LogStart      ident.Offset
	LastStable    ident.Offset
	HighWatermark ident.Offset
	End           ident.Offset
	Flushed       ident.Offset
}

// Offsets reads the offsets.
func (m *Machine) Offsets() Offsets {
	return Offsets{
		LogStart:      m.logStart,
		LastStable:    m.lastStable(),
		HighWatermark: m.highWatermark,
		End:           m.end,
		Flushed:       m.flushed,
	}
}

// Replication is a reading of how well the partition is replicated, as its leader counts
// it (UnderReplicated, UnderMinIsr, AtMinIsr).
type Replication struct {
	Assigned  int32
	InSync    int32 // the committed ISR
	MinInSync int32 // min(min.insync.replicas, assigned)
}

// Replication reads the sizes of the sets; it means something only while this machine
// leads.
func (m *Machine) Replication() Replication {
	return Replication{Assigned: int32(len(m.replicas.all)), InSync: m.replicas.isrSize, MinInSync: m.minISR()}
}

// SnapshotProducers appends the state of all producers as of the log end, for the
// snapshot file that is named after that offset.
func (m *Machine) SnapshotProducers(dst []record.ProducerEntry) []record.ProducerEntry {
	return m.producers.Snapshot(dst)
}

// Wrote tells that the first n batches of the [WriteReplica] under way are in the log,
// before its outcome is stepped: a segment may end behind the last of them, and its
// snapshot has to know their producers.
func (m *Machine) Wrote(now Now, n int) { m.replay(now, n) }

// lastStable is the first offset that a read_committed reader may not see. No
// transaction can be open here, since none is accepted, so it is the high watermark.
func (m *Machine) lastStable() ident.Offset { return m.highWatermark }

// configure replaces the settings and does what follows from the new ones.
func (m *Machine) configure(now Now, c *Configure, out *Out) {
	m.config = c.Config
	m.producers.max = c.Config.ProducersMax
	m.producers.shrink(out)
	if m.flushAlarm != never {
		m.flushAlarm = never
	}
	if m.role != Leading {
		return
	}
	if m.end > m.flushed {
		m.askFlush(now, out)
	}
	if m.producerAlarm != never {
		m.producerAlarm = never
		m.armProducers(now, out)
	}
	m.lagAlarm = never
	m.armLag(now, out)
	m.failShortOfReplicas(out)
	m.advance(out)
	m.proposeISR(now, out)
}

// stop ends the machine.
func (m *Machine) stop(c *Stop, out *Out) {
	if m.role == Stopped {
		return
	}
	if c.Code == wire.NoError {
		panic("partition: Stop with NoError; later requests could not be told from served ones")
	}
	if m.role == Following && m.follower.asked != ident.NoOffset {
		// The leader would take a parked ask for a caught-up follower.
		out.Withdraw = append(out.Withdraw, Withdrawal{LeaderEpoch: m.leaderEpoch, Generation: m.generation})
	}
	m.role, m.stopCode = Stopped, c.Code
	out.note(Note{Kind: NoteStopped})
	m.answerAll(c.Code, out)
	m.refuseEarly(c.Code, out)
	m.follower.reset()
	m.proposed, m.cut = isrProposal{}, cut{}
	m.mode.confirmAt = ident.NoOffset // nothing is confirmed any more
	m.flushAlarm, m.producerAlarm, m.lagAlarm, m.syncAlarm, m.proposeAlarm, m.askAlarm = never, never, never, never, never, never
	m.goOnLeading()
	m.roomAlarm = never
}

// answerAll gives everybody who waits the same refusal.
func (m *Machine) answerAll(code wire.ErrorCode, out *Out) {
	for len(m.produces.waiting) > 0 {
		w := m.produces.pop()
		m.replyAppend(out, &w.appendResult, code)
	}
	m.refuseFetches(code, out)
	m.refuseAsks(code, out)
	m.refuseDeletes(code, out)
	m.produceAlarm = never
}

// refuseFetches sends all parked readers away.
func (m *Machine) refuseFetches(code wire.ErrorCode, out *Out) {
	for i := range m.fetches {
		m.refuseFetch(m.fetches[i].request, code, out)
	}
	m.fetches = m.fetches[:0]
}

// refusal is the code for a request that only a leader serves; wire.NoError if
// this machine leads.
func (m *Machine) refusal() wire.ErrorCode {
	switch m.role {
	case Leading:
		return wire.NoError
	case Stopped:
		return m.stopCode
	default:
		return wire.NotLeaderOrFollower
	}
}

// readerRefusal is the code for a reader that believes in a leader epoch. The
// epoch is looked at first: a reader that is ahead of this broker, or behind the
// cluster, must learn it even from a broker that does not lead.
func (m *Machine) readerRefusal(epoch ident.LeaderEpoch) wire.ErrorCode {
	if m.role == Stopped || m.role == Unassigned {
		return m.refusal()
	}
	if epoch != ident.NoLeaderEpoch {
		if epoch < m.leaderEpoch {
			return wire.FencedLeaderEpoch
		}
		if epoch > m.leaderEpoch {
			return wire.UnknownLeaderEpoch
		}
	}
	return m.refusal()
}

// reply appends an answer and returns it to be filled in.
func (m *Machine) reply(out *Out, id ident.RequestID, kind ReplyKind, code wire.ErrorCode) *Reply {
	out.Reply = append(out.Reply, Reply{Request: id, Kind: kind, Code: code, Leader: m.leader, LeaderEpoch: m.leaderEpoch})
	return &out.Reply[len(out.Reply)-1]
}
