package sim

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// reader is one reading of a partition from its start on, by one client. It holds what is read against what was sent,
// what was acknowledged, and what others have read.
type reader struct {
	run       *run
	topic     *ghostTopic
	partition int32
	next      ident.Offset // the first offset that was not read
	high      ident.Offset // the last high watermark that was told
	era       int
	begun     bool // next is known
	from      ident.Offset
	read      map[ident.Offset]*batch // by their bases
	sequences map[producerKey]sequenceEnd
	order     map[orderKey]uint64 // plain producers: the last batch read
	spans     []span
}

// span is one batch as it was read.
type span struct {
	batch *batch
	base  ident.Offset
	stamp ident.Millis // the greatest timestamp
	times []ident.Millis
}

type producerKey struct {
	pid   int64
	epoch int16
}

// gapKey is a producer at a partition.
type gapKey struct {
	producerKey
	topic     string
	partition int32
}

func (b *batch) gap() gapKey { return gapKey{producerKey{b.pid, b.epoch}, b.topic, b.partition} }

type sequenceEnd struct{ next ident.Sequence }

// orderKey names what keeps its order without sequences: the batches of one client on one connection.
type orderKey struct {
	client     *client
	connection int
}

func newReader(r *run, t *ghostTopic, partition int32) *reader {
	return &reader{
		run: r, topic: t, partition: partition, era: t.partition(partition).era,
		read: make(map[ident.Offset]*batch), sequences: make(map[producerKey]sequenceEnd), order: make(map[orderKey]uint64),
	}
}

// stale tells that unsynced records may have been lost since the reading began, so that it has to begin anew.
func (d *reader) stale() bool { return d.era != d.topic.partition(d.partition).era }

// begin sets where the reading begins.
func (d *reader) begin(start ident.Offset) { d.next, d.from, d.begun = start, start, true }

// mayBeOutOfRange verifies that what is to be read next may have been deleted. The reading is over then.
func (d *reader) mayBeOutOfRange(who string) bool {
	p := d.topic.partition(d.partition)
	if d.topic.stable() && !d.topic.mayForget && d.next >= p.startMax && d.next <= p.high {
		d.run.fail("what was read stays", "%s reads %s-%d at %d, which is out of range: the high watermark was %d, at most %d records were to be deleted", who, d.topic.name, d.partition, d.next, p.high, p.startMax)
		return false
	}
	return true
}

// take takes in the records of an answer: whole batches, the last of which may be cut off.
func (d *reader) take(records []byte, high ident.Offset) {
	d.high = high
	first := true
	for len(records) > 0 && d.run.violation == nil {
		v, rest, err := record.Split(records)
		if errors.Is(err, record.ErrTruncated) && !first {
			return
		}
		if err != nil {
			d.run.fail("every byte served is a batch", "%s-%d at %d: %v", d.topic.name, d.partition, d.next, err)
			return
		}
		d.batch(v, first)
		records, first = rest, false
	}
}

// batch takes in one batch.
func (d *reader) batch(v record.View, first bool) {
	r, t := d.run, d.topic
	base, last := v.BaseOffset(), v.LastOffset()
	if err := v.VerifyCRC(); err != nil {
		r.fail("no corrupt batch is served", "%s-%d at %d: %v", t.name, d.partition, base, err)
		return
	}
	switch {
	case !t.stable(): // the name may be another topic's
	case first && (base > d.next || last < d.next), !first && base != d.next:
		r.fail("offsets have no gaps", "%s-%d: %d is to be read, the batch that came has %d to %d", t.name, d.partition, d.next, base, last)
		return
	case last >= d.high:
		r.fail("nothing above the high watermark is served", "%s-%d: offset %d, the high watermark is %d", t.name, d.partition, last, d.high)
		return
	}
	id, err := idOf(v)
	b := r.sent[id]
	if err != nil || b == nil || b.topic != t.name || b.partition != d.partition {
		r.fail("nothing is served that was not sent", "%s-%d at %d: batch %d, %v", t.name, d.partition, base, id, err)
		return
	}
	if err := b.same(v, t.mayConvert, t.mayStamp); err != nil {
		r.fail("what is served is what was sent", "%s-%d at %d: %v", t.name, d.partition, base, err)
		return
	}
	if b.refused && t.stable() {
		r.fail("what was refused is not there", "%s-%d at %d: batch %d was refused for good", t.name, d.partition, base, id)
		return
	}
	d.next = last + 1
	if !t.stable() {
		return // the name may be another topic's by now
	}
	t.partition(d.partition).claim(r, b, base, "read")
	d.read[base] = b
	d.spans = append(d.spans, span{batch: b, base: base, stamp: v.MaxTimestamp(), times: timesOf(v)})
	d.ordered(b, base)
}

// ordered verifies the order of one producer's batches.
func (d *reader) ordered(b *batch, base ident.Offset) {
	if b.idempotent {
		key := producerKey{b.pid, b.epoch}
		end, known := d.sequences[key]
		// A broker that knows nothing of a producer takes any sequence from it, as Kafka's: the first batches may have been refused.
		if !known && d.from == 0 && b.sequence != b.client.plan.First && !d.run.gaps[b.gap()] && !d.run.forgets && !d.run.ghost.reborn(b.topic) {
			d.run.fail("sequences are contiguous", "%s-%d at %d: producer %d begins with sequence %d", d.topic.name, d.partition, base, b.pid, b.sequence)
		}
		if known && ident.Sequence(b.sequence) != end.next {
			d.run.fail("sequences are contiguous", "%s-%d at %d: producer %d has sequence %d, %d is next", d.topic.name, d.partition, base, b.pid, b.sequence, end.next)
		}
		d.sequences[key] = sequenceEnd{ident.Sequence(b.sequence).Add(b.count)}
		return
	}
	if b.attempts != 1 {
		return
	}
	key := orderKey{b.client, b.connection}
	if before := d.order[key]; before > b.id {
		d.run.fail("a connection keeps its order", "%s-%d at %d: batch %d of %s follows batch %d", d.topic.name, d.partition, base, b.id, b.client.name, before)
	}
	d.order[key] = b.id
}

// timesOf lists the timestamps of a batch.
func timesOf(v record.View) []ident.Millis {
	var it record.Iterator
	defer it.Close()
	if it.Reset(v, record.Bound{}) != nil {
		return nil // held against what was sent before
	}
	var out []ident.Millis
	for it.Next() {
		out = append(out, it.Record().Timestamp)
	}
	return out
}

// leaders are who leads what, by an answer.
type leaders map[ident.TopicID][]ident.BrokerID

func leadersOf(m *kmsg.MetadataResponse) leaders {
	all := make(leaders)
	for i := range m.Topics {
		t := &m.Topics[i]
		list := make([]ident.BrokerID, len(t.Partitions))
		for _, p := range t.Partitions {
			if int(p.Partition) < len(list) {
				list[p.Partition] = ident.BrokerID(p.Leader)
			}
		}
		all[ident.TopicID(t.TopicID)] = list
	}
	return all
}

func (l leaders) of(t *ghostTopic, n int32) ident.BrokerID {
	if list := l[t.id]; int(n) < len(list) {
		return list[n]
	}
	return ident.NoBroker
}

// topicsOf lists the topics of an answer to a request for all topics, and holds it against what was promised.
func (r *run) topicsOf(m *kmsg.MetadataResponse, sent ident.Instant) []*ghostTopic {
	var out []*ghostTopic
	listed := make(map[*ghostTopic]int)
	for i := range m.Topics {
		mt := &m.Topics[i]
		if mt.ErrorCode != 0 || mt.Topic == nil || apart(*mt.Topic) {
			continue
		}
		t := r.ghost.topic(*mt.Topic, ident.TopicID(mt.TopicID))
		if t.deleted != 0 && sent >= t.deleted && r.ensemble == nil {
			r.fail("deleted topics stay deleted", "topic %s (%s) is listed", t.name, t.id)
			return nil
		}
		for n := range mt.Partitions {
			t.partition(int32(n))
		}
		listed[t] = len(mt.Partitions)
		out = append(out, t)
	}
	if r.ensemble != nil {
		return out // who has been asked may not have heard yet
	}
	for _, t := range r.ghost.all() {
		if t.stable() && t.promisedAt <= sent && listed[t] < t.promised {
			r.fail("created topics stay", "topic %s (%s) of %d partitions is listed with %d", t.name, t.id, t.promised, listed[t])
			return nil
		}
	}
	return out
}
