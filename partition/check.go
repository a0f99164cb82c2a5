package partition

import (
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Check verifies every invariant and returns an error that names the first broken
// one. It is meant for tests and simulations: its cost grows with the state.
func (m *Machine) Check() error {
	for _, check := range []func() error{
		m.checkOffsets, m.checkEpochs, m.checkReplicas, m.checkMode, m.checkWaiters, m.checkSizes, m.checkFollower, m.checkAsks, m.producers.checkList,
	} {
		if err := check(); err != nil {
			return fmt.Errorf("partition: %w", err)
		}
	}
	return nil
}

func (m *Machine) checkOffsets() error {
	if m.logStart < 0 || m.logStart > m.lastStable() || m.lastStable() > m.highWatermark || m.highWatermark > m.end {
		return fmt.Errorf("offsets out of order: log start %d, last stable %d, high watermark %d, end %d",
			m.logStart, m.lastStable(), m.highWatermark, m.end)
	}
	if m.flushed < m.logStart || m.flushed > m.end {
		return fmt.Errorf("flushed end %d outside of %d to %d", m.flushed, m.logStart, m.end)
	}
	if m.proposal.open && m.role != Leading && (m.role != Following || len(m.proposal.replicated) == 0) {
		return fmt.Errorf("a batch is being written by a machine that does not lead")
	}
	return nil
}

func (m *Machine) checkEpochs() error {
	e := m.epochs.entries
	for i := 1; i < len(e); i++ {
		if e[i-1].Epoch >= e[i].Epoch || e[i-1].Start >= e[i].Start {
			return fmt.Errorf("epochs do not rise: %v then %v", e[i-1], e[i])
		}
	}
	if n := len(e); n > 0 && (e[n-1].Start > m.end || e[n-1].Epoch > m.leaderEpoch && m.role == Leading) {
		return fmt.Errorf("last epoch %v is beyond log end %d or leader epoch %d", e[n-1], m.end, m.leaderEpoch)
	}
	if len(e) > 1 && e[1].Start <= m.logStart {
		return fmt.Errorf("epoch %v lies below log start %d", e[0], m.logStart)
	}
	if m.role == Leading && (len(e) == 0 || e[len(e)-1].Epoch != m.leaderEpoch) {
		return fmt.Errorf("the leader has no entry for its own epoch %d: %v", m.leaderEpoch, e)
	}
	if m.role == Leading && m.epochStart > m.end {
		return fmt.Errorf("epoch starts at %d, beyond log end %d", m.epochStart, m.end)
	}
	return nil
}

func (m *Machine) checkReplicas() error {
	isr, proposed := int32(0), false
	for i := range m.replicas.all {
		r := &m.replicas.all[i]
		if r.inISR {
			isr++
		}
		if r.pending {
			proposed = true
			if r.inISR || r.Broker == m.broker {
				return fmt.Errorf("broker %d is a member of the ISR and pending", r.Broker)
			}
		}
		if r.leaving {
			proposed = true
			if !r.inISR || r.Broker == m.broker {
				return fmt.Errorf("broker %d leaves an ISR that it cannot leave", r.Broker)
			}
		}
		if r.flushed > r.end || m.role == Leading && r.end > m.end {
			return fmt.Errorf("broker %d: flushed %d, end %d, our end %d", r.Broker, r.flushed, r.end, m.end)
		}
	}
	if isr != m.replicas.isrSize {
		return fmt.Errorf("ISR size %d, counted %d", m.replicas.isrSize, isr)
	}
	if proposed && m.role == Leading && !m.proposed.open {
		return fmt.Errorf("a member joins or leaves without a proposal")
	}
	return nil
}

func (m *Machine) checkFollower() error {
	f := &m.follower
	if m.role != Following {
		if f.asked != ident.NoOffset || m.cut.open {
			return fmt.Errorf("role %v, and an ask from %d is out, or a truncation", m.role, f.asked)
		}
		return nil
	}
	if m.cut.open && (f.agreed || f.asked != ident.NoOffset) {
		return fmt.Errorf("a truncation is under way, and the log agrees: %v, or is asked for: %v", f.agreed, f.asked)
	}
	return nil
}

func (m *Machine) checkAsks() error {
	if len(m.early) > earlyMax {
		return fmt.Errorf("%d followers are ahead of this broker", len(m.early))
	}
	for i := range m.early {
		e := &m.early[i]
		if !e.hasAsk && !e.hasProgress || m.role == Stopped {
			return fmt.Errorf("an early follower with nothing to say, or of a stopped machine")
		}
	}
	for i := range m.replicas.all {
		r := &m.replicas.all[i]
		switch {
		case !r.parked.open:
			if r.clock.stands {
				return fmt.Errorf("the clock of broker %d stands though its ask is not parked", r.Broker)
			}
			continue
		case m.role != Leading:
			return fmt.Errorf("an ask is parked at a machine that does not lead")
		case !r.verified || r.parked.from != m.end:
			return fmt.Errorf("broker %d: an ask is parked at %d, the log ends at %d, verified %v", r.Broker, r.parked.from, m.end, r.verified)
		case r.toldHigh < m.highWatermark || r.toldStart < m.logStart:
			return fmt.Errorf("broker %d was told of %d and %d, not of high watermark %d and log start %d",
				r.Broker, r.toldHigh, r.toldStart, m.highWatermark, m.logStart)
		}
		if r.clock.stands != (r.reported(m.mode.strict) >= m.end) {
			return fmt.Errorf("broker %d: the clock stands: %v, reported %d, our end %d", r.Broker, r.clock.stands, r.reported(m.mode.strict), m.end)
		}
	}
	return nil
}

func (m *Machine) checkMode() error {
	if m.mode.strict && m.mode.clearing {
		return fmt.Errorf("strict, and waiting for the strict mark to go")
	}
	if m.mode.confirmAt != ident.NoOffset && (!m.mode.strict || m.mode.marked && !m.mode.lapsed || m.flushed >= m.mode.confirmAt && !m.cut.open) {
		return fmt.Errorf("strict mode should be confirmed at %d: flushed %d, strict %v, marked %v",
			m.mode.confirmAt, m.flushed, m.mode.strict, m.mode.marked)
	}
	return nil
}

func (m *Machine) checkWaiters() error {
	w := m.produces.waiting
	for i := range w {
		p := &w[i]
		if p.upTo <= m.highWatermark || p.upTo > m.end {
			return fmt.Errorf("produce %d waits for %d: high watermark %d, end %d", p.request, p.upTo, m.highWatermark, m.end)
		}
		if i > 0 && w[(i-1)/2].upTo > p.upTo {
			return fmt.Errorf("produce heap broken at %d", i)
		}
		if p.deadline < m.produceAlarm {
			return fmt.Errorf("produce %d ends at %d, the alarm is at %d", p.request, p.deadline, m.produceAlarm)
		}
	}
	for i := range m.fetches {
		f := &m.fetches[i]
		if f.from < m.logStart || f.after < f.from || f.after > m.end {
			return fmt.Errorf("fetch %d parked at %d, after %d, in a log from %d to %d", f.request, f.from, f.after, m.logStart, m.end)
		}
		if m.satisfied(f) {
			return fmt.Errorf("fetch %d is parked although it has enough", f.request)
		}
	}
	for i := range m.deletes {
		if d := &m.deletes[i]; d.before <= m.lowWatermark() || d.before > m.logStart || d.deadline < m.deleteAlarm {
			return fmt.Errorf("request %d waits for a log start of %d: ours %d, the ISR's %d", d.request, d.before, m.logStart, m.lowWatermark())
		}
	}
	if m.role != Leading && len(w)+len(m.deletes) > 0 {
		return fmt.Errorf("%d produces and %d deletions wait at a machine that does not lead", len(w), len(m.deletes))
	}
	if m.role != Leading && m.role != Following && len(m.fetches) > 0 {
		return fmt.Errorf("%d fetches wait at a machine that is %s", len(m.fetches), m.role)
	}
	if m.role == Leading && !m.enoughReplicas() && len(w) > 0 {
		return fmt.Errorf("%d produces wait for an ISR that is too small", len(w))
	}
	return nil
}

func (m *Machine) checkSizes() error {
	last := m.sizes.base
	live := m.sizes.marks[m.sizes.head:]
	for _, mark := range live {
		if mark.offset <= last.offset || mark.bytes <= last.bytes {
			return fmt.Errorf("sizes do not rise: %v then %v", last, mark)
		}
		last = mark
	}
	if m.role == Leading && last.offset != m.end {
		return fmt.Errorf("sizes end at %d, the log at %d", last.offset, m.end)
	}
	if len(live) > sizesMax {
		return fmt.Errorf("%d sizes remembered", len(live))
	}
	return nil
}

// checkList verifies the list, the free slots and every window.
func (p *Producers) checkList() error {
	n, older := 0, noSlot
	for slot := p.oldest; slot != noSlot; slot = p.slots[slot].newer {
		s := &p.slots[slot]
		if s.older != older || p.byID[s.id] != slot {
			return fmt.Errorf("producer %d: list or index is broken", s.id)
		}
		w := s.window[:s.count]
		if !slices.IsSortedFunc(w, func(a, b batchMark) int { return compare(a.lastOffset, b.lastOffset) }) {
			return fmt.Errorf("producer %d: batches out of order: %v", s.id, w)
		}
		for i := 1; i < len(w); i++ {
			if w[i].lastSequence != w[i-1].lastSequence.Add(1).Add(w[i].offsetDelta) {
				return fmt.Errorf("producer %d: a gap in the sequences: %v then %v", s.id, w[i-1], w[i])
			}
		}
		older = slot
		if n++; n > len(p.slots) {
			return fmt.Errorf("the list of producers has a loop")
		}
	}
	if older != p.newest || n != len(p.byID) {
		return fmt.Errorf("%d producers in the list, %d in the index", n, len(p.byID))
	}
	free := 0
	for slot := p.free; slot != noSlot; slot = p.slots[slot].newer {
		if free++; free > len(p.slots) {
			return fmt.Errorf("the list of free producer slots has a loop")
		}
	}
	if n+free != len(p.slots) {
		return fmt.Errorf("%d producer slots, %d used, %d free", len(p.slots), n, free)
	}
	if n > max(p.max, 1) {
		return fmt.Errorf("%d producers, at most %d allowed", n, p.max)
	}
	return nil
}
