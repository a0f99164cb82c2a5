package sim

import (
	"bytes"
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire/ident"
)

// ensemble holds what several brokers do against what must be true of all of them together. It reads their state between two steps and asks nobody. A nil
// ensemble, that of a broker that is alone, looks at nothing.
type ensemble struct {
	run     *run
	rumours *rumours
	parts   map[replica]*ghostLog
	image   *cluster.Image              // the newest that was committed, as far as any broker knows
	indexes map[*host]uint64            // of the image that each broker was seen with
	heard   map[*host]uint64            // likewise, the greatest in all its lives
	images  map[uint64]uint64           // hashes of images, by index
	lossy   map[*host]ident.BrokerEpoch // machines that lost power, and the epoch that they had; until a process that was started since has registered
	fenced  map[*host]ident.Instant     // since when, without a break
	allowed map[*host]ident.BrokerEpoch // the newest in which each was seen not to be
	looks   *rand.Rand                  // of moments to look at platters
	voted   []cluster.Voter             // those before the newest change of them
}

// ghostLog is a partition: what is committed, and each replica's log as it was seen last.
type ghostLog struct {
	replica
	topic     string
	committed []broker.Batch // without gaps from the first that was seen
	high      ident.Offset   // end of these
	top       ident.Offset   // likewise, the greatest ever: an election may lose some
	reign     reign
	unseenAt  ident.Instant                        // the last instant at which some of its mirrors was unseen
	leaders   map[ident.LeaderEpoch]ident.BrokerID // that were seen to lead
	named     map[ident.LeaderEpoch]ident.BrokerID // that the metadata was seen to name
	mirrors   map[*host]*mirror
	forgiven  bool // what was committed may be lost: the promise ended with the last page cache that had it
	compacted bool // each replica makes other batches of it: how far they reach is compared, and what the coordinators have is held against their logs (host.fold)
}

// cleanerIdle is log.cleaner.backoff.ms where a plan does not set it: no cleaner has looked for something to do before.
const cleanerIdle = ident.Instant(15 * time.Second)

// mirror is the log of one replica.
type mirror struct {
	life    int
	hosted  int // see broker.PartitionState
	batches []broker.Batch
	start   ident.Offset
	first   ident.Offset // it has had everything from here on, and nothing of what was below
	end     ident.Offset
	high    ident.Offset
	highest ident.Offset  // that it ever was, in this life
	since   ident.Instant // when it was seen for the first time
	durable ident.Offset  // was flushed once, and not cut off since
	agreed  ident.Offset  // below it the log was held against what is committed
	epoch   ident.LeaderEpoch
	leads   bool
	unseen  bool // somebody else has the log in hand: it may have more than was seen
	stopped bool // the broker was stopped in order, with everything synced
	lost    bool // the machine lost power since, without that: only what was synced is sure to be there
	gone    bool // its broker has heard that the partition is kept elsewhere, and deletes it
	parted  bool // it led when it stopped, and may have committed more in that turn; until another leader commits
}

func newEnsemble(r *run) *ensemble {
	return &ensemble{
		run: r, rumours: newRumours(r), parts: make(map[replica]*ghostLog), image: cluster.NewImage(), indexes: make(map[*host]uint64), heard: make(map[*host]uint64),
		images: make(map[uint64]uint64), lossy: make(map[*host]ident.BrokerEpoch), fenced: make(map[*host]ident.Instant),
		allowed: make(map[*host]ident.BrokerEpoch), looks: r.world.Rand("majority"),
	}
}

// died hears of the end of a process.
func (e *ensemble) died(h *host) {
	if e != nil {
		e.held()
		delete(e.indexes, h)
		e.rumours.died(h)
	}
}

// turned looks at what has changed in a broker.
func (e *ensemble) turned(h *host) {
	if e == nil || e.run.violation != nil {
		return
	}
	e.look(h)
	e.registered(h)
	for _, p := range h.inspection.Turned() {
		m := e.part(&p).mirrors[h]
		switch {
		case !p.Serving && m != nil && m.leads && m.of(h, &p):
			m.parted = true
		case !p.Serving, m != nil && m.gone && m.of(h, &p) && (!m.leads || !p.Leads): // a leader that is moved away leads on until its actor hears of it, and commits
		case !p.Lent || m != nil && m.of(h, &p) && m.end >= p.Offsets.End:
			e.partition(h, &p)
		case m != nil:
			m.unseen = true
			m.begin(p.Offsets.LogStart) // a log that is begun anew may end anywhere below if its broker dies now
			e.part(&p).unseenAt = e.run.world.Now()
		default:
			e.part(&p).mirrors[h] = &mirror{unseen: true}
			e.part(&p).unseenAt = e.run.world.Now()
		}
	}
}

// part is what is known of a partition.
func (e *ensemble) part(p *broker.PartitionState) *ghostLog {
	key := replica{p.ID, p.Partition}
	g := e.parts[key]
	if g == nil {
		g = &ghostLog{replica: key, topic: p.Topic, leaders: make(map[ident.LeaderEpoch]ident.BrokerID), named: make(map[ident.LeaderEpoch]ident.BrokerID), mirrors: make(map[*host]*mirror)}
		e.parts[key] = g
		if t, known := e.image.TopicByID(p.ID); known && int(p.Partition) < len(t.Partitions) {
			q := t.Partitions[p.Partition]
			g.reigns(q.Leader, q.LeaderEpoch, e.run.world.Now())
		}
	}
	g.compacted = g.compacted || apart(g.topic) && (e.run.plan.compacts() || e.run.world.Now() >= cleanerIdle)
	return g
}

// seen is the log of a replica as it was seen last; nil: it was not, or there is one broker only.
func (e *ensemble) seen(h *host, p *broker.PartitionState) *mirror {
	if e == nil {
		return nil
	}
	return e.part(p).mirrors[h]
}

// strange tells whether a partition has a leader that never had a batch: its log was begun behind it, where another one's began by then. Such a leader has not heard
// of the batch's producer either, as Kafka's has not, and takes the batch once more.
func (e *ensemble) strange(id ident.TopicID, partition int32, base ident.Offset) bool {
	if e == nil {
		return false
	}
	g := e.parts[replica{id, partition}]
	if g == nil {
		return false
	}
	for _, m := range g.mirrors {
		if m.leads && m.first > base {
			return true
		}
	}
	return false
}

// all lists the partitions in a fixed order.
func (e *ensemble) all() []*ghostLog {
	var out []*ghostLog
	for _, g := range e.parts {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *ghostLog) int {
		return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.partition, b.partition))
	})
	return out
}

// partition takes in the state of a replica.
func (e *ensemble) partition(h *host, p *broker.PartitionState) {
	g := e.part(p)
	m := g.mirrors[h]
	if m == nil || !m.of(h, p) {
		before := m
		if m != nil && (m.gone || m.life == h.lives) {
			before = nil // it was moved away, and has come back with nothing
		}
		m = &mirror{life: h.lives, hosted: p.Hosted, start: p.Offsets.LogStart, first: p.Offsets.LogStart, end: p.Offsets.LogStart, epoch: ident.NoLeaderEpoch, since: e.run.world.Now()}
		if before != nil {
			if p.Offsets.End < before.durable && before.start < before.durable && !apart(p.Topic) { // below the log start nothing has to be there
				e.run.fail("recovery keeps what was synced", "%s: %s ends at %d after its restart, and was synced up to %d before", h, p, p.Offsets.End, before.durable)
				return
			}
			m.durable, m.first = min(before.durable, p.Offsets.End), min(m.first, before.first)
		}
		g.mirrors[h] = m
	}
	if m.unseen {
		m.unseen, g.unseenAt = false, e.run.world.Now()
	}
	if !e.follow(h, g, m, p) {
		return
	}
	switch {
	case p.Offsets.HighWatermark < m.high && p.Leads && m.leads && p.LeaderEpoch == m.epoch:
		e.run.fail("a leader's high watermark never goes back", "%s: %s in epoch %d: %d, and %d before", h, p, p.LeaderEpoch, p.Offsets.HighWatermark, m.high)
		return
	case p.LeaderEpoch < m.epoch:
		e.run.fail("leader epochs rise", "%s: %s is in epoch %d, and was in %d", h, p, p.LeaderEpoch, m.epoch)
		return
	}
	elected := p.Leads && (!m.leads || p.LeaderEpoch != m.epoch)
	led := m.leads || m.epoch != ident.NoLeaderEpoch && g.between(h, m.epoch, p.LeaderEpoch) // it may have committed in the turn in which it heard that it leads no more, or that it had led
	m.epoch, m.leads, m.high = p.LeaderEpoch, p.Leads, p.Offsets.HighWatermark
	m.highest = max(m.highest, m.high)
	if elected && !e.elected(h, g, m) {
		return
	}
	if (m.leads || led) && m.high > g.high {
		e.commit(h, g, m)
	}
	e.agree(h, g, m)
}

// of tells that a mirror is that of this replica in this life of its broker.
func (m *mirror) of(h *host, p *broker.PartitionState) bool {
	return m.life == h.lives && m.hosted == p.Hosted
}

// bare tells that a log has no records, so that its high watermark says no more than where it begins: that may be above where an unclean election has left off.
func (m *mirror) bare() bool { return m.high == m.start && m.start == m.end }

// begin takes in where the log begins: what is below is deleted.
func (m *mirror) begin(start ident.Offset) {
	if start > m.end {
		m.first = start
	}
	if start > m.start {
		m.batches = slices.DeleteFunc(m.batches, func(b broker.Batch) bool { return b.Last < start })
		m.start = start
	}
}

// follow brings a mirror up to the log.
func (e *ensemble) follow(h *host, g *ghostLog, m *mirror, p *broker.PartitionState) bool {
	o := &p.Offsets
	if o.End < m.end {
		if o.End < m.high && !g.forgiven && o.LogStart <= m.start && !m.bare() {
			e.run.fail("nothing below the high watermark is cut off", "%s: %s is cut to %d, its high watermark was %d", h, p, o.End, m.high)
			return false
		}
		e.run.counted("log truncated")
		m.batches = slices.DeleteFunc(m.batches, func(b broker.Batch) bool { return b.Base >= o.End })
		m.end, m.durable, m.agreed = o.End, min(m.durable, o.End), min(m.agreed, o.End)
	}
	m.begin(o.LogStart)
	if o.LogStart > m.end {
		m.end = o.LogStart
	}
	if o.End > m.end {
		n := len(m.batches)
		var err error
		if m.batches, err = h.inspection.Batches(m.batches, g.id, g.partition, m.end); err != nil {
			m.batches = m.batches[:n] // the disk is broken; it is read with the next turn
			return true
		}
		if n > 0 && len(m.batches) > n && m.batches[n].Base <= m.batches[n-1].Last {
			m.batches = slices.Delete(m.batches, n, n+1) // the batch that holds the offset was there
		}
		for i := 1; i < len(m.batches) && !apart(p.Topic); i++ {
			if before, b := m.batches[i-1], m.batches[i]; b.Base != before.Last+1 {
				e.run.fail("offsets have no gaps", "%s: in %s a batch of offsets %d to %d follows one that ends at %d", h, p, b.Base, b.Last, before.Last)
				return false
			}
		}
		if len(m.batches) > 0 && m.batches[0].Base > m.start && !apart(p.Topic) {
			e.run.fail("offsets have no gaps", "%s: %s begins at %d, and its first batch at %d", h, p, m.start, m.batches[0].Base)
			return false
		}
		m.end = o.End
		if !e.match(h, g, m, n) {
			return false
		}
	}
	m.durable = max(m.durable, o.Flushed)
	return true
}

// match holds batches from the nth on against those that other replicas have there: those of one epoch are the same, committed or not, for it has one leader.
func (e *ensemble) match(h *host, g *ghostLog, m *mirror, n int) bool {
	if apart(g.topic) {
		return true
	}
	for _, o := range e.run.hosts {
		other := g.mirrors[o]
		if o == h || other == nil {
			continue
		}
		for _, b := range m.batches[min(n, len(m.batches)):] {
			i, found := slices.BinarySearchFunc(other.batches, b.Base, func(x broker.Batch, base ident.Offset) int { return cmp.Compare(x.Base, base) })
			if found && other.batches[i].Epoch == b.Epoch && other.batches[i] != b {
				e.run.fail("batches of one epoch are the same everywhere", "%s: %s has %+v, and %s has %+v", g, h, b, o, other.batches[i])
				return false
			}
		}
	}
	return true
}

// elected holds a new leader against what is committed.
func (e *ensemble) elected(h *host, g *ghostLog, m *mirror) bool {
	if before, known := g.leaders[m.epoch]; known && before != h.id {
		e.run.fail("an epoch has one leader", "%s leads %s in epoch %d, which %d led", h, g, m.epoch, before)
		return false
	}
	g.leaders[m.epoch] = h.id
	e.run.counted("elected")
	declared, past := g.forgiven, false
	switch t, known := e.image.TopicByID(g.id); {
	case !known:
		past = true // it is deleted by now
	case int(g.partition) < len(t.Partitions):
		p := t.Partitions[g.partition]
		past = p.LeaderEpoch > m.epoch // it goes through what happened while it heard nothing
		if p.LeaderEpoch == m.epoch && p.Election != cluster.ElectionClean {
			e.run.counted("elected with possible loss")
			declared = declared || !e.run.ghost.allSynced(g.id)
		}
	}
	if past {
		return true
	}
	if at, ok := m.holds(g); !ok {
		if !declared {
			e.run.fail("a leader has all that is committed", "%s leads %s in epoch %d and ends at %d; everything below %d is committed, and at %d it has something else, or nothing", h, g, m.epoch, m.end, g.high, at)
			return false
		}
		g.cut(at)
		e.run.ghost.forgiveFrom(g.id, g.partition, at)
	}
	g.forgiven = false
	return true
}

// holds tells whether a log has all that is committed, from its start on; if not, from where on it has not.
func (m *mirror) holds(g *ghostLog) (ident.Offset, bool) {
	if g.compacted {
		return m.end, m.end >= g.high
	}
	i := 0
	for _, b := range g.committed {
		if b.Last < m.start {
			continue
		}
		for i < len(m.batches) && m.batches[i].Base < b.Base {
			i++
		}
		if i == len(m.batches) || m.batches[i] != b {
			return b.Base, false
		}
	}
	return 0, true
}

// cut forgets what is committed from an offset on.
func (g *ghostLog) cut(at ident.Offset) {
	g.committed = slices.DeleteFunc(g.committed, func(b broker.Batch) bool { return b.Base >= at })
	g.high = min(g.high, at)
	g.reign.high = min(g.reign.high, at)
	for _, m := range g.mirrors {
		m.agreed, m.high = min(m.agreed, at), min(m.high, at)
	}
}

// commit takes in that a leader's high watermark has risen.
func (e *ensemble) commit(h *host, g *ghostLog, m *mirror) {
	for _, b := range m.batches {
		if b.Base >= g.high && b.Last < m.high {
			g.committed = append(g.committed, b)
		}
	}
	g.high = m.high
	g.top = max(g.top, g.high)
	for _, o := range g.mirrors {
		o.parted = false
	}
	t, known := e.image.TopicByID(g.id)
	if !known || int(g.partition) >= len(t.Partitions) {
		return
	}
	p := t.Partitions[g.partition]
	own := p
	if t, known := h.inspection.Image().TopicByID(g.id); known && int(g.partition) < len(t.Partitions) {
		own = t.Partitions[g.partition]
	}
	strict := e.run.ghost.allSynced(g.id)
	n := int32(0)
	for _, r := range p.Replicas {
		if g.reaches(e.run.called(r), strict) {
			n++
		}
	}
	if n < min(p.MinISR, own.MinISR) {
		e.run.fail("what is committed is on enough replicas", "%s: the high watermark of %s is %d, %d of %v have that, min ISR is %d", h, g, g.high, n, p.Replicas, p.MinISR)
		return
	}
	if p.LeaderEpoch != m.epoch || !m.leads {
		return
	}
	for _, r := range p.ISR {
		if !g.reaches(e.run.called(r), strict) && slices.Contains(own.ISR, r) {
			e.run.fail("what is committed is on all in-sync replicas", "%s: the high watermark of %s is %d in epoch %d, and broker %d of ISR %v has not got that far", h, g, g.high, m.epoch, r, p.ISR)
			return
		}
	}
}

// reaches tells whether a replica has got to the end of what is committed, on stable storage if it must.
func (g *ghostLog) reaches(h *host, strict bool) bool {
	m := g.mirrors[h]
	return m != nil && !m.gone && (m.unseen || strict && m.durable >= g.high || !strict && m.end >= g.high)
}

// sure tells likewise whether it has that now, whatever it had before a loss of power.
func (g *ghostLog) sure(h *host, strict bool) bool {
	m := g.mirrors[h]
	return g.reaches(h, strict || m != nil && m.lost)
}

// agree holds what a replica takes for committed against what is.
func (e *ensemble) agree(h *host, g *ghostLog, m *mirror) {
	if _, known := e.image.TopicByID(g.id); !known {
		return // it is being deleted: its leader may have gone with what it knew
	}
	if m.high > g.high {
		if m.bare() {
			return
		}
		for _, o := range g.mirrors {
			if o.unseen {
				return // it may be the leader who has told of it
			}
		}
		if g.parting(m.high) {
			return
		}
		e.run.fail("a follower's high watermark is a leader's", "%s: that of %s is %d, no leader had more than %d", h, g, m.high, g.high)
		return
	}
	if m.agreed >= m.high {
		return
	}
	i := 0
	for _, b := range m.batches {
		if g.compacted {
			break
		}
		if b.Base < m.agreed || b.Last >= m.high {
			continue
		}
		for i < len(g.committed) && g.committed[i].Last < b.Base {
			i++
		}
		if i == len(g.committed) || g.committed[i].Base > b.Last {
			continue // its leader committed and deleted it in one turn
		}
		if g.committed[i] != b {
			e.run.fail("replicas agree on what is committed", "%s has in %s a batch %+v, which is not what was committed there", h, g, b)
			return
		}
	}
	m.agreed = m.high
}

// String names the partition.
func (g *ghostLog) String() string {
	return ident.TopicPartition{Topic: g.topic, Partition: g.partition}.String()
}

// look takes in the metadata that a broker has.
func (e *ensemble) look(h *host) {
	image := h.inspection.Image()
	index := image.Index()
	if index == e.indexes[h] {
		return
	}
	if index < e.indexes[h] {
		e.run.fail("metadata never goes back", "%s is at index %d, and was at %d", h, index, e.indexes[h])
		return
	}
	e.indexes[h] = index
	if index > e.heard[h] { // else it goes through what it has heard in a former life
		e.heard[h] = index
		e.vacate(h, image)
	}
	f := fnv.New64a()
	_, _ = f.Write(cluster.EncodeSnapshot(image)) // a hash does not fail
	hash, known := e.images[index]
	if known && hash != f.Sum64() {
		e.run.fail("metadata is one fold of one log", "%s has another image of index %d than others", h, index)
		return
	}
	e.images[index] = f.Sum64()
	if index > e.image.Index() {
		before := e.image
		e.image = image
		if !slices.Equal(before.Voters(), image.Voters()) {
			e.voted = before.Voters()
		}
		e.fencing()
		e.progress(before)
		if chance(e.looks, 5) {
			e.held()
		}
	}
}

// registered looks at what a broker is taken to have that has told, for the first time since its machine lost power, what it has. A registration that was under
// way when the power failed says nothing of that, so this waits until the process of now has heard of its own.
func (e *ensemble) registered(h *host) {
	epoch, lossy := e.lossy[h]
	if !lossy || h.inspection.Epoch() <= epoch {
		return
	}
	if b, known := e.image.Broker(h.id); !known || b.Epoch < h.inspection.Epoch() {
		return // its controller died with that
	}
	delete(e.lossy, h)
	e.run.counted("a loss of power was told")
	for t := range e.image.Topics() {
		for n, p := range t.Partitions {
			e.candidates(t, int32(n), p)
		}
	}
}

// stopped hears of a stop in order, which syncs everything.
func (e *ensemble) stopped(h *host) {
	if e == nil {
		return
	}
	for _, g := range e.parts {
		if m := g.mirrors[h]; m != nil {
			m.stopped = true
		}
	}
}

// vacate notes which replicas a broker has heard that it has no more.
func (e *ensemble) vacate(h *host, image *cluster.Image) {
	for _, g := range e.parts {
		t, known := image.TopicByID(g.id)
		if m := g.mirrors[h]; m != nil && known && int(g.partition) < len(t.Partitions) && !m.gone && !t.Partitions[g.partition].HasReplica(h.id) {
			m.gone = true
			e.run.counted("replica moved away")
		}
	}
}

// progress looks at what the newest metadata changes.
func (e *ensemble) progress(before *cluster.Image) {
	for t := range e.image.Topics() {
		old, _ := before.TopicByID(t.ID)
		for n, p := range t.Partitions {
			var q *cluster.Partition
			if old != nil && n < len(old.Partitions) {
				q = old.Partitions[n]
			}
			if q != p {
				e.changed(t, int32(n), q, p)
			}
		}
	}
}

func (e *ensemble) changed(t *cluster.Topic, n int32, before, p *cluster.Partition) {
	name := ident.TopicPartition{Topic: t.Name, Partition: n}
	switch {
	case before != nil && (p.Epoch < before.Epoch || p.LeaderEpoch < before.LeaderEpoch || p.Leader != before.Leader && p.LeaderEpoch == before.LeaderEpoch):
		e.run.fail("epochs rise", "%s: from %+v to %+v", name, before, p)
		return
	case p.Leader != ident.NoBroker && !slices.Contains(p.ISR, p.Leader):
		e.run.fail("a leader is in sync", "%s: %+v", name, p)
		return
	}
	for _, b := range slices.Concat(p.ISR, p.ELR) {
		if !slices.Contains(p.Replicas, b) || slices.Contains(p.ISR, b) && slices.Contains(p.ELR, b) {
			e.run.fail("ISR and ELR are replicas, and apart", "%s: %+v", name, p)
			return
		}
	}
	if g := e.parts[replica{t.ID, n}]; g != nil {
		g.reigns(p.Leader, p.LeaderEpoch, e.run.world.Now())
	}
	if len(p.ELR) > 0 {
		e.run.counted("replica in the ELR")
	}
	if before != nil && len(p.ISR) < len(before.ISR) {
		e.run.counted("ISR shrunk")
	}
	e.candidates(t, n, p)
}

// candidates holds those that may be elected against what is committed.
func (e *ensemble) candidates(t *cluster.Topic, n int32, p *cluster.Partition) {
	g := e.parts[replica{t.ID, n}]
	if g == nil || g.forgiven {
		return
	}
	strict := e.run.ghost.allSynced(t.ID)
	for _, b := range slices.Concat(p.ISR, p.ELR) {
		h := e.run.called(b)
		if _, lossy := e.lossy[h]; lossy && !strict || slices.Contains(p.Unverified, b) {
			continue
		}
		if g.high > 0 && !g.sure(h, strict) {
			e.run.fail("who may be elected has all that is committed", "%s: broker %d has got to %s, and %d is committed: %+v", g, b, brief(g.mirrors[h]), g.high, p)
			return
		}
		if m := g.mirrors[h]; b == p.Leader && m != nil && !m.unseen {
			if at, ok := m.holds(g); !ok {
				e.run.fail("a leader has all that is committed", "%s: broker %d is to lead, and has at %d something else than what is committed, or nothing: %+v", g, b, at, p)
				return
			}
		}
	}
}

// cut hears of a loss of power. What only page caches had is lost with the last of them.
func (e *ensemble) cut(h *host) {
	epoch := ident.BrokerEpoch(0)
	if b, known := e.image.Broker(h.id); known {
		epoch = b.Epoch
	}
	if _, already := e.lossy[h]; !already {
		e.lossy[h] = epoch
	}
	for _, g := range e.all() {
		if m := g.mirrors[h]; m != nil {
			m.lost = !m.stopped
		}
		t, known := e.image.TopicByID(g.id)
		if !known || e.run.ghost.allSynced(g.id) || int(g.partition) >= len(t.Partitions) {
			continue
		}
		p := t.Partitions[g.partition]
		kept := false
		for _, b := range slices.Concat(p.ISR, p.ELR) {
			o := e.run.called(b)
			_, lossy := e.lossy[o]
			kept = kept || !lossy && g.sure(o, false)
		}
		g.forgiven = g.forgiven || !kept
	}
}
