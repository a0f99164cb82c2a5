package sim

import (
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
)

// reign is what is known of the leadership of a partition that the newest metadata names, and of the ends that were told under it.
type reign struct {
	leader ident.BrokerID
	epoch  ident.LeaderEpoch
	since  ident.Instant // when it was seen to be committed
	high   ident.Offset  // the greatest that its leader has told anybody
	at     ident.Instant // when that was heard
}

// reigns follows who leads a partition, by what is committed.
func (g *ghostLog) reigns(leader ident.BrokerID, epoch ident.LeaderEpoch, now ident.Instant) {
	if g.reign.leader != leader || g.reign.epoch != epoch {
		g.reign = reign{leader: leader, epoch: epoch, since: now}
	}
	g.named[epoch] = leader
}

// between tells whether a broker may have led in an epoch between two: in one that the metadata named it for, or that was not seen.
func (g *ghostLog) between(h *host, after, before ident.LeaderEpoch) bool {
	for epoch := after + 1; epoch < before; epoch++ {
		if leader, seen := g.named[epoch]; !seen || leader == h.id {
			return true
		}
	}
	return false
}

// led tells that a broker has led a partition ever since an instant, as far as anybody can know.
func (g *ghostLog) led(h *host, since ident.Instant) bool {
	return g != nil && g.reign.leader == h.id && g.reign.since <= since
}

// blurred tells that at an instant, or later, a leader may have committed more than was seen: somebody else had its log in hand.
func (g *ghostLog) blurred(since ident.Instant) bool {
	for _, m := range g.mirrors {
		if m.unseen {
			return true
		}
	}
	return since <= g.unseenAt
}

// parting tells that a leader may have committed up to an offset in the turn in which it stopped.
func (g *ghostLog) parting(high ident.Offset) bool {
	for _, m := range g.mirrors {
		if m.parted && high <= m.end {
			return true
		}
	}
	return false
}

// committed tells whether a leader of the topic is known to have committed so much.
func (e *ensemble) committed(d *reader, high ident.Offset) bool {
	if e == nil {
		return true
	}
	g := e.parts[replica{d.topic.id, d.partition}]
	return g != nil && high <= g.top
}

// told holds the end that a broker tells a client, who asked for it at an instant, against what is committed, and against what clients were told before: whoever
// answers, a leader has committed it; the leader of an epoch does not take back what it has told in that; and one that is asked for the end (latest) knows, or
// says that it does not know yet, what any leader before has told. The high watermark that comes with records may fall behind that after an election, as in Kafka.
func (e *ensemble) told(h *host, d *reader, sent ident.Instant, high ident.Offset, latest bool) {
	if e == nil || !d.topic.stable() {
		return
	}
	g, p := e.parts[replica{d.topic.id, d.partition}], d.topic.partition(d.partition)
	if g == nil {
		return
	}
	if high > g.top && !g.blurred(sent) && !g.parting(high) {
		e.run.fail("what is told is committed", "%s tells that %s ends at %d, and no leader has committed more than %d", h, g, high, g.top)
		return
	}
	if m := g.mirrors[h]; g.reign.leader != h.id && m != nil && m.life == h.lives && m.since <= sent {
		e.run.counted("a follower told its end")
		if high > m.highest && !g.blurred(sent) && (!m.parted || high > m.end) {
			e.run.fail("a follower tells what it knows to be committed", "%s follows, and tells that %s ends at %d; its high watermark never was above %d", h, g, high, m.highest)
			return
		}
	}
	if !g.led(h, sent) {
		return
	}
	now := e.run.world.Now()
	switch {
	case latest && sent >= p.highAt && high < p.high:
		e.run.fail("the end never goes back", "%s leads %s since %v, was asked at %v, and tells that it ends at %d; it was %d at %v",
			h, g, time.Duration(g.reign.since), time.Duration(sent), high, p.high, time.Duration(p.highAt))
		return
	case sent >= g.reign.at && high < g.reign.high:
		e.run.fail("the end never goes back", "%s leads %s in epoch %d, was asked at %v, and tells that it ends at %d; it was %d at %v",
			h, g, g.reign.epoch, time.Duration(sent), high, g.reign.high, time.Duration(g.reign.at))
		return
	}
	if latest {
		e.run.counted("asked a leader for the end")
	}
	if high > g.reign.high {
		g.reign.high, g.reign.at = high, now
	}
}

// admitted holds a broker that begins to serve against the metadata: it is not fenced any more, and has heard of its own registration, so that what it answers from
// is none of an earlier life of its own, which may have been before topics were deleted, and epochs begun.
func (e *ensemble) admitted(h *host) {
	if e == nil {
		return
	}
	if b, known := h.inspection.Image().Broker(h.id); !known || b.Epoch != h.inspection.Epoch() {
		e.run.fail("nobody serves from metadata of the past", "%s serves in epoch %d, and its image of index %d has not heard of that", h, h.inspection.Epoch(), h.inspection.Image().Index())
	} else if e.allowed[h] != b.Epoch {
		e.run.fail("nobody serves who is fenced", "%s serves in epoch %d, and never was unfenced in that", h, b.Epoch)
	}
}
