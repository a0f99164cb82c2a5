package partition_test

import (
	"slices"

	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire/ident"
)

// controller is honest and small: it assigns leaders, epochs, ISR and ELR, and every
// broker hears of it in order, some time later.
type controller struct {
	c              *cluster
	replicas       []partition.Replica
	registered     []bool // unfenced, by broker
	whole          []bool // nothing was lost since it joined
	isr, elr       []ident.BrokerID
	leader         ident.BrokerID
	leaderEpoch    ident.LeaderEpoch
	partitionEpoch ident.PartitionEpoch
	strict         bool
	brokerEpoch    ident.BrokerEpoch
	lastKnown      []ident.BrokerID // ISR and ELR when there was a leader last
	records        []partition.Become
	proposals      []partition.Proposal
	proposers      []ident.BrokerID
	offline        []ident.BrokerID // replicas out of service on brokers that live
	full           []ident.BrokerID // replicas that cannot append
	marks          []mark
	ready          bool
}

// mark is what a broker says of its replica, in one of its runs.
type mark struct {
	broker  ident.BrokerID
	epoch   ident.BrokerEpoch
	offline bool
	full    bool
}

func (k *controller) start(c *cluster, n int) {
	k.c, k.leader, k.leaderEpoch, k.strict = c, 1, 0, c.rand.IntN(3) > 0
	for id := range n {
		k.brokerEpoch++
		k.replicas = append(k.replicas, partition.Replica{Broker: ident.BrokerID(id + 1), BrokerEpoch: k.brokerEpoch})
		k.registered, k.whole = append(k.registered, true), append(k.whole, true)
		k.isr = append(k.isr, ident.BrokerID(id+1))
	}
	k.commit()
}

func (k *controller) min() int { return min(int(k.c.config.MinISR), len(k.replicas)) }

// commit adds the partition as it is now to the metadata log.
func (k *controller) commit() {
	slices.Sort(k.isr)
	slices.Sort(k.elr)
	if k.leader != ident.NoBroker {
		k.lastKnown = slices.Concat(k.isr, k.elr)
	}
	k.records = append(k.records, partition.Become{
		Leader: k.leader, LeaderEpoch: k.leaderEpoch, PartitionEpoch: k.partitionEpoch, Replicas: slices.Clone(k.replicas),
		ISR: slices.Clone(k.isr), Strict: k.strict, Full: slices.Clone(k.full), Barred: k.barred(),
	})
	k.c.say("record leader=%d epoch=%d partition-epoch=%d isr=%v elr=%v strict=%v", k.leader, k.leaderEpoch, k.partitionEpoch, k.isr, k.elr, k.strict)
}

// shrink sets the ISR. Who leaves it stays eligible while it is smaller than it should
// be (KIP-966).
func (k *controller) shrink(isr []ident.BrokerID) {
	was := slices.Concat(k.isr, k.elr)
	k.isr, k.elr = slices.Clone(isr), nil
	if len(isr) < k.min() {
		for _, id := range was {
			if !slices.Contains(isr, id) && !slices.Contains(k.elr, id) {
				k.elr = append(k.elr, id)
			}
		}
	}
}

func without(ids []ident.BrokerID, id ident.BrokerID) []ident.BrokerID {
	return slices.DeleteFunc(slices.Clone(ids), func(x ident.BrokerID) bool { return x == id })
}

// elect finds another leader: from the ISR, else from the ELR; if neither has anybody
// left, the one with the most among all who were last known, once they are back.
func (k *controller) elect(but ...ident.BrokerID) {
	k.leaderEpoch++
	k.partitionEpoch++
	k.leader = ident.NoBroker
	pick := func(ids []ident.BrokerID) ident.BrokerID {
		var alive []ident.BrokerID
		for _, id := range ids {
			if k.serves(id) && !slices.Contains(but, id) {
				alive = append(alive, id)
			}
		}
		if len(alive) == 0 {
			return ident.NoBroker
		}
		return alive[k.c.rand.IntN(len(alive))]
	}
	if k.leader = pick(k.isr); k.leader != ident.NoBroker {
		k.c.seen["elected from ISR"]++
	} else if k.leader = pick(k.elr); k.leader != ident.NoBroker {
		k.c.seen["elected from ELR"]++
		k.shrink([]ident.BrokerID{k.leader})
	} else if len(k.isr)+len(k.elr) == 0 && k.allBack() {
		k.c.seen["declared loss"]++
		for _, id := range k.lastKnown {
			if k.leader == ident.NoBroker || k.c.node(id).more(k.c.node(k.leader)) {
				k.leader = id
			}
		}
		k.isr = []ident.BrokerID{k.leader}
		k.commit()
		k.c.declare(k.leader)
		return
	}
	k.commit()
	if k.leader != ident.NoBroker {
		k.c.checkElected(k.leader)
	}
}

func (k *controller) serves(id ident.BrokerID) bool {
	return k.registered[id-1] && !slices.Contains(k.offline, id)
}

// barred lists those who are taken into no ISR.
func (k *controller) barred() (ids []ident.BrokerID) {
	for _, r := range k.replicas {
		if !k.serves(r.Broker) {
			ids = append(ids, r.Broker)
		}
	}
	return ids
}

func (k *controller) allBack() bool {
	return !slices.ContainsFunc(k.lastKnown, func(id ident.BrokerID) bool { return !k.serves(id) })
}

// fence takes a broker out: it may be dead.
func (k *controller) fence(id ident.BrokerID) {
	k.registered[id-1] = false
	if slices.Contains(k.isr, id) {
		k.shrink(without(k.isr, id))
	}
	if k.leader == id {
		k.elect()
		return
	}
	k.partitionEpoch++
	k.commit()
}

// takeMark hears that a replica is out of service: it leaves the ISR, and its leadership,
// in the same record.
func (k *controller) takeMark() bool {
	if len(k.marks) == 0 {
		return false
	}
	m := k.marks[0]
	k.marks = k.marks[1:]
	id := m.broker
	if k.replicas[id-1].BrokerEpoch != m.epoch || slices.Contains(k.offline, id) {
		return true // of a run that is over, or known
	}
	if !m.offline {
		k.takeFull(id, m.full)
		return true
	}
	k.c.seen["marked offline"]++
	k.offline = append(k.offline, id)
	if slices.Contains(k.isr, id) {
		k.shrink(without(k.isr, id))
	}
	if k.leader == id {
		k.c.seen["leader offline"]++
		k.elect()
		return true
	}
	k.partitionEpoch++
	k.commit()
	return true
}

// takeFull hears that a replica cannot append, or can again. Another one leads, and acks=all
// goes on without it, where there are enough.
func (k *controller) takeFull(id ident.BrokerID, full bool) {
	if k.full = without(k.full, id); full {
		k.full = append(k.full, id)
		k.c.seen["marked full"]++
	}
	roomy := slices.DeleteFunc(slices.Clone(k.isr), func(id ident.BrokerID) bool { return slices.Contains(k.full, id) })
	if slices.Contains(k.full, k.leader) && slices.ContainsFunc(roomy, k.serves) {
		k.c.seen["full leader replaced"]++
		k.elect(k.full...)
		roomy = without(roomy, k.leader)
		roomy = append(roomy, k.leader)
	}
	if k.leader != ident.NoBroker && slices.Contains(roomy, k.leader) && len(roomy) >= k.min() && len(roomy) < len(k.isr) {
		k.c.seen["full member dropped"]++
		k.shrink(roomy)
	}
	k.partitionEpoch++
	k.commit()
}

// notice fences a broker that is down, or seldom one that is not, and takes that one back.
func (k *controller) notice(id ident.BrokerID) {
	switch up := k.c.node(id).up; {
	case up && !k.registered[id-1]:
		k.unfence(id)
	case k.registered[id-1] && (!up || k.c.chance(20)):
		k.fence(id)
	}
}

// unfence takes a broker back that went on as it was. That changes no record but for who is
// barred.
func (k *controller) unfence(id ident.BrokerID) {
	k.c.seen["unfenced"]++
	k.registered[id-1] = true
	if k.leader == ident.NoBroker {
		k.elect()
		return
	}
	k.commit()
}

// register takes a broker back. What may have lost something that it had reported is
// dropped from both sets before anything else.
func (k *controller) register(id ident.BrokerID, whole bool) (record int) {
	if k.registered[id-1] {
		k.fence(id)
	}
	k.brokerEpoch++
	k.replicas[id-1].BrokerEpoch = k.brokerEpoch
	was := slices.Contains(k.full, id)
	k.offline, k.full = without(k.offline, id), without(k.full, id)
	if !whole {
		k.isr, k.elr = without(k.isr, id), without(k.elr, id)
		k.c.say("broker %d is not whole", id)
	}
	k.c.node(id).lossy = false
	k.registered[id-1] = true
	if k.leader == ident.NoBroker {
		k.elect()
	} else if was || whole || k.c.chance(50) {
		k.partitionEpoch++
		k.commit()
	} else {
		k.commit() // the partition is as it was, but for the registration
	}
	return len(k.records) - 1
}

// take handles one proposal: compare and set.
func (k *controller) take() {
	if len(k.proposals) == 0 {
		return
	}
	p, from := k.proposals[0], k.proposers[0]
	k.proposals, k.proposers = k.proposals[1:], k.proposers[1:]
	if p.LeaderEpoch != k.leaderEpoch || from != k.leader {
		return // whoever sent it will replay why
	}
	if p.Resign {
		k.replaceLeader()
		return
	}
	if p.PartitionEpoch != k.partitionEpoch {
		return // likewise
	}
	var ids []ident.BrokerID
	for _, r := range p.ISR {
		if k.replicas[r.Broker-1] != r || !k.serves(r.Broker) || !k.c.calm && k.c.chance(3) {
			k.c.seen["refused proposal"]++
			k.partitionEpoch++
			k.commit()
			return
		}
		ids = append(ids, r.Broker)
	}
	k.shrink(ids)
	k.partitionEpoch++
	k.commit()
}

// replaceLeader takes the leadership from one that wants it no more, if there is another.
// If not, nothing is written: it leads on.
func (k *controller) replaceLeader() {
	others := func(ids []ident.BrokerID) bool {
		return slices.ContainsFunc(ids, func(id ident.BrokerID) bool { return id != k.leader && k.serves(id) })
	}
	if !others(k.isr) && (len(k.isr) > 1 || !others(k.elr)) {
		k.c.seen["cannot resign"]++
		return
	}
	k.c.seen["resigned"]++
	old := k.leader
	k.shrink(without(k.isr, old))
	k.elect(old)
}

// rebalance gives the leadership to another member.
func (k *controller) rebalance(id ident.BrokerID) {
	if k.leader == ident.NoBroker || !slices.Contains(k.isr, id) || !k.serves(id) {
		return
	}
	k.leader = id // or the same again, which also is a new epoch
	k.leaderEpoch++
	k.partitionEpoch++
	k.commit()
	k.c.checkElected(id)
}

// switchMode changes write.caching.
func (k *controller) switchMode() {
	k.strict = !k.strict
	k.leaderEpoch++
	k.partitionEpoch++
	k.commit()
}
