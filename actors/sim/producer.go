package sim

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// producer writes batches to all partitions. An idempotent one numbers them per partition, keeps several requests in
// flight, and sends what failed again, in order, until it is acknowledged; it gives its number up, and what it does not
// know the fate of, only when it must, as Kafka's own client does.
type producer struct {
	*client
	topics    []*ghostTopic
	named     map[string]*ghostTopic // the topic that each name was last
	lanes     []*lane
	pid       int64 // -1: none yet
	epoch     int16
	asking    bool // for a producer id
	looking   bool // for metadata
	looked    bool // and found it, perhaps empty
	ticking   bool
	finishing bool
	requests  int // produce requests under way
}

// lane is one partition as a producer sees it.
type lane struct {
	topic    *ghostTopic
	number   int32
	sequence ident.Sequence
	queue    []*batch // not acknowledged, in order
	held     bool     // something failed: nothing is sent before all that is in flight is back
	gone     bool     // the topic was deleted
	leader   ident.BrokerID
	acks     int
	newest   *batch // the last that was made
}

func newProducer(c *client) *producer {
	return &producer{client: c, named: make(map[string]*ghostTopic), pid: -1}
}

func (p *producer) begin() {}

func (p *producer) connected() {
	p.look()
	p.tick()
}

func (p *producer) lost() {}

func (p *producer) finish() { p.finishing = true }

func (p *producer) done() bool {
	for _, l := range p.lanes {
		if len(l.queue) > 0 && !l.gone {
			return false
		}
	}
	return p.requests == 0
}

// look asks for metadata.
func (p *producer) look() {
	if p.looking || p.end == nil {
		return
	}
	p.looking = true
	req := kmsg.NewPtrMetadataRequest()
	sent := p.now()
	p.ask(req, func(resp kmsg.Response, err error) {
		p.looking = false
		if err != nil {
			return
		}
		p.looked = true
		p.topics = p.run.topicsOf(resp.(*kmsg.MetadataResponse), sent)
		for _, l := range p.lanes {
			l.gone = true
		}
		for _, t := range p.topics {
			p.means(t)
			for n := range t.partitions {
				p.laneOf(t, int32(n)).gone = false
			}
		}
		leaders := leadersOf(resp.(*kmsg.MetadataResponse))
		for _, l := range p.lanes {
			l.leader = leaders.of(l.topic, l.number)
		}
	})
}

// lineTo is the connection on which a lane's batches go; nil: there is none now.
func (p *producer) lineTo(l *lane) *client {
	if p.run.ensemble == nil {
		return p.client
	}
	return p.reach(l.leader)
}

// means notes which topic a name is now. What was written by name for another one may still arrive, or has arrived in this one already: a broker that heard nothing
// of its creation tells of the former one, and those who lead take the name for what it is. So the sequences of either must not come again.
func (p *producer) means(t *ghostTopic) {
	if before := p.named[t.name]; before != nil && before != t && p.pid >= 0 {
		p.run.counted("a name has another topic")
		p.reset()
	}
	p.named[t.name] = t
}

func (p *producer) laneOf(t *ghostTopic, number int32) *lane {
	for _, l := range p.lanes {
		if l.topic == t && l.number == number {
			return l
		}
	}
	for _, l := range p.lanes {
		if l.topic.name == t.name && p.pid >= 0 {
			p.reset() // it has more partitions than it had
			break
		}
	}
	l := &lane{topic: t, number: number, sequence: ident.Sequence(p.plan.First)}
	p.lanes = append(p.lanes, l)
	return l
}

// tick does something, again and again.
func (p *producer) tick() {
	if p.ticking {
		return
	}
	p.ticking = true
	p.after(p.pause(), func() {
		p.ticking = false
		if p.end == nil {
			return
		}
		p.act()
		p.tick()
	})
}

func (p *producer) act() {
	switch {
	case p.plan.Kind == Idempotent && p.pid < 0:
		p.number()
		return
	case chance(p.rand, 3) || len(p.topics) == 0 && !p.finishing:
		p.look()
		return
	}
	if p.requests >= p.plan.InFlight || p.finishing && p.done() {
		return
	}
	if batches, line := p.pick(); len(batches) > 0 {
		p.send(batches, line)
	} else if p.run.ensemble != nil {
		p.look() // who leads may be another by now
	}
}

// number asks for a producer id.
func (p *producer) number() {
	if p.asking {
		return
	}
	p.asking = true
	p.ask(kmsg.NewPtrInitProducerIDRequest(), func(resp kmsg.Response, err error) {
		p.asking = false
		if err != nil {
			return
		}
		r := resp.(*kmsg.InitProducerIDResponse)
		if wire.ErrorCode(r.ErrorCode) != wire.NoError {
			p.run.allow(p.name, "InitProducerId", r.ErrorCode, wire.CoordinatorLoadInProgress, wire.CoordinatorNotAvailable, wire.RequestTimedOut, wire.NotCoordinator)
			return
		}
		if p.run.pids[r.ProducerID] {
			p.run.fail("producer ids are unique", "producer id %d is given to %s, and was given before", r.ProducerID, p.name)
		}
		p.run.pids[r.ProducerID] = true
		p.pid, p.epoch = r.ProducerID, r.ProducerEpoch
	})
}

// pick chooses what the next request carries: for some lanes with one leader their next batch, that of an earlier try or a new one.
func (p *producer) pick() (out []*batch, line *client) {
	want := 1 + p.rand.IntN(3)
	for _, i := range p.rand.Perm(len(p.lanes)) {
		l := p.lanes[i]
		if l.gone || l.held || len(out) == want {
			continue
		}
		to := p.lineTo(l)
		if to == nil || line != nil && to != line {
			continue
		}
		if b := p.next(l); b != nil {
			out, line = append(out, b), to
		}
	}
	return out, line
}

// next is the next batch of a lane to be sent; nil when there is none.
func (p *producer) next(l *lane) *batch {
	for _, b := range l.queue {
		if !b.inFlight {
			return b
		}
	}
	if p.finishing || len(l.queue) >= 5 {
		return nil
	}
	if (p.plan.First != 0 || p.run.ensemble != nil) && l.acks == 0 && len(l.queue) > 0 {
		return nil // an unknown producer's batch is taken whatever its sequence is, so the first has to be there before the second
	}
	size := 1 + p.rand.IntN(p.plan.Size)
	if p.plan.Kind != Idempotent {
		b := p.run.makeBatch(p.client, l.topic.name, l.number, size, nil)
		b.acks = p.plan.Acks
		if b.acks != 0 {
			l.queue = append(l.queue, b)
		}
		return b
	}
	b := p.run.makeBatch(p.client, l.topic.name, l.number, size, func(w *record.Builder) {
		w.ProducerID, w.ProducerEpoch, w.BaseSequence = ident.ProducerID(p.pid), ident.ProducerEpoch(p.epoch), l.sequence
	})
	b.idempotent, b.acks, b.pid, b.epoch, b.sequence = true, -1, p.pid, p.epoch, int32(l.sequence)
	if l.newest != nil && l.newest.pid == b.pid {
		l.newest.next = b
	}
	l.newest = b
	l.sequence = l.sequence.Add(b.count)
	l.queue = append(l.queue, b)
	return b
}

// send sends one batch for each of some partitions.
func (p *producer) send(batches []*batch, line *client) {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = p.plan.Acks, int32(between(p.rand, 20*time.Millisecond, 3*time.Second)/time.Millisecond)
	lanes := make(map[*batch]*lane)
	for _, b := range batches {
		l := p.laneFor(b)
		lanes[b] = l
		t := kmsg.NewProduceRequestTopic()
		t.Topic, t.TopicID = l.topic.name, l.topic.id
		part := kmsg.NewProduceRequestTopicPartition()
		part.Partition, part.Records = l.number, b.bytes
		t.Partitions = append(t.Partitions, part)
		req.Topics = append(req.Topics, t)
		if b.attempts++; b.attempts == 1 {
			b.first, b.lives = p.now(), p.run.lives()
		}
		b.inFlight, b.connection, b.era = true, line.connection, l.topic.partition(l.number).era
		b.astray = p.run.ensemble != nil && p.versions[int16(kmsg.Produce)] < produceTopicIDs && p.run.ghost.reborn(b.topic) && !line.to.knows(l.topic)
	}
	if p.plan.Acks == 0 {
		line.silent(req)
		return
	}
	p.requests++
	sent := p.now()
	line.ask(req, func(resp kmsg.Response, err error) {
		p.requests--
		for _, b := range batches {
			b.inFlight = false
		}
		if err != nil {
			for _, b := range batches {
				p.failed(lanes[b], b, wire.NetworkException)
			}
		} else {
			p.run.ensemble.produced(line.to, req.Acks, sent, resp.(*kmsg.ProduceResponse))
			p.answeredProduce(resp.(*kmsg.ProduceResponse), batches, lanes)
		}
		for _, b := range batches {
			lanes[b].settle()
		}
	})
}

// laneFor finds the lane of a batch that was just picked.
func (p *producer) laneFor(b *batch) *lane {
	for _, l := range p.lanes {
		if l.topic.name == b.topic && l.number == b.partition && !l.gone {
			return l
		}
	}
	panic("sim: a batch without a lane")
}

// settle lets a lane go on when everything that was in flight is back.
func (l *lane) settle() {
	for _, b := range l.queue {
		if b.inFlight {
			return
		}
	}
	l.held = false
}

func (l *lane) remove(b *batch) {
	for i := range l.queue {
		if l.queue[i] == b {
			l.queue = append(l.queue[:i:i], l.queue[i+1:]...)
			return
		}
	}
}

// answeredProduce takes in an answer: one result for each batch, in the order of the request.
func (p *producer) answeredProduce(resp *kmsg.ProduceResponse, batches []*batch, lanes map[*batch]*lane) {
	if len(resp.Topics) != len(batches) {
		p.run.fail("every write is answered", "%s wrote %d batches and got %d results", p.name, len(batches), len(resp.Topics))
		return
	}
	for i := range resp.Topics {
		b, parts := batches[i], resp.Topics[i].Partitions
		l := lanes[b]
		if len(parts) != 1 || parts[0].Partition != b.partition {
			p.run.fail("every write is answered", "%s: the result for %s-%d is for another partition: %v", p.name, b.topic, b.partition, parts)
			return
		}
		code := wire.ErrorCode(parts[0].ErrorCode)
		p.run.counted("produce " + code.String())
		switch code {
		case wire.NoError:
			p.succeeded(l, b, ident.Offset(parts[0].BaseOffset))
		case wire.DuplicateSequenceNumber:
			p.succeeded(l, b, -1)
		default:
			p.failed(l, b, code)
		}
	}
}

func (p *producer) succeeded(l *lane, b *batch, base ident.Offset) {
	l.remove(b)
	if !b.idempotent || b.pid == p.pid {
		l.acks++ // else it says nothing of the batches of the new producer id
	}
	p.run.acks++
	if b.astray {
		p.run.counted("acknowledged by a name that was used again")
		return
	}
	p.run.ghost.acknowledged(l.topic, b, base)
}

// failed decides what follows an error.
func (p *producer) failed(l *lane, b *batch, code wire.ErrorCode) {
	l.held = true
	if p.run.ensemble != nil {
		p.look()
	}
	switch code {
	case wire.NetworkException, wire.RequestTimedOut, wire.NotLeaderOrFollower, wire.KafkaStorageError, wire.NotEnoughReplicas, wire.NotEnoughReplicasAfterAppend, wire.LeaderNotAvailable:
		refused := code == wire.KafkaStorageError || code == wire.NotLeaderOrFollower || code == wire.NotEnoughReplicas
		if refused && b.idempotent && b.sequence == p.plan.First && (b.sequence != 0 || p.run.ensemble != nil) {
			// A leader waits for a first batch that it has refused, if that has the sequence 0, which is every client's first. The next leader does not know of it.
			p.run.gaps[b.gap()] = true
		}
		p.again(l, b)
	case wire.UnknownTopicOrPartition, wire.UnknownTopicID:
		if l.topic.stable() && b.lives == p.run.lives() {
			p.run.counted("produce to an unknown topic")
		}
		p.look()
		p.again(l, b)
	case wire.OutOfOrderSequenceNumber, wire.UnknownProducerID, wire.InvalidProducerEpoch:
		p.outOfOrder(l, b, code)
	case wire.MessageTooLarge, wire.RecordListTooLarge, wire.InvalidRecord, wire.InvalidTimestamp, wire.CorruptMessage, wire.UnsupportedCompressionType:
		p.run.refusedForGood(p.name, b, code)
		l.remove(b)
		if b.idempotent {
			p.reset()
		}
	default:
		p.run.fail("errors are those of the protocol", "%s: a write to %s-%d was answered %v", p.name, b.topic, b.partition, code)
	}
}

// again leaves the batch in its lane, to be sent again, or gives it up.
func (p *producer) again(l *lane, b *batch) {
	if b.pid != p.pid && b.idempotent || !b.idempotent && !p.plan.Retry {
		l.remove(b)
	}
}

// produceTopicIDs is the first version of Produce that names topics by their ids (KIP-516).
const produceTopicIDs = 13

// windowBatches is how many batches of a producer a partition remembers (ProducerStateEntry.NUM_BATCHES_TO_RETAIN).
const windowBatches = 5

// followers counts the batches behind this one that were sent, up to the window.
func (b *batch) followers() (n int) {
	for at := b.next; at != nil && at.attempts > 0 && n < windowBatches; at = at.next {
		n++
	}
	return n
}

// outOfOrder is the answer when a batch before this one is missing. If one before it has failed, that is as it must be,
// and both are sent again. Else the broker has forgotten what it knew. Lost records excuse that, and a deletion; and after
// a restart it knows only the newest batch of a producer, as Kafka does, so that it cannot place an older one which is
// repeated. Nor can it place one that was appended before the newest five: with five batches in flight one that was appended and not acknowledged is behind
// them when the one after it was acknowledged meanwhile.
func (p *producer) outOfOrder(l *lane, b *batch, code wire.ErrorCode) {
	if b.pid != p.pid {
		l.remove(b)
		return
	}
	if len(l.queue) > 0 && l.queue[0] != b && code == wire.OutOfOrderSequenceNumber {
		return
	}
	older := b.next != nil && b.next.attempts > 0 && (b.next.lives != p.run.lives() || p.run.ensemble != nil) || b.attempts > 1 && b.followers() >= windowBatches
	if !older && l.topic.stable() && !p.run.forgets && !p.run.ghost.reborn(b.topic) {
		p.run.fail("sequences are remembered", "%s: batch %d, producer %d sequence %d, is the next one for %s-%d, and is answered %v", p.name, b.id, b.pid, b.sequence, b.topic, b.partition, code)
		return
	}
	p.run.counted("producer reset")
	p.reset()
}

// reset gives the producer id up, and with it what is not known.
func (p *producer) reset() {
	p.pid = -1
	for _, l := range p.lanes {
		l.sequence, l.acks = ident.Sequence(p.plan.First), 0
		rest := l.queue[:0]
		for _, b := range l.queue {
			if b.inFlight {
				rest = append(rest, b) // its answer still counts
			}
		}
		l.queue = rest
	}
}
