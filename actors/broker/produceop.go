package broker

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// writesKept is how many partitions' worth of memory an operation keeps for its next use.
const writesKept = 64

// produceOp is one Produce request from its frame to its answer. Each of its writes is a message to a partition, which sends it back with the result.
type produceOp struct {
	request
	body   wire.ProduceRequest
	writes []produceWrite
	left   atomic.Int32 // writes that are out
	answer handler.ProduceAnswer
	rules  record.Rules // a topic's, with what an old version of the request forbids
}

var produceOps = sync.Pool{New: func() any { return new(produceOp) }}

// produceWrite is one batch on its way to a partition, and back with the result. It belongs to whoever it was sent to last.
type produceWrite struct {
	handler.Produced
	op        *produceOp
	session   *runtime.Ref
	replica   *replica
	command   partition.Append
	batch     record.View
	converted []byte // memory of batch, when it is not the request's
	bytes     int    // for the mailbox
	back      bool   // on its way to the session
}

// Bytes implements runtime.Message.
func (w *produceWrite) Bytes() int { return w.bytes }

// Reject implements runtime.Rejecter. On the way out the partition does not take the batch; on the way back nobody waits for the result.
func (w *produceWrite) Reject(err error) {
	if w.back {
		w.op.landed()
		return
	}
	w.Refuse(refusalOf(err), "the partition does not take the batch now: "+err.Error())
	w.turnBack()
	if err := w.session.Post(w); err != nil {
		return // Post has rejected w, which was all there was to do
	}
}

// turnBack makes w ready for its way to the session. The partition is done with the batch.
func (w *produceWrite) turnBack() {
	w.batch, w.bytes, w.back = nil, 0, true
}

// appending implements batchWrite.
func (w *produceWrite) appending() (*partition.Append, record.View) { return &w.command, w.batch }

// appended implements batchWrite.
func (w *produceWrite) appended(t *runtime.Turn, r *partition.Reply) {
	w.Code = r.Code
	w.BaseOffset, w.LogAppendTime, w.LogStart = r.Append.BaseOffset, r.Append.LogAppendTime, r.Append.LogStart
	w.Leader, w.LeaderEpoch = r.Leader, r.LeaderEpoch
	w.turnBack()
	_ = t.Send(w.session, w) // a session that is gone has nobody to tell
}

// offline implements batchWrite.
func (w *produceWrite) offline(t *runtime.Turn, code wire.ErrorCode) {
	w.Refuse(code, "the replica is offline on this broker")
	w.turnBack()
	_ = t.Send(w.session, w)
}

// landed books a write that came back after its session had stopped. The last one lets go of the request.
func (op *produceOp) landed() {
	if op.left.Add(-1) == 0 {
		op.frame.chunk.release()
	}
}

// refusalOf gives the code for a message that an actor did not handle. All are retriable: the client's data is fine.
func refusalOf(err error) wire.ErrorCode {
	var fault *runtime.FaultError
	switch {
	case errors.As(err, &fault):
		return wire.KafkaStorageError
	case errors.Is(err, runtime.ErrStopped), errors.Is(err, runtime.ErrQuarantined):
		return wire.NotLeaderOrFollower
	}
	return wire.RequestTimedOut
}

// startProduce begins a Produce request: every batch is checked here, on the session's goroutine, and sent to its partition.
func (s *session) startProduce(t *runtime.Turn, req request, body []byte) (operation, error) {
	op := produceOps.Get().(*produceOp)
	op.request = req
	if err := op.body.Decode(req.header.Version, body); err != nil {
		op.request = request{}
		produceOps.Put(op)
		return nil, err
	}
	op.writes = op.writes[:0]
	if n := op.body.PartitionCount; cap(op.writes) < n {
		op.writes = make([]produceWrite, 0, n)
	}
	mono, wall := t.Now()
	deadline := mono + ident.Instant(max(op.body.TimeoutMillis, 0))*millisecond
	code, message := handler.ProduceRefusal(&op.body)
	if code == wire.NoError && op.body.Acks != acksAll && !s.shared.leased(mono) {
		code, message = wire.NotLeaderOrFollower, noLease // acks=all waits for followers, who know better
	}
	table := s.shared.topics.Load()
	for it := op.body.Partitions(); it.Next(); {
		w := op.add(s.self, &it)
		if code != wire.NoError {
			w.Refuse(code, message)
			continue
		}
		topic := table.find(it.TopicName, it.TopicID)
		if topic == nil {
			w.Refuse(unknownTopic(req.header.Version >= produceTopicIDs), "")
			continue
		}
		if topic.internal && s.client.ID != adminClient {
			w.Refuse(wire.InvalidTopicException, "an internal topic is written by the broker alone")
			continue
		}
		r, missing := topic.replica(it.Partition)
		if r == nil {
			w.Refuse(missing.code, "")
			w.Leader, w.LeaderEpoch = missing.leader, missing.epoch
			continue
		}
		w.replica = r
		rules := topic.rules
		if req.header.Version < produceZstd {
			op.rules = *rules
			op.rules.ZstdRefused = true
			rules = &op.rules
		}
		result, err := record.Validate(w.converted, it.Records, wall, rules)
		if err != nil {
			w.RefuseBatch(err)
			w.replica.stats.refused.Add(1)
			continue
		}
		if result.Converted {
			w.converted = result.Batch
		}
		w.batch, w.bytes = result.Batch, len(result.Batch)
		w.command = partition.Append{
			Request: s.nextRequest(), Batch: partition.InfoOf(result.Batch), Acks: op.body.Acks, Deadline: deadline, LogAppendTime: result.LogAppendTime,
		}
		op.left.Add(1)
	}
	for i := range op.writes {
		if w := &op.writes[i]; w.batch != nil {
			// A refusal comes back through Reject, like any other result.
			_ = t.Send(w.replica.ref, w)
		}
	}
	return op, nil
}

// Versions of Produce that matter here.
const (
	produceZstd     = 7  // the first that may carry zstd (KIP-110)
	produceTopicIDs = 13 // the first that names topics by id (KIP-516)
)

// adminClient is the client id that Kafka lets write to internal topics (AdminUtils in Kafka's tools).
const adminClient = "__admin_client"

// add makes the write of one partition of the request, in memory of an earlier one.
func (op *produceOp) add(self *runtime.Ref, it *wire.ProduceIterator) *produceWrite {
	op.writes = op.writes[:len(op.writes)+1]
	w := &op.writes[len(op.writes)-1]
	records, converted := w.Records[:0], w.converted
	if cap(converted) > chunkMax {
		converted = nil
	}
	*w = produceWrite{op: op, session: self, converted: converted}
	w.Topic, w.Name, w.ID, w.Partition = it.TopicIndex, it.TopicName, it.TopicID, it.Partition
	w.Records = records
	return w
}

// produced takes in a result.
func (s *session) produced(w *produceWrite) { w.op.left.Add(-1) }

// ready implements operation.
func (op *produceOp) ready() bool { return op.left.Load() == 0 }

// overlaps implements operation: Produce requests of one connection are begun without waiting for each other. Their order is kept by the mailboxes of
// the partitions.
func (op *produceOp) overlaps() bool { return true }

// encode implements operation. acks=0 is not answered, but a refused write closes the connection, the only way to tell.
func (op *produceOp) encode(s *session) error {
	if op.body.Acks == 0 {
		for i := range op.writes {
			if w := &op.writes[i]; w.Code != wire.NoError {
				return &silentRefusalError{topic: string(w.Name), partition: w.Partition, code: w.Code, message: w.Message}
			}
		}
		return nil
	}
	if op.body.Acks == 1 && !s.shared.leasedNow() {
		op.doubt()
	}
	op.doubtRefusals(s.shared)
	at, dst := s.beginAnswer(&op.request, 64+96*len(op.writes))
	dst = op.answer.AppendTo(dst, op.header.Version, op, s.shared.image.Load(), s.client.Listener)
	return s.endAnswer(at, dst, 0)
}

// doubt takes back what is acknowledged by this broker alone, whose lease ran out since the request began: another may lead by now, to whom the records have
// never come. The client sends them there.
func (op *produceOp) doubt() {
	for i := range op.writes {
		if w := &op.writes[i]; w.Code == wire.NoError {
			w.Refuse(wire.NotLeaderOrFollower, noLease)
			w.Leader, w.LeaderEpoch = ident.NoBroker, ident.NoLeaderEpoch
		}
	}
}

// doubtRefusals takes back refusals that another leader would not give: of what is out of order in this broker's log. A client takes them for final.
func (op *produceOp) doubtRefusals(s *shared) {
	for i := range op.writes {
		w := &op.writes[i]
		if final := w.Code == wire.OutOfOrderSequenceNumber || w.Code == wire.InvalidProducerEpoch; final && !s.certain() {
			w.Refuse(wire.NotLeaderOrFollower, noLease)
			w.Leader, w.LeaderEpoch = ident.NoBroker, ident.NoLeaderEpoch
		}
	}
}

// hurry implements operation: an acknowledgement comes when it comes, or its timeout does.
func (op *produceOp) hurry(*runtime.Turn) {}

// abandon implements operation.
func (op *produceOp) abandon() bool { return op.ready() }

// Len implements handler.ProduceParts.
func (op *produceOp) Len() int { return len(op.writes) }

// Part implements handler.ProduceParts.
func (op *produceOp) Part(i int) *handler.Produced { return &op.writes[i].Produced }

// recycle implements operation.
func (op *produceOp) recycle() {
	op.frame.chunk.release()
	op.request = request{}
	if cap(op.writes) > writesKept {
		op.writes = nil
	}
	produceOps.Put(op)
}

// silentRefusalError closes the connection of a producer with acks=0, whose write was refused.
type silentRefusalError struct {
	topic     string // empty when it was named by id
	partition int32
	code      wire.ErrorCode
	message   string
}

// Error says what could not be told otherwise.
func (e *silentRefusalError) Error() string {
	return codeSilentRefusal + ": a write with acks=0 to partition " + ident.TopicPartition{Topic: e.topic, Partition: e.partition}.String() + " was refused (" + e.code.String() + " " + e.message +
		"); the connection is closed, since acks=0 has no answer"
}
