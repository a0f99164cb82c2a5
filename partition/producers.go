package partition

import (
	"cmp"
	"math"
	"slices"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// windowSize is how many of a producer's batches are remembered: clients keep at
// most five produce requests in flight (ProducerStateEntry.java).
const windowSize = 5

// noSlot says that a producer has no state.
const noSlot int32 = -1

// expireMax bounds the producers forgotten in one Tick.
const expireMax = 4096

// Producers is what a partition remembers of idempotent producers: the last five
// batches of each, by which a repeated batch is told from a new one. State changes
// only when a batch is in the log, so the state belongs to the log end.
//
// The number of producers is bounded. A new producer above the bound takes the
// place of the one that has appended nothing for longest: that one is then unknown,
// and whatever it sends next is taken as it comes, which is what Kafka does after
// producer.id.expiration.ms.
//
// The slots form one list from the quietest producer to the most recent one, so
// that expiry and eviction never search.
type Producers struct {
	max    int
	byID   map[ident.ProducerID]int32
	slots  []producer
	free   int32 // first of the free slots, linked by newer
	oldest int32
	newest int32
}

// producer is the state of one producer.
type producer struct {
	id      ident.ProducerID
	epoch   ident.ProducerEpoch
	count   int8 // batches in window; 0: the epoch is known, no batch of it
	older   int32
	newer   int32
	touched ident.Millis // wall clock when it last appended, or was found by recovery

	marked           ident.Offset // offset of the last marker; ident.NoOffset: none is known
	coordinatorEpoch int32        // of the last transaction marker, for the snapshot
	txnFirstOffset   ident.Offset
	window           [windowSize]batchMark // oldest first
}

// batchMark is one remembered batch.
type batchMark struct {
	lastSequence ident.Sequence
	offsetDelta  int32 // last offset minus first
	lastOffset   ident.Offset
	timestamp    ident.Millis // greatest in the batch
}

func (b *batchMark) base() ident.Offset { return b.lastOffset - ident.Offset(b.offsetDelta) }

// baseSequence undoes Sequence.Add, which counts modulo 2^31.
func (b *batchMark) baseSequence() ident.Sequence {
	return b.lastSequence.Add(math.MaxInt32 - b.offsetDelta).Add(1)
}

// next is the sequence that the producer's next batch must start with.
func (s *producer) next() ident.Sequence {
	if s.count == 0 {
		return 0 // only markers are known of the epoch, or its first batch was refused
	}
	return s.window[s.count-1].lastSequence.Add(1)
}

// NewProducers makes an empty memory for at most limit producers. During recovery it
// is loaded from a snapshot and fed the batches above it, in either order; then it
// goes into [Options].
func NewProducers(limit int) *Producers {
	return &Producers{max: limit, byID: map[ident.ProducerID]int32{}, free: noSlot, oldest: noSlot, newest: noSlot}
}

// Len is the number of producers with state.
func (p *Producers) Len() int { return len(p.byID) }

// Replay takes in a batch found in the log at base. What is in the log was accepted
// once, so nothing is checked; a batch that the state covers already is skipped. now
// dates the producer for expiry: one found by recovery gets a whole span from there,
// since the age of its records says nothing about the producer.
func (p *Producers) Replay(base ident.Offset, b BatchInfo, now ident.Millis) {
	if b.ProducerID < 0 || b.ProducerEpoch < 0 || !b.Control && b.BaseSequence < 0 {
		return
	}
	slot, ok := p.byID[b.ProducerID]
	if !ok {
		slot = noSlot
	} else {
		s := &p.slots[slot]
		if b.ProducerEpoch < s.epoch || s.count > 0 && base <= s.window[s.count-1].lastOffset {
			return
		}
	}
	if !b.Control {
		if s := p.slotOf(slot); s != nil && b.ProducerEpoch == s.epoch && s.count > 0 && b.BaseSequence != s.next() {
			s.count = 0 // its leader had forgotten the producer and took it as new
		}
		p.add(slot, &b, base, now, nil)
		return
	}
	// A marker ends what the producer did in this epoch; it has no sequence.
	if slot == noSlot {
		slot = p.insert(b.ProducerID, b.ProducerEpoch, nil)
	}
	s := &p.slots[slot]
	s.touched, s.marked = now, base
	if b.ProducerEpoch > s.epoch {
		s.epoch, s.count = b.ProducerEpoch, 0
	}
}

// Load takes in the entries of a snapshot, in the order in which Snapshot wrote
// them. Batches replayed before are kept: they are newer.
func (p *Producers) Load(entries []record.ProducerEntry, now ident.Millis) {
	for len(entries) > 0 {
		n := 1
		for n < len(entries) && entries[n].ProducerID == entries[0].ProducerID {
			n++
		}
		for i := n - 1; i >= 0; i-- { // the newest first: what is older goes before it
			p.load(&entries[i], now)
		}
		entries = entries[n:]
	}
}

func (p *Producers) load(e *record.ProducerEntry, now ident.Millis) {
	mark := batchMark{lastSequence: e.LastSequence, offsetDelta: e.OffsetDelta, lastOffset: e.LastOffset, timestamp: e.Timestamp}
	slot, ok := p.byID[e.ProducerID]
	if !ok {
		slot = p.insert(e.ProducerID, e.ProducerEpoch, nil)
	}
	s := &p.slots[slot]
	if s.epoch != e.ProducerEpoch {
		return // replayed batches of a later epoch
	}
	if !ok {
		s.touched = now
		s.coordinatorEpoch, s.txnFirstOffset = e.CoordinatorEpoch, e.CurrentTxnFirstOffset
	}
	if e.LastSequence == ident.NoSequence || s.count == windowSize {
		return
	}
	if s.count > 0 && (s.window[0].base() <= e.LastOffset || s.window[0].baseSequence() != e.LastSequence.Add(1)) {
		return // replayed already, or not its successor
	}
	copy(s.window[1:], s.window[:s.count])
	s.window[0] = mark
	s.count++
}

// above tells whether a batch of any producer lies at or above offset o.
func (p *Producers) above(o ident.Offset) bool {
	for slot := p.oldest; slot != noSlot; slot = p.slots[slot].newer {
		if s := &p.slots[slot]; s.count > 0 && s.window[s.count-1].lastOffset >= o || s.marked >= o {
			return true
		}
	}
	return false
}

// Snapshot appends what a restart needs to go on where the log ends: the producers,
// the quietest first, with one entry for each batch of the window, the oldest first.
// Kafka keeps the last batch alone, and takes the last entry of a producer when it
// reads this; but a client has up to five batches in flight, and the retry of one
// that is not the last must be known after a restart, too.
func (p *Producers) Snapshot(dst []record.ProducerEntry) []record.ProducerEntry {
	for slot := p.oldest; slot != noSlot; slot = p.slots[slot].newer {
		s := &p.slots[slot]
		e := record.ProducerEntry{
			ProducerID: s.id, ProducerEpoch: s.epoch,
			LastSequence: ident.NoSequence, LastOffset: ident.NoOffset, Timestamp: ident.NoTimestamp,
			CoordinatorEpoch: s.coordinatorEpoch, CurrentTxnFirstOffset: s.txnFirstOffset,
		}
		if s.count == 0 {
			dst = append(dst, e)
		}
		for i := range s.window[:s.count] {
			b := &s.window[i]
			e.LastSequence, e.LastOffset, e.OffsetDelta, e.Timestamp = b.lastSequence, b.lastOffset, b.offsetDelta, b.timestamp
			dst = append(dst, e)
		}
	}
	return dst
}

// verdict is what check says of a batch.
type verdict struct {
	code      wire.ErrorCode
	duplicate *batchMark // the original, valid until the state changes
	slot      int32      // of the producer; noSlot: it has no state
}

// check tells whether a batch is new, repeated, or out of order
// (ProducerAppendInfo.java, ProducerStateEntry.java). It changes nothing.
func (p *Producers) check(b *BatchInfo) verdict {
	if b.BaseSequence < 0 || b.ProducerEpoch < 0 {
		return verdict{code: wire.InvalidRecord, slot: noSlot}
	}
	slot, ok := p.byID[b.ProducerID]
	if !ok {
		// Its state may have expired here while it lives on: any sequence will do.
		return verdict{slot: noSlot}
	}
	s := &p.slots[slot]
	switch {
	case b.ProducerEpoch < s.epoch:
		return verdict{code: wire.InvalidProducerEpoch, slot: slot}
	case b.ProducerEpoch > s.epoch:
		if b.BaseSequence != 0 {
			return verdict{code: wire.OutOfOrderSequenceNumber, slot: slot}
		}
		return verdict{slot: slot}
	}
	last := b.BaseSequence.Add(b.LastOffsetDelta)
	for i := range s.window[:s.count] {
		if m := &s.window[i]; m.lastSequence == last && m.offsetDelta == b.LastOffsetDelta {
			return verdict{duplicate: m, slot: slot}
		}
	}
	if b.BaseSequence != s.next() {
		return verdict{code: wire.OutOfOrderSequenceNumber, slot: slot}
	}
	return verdict{slot: slot}
}

// add takes in a batch that is in the log at base. slot is what check said.
func (p *Producers) add(slot int32, b *BatchInfo, base ident.Offset, now ident.Millis, out *Out) {
	if slot == noSlot {
		slot = p.insert(b.ProducerID, b.ProducerEpoch, out)
	} else {
		p.unlink(slot)
		p.link(slot)
	}
	s := &p.slots[slot]
	s.touched = now
	if b.ProducerEpoch > s.epoch {
		s.epoch, s.count = b.ProducerEpoch, 0
	}
	if s.count == windowSize {
		copy(s.window[:], s.window[1:])
		s.count--
	}
	s.window[s.count] = batchMark{
		lastSequence: b.BaseSequence.Add(b.LastOffsetDelta),
		offsetDelta:  b.LastOffsetDelta,
		lastOffset:   base + ident.Offset(b.LastOffsetDelta),
		timestamp:    b.MaxTimestamp,
	}
	s.count++
}

// ExpectFirst takes in that a batch was refused before there was a machine, because the log could not be opened yet. If it
// is a producer's first, and nothing is known of the producer, nothing but that batch will be taken from it: it has more
// batches under way. For the time after recovery, before the Producers go into [Options].
func (p *Producers) ExpectFirst(b BatchInfo, now ident.Millis) {
	if b.ProducerID >= 0 {
		p.expectFirst(&b, now)
	}
}

// expectFirst makes state for a producer that nothing is known of, if the batch is its
// first: then nothing but that batch is taken. It makes no room for it, since a
// refusal must not cost another producer its memory.
func (p *Producers) expectFirst(b *BatchInfo, now ident.Millis) bool {
	if _, known := p.byID[b.ProducerID]; known || b.BaseSequence != 0 || b.ProducerEpoch < 0 || len(p.byID) >= p.max {
		return false
	}
	p.slots[p.insert(b.ProducerID, b.ProducerEpoch, nil)].touched = now
	return true
}

// describe lists the producers by ascending id, in a slice of its own.
func (p *Producers) describe() []ProducerState {
	states := make([]ProducerState, 0, len(p.byID))
	for slot := p.oldest; slot != noSlot; slot = p.slots[slot].newer {
		s := &p.slots[slot]
		st := ProducerState{ProducerID: s.id, ProducerEpoch: s.epoch, LastSequence: ident.NoSequence, LastTimestamp: ident.NoTimestamp}
		if s.count > 0 {
			st.LastSequence, st.LastTimestamp = s.window[s.count-1].lastSequence, s.window[s.count-1].timestamp
		}
		states = append(states, st)
	}
	slices.SortFunc(states, func(a, b ProducerState) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
	return states
}

// insert makes a slot for a new producer, the most recent one. At the bound it
// takes the slot of the quietest.
func (p *Producers) insert(id ident.ProducerID, epoch ident.ProducerEpoch, out *Out) int32 {
	for len(p.byID) > 0 && len(p.byID) >= p.max {
		p.evict(out)
	}
	slot := p.free
	if slot != noSlot {
		p.free = p.slots[slot].newer
	} else {
		if len(p.slots) == math.MaxInt32 {
			panic("partition: more than 2^31 producers")
		}
		slot = int32(len(p.slots))
		p.slots = append(p.slots, producer{})
	}
	p.slots[slot] = producer{id: id, epoch: epoch, marked: ident.NoOffset, coordinatorEpoch: -1, txnFirstOffset: ident.NoOffset}
	p.byID[id] = slot
	p.link(slot)
	return slot
}

// slotOf returns the producer in a slot, nil for noSlot.
func (p *Producers) slotOf(slot int32) *producer {
	if slot == noSlot {
		return nil
	}
	return &p.slots[slot]
}

// shrink evicts down to the bound.
func (p *Producers) shrink(out *Out) {
	for len(p.byID) > max(p.max, 1) {
		p.evict(out)
	}
}

// evict forgets the quietest producer to make room.
func (p *Producers) evict(out *Out) {
	id := p.slots[p.oldest].id
	p.remove(p.oldest)
	if out != nil {
		out.note(Note{Kind: NoteProducerEvicted, Producer: id})
	}
}

// expire forgets producers that have been quiet for the span, at most expireMax of
// them. It returns how many, and whether there may be more.
func (p *Producers) expire(now ident.Millis, span int64) (n int32, more bool) {
	for slot := p.oldest; slot != noSlot; slot = p.oldest {
		if n == expireMax {
			return n, true
		}
		s := &p.slots[slot]
		// A touch from the future means that the clock was set back. Counted from now
		// it, and with it everything behind it in the list, is kept for one more span.
		s.touched = min(s.touched, now)
		if int64(now)-int64(s.touched) < span {
			break
		}
		p.remove(slot)
		n++
	}
	return n, false
}

// remove forgets a producer.
func (p *Producers) remove(slot int32) {
	p.unlink(slot)
	delete(p.byID, p.slots[slot].id)
	p.slots[slot] = producer{newer: p.free}
	p.free = slot
}

// link makes a slot the most recent one.
func (p *Producers) link(slot int32) {
	p.slots[slot].older, p.slots[slot].newer = p.newest, noSlot
	if p.newest != noSlot {
		p.slots[p.newest].newer = slot
	} else {
		p.oldest = slot
	}
	p.newest = slot
}

// unlink takes a slot out of the list.
func (p *Producers) unlink(slot int32) {
	older, newer := p.slots[slot].older, p.slots[slot].newer
	if older != noSlot {
		p.slots[older].newer = newer
	} else {
		p.oldest = newer
	}
	if newer != noSlot {
		p.slots[newer].older = older
	} else {
		p.newest = older
	}
}

// armProducers arms the next look for expired producers, unless it is armed.
func (m *Machine) armProducers(now Now, out *Out) {
	if m.producerAlarm != never || m.config.ProducerCheckNanos <= 0 {
		return
	}
	m.producerAlarm = now.Mono + ident.Instant(m.config.ProducerCheckNanos)
	out.Arm = append(out.Arm, Alarm{Key: AlarmProducers, At: m.producerAlarm})
}

// expireProducers forgets the quiet producers and arms the next look, if any are
// left to look for.
func (m *Machine) expireProducers(now Now, out *Out) {
	m.producerAlarm = never
	n, more := m.producers.expire(now.Wall, m.config.ProducerExpirationMs)
	if n > 0 {
		out.note(Note{Kind: NoteProducersExpired, Count: n})
	}
	switch {
	case more:
		m.producerAlarm = now.Mono
		out.Arm = append(out.Arm, Alarm{Key: AlarmProducers, At: now.Mono})
	case m.producers.Len() > 0:
		m.armProducers(now, out)
	}
}
