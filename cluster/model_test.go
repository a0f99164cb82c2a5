package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// naive is metadata as plain maps, changed in the most obvious way: what Image must be equal to.
type naive struct {
	topics     map[ident.TopicID]*naiveTopic
	brokers    map[ident.BrokerID]Broker
	configs    map[config.Resource]map[string]string
	features   map[string]int16
	producerID ident.ProducerID
	clusterID  ident.ClusterID
	voters     []Voter
}

type naiveTopic struct {
	name       string
	partitions []Partition
}

func newNaive() *naive {
	return &naive{topics: map[ident.TopicID]*naiveTopic{}, brokers: map[ident.BrokerID]Broker{}, configs: map[config.Resource]map[string]string{}, features: map[string]int16{}}
}

// clone is how the model forgets a batch that fails.
func (n *naive) clone() *naive {
	c := newNaive()
	for id, t := range n.topics {
		c.topics[id] = &naiveTopic{name: t.name, partitions: slices.Clone(t.partitions)}
	}
	maps.Copy(c.brokers, n.brokers)
	for r, m := range n.configs {
		c.configs[r] = map[string]string{}
		maps.Copy(c.configs[r], m)
	}
	maps.Copy(c.features, n.features)
	c.producerID, c.clusterID, c.voters = n.producerID, n.clusterID, n.voters
	return c
}

// fold applies one record and tells whether it fits.
func (n *naive) fold(rec Record) bool {
	switch rec := rec.(type) {
	case *NoOpRecord:
	case *ClusterRecord:
		if n.clusterID != "" || rec.ClusterID == "" {
			return false
		}
		n.clusterID = rec.ClusterID
	case *VotersRecord:
		n.voters = slices.Clone(rec.Voters)
		slices.SortFunc(n.voters, func(a, b Voter) int { return cmp.Compare(a.Node, b.Node) })
	case *RegisterBrokerRecord:
		if old, ok := n.brokers[rec.ID]; ok && rec.Epoch <= old.Epoch || rec.ID < 0 {
			return false
		}
		n.brokers[rec.ID] = rec.Broker
	case *FenceBrokerRecord:
		return n.setFence(rec.Broker, rec.Epoch, true, rec.ShuttingDown)
	case *UnregisterBrokerRecord:
		if old, ok := n.brokers[rec.Broker]; !ok || old.Epoch != rec.Epoch {
			return false
		}
		delete(n.brokers, rec.Broker)
	case *ShutDownBrokerRecord:
		return n.setFence(rec.Broker, rec.Epoch, false, true)
	case *UnfenceBrokerRecord:
		return n.setFence(rec.Broker, rec.Epoch, false, false)
	case *TopicRecord:
		_, taken := n.topics[rec.ID]
		if taken || rec.ID.IsZero() || n.byName(rec.Name) != nil {
			return false
		}
		n.topics[rec.ID] = &naiveTopic{name: rec.Name}
	case *PartitionRecord:
		t := n.topics[rec.Topic]
		if t == nil || int(rec.Number) != len(t.partitions) || rec.Partition.check() != nil {
			return false
		}
		t.partitions = append(t.partitions, rec.Partition)
	case *PartitionChangeRecord:
		return n.changePartition(rec)
	case *RemoveTopicRecord:
		t := n.topics[rec.ID]
		if t == nil {
			return false
		}
		delete(n.topics, rec.ID)
		delete(n.configs, topicResource(t.name))
	case *ConfigRecord:
		if rec.Resource.Type == config.TopicResource && n.byName(rec.Resource.Name) == nil {
			return false
		}
		if n.configs[rec.Resource] == nil {
			n.configs[rec.Resource] = map[string]string{}
		}
		if rec.Value == nil {
			delete(n.configs[rec.Resource], rec.Name)
		} else {
			n.configs[rec.Resource][rec.Name] = *rec.Value
		}
	case *FeatureLevelRecord:
		delete(n.features, rec.Name)
		if rec.Level != 0 {
			n.features[rec.Name] = rec.Level
		}
	case *ProducerIDsRecord:
		if rec.Next < n.producerID {
			return false
		}
		n.producerID = rec.Next
	}
	return true
}

func (n *naive) byName(name string) *naiveTopic {
	for _, t := range n.topics {
		if t.name == name {
			return t
		}
	}
	return nil
}

func (n *naive) setFence(id ident.BrokerID, epoch ident.BrokerEpoch, fenced, leaving bool) bool {
	b, ok := n.brokers[id]
	if !ok || b.Epoch != epoch {
		return false
	}
	b.Fenced, b.ShuttingDown = fenced, leaving
	n.brokers[id] = b
	return true
}

func (n *naive) changePartition(rec *PartitionChangeRecord) bool {
	t := n.topics[rec.Topic]
	if t == nil || int(rec.Number) >= len(t.partitions) {
		return false
	}
	p := t.partitions[rec.Number]
	p.Epoch++
	if rec.Leader != LeaderUnchanged {
		p.Leader = rec.Leader
	}
	if rec.Mode != ModeUnchanged {
		p.Strict = rec.Mode == ModeStrict
	}
	if rec.Leader != LeaderUnchanged || rec.Mode != ModeUnchanged {
		p.LeaderEpoch++
	}
	if rec.ISR != nil {
		p.ISR = rec.ISR
	}
	if rec.ELR != nil {
		p.ELR = rec.ELR
	}
	if rec.LastKnownELR != nil {
		p.LastKnownELR = rec.LastKnownELR
	}
	if rec.Unverified != nil {
		p.Unverified = rec.Unverified
	}
	if rec.Reports != nil {
		p.Reports = rec.Reports
	}
	if rec.MinISR > 0 {
		p.MinISR = rec.MinISR
	}
	if rec.Leader >= 0 {
		p.Election = rec.Election
	}
	if p.check() != nil {
		return false
	}
	t.partitions[rec.Number] = p
	return true
}

// compare holds an image against the model.
func (n *naive) compare(m *Image) error {
	if m.ClusterID() != n.clusterID || !slices.Equal(m.Voters(), n.voters) {
		return fmt.Errorf("cluster %s of %v, want %s of %v", m.ClusterID(), m.Voters(), n.clusterID, n.voters)
	}
	if m.TopicCount() != len(n.topics) || m.NextProducerID() != n.producerID {
		return fmt.Errorf("%d topics for %d, producer id %d for %d", m.TopicCount(), len(n.topics), m.NextProducerID(), n.producerID)
	}
	partitions := 0
	for id, want := range n.topics {
		t, ok := m.TopicByID(id)
		if !ok || t.Name != want.name || len(t.Partitions) != len(want.partitions) {
			return fmt.Errorf("topic %s: %+v", want.name, t)
		}
		if named, ok := m.Topic(want.name); !ok || named != t {
			return fmt.Errorf("topic %s is another by name", want.name)
		}
		partitions += len(t.Partitions)
		for i := range want.partitions {
			if !t.Partitions[i].equal(&want.partitions[i]) {
				return fmt.Errorf("partition %s-%d: %+v, want %+v", t.Name, i, t.Partitions[i], want.partitions[i])
			}
		}
	}
	if m.PartitionCount() != partitions {
		return fmt.Errorf("%d partitions, want %d", m.PartitionCount(), partitions)
	}
	for id, want := range n.brokers {
		if b, ok := m.Broker(id); !ok || !b.equal(&want) {
			return fmt.Errorf("broker %d: %+v, want %+v", id, b, want)
		}
	}
	for r, want := range n.configs {
		s := m.Configs(r)
		if len(s) != len(want) {
			return fmt.Errorf("configs of %v: %v, want %v", r, s, want)
		}
		for k, v := range want {
			if got, ok := s.Get(k); !ok || got != v {
				return fmt.Errorf("config %s of %v: %q, want %q", k, r, got, v)
			}
		}
	}
	for _, f := range m.Features() {
		if n.features[f.Name] != f.Level {
			return fmt.Errorf("feature %s at %d, want %d", f.Name, f.Level, n.features[f.Name])
		}
	}
	if len(m.Features()) != len(n.features) {
		return fmt.Errorf("%d features, want %d", len(m.Features()), len(n.features))
	}
	return nil
}

// randomRecord makes a record that fits more often than not.
func randomRecord(rng *rand.Rand) Record {
	id := ident.TopicID{0: byte(1 + rng.Intn(8))}
	name := []string{"a", "b.c", "d_e", "f", "g", "h.i.j", "k", "l"}[rng.Intn(8)]
	b := ident.BrokerID(1 + rng.Intn(3))
	list := [][]ident.BrokerID{nil, {}, {1}, {2}, {1, 2}, {2, 3}, {3, 2, 1}}
	switch rng.Intn(16) {
	case 14:
		return &ClusterRecord{ClusterID: ident.ClusterID([]string{"", "c1", "c2"}[rng.Intn(3)])}
	case 15:
		voters := []Voter{voterOf(1), voterOf(2), voterOf(3)}
		rng.Shuffle(3, func(i, j int) { voters[i], voters[j] = voters[j], voters[i] })
		return &VotersRecord{Voters: voters[:1+rng.Intn(3)]}
	case 0, 1:
		return &TopicRecord{Name: name, ID: id}
	case 2, 3, 4:
		p := Partition{Replicas: []ident.BrokerID{1, 2, 3}, ISR: []ident.BrokerID{1, 2}, Leader: 1, Strict: rng.Intn(2) == 0}
		return &PartitionRecord{Topic: id, Number: int32(rng.Intn(4)), Partition: p}
	case 5, 6, 7:
		return &PartitionChangeRecord{
			Topic: id, Number: int32(rng.Intn(3)), ISR: list[rng.Intn(len(list))], ELR: list[rng.Intn(len(list))],
			Leader: []ident.BrokerID{LeaderUnchanged, ident.NoBroker, b}[rng.Intn(3)], Mode: Mode(rng.Intn(3)),
			LastKnownELR: list[rng.Intn(len(list))], Unverified: list[rng.Intn(len(list))], MinISR: int32(rng.Intn(3)), Election: Election(rng.Intn(3)),
			Reports: [][]Report{nil, {}, {{Broker: b, LastEpoch: 3, End: 7}}}[rng.Intn(3)],
		}
	case 8:
		return &RemoveTopicRecord{ID: id}
	case 9:
		return &RegisterBrokerRecord{Broker: Broker{ID: b, Epoch: ident.BrokerEpoch(rng.Intn(20)), Incarnation: Incarnation{1}, Rack: name, Fenced: true, Endpoints: []Endpoint{{Name: "P", Host: name, Port: 1}}}}
	case 10:
		if rng.Intn(4) == 0 {
			return &ShutDownBrokerRecord{Broker: b, Epoch: ident.BrokerEpoch(rng.Intn(20))}
		}
		if rng.Intn(4) == 0 {
			return &UnregisterBrokerRecord{Broker: b, Epoch: ident.BrokerEpoch(rng.Intn(20))}
		}
		if rng.Intn(2) == 0 {
			return &FenceBrokerRecord{Broker: b, Epoch: ident.BrokerEpoch(rng.Intn(20)), ShuttingDown: rng.Intn(2) == 0}
		}
		return &UnfenceBrokerRecord{Broker: b, Epoch: ident.BrokerEpoch(rng.Intn(20))}
	case 11:
		return &FeatureLevelRecord{Name: name, Level: int16(rng.Intn(3))}
	case 12:
		return &ProducerIDsRecord{Broker: b, Next: ident.ProducerID(rng.Intn(100))}
	}
	rec := &ConfigRecord{Resource: config.Resource{Type: config.TopicResource, Name: name}, Name: []string{"x", "y"}[rng.Intn(2)]}
	if rng.Intn(3) == 0 {
		rec.Resource = config.Resource{Type: config.BrokerResource, Name: []string{"", "1"}[rng.Intn(2)]}
	}
	if rng.Intn(4) > 0 {
		v := fmt.Sprint(rng.Intn(10))
		rec.Value = &v
	}
	return rec
}

// TestImageIsTheFoldOfItsRecords applies random batches, most of which travel as bytes first, to an image and to the model. A batch that does not
// fit leaves no trace; every image stays as it was after later batches; every delta is what a comparison of the two images says; every image
// survives its snapshot.
func TestImageIsTheFoldOfItsRecords(t *testing.T) {
	for seed := range int64(60) {
		rng := rand.New(rand.NewSource(seed))
		m, model := NewImage(), newNaive()
		old := map[*Image][]byte{}
		for index := uint64(1); index <= 80; index++ {
			var batch []Record
			for range rng.Intn(6) {
				batch = append(batch, randomRecord(rng))
			}
			decoded, err := DecodeBatch(EncodeBatch(batch))
			if err != nil {
				t.Fatalf("seed %d index %d: %v", seed, index, err)
			}
			next, delta, err := m.Apply(index, 1, decoded)
			trial, fits := model.clone(), true
			for _, rec := range batch {
				fits = fits && trial.fold(rec)
			}
			if fits != (err == nil) {
				t.Fatalf("seed %d index %d: the model fits %t, the image says %v", seed, index, fits, err)
			}
			if !fits {
				if err := model.compare(m); err != nil {
					t.Fatalf("seed %d index %d: a refused batch left traces: %v", seed, index, err)
				}
				continue
			}
			if err := trial.compare(next); err != nil {
				t.Fatalf("seed %d index %d: %v", seed, index, err)
			}
			want := diff(m, next)
			want.Whole = false
			if got, want := describeDelta(delta), describeDelta(want); got != want {
				t.Fatalf("seed %d index %d: the delta says\n%sthe images say\n%s", seed, index, got, want)
			}
			snapshot := EncodeSnapshot(next)
			if back, err := DecodeSnapshot(snapshot); err != nil || !back.Equal(next) {
				t.Fatalf("seed %d index %d: after a snapshot: %v", seed, index, err)
			}
			old[next] = snapshot
			m, model = next, trial
		}
		for image, snapshot := range old {
			if !slices.Equal(EncodeSnapshot(image), snapshot) {
				t.Fatalf("seed %d: image %d changed after it was published", seed, image.Index())
			}
		}
	}
}
