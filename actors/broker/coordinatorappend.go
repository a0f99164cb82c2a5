package broker

import (
	"math"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// groupBatchMax is the size that batches of a coordinator are kept below, in bytes before compression, as far as whole records allow.
const groupBatchMax = 1 << 20

// groupWrite is a batch of a coordinator on its way to the partition, and back with the outcome.
type groupWrite struct {
	coordinator *runtime.Ref
	command     partition.Append
	batch       record.View
	buffer      []byte // memory of batch
	count       int    // entries in it
	code        wire.ErrorCode
	back        bool
}

// Bytes implements runtime.Message.
func (w *groupWrite) Bytes() int {
	if w.back {
		return 0
	}
	return len(w.batch)
}

// Owed implements runtime.Owed: the coordinator has one out.
func (*groupWrite) Owed() {}

// Reject implements runtime.Rejecter.
func (w *groupWrite) Reject(err error) {
	if w.back {
		return // the coordinator has stopped
	}
	w.back, w.code = true, refusalOf(err)
	_ = w.coordinator.Post(w)
}

// appending implements batchWrite.
func (w *groupWrite) appending() (*partition.Append, record.View) { return &w.command, w.batch }

// appended implements batchWrite.
func (w *groupWrite) appended(t *runtime.Turn, r *partition.Reply) {
	w.back, w.code = true, r.Code
	_ = t.Send(w.coordinator, w) // one that has stopped has nobody to tell
}

// offline implements batchWrite.
func (w *groupWrite) offline(t *runtime.Turn, code wire.ErrorCode) {
	w.back, w.code = true, code
	_ = t.Send(w.coordinator, w)
}

// propose takes over the entries of a step.
func (c *coordinatorActor) propose() {
	if len(c.out.Entries) == 0 {
		return
	}
	if linger := c.world.values.AppendLingerMs; linger > 0 && len(c.pending) == 0 {
		c.flush = c.now.Mono + ident.Instant(linger)*millisecond
	}
	c.pending = append(c.pending, c.out.Entries...)
}

// append sends the next batch, when none is under way: everything that has gathered since the last one.
func (c *coordinatorActor) append(t *runtime.Turn) {
	if c.writing || len(c.pending) == 0 || c.flush > c.now.Mono {
		return
	}
	c.flush = 0
	w := c.write
	if w == nil {
		w = &groupWrite{coordinator: t.Self()}
		c.write = w
	}
	if err := c.gather(w); err != nil {
		c.log.Error().Err(err).Msg(codeGroupAppend + ": a batch of group records could not be made; the groups are loaded again")
		c.fail(t, wire.CoordinatorNotAvailable)
		return
	}
	c.ids++
	w.back, w.code = false, wire.NoError
	w.command = partition.Append{
		Request: groupRequest | c.ids, Batch: partition.InfoOf(w.batch), Acks: -1, Deadline: math.MaxInt64, LogAppendTime: ident.NoTimestamp,
	}
	c.writing = true
	_ = t.Send(c.replica.ref, w) // Reject answers
}

// groupRequest marks the ids of what a coordinator asks of its partition: those of sessions are smaller.
const groupRequest = ident.RequestID(1) << 63

// gather makes a batch of pending entries, at least of one: what is larger than max.message.bytes by itself is nothing that a client can ask for (package group).
func (c *coordinatorActor) gather(w *groupWrite) error {
	b, limit := c.builder, min(groupBatchMax, int(c.batchMax()))
	n := 0
	for ; n < len(c.pending); n++ {
		e := c.pending[n]
		c.key = e.AppendKey(c.key[:0])
		value := []byte(nil)
		if !e.Tombstone() {
			c.value = e.AppendValue(c.value[:0])
			value = c.value
		}
		if n > 0 && b.Size()+len(c.key)+len(value)+recordOverhead > limit {
			break
		}
		b.Append(c.now.Wall, c.key, value)
	}
	b.Codec = record.Codec(c.world.values.Codec)
	batch, err := b.Finish(w.buffer[:0])
	if err != nil {
		return err
	}
	w.buffer, w.batch, w.count = batch, record.View(batch), n
	rest := copy(c.pending, c.pending[n:])
	clear(c.pending[rest:])
	c.pending = c.pending[:rest]
	return nil
}

// recordOverhead is more than a record takes beside key and value.
const recordOverhead = 32

// batchMax is max.message.bytes of the topic.
func (c *coordinatorActor) batchMax() int32 {
	if e := c.shared.topics.Load().byID[c.replica.id]; e != nil {
		return e.rules.MaxMessageBytes
	}
	return groupBatchMax
}

// wrote takes in the outcome of a batch.
func (c *coordinatorActor) wrote(t *runtime.Turn, w *groupWrite) {
	if w != c.write || !c.writing {
		return // of a shard that was dropped meanwhile
	}
	c.writing = false
	if cap(w.buffer) > int(c.world.values.BufferBytesMax) {
		w.buffer = nil
	}
	w.batch = nil
	if w.code != wire.NoError {
		if skipped, ok := c.shared.sampled.due(codeGroupAppend); ok {
			c.log.Warn().Str("error", w.code.String()).Int("records", w.count).Int("skipped", skipped).
				Msg(codeGroupAppend + ": group records could not be committed; whoever waits for them is told to try again, and the groups are loaded again")
		}
		c.fail(t, appendRefusal(w.code))
		return
	}
	c.committed += uint64(w.count)
	c.shared.metrics.groups.batches.Add(1)
	c.shared.metrics.groups.records.Add(int64(w.count))
	c.held.release(c.committed, func(m inquiry, a coord.Answer) { m.answered(t, a) })
}
