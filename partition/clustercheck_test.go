package partition_test

import (
	"slices"

	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire/ident"
)

// ghost is what only an omniscient observer knows. The numbers in the checks are those
// of the list of invariants: 1 one leader per epoch, 2 log matching, 3 committed
// agreement, 4 strong ISR, 5 high watermark needs min ISR (and 8 superset), 6 leader
// completeness, 7 candidate completeness, 9 bounds, 10 no truncation of what is
// committed, 11 epoch cache, 12 durable acks, 13 what was seen stays, 14 committed
// offsets never change, 15 the end that clients see never goes back, 16 nobody but a
// leader serves.
type ghost struct {
	committed []batch // as soon as some high watermark has passed it
	end       ident.Offset
	acked     []batch
	writers   map[ident.LeaderEpoch]ident.BrokerID
	listed    ident.Offset
	listedAt  ident.LeaderEpoch
	declared  int // losses: then the truncations down to there are legal
}

// checkWriter is invariant 1.
func (c *cluster) checkWriter(x *node, e ident.LeaderEpoch) {
	if c.ghost.writers == nil {
		c.ghost.writers = map[ident.LeaderEpoch]ident.BrokerID{}
	}
	if w, ok := c.ghost.writers[e]; ok && w != x.id {
		c.fail("brokers %d and %d both wrote in epoch %d", w, x.id, e)
	}
	c.ghost.writers[e] = x.id
}

// at finds the batch that holds an offset.
func at(log []batch, o ident.Offset) *batch {
	i, found := slices.BinarySearchFunc(log, o, func(b batch, o ident.Offset) int {
		switch {
		case b.end <= o:
			return -1
		case b.base > o:
			return +1
		}
		return 0
	})
	if !found {
		return nil
	}
	return &log[i]
}

func same(a, b *batch) bool {
	return a == b || a != nil && b != nil && a.base == b.base && a.epoch == b.epoch && a.content == b.content
}

// observe sees that a leader raised its high watermark, before anybody is told.
func (x *node) observe() {
	o := x.m.Offsets()
	if o.HighWatermark > x.high && x.m.Role() == partition.Leading {
		x.c.advanced(x, o)
	}
	x.high = o.HighWatermark
}

// checkTurn looks at one broker after its turn.
func (x *node) checkTurn() {
	c, o := x.c, x.m.Offsets()
	if x.sound() && (o.End != x.end || o.LogStart != x.start || o.Flushed != x.flushed) {
		c.fail("broker %d believes in %+v, its log is [%d,%d), flushed to %d", x.id, o, x.start, x.end, x.flushed)
	}
	for _, n := range x.out.Note {
		if n.Kind == partition.NoteTruncatedCommitted && c.ghost.declared == 0 {
			c.fail("10: broker %d truncated below its high watermark %d", x.id, n.Offset)
		}
	}
	if !x.sound() {
		return
	}
	for i := range x.log {
		b := &x.log[i]
		if b.base >= x.start && x.m.EpochOf(b.base) != b.epoch {
			c.fail("11: broker %d says epoch %d of offset %d, the batch says %d", x.id, x.m.EpochOf(b.base), b.base, b.epoch)
		}
	}
}

// sound tells whether log and machine are of the same mind. A truncation that is under
// way, or that has to be tried again, is in the machine already; one that a lost disk cut
// short never is on it.
func (x *node) sound() bool {
	return x.up && !x.offline && x.cut == nil && (x.m.Offsets().End == x.end || x.m.Role() != partition.Following)
}

// advanced takes in that a leader has raised its high watermark.
func (c *cluster) advanced(x *node, o partition.Offsets) {
	g := &c.ghost
	known := c.control.records[x.heard-1]
	if len(known.ISR) < c.control.min() {
		c.fail("5: broker %d raised its high watermark to %d with the ISR %v", x.id, o.HighWatermark, known.ISR)
	}
	for _, id := range x.maximal() {
		y := c.node(id)
		end := y.end
		if known.Strict {
			end = y.flushed
		}
		now := !y.lossy && known.Replicas[id-1] == c.control.replicas[id-1] // not registered anew since
		if now && end < o.HighWatermark && c.control.leaderEpoch == x.m.LeaderEpoch() {
			c.fail("5: broker %d raised its high watermark to %d, broker %d has %d", x.id, o.HighWatermark, id, end)
		}
	}
	for i := range x.log {
		b := &x.log[i]
		if b.end > o.HighWatermark || b.end <= x.start {
			continue
		}
		if b.base < g.end {
			if old := at(g.committed, b.base); old != nil && !same(old, b) {
				c.fail("3, 14: broker %d commits %+v where %+v was committed", x.id, *b, *old)
			}
			continue
		}
		g.committed = append(g.committed, *b)
		g.end = b.end
	}
}

// maximal is the ISR that a leader must count: committed, and what it has proposed.
func (x *node) maximal() []ident.BrokerID {
	ids := slices.Clone(x.c.control.records[x.heard-1].ISR)
	if x.pending != nil {
		for _, r := range x.pending.ISR {
			if !slices.Contains(ids, r.Broker) {
				ids = append(ids, r.Broker)
			}
		}
	}
	return ids
}

// holds tells whether a log has all that is committed, from its own start on.
func (c *cluster) holds(x *node) *batch {
	for i := range c.ghost.committed {
		b := &c.ghost.committed[i]
		if b.end > x.start && !same(at(x.log, b.base), b) {
			return b
		}
	}
	return nil
}

// checkElected is invariant 6. Who has lost something may be elected as long as the
// controller has not noticed that it is down: it acts only after it has registered, which
// takes the leadership away.
func (c *cluster) checkElected(id ident.BrokerID) {
	if c.node(id).lossy {
		return
	}
	if b := c.holds(c.node(id)); b != nil {
		c.fail("6: broker %d leads epoch %d without %+v; its log:%s", id, c.control.leaderEpoch, *b, drawLog(c.node(id).log))
	}
}

// declare takes back what a declared loss has lost.
func (c *cluster) declare(id ident.BrokerID) {
	g, x := &c.ghost, c.node(id)
	g.declared++
	lost := len(g.committed)
	for i := range g.committed {
		if b := &g.committed[i]; b.end > x.start && !same(at(x.log, b.base), b) {
			lost = i
			break
		}
	}
	g.committed = g.committed[:lost]
	g.end = 0
	if lost > 0 {
		g.end = g.committed[lost-1].end
	}
	g.acked = slices.DeleteFunc(g.acked, func(b batch) bool { return b.end > g.end })
	g.listed = min(g.listed, g.end)
}

// checkAll looks at everybody.
func (c *cluster) checkAll() {
	k := &c.control
	for i, x := range c.nodes {
		for _, y := range c.nodes[:i] {
			c.checkMatch(x, y)
		}
	}
	for _, id := range slices.Concat(k.isr, k.elr) {
		x := c.node(id)
		if x.lossy {
			continue
		}
		if b := c.holds(x); b != nil {
			c.fail("7, 12: broker %d is a candidate (ISR %v, ELR %v) without %+v; its log:%s", id, k.isr, k.elr, *b, drawLog(x.log))
		}
	}
	if k.leader == ident.NoBroker {
		return
	}
	l := c.node(k.leader)
	if !l.up || l.m.Role() != partition.Leading || l.m.LeaderEpoch() != k.leaderEpoch {
		return
	}
	for _, id := range l.maximal() {
		x := c.node(id)
		if h := l.m.Offsets().HighWatermark; !x.lossy && x.end < h && slices.Contains(k.isr, id) {
			c.fail("4: broker %d is in the ISR and ends at %d, below the high watermark %d", id, x.end, h)
		}
	}
}

// checkMatch is invariant 2: from where two logs part, no epoch is in both at the same
// offset; and 3, below both high watermarks they have not parted.
func (c *cluster) checkMatch(x, y *node) {
	parted := false
	for i := range x.log {
		b := &x.log[i]
		if b.base < max(x.start, y.start) || b.base >= y.end {
			continue
		}
		d := at(y.log, b.base)
		if same(b, d) {
			if parted {
				c.fail("2: the logs of brokers %d and %d part and meet again at %d:%s and%s", x.id, y.id, b.base, drawLog(x.log), drawLog(y.log))
			}
			continue
		}
		parted = true
		if d != nil && d.base == b.base && d.epoch == b.epoch {
			c.fail("2: brokers %d and %d differ in epoch %d at %d:%s and%s", x.id, y.id, b.epoch, b.base, drawLog(x.log), drawLog(y.log))
		}
		if c.ghost.declared == 0 && x.sound() && y.sound() && b.end <= min(x.m.Offsets().HighWatermark, y.m.Offsets().HighWatermark) {
			c.fail("3: brokers %d and %d differ below both high watermarks at %d:%s and%s", x.id, y.id, b.base, drawLog(x.log), drawLog(y.log))
		}
	}
}

// acked is the first half of invariant 12: what is acknowledged is committed.
func (c *cluster) acked(x *node, w *waiter, base ident.Offset) {
	c.seen["acked"]++
	b := at(c.ghost.committed, base)
	if b == nil || b.base != base || b.content != w.content {
		if base >= x.start || b != nil {
			c.fail("12: broker %d acknowledges %d at %d, committed is %+v", x.id, w.content, base, b)
		}
		return
	}
	c.ghost.acked = append(c.ghost.acked, *b)
}

// read is invariant 13 and 16: what a reader sees is committed, and a leader's.
func (c *cluster) read(x *node, from, upTo ident.Offset) {
	if x.m.Role() != partition.Leading {
		c.fail("16: broker %d served a reader as %v", x.id, x.m.Role())
	}
	for i := range x.log {
		if b := &x.log[i]; b.end > from && b.end <= upTo && b.base >= from && !same(at(c.ghost.committed, b.base), b) && c.ghost.declared == 0 {
			c.fail("13: broker %d shows %+v, committed is %+v", x.id, *b, at(c.ghost.committed, b.base))
		}
	}
}

// listed is invariant 15. A leader that is deposed and does not know yet may say less.
func (c *cluster) listed(x *node, o ident.Offset) {
	g := &c.ghost
	e := x.m.LeaderEpoch()
	if e >= g.listedAt && o < g.listed && g.declared == 0 {
		c.fail("15: broker %d says in epoch %d that the log ends at %d, it was %d", x.id, e, o, g.listed)
	}
	g.listed, g.listedAt = max(g.listed, o), max(g.listedAt, e)
}

// checkProducers: each idempotent batch is in the log once, in order, and every replica
// remembers the producers as its log has them.
func (c *cluster) checkProducers() {
	if c.ghost.declared > 0 {
		return
	}
	next := map[ident.ProducerID]ident.Sequence{}
	for i := range c.ghost.committed {
		b := &c.ghost.committed[i].info
		if b.ProducerID < 0 {
			continue
		}
		// These disks keep no snapshots of producers: a restart knows nothing of batches that
		// were deleted, and takes their repetition as it comes.
		if b.BaseSequence != next[b.ProducerID] && c.seen["log-start"] == 0 {
			c.fail("23: producer %d: sequence %d committed, want %d", b.ProducerID, b.BaseSequence, next[b.ProducerID])
		}
		next[b.ProducerID] = b.BaseSequence.Add(b.LastOffsetDelta + 1)
	}
	for _, x := range c.nodes {
		c.checkRemembered(x, 0)
	}
}

// checkRemembered holds what a broker remembers of producers against its log; written batches of an answer are there already.
func (c *cluster) checkRemembered(x *node, written int) {
	last := map[ident.ProducerID]ident.Sequence{}
	for i := range x.log {
		if b := &x.log[i].info; b.ProducerID >= 0 {
			last[b.ProducerID] = b.BaseSequence.Add(b.LastOffsetDelta)
		}
	}
	if written > 0 {
		x.m.Wrote(c.now, written)
	}
	entries := x.m.SnapshotProducers(nil)
	for i, p := range entries {
		if i+1 < len(entries) && entries[i+1].ProducerID == p.ProducerID {
			continue // of a batch before the last
		}
		if want, ok := last[p.ProducerID]; ok && p.LastSequence != want {
			c.fail("broker %d remembers sequence %d of producer %d, its log has %d", x.id, p.LastSequence, p.ProducerID, want)
		}
	}
}
