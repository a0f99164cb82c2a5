package broker

import (
	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// ports is what a session's handlers may ask. It is used on turns of the session only, and answers there.
type ports struct {
	session *session
	turn    *runtime.Turn // the session's, while a handler or an answer function runs
}

var _ handler.Ports = (*ports)(nil)

// Controller implements handler.Ports.
func (p *ports) Controller(command cluster.Command, ask *cluster.Ask, answer func(cluster.Reply)) {
	self := p.session.self
	m := &proposal{command: command, ask: ask, answer: func(r cluster.Reply) { resume(self, func() { answer(r) }) }}
	_ = p.turn.Send(p.session.shared.controller, m) // Reject answers
}

// ask sends a question to the replica at a place.
func (p *ports) ask(place handler.Place, command func(ident.RequestID) partition.Command, answer func(answered)) {
	q := &question{session: p.session.self, request: p.session.nextRequest(), answer: answer}
	q.command = command(q.request)
	topic := p.session.shared.topics.Load().place(place.Topic, place.ID)
	if topic == nil {
		q.refuse(unknownTopic(place.Topic == ""))
		return
	}
	r, missing := topic.replica(place.Partition)
	if r == nil {
		q.refuse(missing.code)
		return
	}
	_ = p.turn.Send(r.ref, q) // Reject answers
}

// ListOffset implements handler.Ports.
func (p *ports) ListOffset(place handler.Place, q handler.ListOffset, answer func(handler.ListedOffset)) {
	isolation := partition.ReadUncommitted
	if q.ReadCommitted {
		isolation = partition.ReadCommitted
	}
	p.ask(place, func(id ident.RequestID) partition.Command {
		return &partition.ListOffsets{Request: id, Timestamp: ident.Millis(q.Timestamp), Isolation: isolation, CurrentLeaderEpoch: q.LeaderEpoch}
	}, func(a answered) {
		if a.reply.Code != wire.NoError {
			answer(handler.ListedOffset{Code: a.reply.Code, Offset: ident.NoOffset, Timestamp: ident.NoTimestamp, LeaderEpoch: ident.NoLeaderEpoch})
			return
		}
		p.listed(place, q.Timestamp, a.at.Offset)
		answer(handler.ListedOffset{Offset: a.at.Offset, Timestamp: a.at.Timestamp, LeaderEpoch: a.at.Epoch})
	})
}

// EpochEnd implements handler.Ports. A reader that is behind the end of its epoch takes its log for truncated: see certain.
func (p *ports) EpochEnd(place handler.Place, q handler.EpochEnd, answer func(handler.EndOfEpoch)) {
	p.ask(place, func(id ident.RequestID) partition.Command {
		return &partition.EpochEnd{Request: id, CurrentLeaderEpoch: q.CurrentLeaderEpoch, Epoch: q.LeaderEpoch}
	}, func(a answered) {
		if a.reply.Code == wire.NoError && !p.session.shared.certain() {
			a.reply.Code = wire.NotLeaderOrFollower
		}
		if a.reply.Code != wire.NoError {
			answer(handler.EndOfEpoch{Code: a.reply.Code, LeaderEpoch: ident.NoLeaderEpoch, End: ident.NoOffset})
			return
		}
		answer(handler.EndOfEpoch{LeaderEpoch: a.reply.EpochEnd.Epoch, End: a.reply.EpochEnd.End})
	})
}

// DeleteRecords implements handler.Ports. With one replica there is nobody to wait for, so that the deadline never comes.
func (p *ports) DeleteRecords(place handler.Place, q handler.DeleteRecords, answer func(handler.DeletedRecords)) {
	p.ask(place, func(id ident.RequestID) partition.Command {
		return &partition.DeleteRecords{Request: id, Before: q.Before}
	}, func(a answered) {
		if a.reply.Code != wire.NoError {
			answer(handler.DeletedRecords{Code: a.reply.Code, LowWatermark: ident.NoOffset})
			return
		}
		answer(handler.DeletedRecords{LowWatermark: a.reply.DeleteRecords.LowWatermark})
	})
}

// DescribeProducers implements handler.Ports.
func (p *ports) DescribeProducers(place handler.Place, answer func(handler.DescribedProducers)) {
	p.ask(place, func(id ident.RequestID) partition.Command {
		return &partition.DescribeProducers{Request: id}
	}, func(a answered) {
		d := handler.DescribedProducers{Code: a.reply.Code}
		for _, s := range a.reply.Producers.Producers {
			d.Producers = append(d.Producers, handler.Producer{
				ID: s.ProducerID, Epoch: s.ProducerEpoch, LastSequence: s.LastSequence, LastTimestamp: s.LastTimestamp, CoordinatorEpoch: -1, TxnStart: ident.NoOffset,
			})
		}
		answer(d)
	})
}

// ProducerID implements handler.Ports.
func (p *ports) ProducerID(answer func(ident.ProducerID, wire.ErrorCode)) {
	self := p.session.self
	m := &wantProducerID{answer: func(id ident.ProducerID, code wire.ErrorCode) { resume(self, func() { answer(id, code) }) }}
	_ = p.turn.Send(p.session.shared.producerIDs, m) // Reject answers
}

// describeDirectories looks at the volumes, on the I/O pool, and at the counters of the replicas.
type describeDirectories struct {
	shared *shared
	to     *runtime.Ref
	answer func([]handler.Directory)
}

// Bytes implements runtime.Message.
func (*describeDirectories) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (j *describeDirectories) Reject(error) { resume(j.to, func() { j.answer(nil) }) }

// do implements job.
func (j *describeDirectories) do(*runtime.Turn) {
	var out []handler.Directory
	for _, d := range j.shared.directories {
		e := handler.Directory{Path: d.store.Path(), Online: d.store.Offline() == nil, TotalBytes: -1, FreeBytes: -1}
		if u, err := d.store.Usage(); err == nil {
			e.TotalBytes, e.FreeBytes = u.Total, u.Free
		}
		for _, topic := range j.shared.topics.Load().byID {
			for _, r := range topic.replicas {
				if r != nil && r.dir == d {
					e.Replicas = append(e.Replicas, handler.DirectoryReplica{
						TopicPartition: r.tp, SizeBytes: r.stats.sizeBytes.Load(), OffsetLag: max(0, r.stats.high.Load()-r.stats.end.Load()),
					})
				}
			}
		}
		out = append(out, e)
	}
	resume(j.to, func() { j.answer(out) })
}

// Directories implements handler.Ports.
func (p *ports) Directories(answer func([]handler.Directory)) {
	_ = p.session.shared.pool.give(p.turn, &describeDirectories{shared: p.session.shared, to: p.session.self, answer: answer}) // Reject answers
}

// Random implements handler.Ports.
func (p *ports) Random(b []byte) { p.session.shared.random.fill(b) }
