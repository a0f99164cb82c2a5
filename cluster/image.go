package cluster

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Image is the whole metadata at one index of the metadata log. It is immutable and may be read from any goroutine; Apply makes the next one and
// shares what did not change.
type Image struct {
	index, term    uint64
	clusterID      ident.ClusterID
	voters         []Voter                           // by node
	topics         tree[string, *Topic]              // by name
	ids            tree[ident.TopicID, *Topic]       // the same topics
	folded         tree[string, string]              // names with . or _, by the form in which they collide
	brokers        tree[ident.BrokerID, *Broker]     // registered
	configs        tree[config.Resource, config.Set] // of everything but topics
	features       []FeatureLevel                    // finalised, by name
	nextProducerID ident.ProducerID                  // the first that no block has
	partitions     int                               // of all topics
}

// NewImage returns the empty image at index 0.
func NewImage() *Image {
	return &Image{
		topics:  newTree[string, *Topic](strings.Compare),
		ids:     newTree[ident.TopicID, *Topic](func(a, b ident.TopicID) int { return bytes.Compare(a[:], b[:]) }),
		folded:  newTree[string, string](strings.Compare),
		brokers: newTree[ident.BrokerID, *Broker](cmp.Compare[ident.BrokerID]),
		configs: newTree[config.Resource, config.Set](config.Resource.Compare),
	}
}

// Index is the metadata log index up to which the image has replayed.
func (m *Image) Index() uint64 { return m.index }

// Term is the term of the entry at Index.
func (m *Image) Term() uint64 { return m.term }

// ClusterID names the cluster; empty before the founding record.
func (m *Image) ClusterID() ident.ClusterID { return m.clusterID }

// Voters returns the quorum's members by node id. The caller must not change the slice.
func (m *Image) Voters() []Voter { return m.voters }

// Features returns the finalised features by name. The caller must not change the slice.
func (m *Image) Features() []FeatureLevel { return m.features }

// FeatureLevel returns the finalised level of a feature, 0 when it has none.
func (m *Image) FeatureLevel(name string) int16 {
	i, found := slices.BinarySearchFunc(m.features, name, func(f FeatureLevel, name string) int { return cmp.Compare(f.Name, name) })
	if !found {
		return 0
	}
	return m.features[i].Level
}

// NextProducerID is the first producer id that no block has been cut from.
func (m *Image) NextProducerID() ident.ProducerID { return m.nextProducerID }

// Topic finds a topic by name.
func (m *Image) Topic(name string) (*Topic, bool) { return m.topics.get(name) }

// TopicByID finds a topic by id.
func (m *Image) TopicByID(id ident.TopicID) (*Topic, bool) { return m.ids.get(id) }

// Partition finds a partition by topic name and number.
func (m *Image) Partition(topic string, partition int32) (*Partition, bool) {
	t, ok := m.topics.get(topic)
	if !ok || partition < 0 || int(partition) >= len(t.Partitions) {
		return nil, false
	}
	return t.Partitions[partition], true
}

// Topics yields all topics in the order of their names.
func (m *Image) Topics() iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		for _, t := range m.topics.all() {
			if !yield(t) {
				return
			}
		}
	}
}

// TopicsFrom yields the topics whose names are at or after a name, in order: the pages of DescribeTopicPartitions.
func (m *Image) TopicsFrom(name string) iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		for _, t := range m.topics.from(name) {
			if !yield(t) {
				return
			}
		}
	}
}

// TopicCount is the number of topics.
func (m *Image) TopicCount() int { return m.topics.size }

// PartitionCount is the number of partitions of all topics.
func (m *Image) PartitionCount() int { return m.partitions }

// Broker finds a registered broker, fenced or not.
func (m *Image) Broker(id ident.BrokerID) (*Broker, bool) { return m.brokers.get(id) }

// Brokers yields the registered brokers in the order of their ids.
func (m *Image) Brokers() iter.Seq[*Broker] {
	return func(yield func(*Broker) bool) {
		for _, b := range m.brokers.all() {
			if !yield(b) {
				return
			}
		}
	}
}

// Configs returns what is set on a resource: overrides, never defaults.
func (m *Image) Configs(r config.Resource) config.Set {
	if r.Type == config.TopicResource {
		if t, ok := m.topics.get(r.Name); ok {
			return t.Configs
		}
		return nil
	}
	s, _ := m.configs.get(r)
	return s
}

// ConfigResources yields the resources of a type that have configs, in the order of their names.
func (m *Image) ConfigResources(t config.ResourceType) iter.Seq[config.Resource] {
	return func(yield func(config.Resource) bool) {
		if t == config.TopicResource {
			for _, topic := range m.topics.all() {
				if len(topic.Configs) > 0 && !yield(config.Resource{Type: t, Name: topic.Name}) {
					return
				}
			}
			return
		}
		for r := range m.configs.from(config.Resource{Type: t}) {
			if r.Type != t || !yield(r) {
				return
			}
		}
	}
}

// Stack returns the layers that decide a topic's effective configs on a broker. static is the broker's own file, environment and flags. An empty
// topic gives the layers of the broker alone.
func (m *Image) Stack(topic string, broker ident.BrokerID, static config.Set) config.Stack {
	s := config.Stack{
		Broker:  m.Configs(config.Resource{Type: config.BrokerResource, Name: broker.String()}),
		Cluster: m.Configs(config.Resource{Type: config.BrokerResource}),
		Static:  static,
	}
	if topic != "" {
		s.Override = m.Configs(config.Resource{Type: config.TopicResource, Name: topic})
	}
	return s
}
