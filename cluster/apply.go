package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// ErrContradiction says that a record does not fit the image it is applied to, such as a partition of a topic that does not exist.
var ErrContradiction = errors.New("metadata record contradicts the image")

// Apply replays one batch and returns the next image with what changed. It is the only way an image changes. The batch is applied whole or, with
// ErrContradiction, not at all. Equal images and equal batches make equal images everywhere.
func (m *Image) Apply(index, term uint64, records []Record) (*Image, *Delta, error) {
	next := *m
	next.index, next.term = index, term
	if len(records) == 0 {
		return &next, &Delta{Index: index}, nil
	}
	a := applier{from: m, to: &next, edit: &edit{}}
	for i, rec := range records {
		if err := a.record(rec); err != nil {
			return nil, nil, fmt.Errorf("%w: index %d, record %d: %w", ErrContradiction, index, i, err)
		}
	}
	return &next, a.delta(), nil
}

// applier is one Apply in progress. What it touched is listed with repetitions; delta sorts it out.
type applier struct {
	from, to *Image
	edit     *edit
	topics   []ident.TopicID
	brokers  []ident.BrokerID
	configs  []config.Resource
	features bool
	voters   bool
}

func (a *applier) record(rec Record) error {
	switch rec := rec.(type) {
	case *NoOpRecord:
		return nil
	case *ClusterRecord:
		return a.found(rec)
	case *VotersRecord:
		return a.setVoters(rec)
	case *RegisterBrokerRecord:
		return a.registerBroker(rec)
	case *FenceBrokerRecord:
		return a.fence(rec.Broker, rec.Epoch, true, rec.ShuttingDown)
	case *ShutDownBrokerRecord:
		return a.fence(rec.Broker, rec.Epoch, false, true)
	case *UnfenceBrokerRecord:
		return a.fence(rec.Broker, rec.Epoch, false, false)
	case *UnregisterBrokerRecord:
		return a.unregisterBroker(rec)
	case *TopicRecord:
		return a.createTopic(rec)
	case *PartitionRecord:
		return a.createPartition(rec)
	case *PartitionChangeRecord:
		return a.changePartition(rec)
	case *RemoveTopicRecord:
		return a.removeTopic(rec)
	case *ConfigRecord:
		return a.setConfig(rec)
	case *FeatureLevelRecord:
		return a.setFeature(rec)
	case *ProducerIDsRecord:
		return a.takeProducerIDs(rec)
	}
	panic(fmt.Sprintf("cluster: no rule to apply a %T", rec))
}

func (a *applier) found(rec *ClusterRecord) error {
	if a.to.clusterID != "" {
		return fmt.Errorf("the cluster %s is founded again as %s", a.to.clusterID, rec.ClusterID)
	}
	if rec.ClusterID == "" {
		return errors.New("a cluster without an id")
	}
	a.to.clusterID = rec.ClusterID
	return nil
}

func (a *applier) setVoters(rec *VotersRecord) error {
	voters := slices.Clone(rec.Voters)
	slices.SortFunc(voters, func(x, y Voter) int { return compareUint(uint64(x.Node), uint64(y.Node)) })
	for i, v := range voters {
		if v.Node == 0 || i > 0 && voters[i-1].Node == v.Node {
			return fmt.Errorf("voter node id %v twice, or zero", v.Node)
		}
	}
	a.to.voters, a.voters = voters, true
	return nil
}

func compareUint(x, y uint64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func (a *applier) registerBroker(rec *RegisterBrokerRecord) error {
	if old, ok := a.to.brokers.get(rec.ID); ok && rec.Epoch <= old.Epoch {
		return fmt.Errorf("broker %d is registered at epoch %d after epoch %d", rec.ID, rec.Epoch, old.Epoch)
	}
	if rec.ID < 0 {
		return fmt.Errorf("broker id %d", rec.ID)
	}
	b := rec.Broker
	a.to.brokers.put(a.edit, b.ID, &b)
	a.brokers = append(a.brokers, b.ID)
	return nil
}

func (a *applier) fence(id ident.BrokerID, epoch ident.BrokerEpoch, fenced, leaving bool) error {
	old, ok := a.to.brokers.get(id)
	if !ok || old.Epoch != epoch {
		return fmt.Errorf("no broker %d with epoch %d", id, epoch)
	}
	b := *old
	b.Fenced, b.ShuttingDown = fenced, leaving
	a.to.brokers.put(a.edit, id, &b)
	a.brokers = append(a.brokers, id)
	return nil
}

func (a *applier) createTopic(rec *TopicRecord) error {
	if _, ok := a.to.topics.get(rec.Name); ok {
		return fmt.Errorf("topic %q exists", rec.Name)
	}
	if _, ok := a.to.ids.get(rec.ID); ok || rec.ID.IsZero() {
		return fmt.Errorf("topic id %v is taken or zero", rec.ID)
	}
	t := &Topic{Name: rec.Name, ID: rec.ID, owner: a.edit}
	a.to.topics.put(a.edit, t.Name, t)
	a.to.ids.put(a.edit, t.ID, t)
	if folded := foldName(t.Name); folded != "" {
		a.to.folded.put(a.edit, folded, t.Name)
	}
	a.topics = append(a.topics, t.ID)
	return nil
}

// foldName returns the form in which names that Kafka's metrics cannot tell apart are equal, "" for a name without . and _.
func foldName(name string) string {
	if !strings.ContainsAny(name, "._") {
		return ""
	}
	return strings.ReplaceAll(name, ".", "_")
}

// topic returns a topic that this batch may change in place.
func (a *applier) topic(id ident.TopicID) (*Topic, error) {
	t, ok := a.to.ids.get(id)
	if !ok {
		return nil, fmt.Errorf("no topic with id %v", id)
	}
	if t.owner == a.edit {
		return t, nil
	}
	c := &Topic{Name: t.Name, ID: t.ID, Partitions: slices.Clone(t.Partitions), Configs: t.Configs, owner: a.edit}
	a.to.topics.put(a.edit, c.Name, c)
	a.to.ids.put(a.edit, c.ID, c)
	a.topics = append(a.topics, c.ID)
	return c, nil
}

func (a *applier) createPartition(rec *PartitionRecord) error {
	t, err := a.topic(rec.Topic)
	if err != nil {
		return err
	}
	if int(rec.Number) != len(t.Partitions) {
		return fmt.Errorf("partition %d of topic %q follows %d partitions", rec.Number, t.Name, len(t.Partitions))
	}
	p := rec.Partition
	p.led = a.to.index
	if err := p.check(); err != nil {
		return fmt.Errorf("partition %s-%d: %w", t.Name, rec.Number, err)
	}
	t.Partitions = append(t.Partitions, &p)
	a.to.partitions++
	return nil
}

func (a *applier) changePartition(rec *PartitionChangeRecord) error {
	t, err := a.topic(rec.Topic)
	if err != nil {
		return err
	}
	if rec.Number < 0 || int(rec.Number) >= len(t.Partitions) {
		return fmt.Errorf("no partition %d in topic %q", rec.Number, t.Name)
	}
	before := t.Partitions[rec.Number]
	p := *before
	if rec.change(&p); rec.Leader != LeaderUnchanged || p.MinISR < before.MinISR || p.lacks(before) {
		p.led = a.to.index // a leader that may commit with fewer has to hear of that, too
	}
	if err := p.check(); err != nil {
		return fmt.Errorf("partition %s-%d: %w", t.Name, rec.Number, err)
	}
	t.Partitions[rec.Number] = &p
	return nil
}

// change carries out the record on a partition.
//
// Each change of the leader takes a new leader epoch, that to none as well: from then on nobody may write under the former one, and a client that saw the
// partition without a leader must be able to tell that metadata from what comes before and behind. So the restart of a broker that leads alone takes two
// epochs, one when it leaves or is found gone, one when it is back. (PartitionRegistration.java, merge)
func (rec *PartitionChangeRecord) change(p *Partition) {
	p.Epoch++
	if rec.Leader != LeaderUnchanged || rec.Mode != ModeUnchanged {
		p.LeaderEpoch++
	}
	if rec.Leader != LeaderUnchanged {
		p.Leader = rec.Leader
		if rec.Leader != ident.NoBroker {
			p.Election = rec.Election
		}
	}
	if rec.MinISR != 0 {
		p.MinISR = rec.MinISR
	}
	if rec.Mode != ModeUnchanged {
		p.Strict = rec.Mode == ModeStrict
	}
	for _, l := range [...]struct {
		to   *[]ident.BrokerID
		from []ident.BrokerID
	}{
		{&p.ISR, rec.ISR},
		{&p.ELR, rec.ELR},
		{&p.LastKnownELR, rec.LastKnownELR},
		{&p.Replicas, rec.Replicas},
		{&p.Adding, rec.Adding},
		{&p.Removing, rec.Removing},
		{&p.Unverified, rec.Unverified},
		{&p.Offline, rec.Offline},
		{&p.Damaged, rec.Damaged},
		{&p.Full, rec.Full},
	} {
		if l.from != nil {
			*l.to = l.from
		}
	}
	if rec.Directories != nil {
		p.Directories = rec.Directories
	}
	if rec.Reports != nil {
		p.Reports = rec.Reports
	}
}

func (a *applier) removeTopic(rec *RemoveTopicRecord) error {
	t, ok := a.to.ids.get(rec.ID)
	if !ok {
		return fmt.Errorf("no topic with id %v", rec.ID)
	}
	a.to.ids.remove(a.edit, t.ID)
	a.to.topics.remove(a.edit, t.Name)
	if folded := foldName(t.Name); folded != "" {
		a.to.folded.remove(a.edit, folded)
	}
	a.to.partitions -= len(t.Partitions)
	a.topics = append(a.topics, t.ID)
	return nil
}

func (a *applier) setConfig(rec *ConfigRecord) error {
	if rec.Resource.Type == config.TopicResource {
		named, ok := a.to.topics.get(rec.Resource.Name)
		if !ok {
			return fmt.Errorf("config %s of topic %q, which does not exist", rec.Name, rec.Resource.Name)
		}
		t, err := a.topic(named.ID)
		if err != nil {
			return err
		}
		t.Configs = set(t.Configs, rec)
		return nil
	}
	a.configs = append(a.configs, rec.Resource)
	old, _ := a.to.configs.get(rec.Resource)
	s := set(old, rec)
	switch {
	case len(s) > 0:
		a.to.configs.put(a.edit, rec.Resource, s)
	case len(old) > 0:
		a.to.configs.remove(a.edit, rec.Resource)
	}
	return nil
}

func set(s config.Set, rec *ConfigRecord) config.Set {
	if rec.Value == nil {
		return s.Without(rec.Name)
	}
	return s.With(rec.Name, *rec.Value)
}

func (a *applier) setFeature(rec *FeatureLevelRecord) error {
	a.features = true
	features := make([]FeatureLevel, 0, len(a.to.features)+1)
	for _, f := range a.to.features {
		if f.Name != rec.Name {
			features = append(features, f)
		}
	}
	if rec.Level != 0 {
		i, _ := slices.BinarySearchFunc(features, rec.Name, func(f FeatureLevel, name string) int { return strings.Compare(f.Name, name) })
		features = slices.Insert(features, i, FeatureLevel{Name: rec.Name, Level: rec.Level})
	}
	a.to.features = features
	return nil
}

func (a *applier) takeProducerIDs(rec *ProducerIDsRecord) error {
	if rec.Next < a.to.nextProducerID {
		return fmt.Errorf("next producer id %d after %d", rec.Next, a.to.nextProducerID)
	}
	a.to.nextProducerID = rec.Next
	return nil
}
