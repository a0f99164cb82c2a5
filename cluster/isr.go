package cluster

import (
	"slices"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// changeISR carries out what leaders propose (AlterPartition, KIP-497, KIP-841, KIP-903), each partition for itself.
//
// A leader keeps a proposal pending until it replays a record with a higher partition epoch. So one that is refused for what it asks, while it names the
// present record, is answered by a record that raises the partition epoch and changes nothing else; one that names an older record finds that the newer is
// already there, and one that was committed before and is sent again hears so.
func (c *Controller) changeISR(cmd *ChangeISR) decision {
	if err := c.registered(cmd.Broker, cmd.Epoch); err != nil {
		return refused(err)
	}
	if n := len(cmd.Partitions); n > partitionsPerRequestMax {
		return refused(refuse(wire.InvalidRequest, "%d partitions in one request; at most %d", n, partitionsPerRequestMax))
	}
	reply := &ChangeISRReply{Partitions: make([]ISRResult, len(cmd.Partitions))}
	var records []Record
	raised := false
	changed := make(map[partitionKey]int, len(cmd.Partitions)) // read by key only
	for i := range cmd.Partitions {
		want := &cmd.Partitions[i]
		key := partitionKey{want.Topic, want.Partition}
		if _, twice := changed[key]; twice {
			reply.Partitions[i] = ISRResult{Topic: want.Topic, Partition: want.Partition, Err: refuse(wire.InvalidRequest, "partition %d of topic id %v is in the request more than once", want.Partition, want.Topic)}
			continue
		}
		changed[key] = i
		var rec *PartitionChangeRecord
		if reply.Partitions[i], rec = c.changeOneISR(cmd.Broker, want); rec != nil {
			records = append(records, rec)
			raised = raised || rec.Adding != nil
		}
	}
	if raised {
		after, _, err := c.next.Apply(c.next.index, c.next.term, records)
		if err != nil {
			panic("cluster: a changed ISR contradicts the image: " + err.Error())
		}
		records = append(records, c.raiseInternal(after)...) // brokers that joined meanwhile
	}
	return decision{records: records, body: reply}
}

type partitionKey struct {
	topic  ident.TopicID
	number int32
}

// registered checks that a command comes from a broker's present run. A broker that hears that its run is over ends for good, so that a controller must not say so
// that has only not heard of the run: one that stood still, and was succeeded meanwhile.
func (c *Controller) registered(id ident.BrokerID, epoch ident.BrokerEpoch) *Error {
	b, ok := c.next.Broker(id)
	if ok && epoch > b.Epoch || !ok && epoch > ident.BrokerEpoch(c.next.index) {
		return refuse(wire.NotController, "broker %d speaks of its registration with epoch %d, of which this controller has not heard; there may be another by now", id, epoch)
	}
	if !ok {
		return refuse(wire.BrokerIDNotRegistered, "broker %d is not registered", id)
	}
	if b.Epoch != epoch {
		return refuse(wire.StaleBrokerEpoch, "broker %d is registered with epoch %d, not %d", id, b.Epoch, epoch)
	}
	return nil
}

// changeOneISR judges one proposal.
func (c *Controller) changeOneISR(from ident.BrokerID, want *ISRChange) (ISRResult, *PartitionChangeRecord) {
	result := ISRResult{Topic: want.Topic, Partition: want.Partition}
	t, ok := c.next.TopicByID(want.Topic)
	if !ok {
		result.Err = refuse(wire.UnknownTopicID, "no topic has the id %v", want.Topic)
		return result, nil
	}
	if want.Partition < 0 || int(want.Partition) >= len(t.Partitions) {
		result.Err = refuse(wire.UnknownTopicOrPartition, "topic %s has no partition %d", t.Name, want.Partition)
		return result, nil
	}
	p := t.Partitions[want.Partition]
	result.Leader, result.LeaderEpoch, result.Epoch, result.ISR = p.Leader, p.LeaderEpoch, p.Epoch, p.ISR
	if done, err := c.stale(t, p, from, want); done || err != nil {
		result.Err = err
		return result, nil
	}
	if want.Resign {
		return c.replaceLeader(t, p, from, result)
	}
	if result.Err = c.ineligible(t, p, want); result.Err != nil {
		result.Epoch++
		return result, &PartitionChangeRecord{Topic: t.ID, Number: want.Partition, Leader: LeaderUnchanged}
	}
	heard := func(*Partition) bool { return true } // it names the epoch of the partition's newest record
	to := settle(p, situation{led: heard, rules: c.rules(c.next, t.Name), live: c.next.live(), gone: ident.NoBroker}, func(to *Partition) { to.propose(want.ISR) })
	rec, _ := changeOf(p, &to) // even one without a change ends the proposal
	rec.Topic, rec.Number = t.ID, want.Partition
	if result.ISR, result.Leader = to.ISR, to.Leader; risen(p, &to) {
		result.LeaderEpoch++
	}
	result.Epoch++
	return result, rec
}

// replaceLeader lets another member of the ISR, or of the ELR where there is none, take the place of a leader whose log does not get any further. The former leader
// leaves the ISR, which it would hold up; it has what was committed, so it may be in the ELR. Where nobody can take its place it stays, nothing is written,
// and the answer says so: the leader asks again, after pauses that grow.
func (c *Controller) replaceLeader(t *Topic, p *Partition, from ident.BrokerID, result ISRResult) (ISRResult, *PartitionChangeRecord) {
	live := c.next.live()
	s := situation{led: c.led, rules: c.rules(c.next, t.Name), gone: from, live: func(b ident.BrokerID) bool { return b != from && live(b) }}
	s.rules.unclean = false // a leader that waits for its disk has more than one that lacks records
	to := settle(p, s, nil)
	if to.Leader == ident.NoBroker {
		result.Err = refuse(wire.EligibleLeadersNotAvailable, "%s-%d: broker %d cannot resign: no other member of ISR %v or ELR %v is there and verified; it goes on as leader", t.Name, result.Partition, from, p.ISR, p.ELR)
		return result, nil
	}
	rec, _ := changeOf(p, &to)
	rec.Topic, rec.Number = t.ID, result.Partition
	result.ISR, result.Leader = to.ISR, to.Leader
	result.LeaderEpoch++
	result.Epoch++
	return result, rec
}

// stale tells whether a proposal does not speak of the present record: because it was carried out before (done), or because something else happened.
func (c *Controller) stale(t *Topic, p *Partition, from ident.BrokerID, want *ISRChange) (done bool, err *Error) {
	switch {
	case want.LeaderEpoch > p.LeaderEpoch:
		return false, refuse(wire.NotController, "%s-%d: leader epoch %d is newer than %d, which this controller knows", t.Name, want.Partition, want.LeaderEpoch, p.LeaderEpoch)
	case want.LeaderEpoch < p.LeaderEpoch:
		return false, refuse(wire.FencedLeaderEpoch, "%s-%d: leader epoch %d is over, the present one is %d", t.Name, want.Partition, want.LeaderEpoch, p.LeaderEpoch)
	case p.Leader != from:
		return false, refuse(wire.InvalidRequest, "%s-%d: broker %d leads, not broker %d", t.Name, want.Partition, p.Leader, from)
	case want.PartitionEpoch > p.Epoch:
		return false, refuse(wire.NotController, "%s-%d: partition epoch %d is newer than %d, which this controller knows", t.Name, want.Partition, want.PartitionEpoch, p.Epoch)
	case want.PartitionEpoch == p.Epoch, want.Resign:
		return false, nil
	case sameMembers(p.ISR, want.ISR):
		return true, nil
	}
	return false, refuse(wire.InvalidUpdateVersion, "%s-%d: the record has changed since partition epoch %d, to %d", t.Name, want.Partition, want.PartitionEpoch, p.Epoch)
}

func sameMembers(isr []ident.BrokerID, members []Member) bool {
	return len(isr) == len(members) && !slices.ContainsFunc(members, func(m Member) bool { return !slices.Contains(isr, m.Broker) })
}

// ineligible judges the members of a proposal: assigned, each once, the leader among them, and each the very replica that the leader has heard of, in service
// on a broker that may be elected.
func (c *Controller) ineligible(t *Topic, p *Partition, want *ISRChange) *Error {
	led := false
	for i, m := range want.ISR {
		at := slices.Index(p.Replicas, m.Broker)
		if at < 0 {
			return refuse(wire.InvalidRequest, "%s-%d: broker %d holds no replica", t.Name, want.Partition, m.Broker)
		}
		if slices.ContainsFunc(want.ISR[:i], func(o Member) bool { return o.Broker == m.Broker }) {
			return refuse(wire.InvalidRequest, "%s-%d: broker %d is in the ISR twice", t.Name, want.Partition, m.Broker)
		}
		led = led || m.Broker == p.Leader
		b, ok := c.next.Broker(m.Broker)
		switch {
		case !ok:
			return refuse(wire.IneligibleReplica, "%s-%d: broker %d is not registered", t.Name, want.Partition, m.Broker)
		case b.Epoch != m.Epoch:
			return refuse(wire.IneligibleReplica, "%s-%d: broker %d has epoch %d, not %d", t.Name, want.Partition, m.Broker, b.Epoch, m.Epoch)
		case b.Fenced:
			return refuse(wire.IneligibleReplica, "%s-%d: broker %d is fenced", t.Name, want.Partition, m.Broker)
		case b.ShuttingDown:
			return refuse(wire.IneligibleReplica, "%s-%d: broker %d is shutting down", t.Name, want.Partition, m.Broker)
		case slices.Contains(p.Offline, m.Broker):
			return refuse(wire.IneligibleReplica, "%s-%d: the replica of broker %d is offline", t.Name, want.Partition, m.Broker)
		case len(p.Directories) > 0 && !p.Directories[at].IsZero() && p.Directories[at] != m.Directory:
			return refuse(wire.IneligibleReplica, "%s-%d: broker %d keeps its replica in directory %v, not %v", t.Name, want.Partition, m.Broker, p.Directories[at], m.Directory)
		}
	}
	if !led {
		return refuse(wire.InvalidRequest, "%s-%d: the leader %d is missing from the proposed ISR", t.Name, want.Partition, p.Leader)
	}
	return nil
}

// propose takes a leader's word for who is in sync, and that it leads: what was before it is over. Whoever joins has everything, so it is verified.
func (p *Partition) propose(members []Member) {
	isr := make([]ident.BrokerID, len(members))
	for i, m := range members {
		isr[i] = m.Broker
	}
	elr := slices.DeleteFunc(append(slices.Clone(p.ELR), p.ISR...), func(b ident.BrokerID) bool { return slices.Contains(isr, b) })
	p.ISR, p.ELR, p.LastKnownELR = isr, elr, nil
	p.Unverified = slices.DeleteFunc(slices.Clone(p.Unverified), func(b ident.BrokerID) bool { return slices.Contains(isr, b) })
}
