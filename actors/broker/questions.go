package broker

import (
	"errors"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// question asks a partition something that is neither Produce nor Fetch. answer is called once, on the turn of the session that asked.
type question struct {
	session *runtime.Ref
	request ident.RequestID
	command partition.Command
	answer  func(answered)
}

// answered is the answer to a question.
type answered struct {
	reply partition.Reply       // with its Code
	at    store.TimestampOffset // of a search by time
}

// Bytes implements runtime.Message.
func (*question) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (q *question) Reject(err error) { q.refuse(refusalOf(err)) }

func (q *question) refuse(code wire.ErrorCode) {
	q.tell(answered{reply: partition.Reply{Code: code, Leader: ident.NoBroker, LeaderEpoch: ident.NoLeaderEpoch}})
}

func (q *question) tell(a answered) { resume(q.session, func() { q.answer(a) }) }

// answer steps the command of a question.
func (p *partitionActor) answer(t *runtime.Turn, q *question) {
	if p.machine == nil {
		q.refuse(p.refusal)
		return
	}
	p.ask(t, q, q.request, q.command)
}

// replyQuestion passes the machine's answer on, or looks into the log for it.
func (p *partitionActor) replyQuestion(t *runtime.Turn, q *question, r *partition.Reply) {
	if r.Code == wire.NoError && r.Kind == partition.ReplyListOffsets && r.ListOffsets.Search {
		p.search(t, q, r)
		return
	}
	a := answered{reply: *r, at: store.TimestampOffset{Timestamp: ident.NoTimestamp, Offset: r.ListOffsets.Offset, Epoch: r.ListOffsets.LeaderEpoch}}
	q.tell(a)
}

// searchLog looks for a timestamp, on the I/O pool: it may have to read, and to decompress, batches that have been cold for long. The log is lent for as
// long; the partition does nothing else meanwhile.
type searchLog struct {
	replica  *replica
	file     *store.Log
	question *question
	ts       ident.Millis // partition.MaxTimestamp: the greatest one
	upTo     ident.Offset
	failed   wire.ErrorCode
}

// Bytes implements runtime.Message.
func (*searchLog) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (j *searchLog) Reject(err error) {
	j.question.refuse(refusalOf(err))
	_ = j.replica.ref.Post(&found{})
}

// do implements job.
func (j *searchLog) do(t *runtime.Turn) {
	var at store.TimestampOffset
	var ok bool
	var err error
	if j.ts == partition.MaxTimestamp {
		at, ok, err = j.file.MaxTimestamp(j.upTo)
	} else {
		at, ok, err = j.file.OffsetForTimestamp(j.ts, j.upTo)
	}
	switch {
	case errors.Is(err, store.ErrDamaged):
		j.question.refuse(wire.CorruptMessage)
		err = nil
	case err != nil:
		j.question.refuse(wire.KafkaStorageError)
	case !ok && j.failed != wire.NoError:
		j.question.refuse(j.failed)
	case !ok:
		j.question.tell(answered{at: store.TimestampOffset{Timestamp: ident.NoTimestamp, Offset: ident.NoOffset, Epoch: ident.NoLeaderEpoch}})
	default:
		j.question.tell(answered{at: at})
	}
	_ = t.Send(j.replica.ref, &found{err: err}) // a partition that has stopped needs no log
}

// search lends the log to the pool.
func (p *partitionActor) search(t *runtime.Turn, q *question, r *partition.Reply) {
	c := q.command.(*partition.ListOffsets)
	p.lent = true
	_ = p.shared.pool.give(t, &searchLog{ // Reject says so
		replica: p.replica, file: p.file, question: q, ts: c.Timestamp, upTo: r.ListOffsets.UpTo, failed: r.ListOffsets.SearchFailed,
	})
}
