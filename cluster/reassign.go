package cluster

import (
	"slices"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// AlterReassignments moves the replicas of partitions to other brokers, changes a move that is under way, or takes it back (API 45, KIP-455).
type AlterReassignments struct {
	Ask
	Partitions []Reassignment
	FixFactor  bool // refuse what would give a partition another number of replicas (KIP-860)
}

// Reassignment is what one partition is to become.
type Reassignment struct {
	PartitionRef
	Replicas []ident.BrokerID // who is to hold it in the end, the preferred leader first; nil: back to who held it before
}

func (*AlterReassignments) command() {}

// AlterReassignmentsReply answers AlterReassignments, one result per partition in the request's order.
type AlterReassignmentsReply struct{ Partitions []ReassignmentResult }

// ReassignmentResult is the fate of one reassignment: whether it has begun, not whether it is done.
type ReassignmentResult struct {
	PartitionRef
	Err *Error
}

func (*AlterReassignmentsReply) replyBody() {}

// Reassigning tells whether replicas are being moved.
func (p *Partition) Reassigning() bool { return len(p.Adding) > 0 || len(p.Removing) > 0 }

// Target lists who is to hold the partition when nothing is being moved any more, in the order of preference.
func (p *Partition) Target() []ident.BrokerID { return except(p.Replicas, p.Removing) }

// alterReassignments begins, changes and cancels reassignments, each for itself. A reassignment is written into the partition's record at once and ends by
// itself: whoever leads takes the added replicas into the ISR as it does any other, and the record that brings in the last one ends it. No level of the cluster is
// asked for, since every build replays the record: a controller of an older one leaves the replicas that are to go where they are, and the next of this ends it.
func (c *Controller) alterReassignments(cmd *AlterReassignments) decision {
	if n := len(cmd.Partitions); n > partitionsPerRequestMax {
		return refused(refuse(wire.InvalidRequest, "%d partitions in one request; at most %d", n, partitionsPerRequestMax))
	}
	reply := &AlterReassignmentsReply{Partitions: make([]ReassignmentResult, len(cmd.Partitions))}
	var records []Record
	live := c.next.live()
	seen := make(map[PartitionRef]bool, len(cmd.Partitions)) // read by key only
	for i := range cmd.Partitions {
		want, result := &cmd.Partitions[i], &reply.Partitions[i]
		result.PartitionRef = want.PartitionRef
		t, ok := c.next.Topic(want.Topic)
		switch {
		case !ok || want.Partition < 0 || int(want.Partition) >= len(t.Partitions):
			result.Err = refuse(wire.UnknownTopicOrPartition, "there is no partition %.249s-%d", want.Topic, want.Partition)
			continue
		case seen[want.PartitionRef]:
			result.Err = refuse(wire.InvalidRequest, "partition %.249s-%d is in the request more than once", want.Topic, want.Partition)
			continue
		}
		seen[want.PartitionRef] = true
		s := situation{led: c.led, rules: c.rules(c.next, t.Name), live: live, gone: ident.NoBroker}
		var to Partition
		if want.Replicas == nil {
			to, result.Err = cancelled(t, want.Partition, s)
		} else if result.Err = c.next.reassignable(t, want, cmd.FixFactor, live); result.Err == nil {
			to = settle(t.Partitions[want.Partition], s, func(to *Partition) { to.reassign(c.next, want.Replicas) })
		}
		if result.Err == nil {
			records = appendChange(records, t, want.Partition, to)
		}
	}
	return decision{records: records, body: reply}
}

// reassignable judges a target. Its brokers have to be registered; they need not live, except where only replicas of an internal topic are added: those that do not
// get on are taken back (abandon), so that the factor can be raised elsewhere.
func (m *Image) reassignable(t *Topic, want *Reassignment, fixFactor bool, live func(ident.BrokerID) bool) *Error {
	if len(want.Replicas) == 0 {
		return refuse(wire.InvalidReplicaAssignment, "%s-%d is to be held by no broker", t.Name, want.Partition)
	}
	for i, b := range want.Replicas {
		if slices.Contains(want.Replicas[:i], b) {
			return refuse(wire.InvalidReplicaAssignment, "%s-%d is to be held by broker %d twice", t.Name, want.Partition, b)
		}
		if _, ok := m.Broker(b); !ok {
			return refuse(wire.InvalidReplicaAssignment, "%s-%d is to be held by broker %d, which is not registered", t.Name, want.Partition, b)
		}
	}
	if have := len(t.Partitions[want.Partition].Target()); fixFactor && have != len(want.Replicas) {
		return refuse(wire.InvalidReplicationFactor, "%s-%d has the replication factor %d and would get %d; the request forbids to change it", t.Name, want.Partition, have, len(want.Replicas))
	}
	if _, internal := factorKeys[t.Name]; internal {
		to := *t.Partitions[want.Partition]
		to.reassign(m, want.Replicas)
		if i := slices.IndexFunc(to.Adding, func(b ident.BrokerID) bool { return !live(b) }); i >= 0 && len(to.Removing) == 0 {
			return refuse(wire.InvalidReplicaAssignment, "%s-%d is to be held by broker %d as well, which does not serve; start it first", t.Name, want.Partition, to.Adding[i])
		}
	}
	return nil
}

// reassign lists the new replicas first and those that are to go behind them, in the order they had. Whoever held nothing before the first of several
// reassignments is being added, whoever is no target of the last is being removed, and some are both.
func (p *Partition) reassign(m *Image, target []ident.BrokerID) {
	old, original := *p, except(p.Replicas, p.Adding)
	p.Replicas = append(slices.Clone(target), except(old.Replicas, target)...)
	p.Adding, p.Removing = except(p.Replicas, original), except(p.Replicas, target)
	if len(old.Directories) == 0 {
		return
	}
	p.Directories = make([]ident.DirectoryID, len(p.Replicas))
	for i, b := range p.Replicas {
		if at := slices.Index(old.Replicas, b); at >= 0 {
			p.Directories[i] = old.Directories[at]
		} else if broker, ok := m.Broker(b); ok {
			p.Directories[i] = onlyDirectory(broker.Directories)
		}
	}
}

// complete tells whether a reassignment can end. Replicas are taken away only when all who stay are in the ISR, so that they have all that was committed, and one
// of them can lead and read all of it. Where none is taken away it suffices that the added ones are in the ISR: an old replica that is dead holds up nothing.
func (p *Partition) complete(s situation) bool {
	if !p.Reassigning() {
		return false
	}
	awaited := p.Adding
	if len(p.Removing) > 0 {
		awaited = p.Target()
	}
	if slices.ContainsFunc(awaited, func(b ident.BrokerID) bool { return !p.InSync(b) }) {
		return false
	}
	return len(p.Removing) == 0 || p.first(awaited, p.readable(s)) != ident.NoBroker
}

// readable tells which of the eligible can read all that they have.
func (p *Partition) readable(s situation) func(ident.BrokerID) bool {
	can := p.eligible(s)
	return func(b ident.BrokerID) bool { return can(b) && !slices.Contains(p.Damaged, b) }
}

// finish ends a reassignment.
func (p *Partition) finish() {
	removed := p.Removing
	p.Adding, p.Removing = nil, nil
	p.drop(removed)
}

// drop takes replicas out of the partition; a leader among them leads no more.
func (p *Partition) drop(gone []ident.BrokerID) {
	if len(gone) == 0 {
		return
	}
	if len(p.Directories) > 0 {
		kept := make([]ident.DirectoryID, 0, len(p.Directories))
		for i, b := range p.Replicas {
			if !slices.Contains(gone, b) {
				kept = append(kept, p.Directories[i])
			}
		}
		p.Directories = kept
	}
	for _, l := range [...]*[]ident.BrokerID{&p.Replicas, &p.ISR, &p.ELR, &p.LastKnownELR, &p.Adding, &p.Removing, &p.Unverified, &p.Offline, &p.Damaged, &p.Full} {
		*l = except(*l, gone)
	}
	p.Reports = slices.DeleteFunc(slices.Clone(p.Reports), func(r Report) bool { return slices.Contains(gone, r.Broker) })
	if slices.Contains(gone, p.Leader) {
		p.Leader = ident.NoBroker
	}
}

// cancelled takes a reassignment back: whoever was being added holds nothing any more. That is refused where what was committed may be theirs alone, because of the
// others who had it none is there, verified and sound, unless unclean elections are allowed; and where nobody would lead although somebody does.
func cancelled(t *Topic, number int32, s situation) (Partition, *Error) {
	p := t.Partitions[number]
	if !p.Reassigning() {
		return *p, refuse(wire.NoReassignmentInProgress, "no replicas of %s-%d are being moved", t.Name, number)
	}
	held := append(slices.Clone(p.ISR), p.ELR...)
	kept := except(held, p.Adding)
	if len(kept) < len(held) && p.first(kept, p.readable(s)) == ident.NoBroker && !s.rules.unclean {
		return *p, refuse(wire.InvalidReplicaAssignment, "the reassignment of %s-%d cannot be cancelled: of ISR %v and ELR %v nobody whom it did not add is there, verified and sound, so that what was committed may be lost", t.Name, number, p.ISR, p.ELR)
	}
	to := settle(p, s, func(to *Partition) {
		to.Removing = nil
		to.drop(to.Adding)
	})
	if to.Leader == ident.NoBroker && p.Leader != ident.NoBroker {
		return *p, refuse(wire.InvalidReplicaAssignment, "the reassignment of %s-%d cannot be cancelled: broker %d, which it added, leads, and none of %v could take its place", t.Name, number, p.Leader, kept)
	}
	return to, nil
}

// except returns a list without the members of another.
func except(list, gone []ident.BrokerID) []ident.BrokerID {
	return slices.DeleteFunc(slices.Clone(list), func(b ident.BrokerID) bool { return slices.Contains(gone, b) })
}
