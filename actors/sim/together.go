package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Bounds of simulated time for the phases of several brokers.
const (
	foundMax = 2 * time.Minute
	agreeMax = 2 * time.Minute

	verifiers = 600 // the first number of the clients that verify: a multiple of each number of brokers
)

// liveTogether lets everything happen with several brokers: they found a cluster, work under faults, are healed, and have to be what they promise; then all of
// that again after the last restart.
func (r *run) liveTogether() {
	draw := r.world.Rand("together")
	for _, h := range r.hosts {
		r.world.after(between(draw, 0, time.Second), h.start)
	}
	if !r.plan.Early {
		r.until("founding a cluster", foundMax, r.allServe)
	}
	r.work()
	r.healTogether()
	r.finish(Admin, Told)
	r.finish(Idempotent, Plain, Curious, Hostile, Committer, Operator, Keyed)
	r.finish(Consumer)
	r.finish(Classic, Modern)
	r.agreement()
	r.alike()
	r.verifyTogether(1)
	r.restartTogether()
	r.verifyTogether(2)
	r.agreement()
	r.alike()
	r.inspectDisks()
}

// allServe tells that every broker serves.
func (r *run) allServe() bool {
	return !slices.ContainsFunc(r.hosts, func(h *host) bool { return h.broker == nil || !h.serving || !h.broker.Ready() })
}

// healTogether ends all faults.
func (r *run) healTogether() {
	r.tell("everything is healed")
	r.healed = true
	r.world.Net.Weather = FairWeather
	for _, c := range r.clients {
		c.plan.Patience = max(c.plan.Patience, 20*time.Second)
	}
	for _, h := range r.hosts {
		h.repairDisk()
		h.disk.Capacity, h.slow, h.countdowns = 0, 0, nil
		h.syncMax = min(h.syncMax, syncMaxHealed)
		h.node.Clock.Jump(-h.node.Clock.offset) // a time server
		h.thaw()
		for _, o := range r.hosts {
			if h.id < o.id {
				r.world.Net.Hold(h.node.Name, o.node.Name, false)
			}
		}
		for _, p := range h.ports {
			p.lose = false
		}
	}
	for _, h := range r.hosts {
		r.ensemble.rumours.back(h)
		r.world.after(0, h.start)
	}
	r.until("healing", healMax, r.allServe)
}

// freeze has a broker stand still.
func (h *host) freeze() {
	if h.broker == nil || h.frozen {
		return
	}
	h.frozen = true
	h.node.Freeze(true)
	h.run.ensemble.rumours.silent(h)
}

// thaw lets it go on.
func (h *host) thaw() {
	if !h.frozen {
		return
	}
	h.frozen, h.touched = false, true
	h.node.Freeze(false)
	for _, p := range h.ports {
		p.end.Resume()
	}
	h.run.ensemble.rumours.back(h)
}

// agreement waits until every partition has a leader, all its replicas in sync, and the same in all of them.
func (r *run) agreement() {
	why := ""
	r.until("agreement", agreeMax, func() bool {
		why = r.disagreement()
		return why == ""
	})
	if r.violation != nil && why != "" {
		r.tell("%s", why)
		r.violation.Detail += "; " + why
	}
}

// disagreement says what is still missing.
func (r *run) disagreement() string {
	e := r.ensemble
	for _, h := range r.hosts {
		if h.inspection == nil || h.inspection.Image().Index() != e.image.Index() {
			return fmt.Sprintf("%s has not all metadata", h)
		}
	}
	for t := range e.image.Topics() {
		for n, p := range t.Partitions {
			name := fmt.Sprintf("%s-%d", t.Name, n)
			if p.Leader < 0 || len(p.ISR) != len(p.Replicas) || len(p.ELR) > 0 || len(p.Unverified) > 0 {
				return fmt.Sprintf("%s is not whole: %+v", name, p)
			}
			g := e.parts[replica{t.ID, int32(n)}]
			if g == nil {
				return name + " was never seen"
			}
			lead := g.mirrors[r.called(p.Leader)]
			for _, b := range p.Replicas {
				m := g.mirrors[r.called(b)]
				if m == nil || lead == nil || m.end != lead.end || m.high != lead.high || m.high != m.end {
					return fmt.Sprintf("%s: broker %d has got to %+v, its leader %d to %+v", name, b, brief(m), p.Leader, brief(lead))
				}
				if p.Strict && m.durable < m.end {
					return fmt.Sprintf("%s: broker %d has synced up to %d of %d", name, b, m.durable, m.end)
				}
			}
		}
	}
	return ""
}

// brief tells how far a replica is.
func brief(m *mirror) string {
	if m == nil {
		return "nothing"
	}
	return fmt.Sprintf("[%d,%d) high watermark %d in epoch %d", m.start, m.end, m.high, m.epoch)
}

// restartTogether ends all brokers at once in a way drawn from the seed, and starts them again.
func (r *run) restartTogether() {
	if r.violation != nil {
		return
	}
	draw := stream(r.plan.Seed, "restart")
	how := one(draw, Kill, Power)
	if r.plan.Promise != PromiseSynced {
		how = Kill
	}
	for _, k := range []FaultKind{Kill, Power} {
		if k.String() == r.plan.Last {
			how = k
		}
	}
	r.tell("the last restart: %v of all", how)
	for _, h := range r.hosts {
		if how == Power {
			h.power(draw.Uint64())
		} else {
			h.kill()
		}
		r.world.after(between(draw, 0, time.Second), h.start)
	}
	r.until("starting", healMax, r.allServe)
}

// verifyTogether writes to every partition, reads everything there is, and holds it against all that was promised.
func (r *run) verifyTogether(round int) {
	if r.violation != nil {
		return
	}
	probe := newClient(r, ClientPlan{Number: verifiers*round + 60, Kind: Idempotent, Acks: -1, InFlight: 5, Pause: time.Millisecond, Size: 300, Patience: 30 * time.Second})
	r.clients = append(r.clients, probe)
	p := probe.script.(*producer)
	probe.start()
	r.until("writing to every partition", finishMax, func() bool { return p.everywhere() })
	probe.script.finish()
	r.until("probing", finishMax, p.done)
	var last []*consumer
	for i := range r.hosts {
		c := newClient(r, ClientPlan{Number: verifiers*round + i, Kind: Consumer, Pause: time.Millisecond, Patience: 30 * time.Second})
		r.clients = append(r.clients, c)
		s := c.script.(*consumer)
		s.patient = true
		s.finish()
		last = append(last, s)
		c.start()
	}
	missing := ""
	r.until("reading everything", catchUp, func() bool { missing = r.unread(last); return missing == "" })
	if r.violation != nil {
		r.violation.Detail += "; " + missing
		return
	}
	for _, t := range r.ghost.all() {
		for n, g := range t.partitions {
			if d, end := readBy(last, t, int32(n)); d != nil && t.stable() {
				g.missing(r, d.from, end, d.read)
			}
		}
	}
	r.leave()
}

// readBy finds who has read a partition, and up to where it was to be read; nil: nobody has.
func readBy(all []*consumer, t *ghostTopic, n int32) (*reader, ident.Offset) {
	for _, s := range all {
		if d := find(s.readers, t.name, t.id, n); d != nil && d.begun && s.behind != nil {
			if end, known := s.behind[t.partition(n)]; known && d.next >= end {
				return d, end
			}
		}
	}
	return nil, 0
}

// unread names a partition that nobody has read to its end.
func (r *run) unread(all []*consumer) string {
	for _, t := range r.ghost.all() {
		for n := range t.partitions {
			if !t.stable() {
				continue
			}
			if d, _ := readBy(all, t, int32(n)); d == nil {
				return fmt.Sprintf("%s-%d (%s) is not read", t.name, n, t.id)
			}
		}
	}
	return ""
}
