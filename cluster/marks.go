package cluster

import (
	"slices"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// markReplicas takes in what a living broker says of its replicas, each for itself. One that is offline leaves the ISR, and its leadership, in the same record.
//
// It stays in the ELR, or goes there as others do, for what it had is not known to be lost: while it is offline it cannot be elected, and it comes back with
// a new run of its broker, whose registration and recovery say whether the log is still whole (comeBack), or when its log opens after all (MarkSound). Until then an ISR that can commit ends the ELR.
func (c *Controller) markReplicas(cmd *MarkReplicas) decision {
	if err := c.registered(cmd.Broker, cmd.Epoch); err != nil {
		return refused(err)
	}
	session := c.sessions[cmd.Broker]
	if cmd.Number != 0 && cmd.Number < session.marks {
		return refused(refuse(wire.InvalidUpdateVersion, "broker %d has said newer things of its replicas: number %d after %d", cmd.Broker, cmd.Number, session.marks))
	}
	var records []Record
	seen := make(map[partitionKey]bool, len(cmd.Replicas)) // read by key only
	for i := range cmd.Replicas {
		m := &cmd.Replicas[i]
		t, ok := c.next.TopicByID(m.Topic)
		if !ok || m.Partition < 0 || int(m.Partition) >= len(t.Partitions) || !t.Partitions[m.Partition].HasReplica(cmd.Broker) {
			continue // deleted, or moved away, meanwhile
		}
		key := partitionKey{m.Topic, m.Partition}
		if seen[key] {
			return refused(refuse(wire.InvalidRequest, "the replica of %s-%d is marked more than once", t.Name, m.Partition))
		}
		seen[key] = true
		s := situation{led: c.led, rules: c.rules(c.next, t.Name), live: c.next.live(), gone: ident.NoBroker}
		if m.Mark == MarkOffline {
			s.gone = cmd.Broker
		}
		to := settle(t.Partitions[m.Partition], s, func(to *Partition) {
			to.Offline = with(to.Offline, cmd.Broker, m.Mark == MarkOffline)
			to.Damaged = with(to.Damaged, cmd.Broker, m.Mark == MarkDamaged)
			to.Full = with(to.Full, cmd.Broker, m.Full && m.Mark != MarkOffline && c.next.FeatureLevel(PeerVersion) >= fullSince)
		})
		records = appendChange(records, t, m.Partition, to)
	}
	session.marks = max(session.marks, cmd.Number)
	c.sessions[cmd.Broker] = session
	return decision{records: records, body: &MarkReplicasReply{}}
}

// fullSince is the level of troupe.peer.version from which on the record says who is full. A broker of an older build would skip that, and count otherwise.
const fullSince = 2

// unmark forgets what a run of a broker has said of its replica.
func (p *Partition) unmark(b ident.BrokerID) {
	p.Offline, p.Damaged, p.Full = without(p.Offline, b), without(p.Damaged, b), without(p.Full, b)
}

// with returns a list that has a broker, or has it not.
func with(list []ident.BrokerID, b ident.BrokerID, has bool) []ident.BrokerID {
	switch {
	case !has:
		return without(list, b)
	case slices.Contains(list, b):
		return list
	}
	return append(slices.Clone(list), b)
}
