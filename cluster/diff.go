package cluster

import (
	"cmp"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// delta turns what the batch touched into what it changed.
func (a *applier) delta() *Delta {
	d := &Delta{
		Index:    a.to.index,
		Features: a.features && !slices.Equal(a.from.features, a.to.features),
		Voters:   a.voters && !slices.Equal(a.from.voters, a.to.voters),
	}
	slices.SortFunc(a.topics, ident.TopicID.Compare)
	var touched []TopicDelta
	for _, id := range slices.Compact(a.topics) {
		from, _ := a.from.ids.get(id)
		to, _ := a.to.ids.get(id)
		if from != nil || to != nil { // else it was created and deleted within the batch
			touched = append(touched, TopicDelta{From: from, To: to})
		}
	}
	d.topics(touched)
	slices.Sort(a.brokers)
	for _, id := range slices.Compact(a.brokers) {
		from, _ := a.from.brokers.get(id)
		to, _ := a.to.brokers.get(id)
		d.broker(id, from, to)
	}
	for _, r := range a.configs {
		from, _ := a.from.configs.get(r)
		to, _ := a.to.configs.get(r)
		if !slices.Equal(from, to) {
			d.Configs = append(d.Configs, r)
		}
	}
	d.sort()
	return d
}

// broker adds a broker that changed. Either side may be nil.
func (d *Delta) broker(id ident.BrokerID, from, to *Broker) {
	if from == to || from != nil && to != nil && from.equal(to) {
		return
	}
	d.Brokers = append(d.Brokers, BrokerDelta{ID: id, From: from, To: to})
}

// diff compares two images in full: what a snapshot changed.
func diff(from, to *Image) *Delta {
	d := &Delta{Index: to.index, Whole: true, Features: !slices.Equal(from.features, to.features), Voters: !slices.Equal(from.voters, to.voters)}
	var touched []TopicDelta
	for _, t := range from.topics.all() {
		other, _ := to.ids.get(t.ID)
		touched = append(touched, TopicDelta{From: t, To: other})
	}
	for _, t := range to.topics.all() {
		if _, ok := from.ids.get(t.ID); !ok {
			touched = append(touched, TopicDelta{To: t})
		}
	}
	d.topics(touched)
	for id, b := range from.brokers.all() {
		other, _ := to.brokers.get(id)
		d.broker(id, b, other)
	}
	for id, b := range to.brokers.all() {
		if _, ok := from.brokers.get(id); !ok {
			d.broker(id, nil, b)
		}
	}
	for r, s := range from.configs.all() {
		if other, _ := to.configs.get(r); !slices.Equal(s, other) {
			d.Configs = append(d.Configs, r)
		}
	}
	for r := range to.configs.all() {
		if _, ok := from.configs.get(r); !ok {
			d.Configs = append(d.Configs, r)
		}
	}
	d.sort()
	return d
}

// topics adds what changed in topics, in the order of their names. A deleted topic comes before a new one of its name.
func (d *Delta) topics(touched []TopicDelta) {
	slices.SortFunc(touched, func(x, y TopicDelta) int {
		if c := strings.Compare(x.either().Name, y.either().Name); c != 0 {
			return c
		}
		return cmp.Compare(x.rank(), y.rank())
	})
	for _, t := range touched {
		d.topic(t.From, t.To)
	}
}

// either is the topic as it is, or as it was.
func (t TopicDelta) either() *Topic {
	if t.To != nil {
		return t.To
	}
	return t.From
}

func (t TopicDelta) rank() int {
	if t.To == nil {
		return 0
	}
	return 1
}

// topic adds what changed in one topic. One side may be nil.
func (d *Delta) topic(from, to *Topic) {
	if from == nil || to == nil || len(from.Partitions) != len(to.Partitions) || !slices.Equal(from.Configs, to.Configs) {
		d.Topics = append(d.Topics, TopicDelta{From: from, To: to})
	}
	var before, after config.Set
	shown := to
	if to == nil {
		shown = from
	} else {
		after = to.Configs
	}
	if from != nil {
		before = from.Configs
	}
	if !slices.Equal(before, after) {
		d.Configs = append(d.Configs, config.Resource{Type: config.TopicResource, Name: shown.Name})
	}
	for i := range max(partitionsOf(from), partitionsOf(to)) {
		pd := PartitionDelta{Topic: shown, Partition: int32(i)}
		if i < partitionsOf(from) {
			pd.From = from.Partitions[i]
		}
		if i < partitionsOf(to) {
			pd.To = to.Partitions[i]
		}
		if pd.From != pd.To && (pd.From == nil || pd.To == nil || !pd.From.equal(pd.To)) {
			d.Partitions = append(d.Partitions, pd)
		}
	}
}

func partitionsOf(t *Topic) int {
	if t == nil {
		return 0
	}
	return len(t.Partitions)
}

// sort brings brokers and configs into their promised order.
func (d *Delta) sort() {
	slices.SortFunc(d.Brokers, func(x, y BrokerDelta) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortFunc(d.Configs, config.Resource.Compare)
	d.Configs = slices.Compact(d.Configs)
}

// equal compares partitions by value.
func (p *Partition) equal(o *Partition) bool {
	return p.Leader == o.Leader && p.LeaderEpoch == o.LeaderEpoch && p.Epoch == o.Epoch && p.Strict == o.Strict &&
		slices.Equal(p.Replicas, o.Replicas) && slices.Equal(p.Directories, o.Directories) && slices.Equal(p.ISR, o.ISR) &&
		slices.Equal(p.ELR, o.ELR) && slices.Equal(p.LastKnownELR, o.LastKnownELR) && slices.Equal(p.Adding, o.Adding) &&
		slices.Equal(p.Removing, o.Removing) && p.MinISR == o.MinISR && slices.Equal(p.Unverified, o.Unverified) &&
		slices.Equal(p.Reports, o.Reports) && p.Election == o.Election && slices.Equal(p.Offline, o.Offline) && slices.Equal(p.Damaged, o.Damaged) && slices.Equal(p.Full, o.Full)
}

// equal compares brokers by value.
func (b *Broker) equal(o *Broker) bool {
	return b.ID == o.ID && b.Epoch == o.Epoch && b.Incarnation == o.Incarnation && b.Rack == o.Rack && b.Fenced == o.Fenced &&
		b.ShuttingDown == o.ShuttingDown && slices.Equal(b.Endpoints, o.Endpoints) && slices.Equal(b.Directories, o.Directories) &&
		slices.Equal(b.Features, o.Features)
}

// Equal compares images by value, index and term included.
func (m *Image) Equal(o *Image) bool {
	if m.index != o.index || m.term != o.term || m.clusterID != o.clusterID || m.nextProducerID != o.nextProducerID || m.partitions != o.partitions {
		return false
	}
	d := diff(m, o)
	d.Whole = false
	return d.Empty()
}
