package sim

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// ghost is what must be true, seen from outside: it hears of everything that clients send and are told, and of every
// fault, and says when an answer contradicts an earlier one. The broker never sees it.
type ghost struct {
	run    *run
	topics map[ident.TopicID]*ghostTopic
	names  map[string]*ghostName
	lossy  bool // what was not synced may have been lost, once at least
}

// ghostName is what was asked for under a name, which may be more than one topic's.
type ghostName struct {
	converts   bool // a setting was asked for that entitles the broker to write other bytes than were sent
	stamps     bool // likewise, timestamps
	forgets    bool // likewise, to delete
	cachedSent int  // requests that ask for write.caching
	cachedOpen int  // of these, those whose fate is not known
	deleteOpen int  // deletions by name whose fate is not known: they hit whatever has the name when they arrive
}

// ghostTopic is one topic, by its id.
type ghostTopic struct {
	id         ident.TopicID
	name       string
	seen       ident.Instant // when somebody heard of it first
	deleteSent ident.Instant // 0: nobody has asked
	deleted    ident.Instant // when the deletion was acknowledged
	partitions []*ghostPartition
	known      bool // its creation was acknowledged
	promised   int  // partitions that were acknowledged
	promisedAt ident.Instant

	strictSince ident.Instant // everything sent from then on is under the synced promise; 0: nobody knows
	everCached  bool
	mayConvert  bool // see ghostName
	mayStamp    bool
	mayForget   bool
}

// ghostPartition is what is known of one partition.
type ghostPartition struct {
	topic  *ghostTopic
	number int32
	// cells says which batch every known offset belongs to: by an acknowledgement, or because somebody read it.
	cells map[ident.Offset]*batch
	bases map[*batch]ident.Offset // of batches that were read, or acknowledged

	durable  ident.Offset // below it not even a power cut takes anything
	high     ident.Offset // greatest high watermark that was told
	highAt   ident.Instant
	start    ident.Offset // greatest log start that was told
	startAt  ident.Instant
	startMax ident.Offset // as far as somebody has asked to delete

	startKept ident.Offset // no death of the process, nor of the machine, takes the log start below it
	era       int          // raised when unsynced records may have been lost
}

// retentionDefault is Kafka's default of retention.ms.
const retentionDefault = 7 * 24 * time.Hour

const anywhere = ident.Offset(math.MaxInt64)

func newGhost(r *run) *ghost {
	return &ghost{run: r, topics: make(map[ident.TopicID]*ghostTopic), names: make(map[string]*ghostName)}
}

// name returns what is known of a name.
func (g *ghost) name(name string) *ghostName {
	n := g.names[name]
	if n == nil {
		// Records of long ago are too old for the default of retention.ms.
		n = &ghostName{forgets: slices.ContainsFunc(g.run.plan.Clients, func(c ClientPlan) bool { return c.Ahead < -retentionDefault })}
		g.names[name] = n
	}
	return n
}

// all lists the topics in the order of their names and ids.
func (g *ghost) all() []*ghostTopic {
	out := make([]*ghostTopic, 0, len(g.topics))
	for _, t := range g.topics {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *ghostTopic) int {
		return cmp.Or(cmp.Compare(a.name, b.name), bytes.Compare(a.id[:], b.id[:]))
	})
	return out
}

// topic returns what is known of a topic; one that nobody knows is new.
func (g *ghost) topic(name string, id ident.TopicID) *ghostTopic {
	t := g.topics[id]
	if t == nil {
		n := g.name(name)
		t = &ghostTopic{id: id, name: name, seen: g.run.world.Now(), mayConvert: n.converts, mayStamp: n.stamps, mayForget: n.forgets, everCached: true}
		if n.deleteOpen > 0 {
			t.deleteSent = g.run.world.Now()
		}
		if g.run.plan.Promise == PromiseSynced {
			t.everCached, t.strictSince = false, 1
		}
		g.topics[id] = t
	}
	if t.name != name {
		g.run.fail("topic ids are unique", "id %s was of topic %s, and is of %s", id, t.name, name)
	}
	return t
}

// reborn tells that there was more than one topic of a name. What is written by name may then belong to either.
func (g *ghost) reborn(name string) bool {
	n := 0
	for _, t := range g.topics {
		if t.name == name {
			n++
		}
	}
	return n > 1
}

// partition returns what is known of a partition.
func (t *ghostTopic) partition(n int32) *ghostPartition {
	for int32(len(t.partitions)) <= n {
		t.partitions = append(t.partitions, &ghostPartition{
			topic: t, number: int32(len(t.partitions)), cells: make(map[ident.Offset]*batch), bases: make(map[*batch]ident.Offset),
		})
	}
	return t.partitions[n]
}

// stable tells that what is said about the topic is about this one: nobody has asked to delete it.
func (t *ghostTopic) stable() bool { return t.deleteSent == 0 }

// strict tells that whatever was sent at an instant, and answered now, is under the synced promise.
func (t *ghostTopic) strict(sent ident.Instant) bool {
	return t.strictSince != 0 && sent >= t.strictSince
}

// asks notes that a setting was asked for, for whatever topic has the name when the request arrives.
func (g *ghost) asks(name string, e config.Entry) {
	n := g.name(name)
	switch e.Name {
	case "write.caching":
		if e.Value != "false" {
			n.cachedSent++
			n.cachedOpen++
		}
	case "compression.type":
		n.converts = n.converts || e.Value != "producer"
	case "message.timestamp.type":
		n.stamps = n.stamps || e.Value != "CreateTime"
	case "retention.ms", "retention.bytes":
		n.forgets = true
	}
	for _, t := range g.topics {
		if t.name == name {
			t.mayConvert, t.mayStamp, t.mayForget = t.mayConvert || n.converts, t.mayStamp || n.stamps, t.mayForget || n.forgets
			if e.Name == "write.caching" && e.Value != "false" {
				t.strictSince, t.everCached = 0, true
			}
		}
	}
}

// answered notes that the fate of a request with a setting is known.
func (g *ghost) answered(name string, e config.Entry) {
	if e.Name == "write.caching" && e.Value != "false" {
		g.name(name).cachedOpen--
	}
}

// synced notes that write.caching=false was acknowledged, by a request before which so many had asked for the opposite.
func (g *ghost) synced(t *ghostTopic, cachedSent int) {
	if n := g.name(t.name); n.cachedOpen == 0 && n.cachedSent == cachedSent && t.strictSince == 0 {
		t.strictSince = g.run.world.Now()
	}
}

// claim notes that a batch is at base, and finds contradictions.
func (p *ghostPartition) claim(r *run, b *batch, base ident.Offset, how string) {
	switch before, known := p.bases[b]; {
	case !known || before == base || !b.idempotent:
	case r.ensemble.strange(p.topic.id, p.number, before):
		r.counted("taken again by a leader that never had it")
	default:
		r.fail("no duplicates", "batch %d of producer %d sequence %d is %s at offset %d of %s-%d, and was at %d before", b.id, b.pid, b.sequence, how, base, p.topic.name, p.number, before)
		return
	}
	for o := base; o < base+ident.Offset(b.count); o++ {
		if other := p.cells[o]; other != nil && other != b {
			r.fail("offsets are immutable", "offset %d of %s-%d is %s as batch %d (at %d), and was of batch %d (at %d) before", o, p.topic.name, p.number, how, b.id, base, other.id, p.bases[other])
			return
		}
	}
	p.bases[b] = base
	for o := base; o < base+ident.Offset(b.count); o++ {
		p.cells[o] = b
	}
}

// acknowledged takes in a positive answer to a produce. base is -1 when the answer does not say.
func (g *ghost) acknowledged(t *ghostTopic, b *batch, base ident.Offset) {
	if !t.stable() {
		return // it may have been another topic of that name, or be gone
	}
	p := t.partition(b.partition)
	if g.run.ensemble != nil && b.acks != -1 {
		return // its leader has it, and may be lost
	}
	a := &acked{base: base, at: g.run.world.Now(), promised: b.acks == -1 && t.strict(b.first)}
	if g.run.ensemble == nil && b.era != p.era && !a.promised && (base < 0 || base+ident.Offset(b.count) > p.durable) {
		g.run.forgets = g.run.forgets || b.idempotent
		return // the answer was under way when the power went, and what it tells may have gone with it
	}
	if b.result != nil && b.idempotent && b.result.base >= 0 && base >= 0 && b.result.base != base {
		g.run.fail("a duplicate has its original's offset", "batch %d was acknowledged at %d, and at %d before", b.id, base, b.result.base)
		return
	}
	if base < 0 && b.result != nil {
		a.base = b.result.base
	}
	b.result = a
	if b.attempts > 1 {
		g.run.counted("acknowledged when sent again")
	}
	if base < 0 {
		return
	}
	p.claim(g.run, b, base, "acknowledged")
	if end := base + ident.Offset(b.count); a.promised && end > p.durable {
		p.durable = end
	}
}

// watermarks takes in what an answer says of a partition. sent is when the request was sent.
func (g *ghost) watermarks(t *ghostTopic, partition int32, sent ident.Instant, high, start ident.Offset) {
	if !t.stable() {
		return
	}
	p, now := t.partition(partition), g.run.world.Now()
	if g.run.ensemble != nil {
		// Another leader may say less, until it has heard as much as the one before.
		if high > p.high {
			p.high, p.highAt = high, now
		}
		if !t.everCached && high > p.durable {
			p.durable = high
		}
		return
	}
	said := start >= 0 // old versions do not say, nor does ListOffsets
	if !said {
		start = p.start
	}
	switch {
	case said && high < start:
		g.run.fail("offsets in order", "%s-%d: the log starts at %d, the high watermark is %d", t.name, partition, start, high)
	case high < p.high && sent >= p.highAt:
		g.run.fail("the high watermark never goes back", "%s-%d: it is %d, and was %d before", t.name, partition, high, p.high)
	case start < p.start && sent >= p.startAt:
		g.run.fail("the log start never goes back", "%s-%d: it is %d, and was %d before", t.name, partition, start, p.start)
	case start > p.startMax && !t.mayForget && start > 0:
		g.run.fail("nothing is deleted unasked", "%s-%d: the log starts at %d, at most %d were to be deleted", t.name, partition, start, p.startMax)
	}
	if high > p.high {
		p.high, p.highAt = high, now
	}
	if start > p.start {
		p.start, p.startAt = start, now
	}
	if !t.everCached && high > p.durable {
		p.durable = high
	}
}

// allSynced tells whether all that is committed in a topic is on stable storage, and always was.
func (g *ghost) allSynced(id ident.TopicID) bool {
	t := g.topics[id]
	return t != nil && !t.everCached || t == nil && g.run.plan.Promise == PromiseSynced
}

// forgiveFrom forgets what was committed in a partition from an offset on: what was promised of it did not cover what has happened.
func (g *ghost) forgiveFrom(id ident.TopicID, number int32, at ident.Offset) {
	t := g.topics[id]
	if t == nil || int(number) >= len(t.partitions) {
		return
	}
	g.run.counted("committed records lost, as was to be expected")
	p := t.partitions[number]
	if p.durable > at {
		g.run.fail("nothing acknowledged is lost", "%s-%d: everything below %d was promised to survive anything, and is gone from %d on", t.name, number, p.durable, at)
		return
	}
	p.era++
	for o := range p.cells {
		if o >= at {
			delete(p.cells, o)
		}
	}
	for b, base := range p.bases {
		if base >= at {
			delete(p.bases, b)
			b.result = nil
			g.run.forgets = true
		}
	}
	p.high = min(p.high, at)
}

// killed takes in the death of the process. The page cache is as it was, unless the disk was broken: then what was not
// synced may be gone. A log start that was told is durable a little later, as in Kafka: deleted records may come back,
// but not those below the start that the disk has.
func (g *ghost) killed(broken bool) {
	if broken {
		g.lose()
		return
	}
	for _, t := range g.topics {
		for _, p := range t.partitions {
			p.start = min(p.start, p.startKept)
		}
	}
}

// rested takes in that the broker was left alone, with a sound disk, for longer than anything takes that it does late.
func (g *ghost) rested() {
	for _, t := range g.topics {
		for _, p := range t.partitions {
			p.startKept = p.start
		}
	}
}

// powerLost takes in a power cut.
func (g *ghost) powerLost() { g.lose() }

// lose forgets what was not promised.
func (g *ghost) lose() {
	g.lossy = true
	for _, t := range g.topics {
		for _, p := range t.partitions {
			if p.lose() {
				g.run.forgets = true
			}
		}
	}
}

// lose forgets what is above the durable offset, and tells whether anything was.
func (p *ghostPartition) lose() (lost bool) {
	p.era++
	for o := range p.cells {
		if o >= p.durable {
			delete(p.cells, o)
		}
	}
	for b, base := range p.bases {
		if base >= p.durable {
			delete(p.bases, b)
			b.result = nil
			lost = true
		}
	}
	p.high, p.start = min(p.high, p.durable), min(p.start, p.startKept)
	return lost
}

// missing finds what was acknowledged and is not in [start, high) of a partition. read has every batch that is there.
func (p *ghostPartition) missing(r *run, start, high ident.Offset, read map[ident.Offset]*batch) {
	for _, b := range r.inOrder(p.bases) {
		if b.result == nil {
			continue
		}
		base := b.result.base
		if base < 0 {
			base = p.bases[b] // the answer did not say, but somebody has read it
		}
		if base >= start {
			if read[base] != b {
				r.fail("nothing acknowledged is lost", "batch %d of %s was acknowledged at offset %d of %s-%d with acks %d, and is not there: the log runs from %d to %d",
					b.id, b.client.name, base, p.topic.name, p.number, b.acks, start, high)
				return
			}
		}
	}
}
