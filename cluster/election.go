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
func (c *Controller) rules(m *Image, topic string) rules { return rulesOf(c.stack(m, topic)) }

func rulesOf(s config.Stack) rules {
	return rules{
		minISR:  int(s.TopicInt("min.insync.replicas")),
		unclean: s.TopicBool("unclean.leader.election.enable"),
		strict:  !s.TopicBool("write.caching"),
	}
}

// live returns who may lead in an image.
func (m *Image) live() func(ident.BrokerID) bool {
	return func(b ident.BrokerID) bool {
		broker, ok := m.Broker(b)
		return ok && broker.active()
	}
}

// leave makes the changes that a broker's going away asks for: it leaves the ISRs, to the ELR where too few others remain, and somebody else leads.
func (c *Controller) leave(m *Image, gone ident.BrokerID) []Record {
	live := m.live()
	s := situation{led: c.led, gone: gone, live: func(b ident.BrokerID) bool { return b != gone && live(b) }}
	return c.settleAll(m, s, func(p *Partition) bool { return p.Leader == gone || p.InSync(gone) })
}

// arrive makes the changes that a broker's coming back asks for: partitions without a leader may get one, and those with one that cannot read all it has another.
// The latter must not wait for the ISR: who comes back to the ELR has what was committed, and may need what the leader cannot read to get to where its epoch began.
func (c *Controller) arrive(m *Image, back ident.BrokerID) []Record {
	live := m.live()
	s := situation{led: c.led, gone: ident.NoBroker, live: func(b ident.BrokerID) bool { return b == back || live(b) }}
	return c.settleAll(m, s, func(p *Partition) bool {
		return (p.Leader == ident.NoBroker || slices.Contains(p.Damaged, p.Leader)) && p.HasReplica(back)
	})
}

// settleAll settles every partition that concerns the cause.
func (c *Controller) settleAll(m *Image, s situation, concerned func(*Partition) bool) []Record {
	var records []Record
	for t := range m.Topics() {
		known := false
		for i, p := range t.Partitions {
			if !concerned(p) {
				continue
			}
			if !known {
				s.rules, known = c.rules(m, t.Name), true
			}
			records = appendChange(records, t, int32(i), settle(p, s, nil))
		}
	}
	return records
}

// appendChange adds the record that leads to another state of a partition, if it is another.
func appendChange(records []Record, t *Topic, number int32, to Partition) []Record {
	rec, changed := changeOf(t.Partitions[number], &to)
	if !changed {
		return records
	}
	rec.Topic, rec.Number = t.ID, number
	return append(records, rec)
}

// reconcile runs once per term, before the first command: the controller's own file may say other things than its predecessor's, brokers may have come
// back while nobody led, and some are known to be dead, the former controller's among them.
func (c *Controller) reconcile(now Now, out *Out) {
	c.settle = false
	s := situation{led: c.led, gone: ident.NoBroker, live: c.next.live()}
	if records := append(c.settleAll(c.next, s, func(*Partition) bool { return true }), c.raiseInternal(c.next)...); len(records) > 0 {
		if err := c.propose(records); err != nil {
			out.Note = append(out.Note, Note{Kind: NoteDropped, Text: err.Message})
		}
	}
	c.fenceSilent(now, out)
}

// consequences makes the partition changes that changed configs ask for. before and after are the images around the config records. A changed
// write.caching starts a leader epoch; a lowered min.insync.replicas empties the ELR of partitions whose ISR is not empty, because what is committed
// from then on may not be there; unclean elections that became allowed are held.
func (c *Controller) consequences(before, after *Image, resources []config.Resource) []Record {
	var records []Record
	s := situation{led: c.led, gone: ident.NoBroker, live: after.live()}
	visit := func(t *Topic) {
		if s.rules = c.rules(after, t.Name); s.rules == c.rules(before, t.Name) {
			return
		}
		for i, p := range t.Partitions {
			records = appendChange(records, t, int32(i), settle(p, s, nil))
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

// noteElections tells which leaders a committed batch changed, and which of them may miss records.
func noteElections(d *Delta, out *Out) {
	moved := 0
	for _, p := range d.Partitions {
		if p.From == nil || p.To == nil || p.From.Leader == p.To.Leader {
			continue
		}
		moved++
		if p.To.Leader == ident.NoBroker || p.To.Election == ElectionClean {
			continue
		}
		n := Note{Kind: NoteUnclean, Broker: p.To.Leader, Index: d.Index, Topic: p.Topic.Name, Partition: p.Partition}
		if p.To.Election == ElectionPossibleLoss {
			n.Kind = NotePossibleLoss
		}
		out.Note = append(out.Note, n)
	}
	if moved > 0 {
		out.Note = append(out.Note, Note{Kind: NoteElection, Index: d.Index, Count: moved})
	}
}
