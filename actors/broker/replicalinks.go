package broker

import (
	"sync"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// replicaRouter gives what links tell about records to the replicas. It runs on turns of links.
//
// That a link has opened or closed goes by Root, which knows every replica, also those that sessions do not see yet. What is said on a link goes straight to
// the replica, so that the two may come in another order: a replica knows by the link that a message came on which life of a follower it belongs to.
type replicaRouter struct{ shared *shared }

// linkChanged tells that a link can be used, or cannot any more.
type linkChanged struct {
	link *linkInfo
	open bool
}

// Bytes implements runtime.Message.
func (*linkChanged) Bytes() int { return 0 }

// Owed implements runtime.Owed.
func (*linkChanged) Owed() {}

func (r *replicaRouter) opened(t *runtime.Turn, l *linkInfo) {
	if !l.founding && l.dialled { // who is dialled waits to be asked
		_ = t.Send(r.shared.root, &linkChanged{link: l, open: true}) // Root is gone only when the broker stops
	}
}

func (r *replicaRouter) closed(t *runtime.Turn, l *linkInfo, _ error) {
	if !l.founding && l.purpose == peer.Data {
		_ = t.Send(r.shared.root, &linkChanged{link: l}) // the same
	}
}

// heard implements replicaLinks. Where there is no such replica, or not yet, only an ask has to be answered: who asks waits.
func (r *replicaRouter) heard(t *runtime.Turn, l *linkInfo, m peer.Message) {
	table := r.shared.topics.Load()
	switch m := m.(type) {
	case *peer.Asks:
		for i := range m.List {
			r.ask(t, table, l, &m.List[i])
		}
	case *peer.Withdraw:
		for i := range m.List {
			w := &m.List[i]
			if rep := table.hosted(w.Topic, w.Partition); rep != nil {
				_ = t.Send(rep.ref, &withdrawn{link: l, command: partition.Withdraw{ // one that has stopped answers nobody
					Broker: l.peer.Broker, BrokerEpoch: l.peer.Epoch, Withdrawal: partition.Withdrawal{LeaderEpoch: w.LeaderEpoch, Generation: w.Generation},
				}})
			}
		}
	case *peer.Progress:
		for i := range m.List {
			p := &m.List[i]
			if rep := table.hosted(p.Topic, p.Partition); rep != nil {
				f := followerProgresses.Get().(*followerProgress)
				f.command = partition.Progress{Broker: l.peer.Broker, BrokerEpoch: l.peer.Epoch, Report: partition.Report{
					LeaderEpoch: p.LeaderEpoch, Generation: p.Generation, End: p.End, Flushed: p.Flushed, LogStart: p.Start,
				}}
				_ = t.Send(rep.ref, f) // one that has stopped counts nothing
			}
		}
	case *peer.Watermarks:
		for i := range m.List {
			w := &m.List[i]
			if rep := table.hosted(w.Topic, w.Partition); rep != nil {
				f := leaderMarks.Get().(*leaderMark)
				f.command = partition.Watermark{LeaderEpoch: w.LeaderEpoch, Generation: w.Generation, HighWatermark: w.High, LogStart: w.Start}
				_ = t.Send(rep.ref, f) // the same
			}
		}
	case *peer.RangeAsk:
		r.askRange(t, table, l, m, false)
	case *peer.RangeAnswer:
		r.giveRange(t, table, m)
	case *peer.DigestAsk:
		r.askRange(t, table, l, (*peer.RangeAsk)(m), true)
	case *peer.DigestAnswer:
		if rep := table.hosted(m.Topic, m.Partition); rep != nil {
			_ = t.Send(rep.ref, &digestGiven{answer: *m}) // one that has stopped compares nothing
		}
	default: // nothing else is about records
	}
}

func (r *replicaRouter) ask(t *runtime.Turn, table *topicTable, l *linkInfo, a *peer.Ask) {
	f := followerAsks.Get().(*followerAsk)
	f.link = l
	f.command = partition.Ask{Broker: l.peer.Broker, BrokerEpoch: l.peer.Epoch, Inquiry: partition.Inquiry{
		LeaderEpoch: a.LeaderEpoch, Generation: a.Generation, From: a.From, LogEnd: a.End, Flushed: a.Flushed, BytesMax: max(a.BytesMax, 0), LastBatchEpoch: a.LastEpoch,
	}}
	f.head = peer.Answer{
		Topic: a.Topic, Partition: a.Partition, LeaderEpoch: a.LeaderEpoch, Generation: a.Generation, From: a.From,
		DivergingEpoch: ident.NoLeaderEpoch, DivergingEnd: ident.NoOffset,
	}
	rep := table.hosted(a.Topic, a.Partition)
	if rep == nil {
		f.refuse(t, wire.UnknownTopicID)
		return
	}
	f.replica = rep
	_ = t.Send(rep.ref, f) // Reject answers
}

// answered implements replicaLinks.
func (r *replicaRouter) answered(t *runtime.Turn, l *linkInfo, a *peer.Answer, hold *chunk) {
	rep := r.shared.topics.Load().hosted(a.Topic, a.Partition)
	if rep == nil {
		return // the topic was deleted
	}
	m := leaderAnswers.Get().(*leaderAnswer)
	m.leader = l.peer.Broker
	m.command = partition.Answered{
		LeaderEpoch: a.LeaderEpoch, Generation: a.Generation, Code: a.Result, From: a.From, HighWatermark: a.High, LogStart: a.Start,
		Diverging: a.DivergingEnd != ident.NoOffset, DivergingEpoch: a.DivergingEpoch, DivergingEnd: a.DivergingEnd, Batches: m.command.Batches[:0],
	}
	if len(a.Payload) > 0 {
		hold.retain()
		m.hold, m.payload = hold, a.Payload
	}
	_ = t.Send(rep.ref, m) // Reject lets go of it
}

// hosted finds a replica of this broker; nil: there is none.
func (t *topicTable) hosted(topic ident.TopicID, partition int32) *replica {
	e := t.byID[topic]
	if e == nil || partition < 0 || int(partition) >= len(e.replicas) {
		return nil
	}
	return e.replicas[partition]
}

// Messages of a partition that come from other brokers, besides followerAsk and leaderAnswer.
type (
	// withdrawn takes asks back.
	withdrawn struct {
		link    *linkInfo
		command partition.Withdraw
	}
	// followerProgress says how far a follower is.
	followerProgress struct{ command partition.Progress }
	// leaderMark says how far the leader is.
	leaderMark struct{ command partition.Watermark }
)

var (
	followerProgresses = sync.Pool{New: func() any { return new(followerProgress) }}
	leaderMarks        = sync.Pool{New: func() any { return new(leaderMark) }}
)

// Bytes implements runtime.Message.
func (*withdrawn) Bytes() int        { return 0 }
func (*followerProgress) Bytes() int { return 0 }
func (*leaderMark) Bytes() int       { return 0 }
