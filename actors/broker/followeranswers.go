package broker

import (
	"fmt"
	"sync"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
	"github.com/troupe-broker/troupe/wire/record"
)

// A partition as a follower: it asks by the data link to its leader, and appends what comes in the same turn in which it checks it.

// leaderAnswer is the leader's answer on its way to the partition.
type leaderAnswer struct {
	leader  ident.BrokerID
	command partition.Answered
	payload []byte
	hold    *chunk // has the payload; nil: there is none
}

var leaderAnswers = sync.Pool{New: func() any { return new(leaderAnswer) }}

// batchesKept bounds the batches for which an answer keeps memory.
const batchesKept = 64

// Bytes is 0: the link has credit for the payload.
func (*leaderAnswer) Bytes() int { return 0 }

// Reject implements runtime.Rejecter: the partition has stopped, or its log has failed.
func (m *leaderAnswer) Reject(error) { m.done() }

// done lets go of the payload.
func (m *leaderAnswer) done() {
	if m.hold != nil {
		m.hold.release()
	}
	batches := m.command.Batches[:0]
	if cap(batches) > batchesKept {
		batches = nil
	}
	*m = leaderAnswer{command: partition.Answered{Batches: batches}}
	leaderAnswers.Put(m)
}

// answered appends what the leader has sent, as far as it is sound.
func (p *partitionActor) answered(t *runtime.Turn, m *leaderAnswer) {
	if p.machine == nil || p.file == nil {
		m.done()
		return
	}
	if err := m.open(); err != nil {
		p.damagedAnswer(m, err)
		p.suspect(t, m)
	}
	p.current = m
	p.machine.Step(p.now, &m.command, &p.out)
	p.carryOut(t)
	p.current = nil
	m.done()
}

// open finds the batches in the payload and sums each up. Those before one that is damaged are good.
func (m *leaderAnswer) open() error {
	rest := m.payload
	for len(rest) > 0 {
		v, behind, err := record.Split(rest)
		if err == nil && len(v) < record.HeaderSize {
			err = record.ErrLength
		}
		if err == nil {
			err = v.VerifyCRC()
		}
		if err != nil {
			m.payload = m.payload[:len(m.payload)-len(rest)]
			return fmt.Errorf("byte %d of an answer: %w", len(m.payload), err)
		}
		m.command.Batches = append(m.command.Batches, partition.ReplicaBatch{BatchInfo: partition.InfoOf(v), Base: v.BaseOffset(), LeaderEpoch: v.LeaderEpoch()})
		rest = behind
	}
	return nil
}

// damagedAnswer tells of a payload that is not what was stored. What is sound is taken, the rest asked for again; where nothing is, after a pause.
func (p *partitionActor) damagedAnswer(m *leaderAnswer, err error) {
	p.replica.stats.damagedAnswers.Add(1)
	if len(m.command.Batches) == 0 {
		m.command.Code = wire.CorruptMessage
	}
	if skipped, ok := p.shared.sampled.due(codeReplicaDamage); ok {
		p.log.Error().Int32("peer", int32(m.leader)).Int64("offset", int64(m.command.From)).Int("skipped", skipped).Err(err).
			Msg(codeReplicaDamage + ": records from the leader are damaged; they are not appended, and asked for again")
	}
}

// writeReplica appends the batches of the answer that is being stepped.
func (p *partitionActor) writeReplica(t *runtime.Turn) {
	m := p.current.(*leaderAnswer)
	rest := m.payload
	p.failed = partition.AppendFailed{Code: wire.KafkaStorageError}
	s := &p.replica.stats
	for p.failed.Written < len(m.command.Batches) {
		v, behind, _ := record.Split(rest) // as in open
		p.writing = true
		err := p.file.Append(v, p.now.Wall)
		p.writing = false
		if err != nil {
			p.failed.Full = store.IsRetriable(err)
			p.machine.Step(p.now, &p.failed, &p.out)
			p.segments = p.file.Segments()
			if !store.IsRetriable(err) {
				p.fail(t, err)
				return
			}
			p.shared.sampled.refused(p.replica, err)
			return
		}
		p.failed.Written++
		p.machine.Wrote(p.now, p.failed.Written)
		rest = behind
	}
	s.replicatedBytes.Add(int64(len(m.payload)))
	p.copied(len(m.payload))
	p.machine.Step(p.now, &p.appended, &p.out)
	if n := p.file.Segments(); n != p.segments {
		p.segments = n
		p.askFlush(t) // what is closed will not be written again: let it reach the disk
	}
}

// inquire asks the leader. Without a link the ask is lost: the machine asks anew when there is one.
func (p *partitionActor) inquire(t *runtime.Turn, q *partition.Inquiry) {
	if p.shared.links == nil || p.waits(t, q) {
		return
	}
	p.shared.links.send(t, p.machine.Leader(), peer.Data, newLinkEntry(peer.Ask{
		Topic: p.replica.id, Partition: p.replica.tp.Partition, LeaderEpoch: q.LeaderEpoch, Generation: q.Generation, From: q.From, End: q.LogEnd, Flushed: q.Flushed,
		LastEpoch: q.LastBatchEpoch, BytesMax: q.BytesMax, Start: p.machine.Offsets().LogStart,
	}))
}

// takeBack tells the leader that asks are not waited for any more.
func (p *partitionActor) takeBack(t *runtime.Turn, w partition.Withdrawal) {
	if p.shared.links == nil {
		return
	}
	p.shared.links.send(t, p.machine.Leader(), peer.Data, newLinkEntry(peer.Withdrawn{
		Topic: p.replica.id, Partition: p.replica.tp.Partition, LeaderEpoch: w.LeaderEpoch, Generation: w.Generation,
	}))
}

// report tells the leader how far this log is.
func (p *partitionActor) report(t *runtime.Turn, r *partition.Report) {
	if p.shared.links == nil {
		return
	}
	p.shared.links.send(t, p.machine.Leader(), peer.Control, newLinkEntry(peer.Position{
		Topic: p.replica.id, Partition: p.replica.tp.Partition, LeaderEpoch: r.LeaderEpoch, Generation: r.Generation, End: r.End, Flushed: r.Flushed, Start: r.LogStart,
	}))
}
