package cluster

import (
	"slices"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// rules is what a topic's configs say about its partitions.
type rules struct {
	minISR  int // as configured; a partition with fewer replicas counts all of them
	unclean bool
	strict  bool
}

// rules reads the effective configs that the controller decides by.
func (c *Controller) rules(m *Image, topic string) rules {
	s := c.stack(m, topic)
	return rules{
		minISR:  int(s.TopicInt("min.insync.replicas")),
		unclean: s.TopicBool("unclean.leader.election.enable"),
		strict:  !s.TopicBool("write.caching"),
	}
}

// leave makes the changes that a broker's going away asks for: it leaves the ISRs, to the ELR where too few others remain, and somebody else leads.
func (c *Controller) leave(m *Image, gone ident.BrokerID) []Record {
	active := func(b ident.BrokerID) bool {
		broker, ok := m.Broker(b)
		return ok && b != gone && broker.active()
	}
	return c.elections(m, gone, active, func(p *Partition) bool { return p.Leader == gone || p.InSync(gone) })
}

// arrive makes the changes that a broker's coming back asks for: partitions without a leader may get one.
func (c *Controller) arrive(m *Image, back ident.BrokerID) []Record {
	active := func(b ident.BrokerID) bool {
		broker, ok := m.Broker(b)
		return ok && (b == back || broker.active())
	}
	return c.elections(m, ident.NoBroker, active, func(p *Partition) bool { return p.Leader == ident.NoBroker && p.HasReplica(back) })
}

// elections settles every partition that concerns the cause.
func (c *Controller) elections(m *Image, gone ident.BrokerID, active func(ident.BrokerID) bool, concerned func(*Partition) bool) []Record {
	var records []Record
	for t := range m.Topics() {
		var r rules
		known := false
		for i, p := range t.Partitions {
			if !concerned(p) {
				continue
			}
			if !known {
				r, known = c.rules(m, t.Name), true
			}
			if rec, changed := settle(p, gone, r, active); changed {
				rec.Topic, rec.Number = t.ID, int32(i)
				records = append(records, &rec)
			}
		}
	}
	return records
}

// settle decides what becomes of one partition when a broker is gone (or none is, ident.NoBroker) and these are active. It is a pure function, after
// KIP-966: a member that leaves an ISR which then is smaller than min.insync.replicas goes to the ELR, because nothing was committed without it; a
// leader comes from the ISR, else from the ELR, else, where unclean elections are allowed, from whoever is there.
//
// It trusts ISR and ELR. A registration does not name replicas that lost records in a crash; while a partition has one replica that changes nothing,
// because the only candidate leads whatever it lost.
func settle(p *Partition, gone ident.BrokerID, r rules, active func(ident.BrokerID) bool) (PartitionChangeRecord, bool) {
	need := min(r.minISR, len(p.Replicas))
	isr, elr, leader := without(p.ISR, gone), p.ELR, p.Leader
	switch {
	case len(isr) >= need:
		elr = nil
	case len(isr) < len(p.ISR):
		elr = append(slices.Clone(p.ELR), gone)
	}
	if leader == gone {
		leader = ident.NoBroker
	}
	if leader == ident.NoBroker {
		leader = choose(p, isr, active)
	}
	if leader == ident.NoBroker && len(isr) == 0 {
		if leader = choose(p, elr, active); leader != ident.NoBroker {
			isr, elr = []ident.BrokerID{leader}, without(elr, leader)
		}
	}
	if leader == ident.NoBroker && r.unclean {
		if leader = choose(p, p.Replicas, active); leader != ident.NoBroker {
			isr, elr = []ident.BrokerID{leader}, nil
		}
	}
	if len(isr) >= need {
		elr = nil
	}
	rec := PartitionChangeRecord{Leader: LeaderUnchanged}
	if leader != p.Leader {
		rec.Leader = leader
	}
	if !slices.Equal(isr, p.ISR) {
		rec.ISR = notNil(isr)
	}
	if !slices.Equal(elr, p.ELR) {
		rec.ELR = notNil(elr)
	}
	return rec, rec.Leader != LeaderUnchanged || rec.ISR != nil || rec.ELR != nil
}

// choose picks the first replica, in the order of preference, that is active and among the eligible.
func choose(p *Partition, eligible []ident.BrokerID, active func(ident.BrokerID) bool) ident.BrokerID {
	for _, b := range p.Replicas {
		if slices.Contains(eligible, b) && active(b) {
			return b
		}
	}
	return ident.NoBroker
}

func without(list []ident.BrokerID, b ident.BrokerID) []ident.BrokerID {
	out := make([]ident.BrokerID, 0, len(list))
	for _, x := range list {
		if x != b {
			out = append(out, x)
		}
	}
	return out
}

// notNil keeps "empty" apart from "unchanged".
func notNil(list []ident.BrokerID) []ident.BrokerID {
	if list == nil {
		return []ident.BrokerID{}
	}
	return list
}

// reconcile runs once per term, before the first command: the controller's own file may say other things than its predecessor's, and brokers may have
// come back while nobody led.
func (c *Controller) reconcile(out *Out) {
	c.settle = false
	var records []Record
	active := func(b ident.BrokerID) bool {
		broker, ok := c.next.Broker(b)
		return ok && broker.active()
	}
	for t := range c.next.Topics() {
		r := c.rules(c.next, t.Name)
		for i, p := range t.Partitions {
			rec, changed := PartitionChangeRecord{Leader: LeaderUnchanged}, false
			if p.Leader == ident.NoBroker {
				rec, changed = settle(p, ident.NoBroker, r, active)
			}
			if p.Strict != r.strict {
				rec.Mode, changed = modeOf(r.strict), true
			}
			if changed {
				rec.Topic, rec.Number = t.ID, int32(i)
				records = append(records, &rec)
			}
		}
	}
	if len(records) == 0 {
		return
	}
	if err := c.propose(records); err != nil {
		out.Note = append(out.Note, Note{Kind: NoteDropped, Text: err.Message})
	}
}

func modeOf(strict bool) Mode {
	if strict {
		return ModeStrict
	}
	return ModeCached
}

// consequences makes the partition changes that changed configs ask for. before and after are the images around the config records. A changed
// write.caching starts a leader epoch; a lowered min.insync.replicas empties the ELR of partitions whose ISR is not empty, because what is committed
// from then on may not be there; unclean elections that became allowed are held.
func (c *Controller) consequences(before, after *Image, resources []config.Resource) []Record {
	var records []Record
	active := func(b ident.BrokerID) bool {
		broker, ok := after.Broker(b)
		return ok && broker.active()
	}
	visit := func(t *Topic) {
		old, now := c.rules(before, t.Name), c.rules(after, t.Name)
		if old == now {
			return
		}
		for i, p := range t.Partitions {
			rec, changed := PartitionChangeRecord{Leader: LeaderUnchanged}, false
			if now.unclean && !old.unclean && p.Leader == ident.NoBroker {
				rec, changed = settle(p, ident.NoBroker, now, active)
			}
			if min(now.minISR, len(p.Replicas)) < min(old.minISR, len(p.Replicas)) && len(p.ISR) > 0 && len(p.ELR) > 0 {
				rec.ELR, changed = []ident.BrokerID{}, true
			}
			if old.strict != now.strict {
				rec.Mode, changed = modeOf(now.strict), true
			}
			if changed {
				rec.Topic, rec.Number = t.ID, int32(i)
				records = append(records, &rec)
			}
		}
	}
	for _, r := range resources {
		if r.Type == config.BrokerResource && r.Name == "" {
			for t := range after.Topics() {
				visit(t)
			}
			return records
		}
	}
	for _, r := range resources {
		if r.Type != config.TopicResource {
			continue
		}
		if t, ok := after.Topic(r.Name); ok {
			visit(t)
		}
	}
	return records
}
