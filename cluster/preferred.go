package cluster

import (
	"slices"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// electionsMax is how many leaders one round of balancing moves, as in Kafka (ReplicationControlManager, MAX_ELECTIONS_PER_IMBALANCE). The rest follows
// with the next tick.
const electionsMax = 1000

// preferred is the replica that should lead: the first. One that is still being added is none yet, and one that is being removed none any more, unless there
// are no others.
func (p *Partition) preferred() ident.BrokerID {
	old := except(p.Replicas, p.Adding)
	if stay := except(old, p.Removing); len(stay) > 0 {
		return stay[0]
	}
	if len(old) > 0 {
		return old[0]
	}
	return ident.NoBroker
}

// prefer makes the preferred replica leader if it may be: sound, with room, in the ISR and on a live broker (KAFKA-9866: never another one).
func (p *Partition) prefer(live func(ident.BrokerID) bool, led func(*Partition) bool) (Partition, bool) {
	to, b := *p, p.preferred()
	if p.Leader == ident.NoBroker || p.Leader == b || !p.InSync(b) || !live(b) || slices.Contains(p.Damaged, b) || slices.Contains(p.Full, b) {
		return to, false
	}
	to.Leader, to.Election, to.LastKnownELR = b, ElectionClean, p.couldLead(led)
	return to, true
}

// balance looks after leaders and internal topics. It moves leaderships back to preferred replicas, every leader.imbalance.check.interval.seconds while auto.leader.rebalance.enable is true. As in
// Kafka with KRaft every partition is moved that can be; there is no percentage of imbalance that is put up with.
func (c *Controller) balance(now Now, out *Out) {
	if !c.active || c.settle {
		return
	}
	if now.Mono-c.balanced < c.balances.every {
		return
	}
	records, more := c.raiseInternal(c.next), false
	if c.balances.leaders {
		var moves []Record
		moves, more = c.preferAll(c.next)
		records = append(records, moves...)
	}
	if len(records) > 0 {
		if err := c.propose(records); err != nil {
			out.Note = append(out.Note, Note{Kind: NoteDropped, Text: err.Message})
			return
		}
	}
	if !more {
		c.balanced = now.Mono
	}
}

// balancing is what this broker's own configuration says about it: these keys do not change while a broker runs, and every tick asks.
type balancing struct {
	every   ident.Instant
	leaders bool // they are moved back
}

func balancingOf(s config.Stack) balancing {
	return balancing{
		every:   ident.Instant(s.BrokerInt("leader.imbalance.check.interval.seconds")) * 1000 * millisecond,
		leaders: s.BrokerBool("auto.leader.rebalance.enable"),
	}
}

// preferAll makes the records of one round, and tells whether there is work left.
func (c *Controller) preferAll(m *Image) (records []Record, more bool) {
	live := m.live()
	for t := range m.Topics() {
		for i, p := range t.Partitions {
			to, moved := p.prefer(live, c.led)
			if !moved {
				continue
			}
			if len(records) == electionsMax {
				return records, true
			}
			records = appendChange(records, t, int32(i), to)
		}
	}
	return records, false
}

// electLeaders holds the elections somebody asks for (KIP-183, KIP-460).
func (c *Controller) electLeaders(cmd *ElectLeaders) decision {
	reply := &ElectLeadersReply{}
	var records []Record
	live := c.next.live()
	if cmd.All {
		for t := range c.next.Topics() {
			for i := range t.Partitions {
				to, err := c.electOne(t, int32(i), cmd.Unclean, live)
				if err != nil && err.Code == wire.ElectionNotNeeded {
					continue
				}
				records = appendElected(records, t, int32(i), to, err)
				reply.Partitions = append(reply.Partitions, ElectionResult{PartitionRef: PartitionRef{t.Name, int32(i)}, Err: err})
			}
		}
		return decision{records: records, body: reply}
	}
	seen := make(map[PartitionRef]bool, len(cmd.Partitions)) // read by key only
	for _, ref := range cmd.Partitions {
		result := ElectionResult{PartitionRef: ref}
		t, ok := c.next.Topic(ref.Topic)
		switch {
		case !ok || ref.Partition < 0 || int(ref.Partition) >= len(t.Partitions):
			result.Err = refuse(wire.UnknownTopicOrPartition, "there is no partition %.249s-%d", ref.Topic, ref.Partition)
		case seen[ref]:
			result.Err = refuse(wire.InvalidRequest, "partition %.249s-%d is in the request more than once", ref.Topic, ref.Partition)
		default:
			seen[ref] = true
			var to Partition
			to, result.Err = c.electOne(t, ref.Partition, cmd.Unclean, live)
			records = appendElected(records, t, ref.Partition, to, result.Err)
		}
		reply.Partitions = append(reply.Partitions, result)
	}
	return decision{records: records, body: reply}
}

func appendElected(records []Record, t *Topic, number int32, to Partition, err *Error) []Record {
	if err != nil {
		return records
	}
	return appendChange(records, t, number, to)
}

// electOne holds one election.
func (c *Controller) electOne(t *Topic, number int32, unclean bool, live func(ident.BrokerID) bool) (Partition, *Error) {
	p := t.Partitions[number]
	if !unclean {
		if p.Leader != ident.NoBroker && p.Leader == p.preferred() {
			return *p, refuse(wire.ElectionNotNeeded, "the preferred replica of %s-%d, on broker %d, leads already", t.Name, number, p.Leader)
		}
		if to, moved := p.prefer(live, c.led); moved {
			return to, nil
		}
		return *p, refuse(wire.PreferredLeaderNotAvailable, "the preferred replica of %s-%d, on broker %d, is not in the ISR %v, or it is damaged or full, or its broker is not live", t.Name, number, p.preferred(), p.ISR)
	}
	if p.Leader != ident.NoBroker {
		return *p, refuse(wire.ElectionNotNeeded, "%s-%d has a leader, broker %d", t.Name, number, p.Leader)
	}
	to := settle(p, situation{led: c.led, rules: c.rules(c.next, t.Name), live: live, gone: ident.NoBroker, unclean: true}, nil)
	if to.Leader == ident.NoBroker {
		return *p, refuse(wire.EligibleLeadersNotAvailable, "no replica of %s-%d is on a live broker and through its recovery", t.Name, number)
	}
	return to, nil
}
