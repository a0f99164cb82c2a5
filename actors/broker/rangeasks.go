package broker

import (
	"bytes"
	"errors"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
	"github.com/troupe-broker/troupe/wire/record"
)

// A leader gives batches of a range that is damaged at a follower. Unlike those of an ordinary ask they are read from the disk and summed up before they leave,
// and what is found unsound is condemned here. A follower that compares (compare.go) asks the same way, and is given their digest.

// rangeAsk is a follower's ask for a range on its way, and there until it is answered.
type rangeAsk struct {
	replica *replica
	link    *linkInfo
	ask     peer.RangeAsk
	digest  bool // is all that is wanted
	high    ident.Offset
	shape   uint64       // of the log that the records are from
	start   ident.Offset // of the log
	clean   ident.Offset // what is below may be compacted
}

// Bytes implements runtime.Message.
func (*rangeAsk) Bytes() int { return 0 }

// Reject implements runtime.Rejecter: the follower asks again.
func (a *rangeAsk) Reject(err error) { a.refuse(refusalOf(err)) }

func (a *rangeAsk) refuse(code wire.ErrorCode) { a.answer(code, nil, a.ask.From) }

// answer sends what there is. Who wanted the batch to be looked at waits for nothing.
func (a *rangeAsk) answer(code wire.ErrorCode, batches []byte, next ident.Offset) {
	if a.ask.Ticket == 0 {
		return
	}
	q := &a.ask
	if a.digest {
		_ = a.link.ref.Post(&linkMessage{&peer.DigestAnswer{ // a link that has ended has nobody to answer
			Topic: q.Topic, Partition: q.Partition, LeaderEpoch: q.LeaderEpoch, Ticket: q.Ticket, Result: code, From: q.From, Next: next, High: a.high,
			Start: a.start, Clean: a.clean, Bytes: int32(len(batches)), Digest: digestOf(batches, q.From, next),
		}})
		return
	}
	_ = a.link.ref.Post(&linkMessage{&peer.RangeAnswer{ // the same
		Topic: q.Topic, Partition: q.Partition, LeaderEpoch: q.LeaderEpoch, Ticket: q.Ticket, Result: code, From: q.From, Next: next, High: a.high, Shape: a.shape, Payload: batches,
	}})
}

// askRange and giveRange give what a link tells about ranges to the replicas.
func (r *replicaRouter) askRange(t *runtime.Turn, table *topicTable, l *linkInfo, m *peer.RangeAsk, digest bool) {
	a := &rangeAsk{link: l, ask: *m, digest: digest, replica: table.hosted(m.Topic, m.Partition)}
	if a.replica == nil {
		a.refuse(wire.UnknownTopicID)
		return
	}
	_ = t.Send(a.replica.ref, a) // Reject answers
}

func (r *replicaRouter) giveRange(t *runtime.Turn, table *topicTable, m *peer.RangeAnswer) {
	rep := table.hosted(m.Topic, m.Partition)
	if rep == nil {
		return // the topic was deleted
	}
	g := &rangeGiven{answer: *m}
	g.answer.Payload = bytes.Clone(m.Payload)
	_ = t.Send(rep.ref, g) // one that has stopped mends nothing
}

// take finds the records, with the log on loan when the way to them is not in memory.
func (a *rangeAsk) take(p *partitionActor, t *runtime.Turn) {
	q := &a.ask
	switch {
	case a.link.voided.Load():
		return
	case p.machine == nil:
		a.refuse(p.refusal)
		return
	case p.machine.Role() != partition.Leading || p.machine.LeaderEpoch() != q.LeaderEpoch:
		a.refuse(wire.NotLeaderOrFollower)
		return
	}
	o := p.machine.Offsets()
	a.high, a.start, a.clean = o.HighWatermark, o.LogStart, p.cleanBelow()
	switch {
	case q.Ticket == 0:
		q.To = o.End
	case q.Copies:
		p.copying.asked(p.now.Mono)
	}
	if q.From < o.LogStart || q.To > o.End || q.From >= q.To {
		a.refuse(wire.OffsetOutOfRange)
		return
	}
	region, err := p.file.ReadNow(q.From, q.To, a.bytes(), true)
	if errors.Is(err, store.ErrWouldWait) {
		p.lent = true
		_ = p.shared.pool.give(t, &lookUp{file: p.file, most: a.bytes(), back: found{ranged: a, replica: p.replica}}) // Reject says so
		return
	}
	p.tookRange(t, a, region, err)
	p.carryOut(t) // the log may have failed
}

func (a *rangeAsk) bytes() int {
	if a.ask.Ticket == 0 {
		return 0 // the first batch, whatever its size
	}
	return int(min(max(a.ask.BytesMax, 0), repairBytes))
}

// tookRange has the records read and looked at.
func (p *partitionActor) tookRange(t *runtime.Turn, a *rangeAsk, region store.Region, err error) {
	if err != nil {
		a.refuse(p.readRefusal(t, err))
		return
	}
	a.shape = p.shape()
	_ = p.shared.pool.give(t, &readRange{ask: a, region: region}) // Reject says so
}

// readRange reads a region and sums up each batch.
type readRange struct {
	ask    *rangeAsk
	region store.Region
}

// Bytes implements runtime.Message.
func (*readRange) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (j *readRange) Reject(err error) {
	j.region.Release()
	j.ask.Reject(err)
}

// do implements job.
func (j *readRange) do(t *runtime.Turn) {
	a := j.ask
	next := j.region.Next()
	good, bad, err := j.region.Check(nil) // also of what no checksum covers, by which the asker would put the batch elsewhere
	if err != nil {
		_ = t.Send(a.replica.ref, &unread{err}) // one that has stopped reads nothing
		j.Reject(err)
		return
	}
	batches := make([]byte, good)
	n, _ := j.region.ReadAt(batches, 0) // what is missing is not sound
	if j.region.Void() {
		j.Reject(runtime.ErrStopped) // the log was cut
		return
	}
	whole := good == int64(j.region.Len())
	if !whole && bad.From < bad.To {
		_ = t.Send(a.replica.ref, &unsound{bad, j.region.Generation()}) // one that has stopped serves nothing
	}
	sound, first := soundPrefix(batches[:n]) // the bytes that are sent, which were read once more
	if !whole || sound < len(batches) {
		next = first
	}
	j.region.Release()
	if sound == 0 && (!whole || len(batches) > 0) {
		a.refuse(wire.CorruptMessage)
		return
	}
	a.answer(wire.NoError, batches[:sound], next)
}

// soundPrefix is how many bytes of whole batches are sound, and the offset after them.
func soundPrefix(batches []byte) (n int, next ident.Offset) {
	for rest := batches; len(rest) > 0; {
		v, behind, err := record.Split(rest)
		if err != nil || len(v) < record.HeaderSize || v.VerifyCRC() != nil {
			return n, next
		}
		n, next = n+len(v), v.NextOffset()
		rest = behind
	}
	return n, next
}

// suspect asks the leader to look at the batch that came damaged: it may be so there.
func (p *partitionActor) suspect(t *runtime.Turn, m *leaderAnswer) {
	from := m.command.From
	if n := len(m.command.Batches); n > 0 {
		b := &m.command.Batches[n-1]
		from = b.Base + ident.Offset(b.LastOffsetDelta) + 1
	}
	p.shared.links.send(t, m.leader, peer.Data, &linkMessage{&peer.RangeAsk{
		Topic: p.replica.id, Partition: p.replica.tp.Partition, LeaderEpoch: m.command.LeaderEpoch, From: from, To: from + 1,
	}})
}
