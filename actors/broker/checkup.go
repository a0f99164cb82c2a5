package broker

import (
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/checkup"
	"github.com/troupe-broker/troupe/wire/ident"
)

// What an operator hears of a replica and may order (`troupe partition`), by DescribeLogDirs with a tagged field (package checkup).
//
//	session ── checkSoon ──> scrubber, which tells the numbers of the checks to come
//	session ── checkupAsk ──> each partition, which does what is ordered, and reports

// replicaCheck is what one check of a replica has found.
type replicaCheck struct {
	number   int64
	goal     ident.Offset // where it ends: the log was flushed up to there when it began
	whole    bool         // it came to its end
	at       ident.Offset // it has come to
	bytes    int64        // that were read
	compared int64        // offsets
	why      string       // why some were not; the first reason
	deaf     bool         // the leader does not answer, and is not asked again
	differs  differences
	found    []store.OffsetRange // damaged, and perhaps mended since; at most checkup.RangesMax

	generation ident.Generation // of the log, when the check began
	leader     ident.BrokerID   // that has something else; NoBroker: several had
}

// differ adds what differs from what a leader has.
func (c *replicaCheck) differ(found differences, leader ident.BrokerID) {
	switch {
	case found.count() == 0:
		return
	case c.differs.count() == 0:
		c.leader = leader
	case c.leader != leader:
		c.leader = ident.NoBroker
	}
	c.differs.add(found)
}

// read counts a piece.
func (c *replicaCheck) read(m *pieceRead) {
	c.at = m.next
	c.bytes += m.piece.bytes
	if m.bad.From < m.bad.To {
		c.foundDamage(m.bad)
	}
}

// foundDamage notes what the check met that is damaged, whoever found it first.
func (c *replicaCheck) foundDamage(r store.OffsetRange) {
	if c != nil && len(c.found) < checkup.RangesMax {
		c.found = append(c.found, r)
	}
}

// skip notes why something was not compared; empty: everything was.
func (c *replicaCheck) skip(why string) {
	if c.why == "" {
		c.why = why
	}
}

// take makes the check that is over the one that is told of.
func (m *checkOver) take(p *partitionActor, _ *runtime.Turn) {
	if p.checking == nil || p.checking.number != m.number {
		return
	}
	c := p.checking
	p.checked, p.checking = c, nil
	n := c.differs.count()
	if !c.whole || c.why != "" { // what was not compared may differ still
		n = max(n, p.replica.stats.differing.Load())
	}
	p.replica.stats.differing.Store(n)
}

// checkupAsk asks a partition to do something, and to report.
type checkupAsk struct {
	replica *replica
	order   checkup.Order
	asked   int64
	run     int64
	answer  func(checkup.Report)
}

// Bytes implements runtime.Message.
func (*checkupAsk) Bytes() int { return 0 }

// Reject implements runtime.Rejecter: the partition has stopped, or has too much to do.
func (m *checkupAsk) Reject(err error) {
	m.answer(checkup.Report{Run: m.run, Asked: m.asked, State: "offline", Leader: -1, Error: err.Error(), Start: -1, High: -1, End: -1, Mending: checkup.Sound})
}

// outOfService is what is said of a replica that nothing can be done with.
const outOfService = "the replica is out of service, or its log is being opened"

// take does what is ordered, and reports. Damage that is known is tried at once, and what it waited for is forgotten.
func (m *checkupAsk) take(p *partitionActor, t *runtime.Turn) {
	failed := ""
	switch {
	case m.order.Do == checkup.Verify && m.asked == 0:
		failed = "no check was ordered: the broker stops, or has too much to do"
	case m.order.Do != checkup.Repair:
	case p.machine == nil || p.file == nil:
		failed = outOfService
	default:
		if m.order.Divergent {
			failed = p.giveUpDivergent(t)
		}
		p.repairNow(t)
	}
	r := p.checkupReport()
	r.Run, r.Asked, r.Error = m.run, m.asked, failed
	m.answer(r)
}

// checkupReport says how the replica is.
func (p *partitionActor) checkupReport() checkup.Report {
	r := checkup.Report{State: "offline", Leader: -1, Start: -1, High: -1, End: -1, Mending: checkup.Sound}
	if c := p.checking; c != nil {
		r.Running, r.At = true, int64(c.at)
	}
	if c := p.checked; c != nil {
		r.Done, r.Whole, r.Checked, r.Compared, r.NotCompared, r.MoreDiffer = c.number, c.whole, c.bytes, c.compared, c.why, c.differs.more
		r.Found = rangesOf(c.found)
		for _, d := range c.differs.list {
			r.Divergent = append(r.Divergent, checkup.Range{From: int64(d.From), To: int64(d.To), Kind: d.kind})
		}
	}
	if p.machine == nil || p.file == nil {
		return r
	}
	o := p.machine.Offsets()
	r.State, r.Leader = "follower", int32(p.machine.Leader())
	if p.machine.Role() == partition.Leading {
		r.State, r.Leader = "leader", int32(p.shared.identity.Broker)
	}
	r.Start, r.High, r.End, r.Bytes = int64(o.LogStart), int64(o.HighWatermark), int64(o.End), p.file.Size()
	damage := p.file.Damage()
	r.Damaged = rangesOf(damage)
	if r.MoreDamage = len(damage) - len(r.Damaged); len(damage) > 0 {
		r.Mending, r.Why = p.prospects(damage)
	}
	return r
}

// rangesOf makes ranges of a report, as many as it may have.
func rangesOf(list []store.OffsetRange) (out []checkup.Range) {
	for _, d := range list[:min(len(list), checkup.RangesMax)] {
		out = append(out, checkup.Range{From: int64(d.From), To: int64(d.To)})
	}
	return out
}

// prospects says whether what is damaged comes back.
func (p *partitionActor) prospects(damage []store.OffsetRange) (checkup.Mending, string) {
	switch m := &p.mending; {
	case p.shared.links == nil || len(p.become.Replicas) < 2:
		return checkup.Impossible, fmt.Sprintf(
			"this is the only replica: restore the partition's files from a backup, or delete the records below %d; reads of the damaged ones answer CORRUPT_MESSAGE, all others are served",
			damage[len(damage)-1].To)
	case p.machine.Role() == partition.Leading:
		return checkup.Waiting, "this replica leads, as no other in sync (or in the ELR) can whose copy is sound; it is mended once another one leads"
	case p.machine.Leader() == ident.NoBroker:
		return checkup.Waiting, notLed
	case m.run != nil:
		return checkup.Underway, ""
	default:
		return checkup.Waiting, m.why
	}
}

// giveUpDivergent condemns, batch by batch, what the last check found to differ from the leader's, so that it is fetched from there like what is damaged. It says
// why it cannot.
func (p *partitionActor) giveUpDivergent(t *runtime.Turn) string {
	c := p.checked
	switch {
	case c == nil:
		return "it was not checked since its broker started: `troupe partition verify` does that"
	case c.differs.count() == 0:
		return ""
	case p.machine.Role() != partition.Following || p.machine.Leader() == ident.NoBroker:
		return "it does not follow a leader now, that its records could come from"
	case c.generation != p.file.Generation():
		return "the log was truncated since it was checked: `troupe partition verify` does that again"
	case c.leader != p.machine.Leader():
		return "another broker led when it was checked: `troupe partition verify` compares it with the one that leads now"
	case slices.Contains(p.become.Damaged, c.leader):
		return "the leader's copy is damaged itself, and has to be mended first"
	}
	left := divergentBatches
	for len(c.differs.list) > 0 && left > 0 && p.machine != nil {
		d := &c.differs.list[0]
		if d.From = max(d.From, p.file.Start()); d.From >= d.To {
			c.differs.list = c.differs.list[1:]
			continue
		}
		left--
		p.log.Warn().Int64("offset", int64(d.From)).Int64("end", int64(d.To)).Str("difference", d.kind).
			Msg("an operator has records that differ from the leader's replaced by what the leader has")
		p.condemn(t, store.OffsetRange{From: d.From, To: d.From + 1})
		d.From = p.behindDamage(d.From)
	}
	p.replica.stats.differing.Store(c.differs.count())
	if c.differs.count() > 0 {
		return fmt.Sprintf("%d batches or ranges are replaced at a time, and more differ: verify and repair again", divergentBatches)
	}
	return ""
}

// divergentBatches is how many batches are condemned for one order: each costs a look into the log, in a turn of the partition.
const divergentBatches = 100

// behindDamage is the end of the damaged range that has an offset, or the offset behind it.
func (p *partitionActor) behindDamage(at ident.Offset) ident.Offset {
	if p.file != nil {
		for _, d := range p.file.Damage() {
			if d.From <= at && at < d.To {
				return d.To
			}
		}
	}
	return at + 1
}

// repairNow tries at once what waits to be tried again.
func (p *partitionActor) repairNow(t *runtime.Turn) {
	if p.machine == nil || p.file == nil || len(p.file.Damage()) == 0 || p.shared.links == nil || p.mending.run != nil {
		return
	}
	p.mending.skip, p.mending.why = 0, ""
	p.repairAfter(t, repairFirst)
}

// Checkup implements handler.Ports.
func (p *ports) Checkup(order checkup.Order, places []ident.TopicPartition, answer func(map[ident.TopicPartition]checkup.Report)) {
	s := p.session
	table := s.shared.topics.Load()
	var replicas []*replica
	for _, tp := range places {
		if e := table.place(tp.Topic, ident.TopicID{}); e != nil {
			if r, _ := e.replica(tp.Partition); r != nil {
				replicas = append(replicas, r)
			}
		}
	}
	reports := make(map[ident.TopicPartition]checkup.Report, len(replicas))
	if len(replicas) == 0 {
		resume(s.self, func() { answer(reports) })
		return
	}
	ask := func(from runtime.Sender, numbers []int64) {
		for i, r := range replicas {
			m := &checkupAsk{replica: r, order: order, run: s.shared.epoch.Load()}
			if numbers != nil {
				m.asked = numbers[i]
			}
			m.answer = func(report checkup.Report) {
				resume(s.self, func() {
					if reports[r.tp] = report; len(reports) == len(replicas) {
						answer(reports)
					}
				})
			}
			_ = from.Send(r.ref, m) // Reject answers
		}
	}
	if order.Do != checkup.Verify {
		ask(p.turn, nil)
		return
	}
	_ = p.turn.Send(s.shared.scrubber, &checkSoon{replicas: replicas, answer: func(numbers []int64) { // Reject answers
		resume(s.self, func() { ask(p.turn, numbers) })
	}})
}

var _ handler.Ports = (*ports)(nil)
