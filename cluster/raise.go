package cluster

import (
	"slices"

	"github.com/troupe-broker/troupe/wire/ident"
)

// factorKeys say how many replicas an internal topic should have.
var factorKeys = map[string]string{ // read by key only
	OffsetsTopic:          "offsets.topic.replication.factor",
	"__transaction_state": "transaction.state.log.replication.factor",
	"__share_group_state": "share.coordinator.state.topic.replication.factor",
}

// raisedMax is how many partitions one batch raises; the rest follows with the next broker, or with the next look at the leaders.
const raisedMax = 1000

// raiseInternal adds replicas to internal topics that were made when fewer brokers lived than their factor asks for. A replica that is added is listed as
// one, and as Adding; it counts for min.insync.replicas, and may become the preferred leader, once all that are being added are in the ISR.
func (c *Controller) raiseInternal(m *Image) []Record {
	var records []Record
	seats := m.seats()
	for t := range m.Topics() {
		key, ok := factorKeys[t.Name]
		if !ok {
			continue
		}
		want := min(int(c.stack(m, "").BrokerInt(key)), len(seats))
		parts, live := make([]Partition, len(t.Partitions)), m.live()
		for i, p := range t.Partitions {
			if parts[i] = *p; len(p.Removing) == 0 { // else somebody wants them elsewhere
				parts[i].abandon(live)
			}
		}
		load := loadOf(parts)
		for i := range parts {
			if to := &parts[i]; !to.Reassigning() && len(to.Replicas) < want && len(records) < raisedMax {
				load.add(to, m, seats, want-len(to.Replicas))
				records = appendChange(records, t, int32(i), *to)
			}
		}
	}
	return records
}

// abandon takes back replicas that are being added to brokers that died before they had everything. One that may lead is kept, and while nobody leads all
// are: it may be the one that has everything.
func (p *Partition) abandon(live func(ident.BrokerID) bool) {
	if p.Leader == ident.NoBroker {
		return
	}
	for _, b := range p.Adding {
		if live(b) || p.InSync(b) || slices.Contains(p.ELR, b) {
			continue
		}
		p.drop([]ident.BrokerID{b})
	}
}

// load counts, for one topic, the replicas that each broker holds and those it is preferred leader of. Maps are read by key only.
type load struct{ replicas, preferred map[ident.BrokerID]int }

func loadOf(parts []Partition) load {
	l := load{replicas: map[ident.BrokerID]int{}, preferred: map[ident.BrokerID]int{}}
	for i := range parts {
		p := &parts[i]
		for _, b := range p.Replicas {
			l.replicas[b]++
		}
		l.preferred[p.Replicas[0]]++
	}
	return l
}

// add picks more replicas for a partition: in racks that it does not use yet, if there are, on the brokers that hold least of the topic. The one of all its
// replicas that is preferred least often so far becomes the preferred one.
func (l load) add(p *Partition, m *Image, seats []Seat, more int) {
	p.Replicas, p.Directories = slices.Clone(p.Replicas), slices.Clone(p.Directories)
	for range more {
		racks := map[string]bool{} // read by key only
		for _, b := range p.Replicas {
			if broker, ok := m.Broker(b); ok {
				racks[broker.Rack] = true
			}
		}
		best := -1
		for i, s := range seats {
			if p.HasReplica(s.Broker) {
				continue
			}
			if best < 0 || l.better(s, seats[best], racks) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		b, _ := m.Broker(seats[best].Broker)
		l.replicas[b.ID]++
		p.Replicas, p.Adding = append(p.Replicas, b.ID), append(p.Adding, b.ID)
		if len(p.Directories) > 0 {
			p.Directories = append(p.Directories, onlyDirectory(b.Directories))
		}
	}
	l.lead(p)
}

// better compares two seats: a new rack first, then fewer replicas, then the lower id, which comes first anyway.
func (l load) better(a, b Seat, racks map[string]bool) bool {
	if used := racks[a.Rack]; used != racks[b.Rack] {
		return !used
	}
	return l.replicas[a.Broker] < l.replicas[b.Broker]
}

// lead puts the replica first whose broker is preferred least often.
func (l load) lead(p *Partition) {
	first := 0
	for i, b := range p.Replicas {
		if n := l.preferred[b]; n < l.preferred[p.Replicas[first]] && n+1 < l.preferred[p.Replicas[0]] {
			first = i
		}
	}
	if first == 0 {
		return
	}
	l.preferred[p.Replicas[0]]--
	l.preferred[p.Replicas[first]]++
	p.Replicas[0], p.Replicas[first] = p.Replicas[first], p.Replicas[0]
	if len(p.Directories) > 0 {
		p.Directories[0], p.Directories[first] = p.Directories[first], p.Directories[0]
	}
}
