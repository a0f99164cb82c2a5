package config

import (
	"math"
	"strconv"
)

// Source says where an effective value comes from. The numbers are those of DescribeConfigs.
type Source int8

const (
	UnknownSource              Source = 0
	DynamicTopicConfig         Source = 1
	DynamicBrokerConfig        Source = 2
	DynamicDefaultBrokerConfig Source = 3
	StaticBrokerConfig         Source = 4
	DefaultConfig              Source = 5
	DynamicBrokerLoggerConfig  Source = 6
	DynamicClientMetricsConfig Source = 7
	DynamicGroupConfig         Source = 8
)

// String returns the word Kafka's tools print.
func (s Source) String() string {
	switch s {
	case UnknownSource:
	case DynamicTopicConfig:
		return "DYNAMIC_TOPIC_CONFIG"
	case DynamicBrokerConfig:
		return "DYNAMIC_BROKER_CONFIG"
	case DynamicDefaultBrokerConfig:
		return "DYNAMIC_DEFAULT_BROKER_CONFIG"
	case StaticBrokerConfig:
		return "STATIC_BROKER_CONFIG"
	case DefaultConfig:
		return "DEFAULT_CONFIG"
	case DynamicBrokerLoggerConfig:
		return "DYNAMIC_BROKER_LOGGER_CONFIG"
	case DynamicClientMetricsConfig:
		return "DYNAMIC_CLIENT_METRICS_CONFIG"
	case DynamicGroupConfig:
		return "DYNAMIC_GROUP_CONFIG"
	}
	return "UNKNOWN"
}

// Stack is the layers a value is looked for in, strongest first. Each may be nil.
type Stack struct {
	Override Set // of the topic, group or client-metrics resource itself
	Broker   Set // dynamic, of the broker that answers
	Cluster  Set // dynamic, default of all brokers
	Static   Set // file, environment and flags of the broker that answers
}

// Effective is the value of one key with its history, as DescribeConfigs shows it.
type Effective struct {
	Key    *Key
	Value  string // in the unit of Key; meaningless when Null
	Null   bool
	Source Source
	Chain  []Origin // every layer that says something, strongest first, under the name it says it
}

// ReadOnly tells whether the value cannot be altered in the resource it was resolved for. Keys of topics and groups always can.
func (e Effective) ReadOnly() bool { return e.Key.table == brokerTable && e.Key.Update == ReadOnly }

// Origin is one link of the chain of synonyms.
type Origin struct {
	Name   string
	Value  string // in the unit of Name
	Source Source
}

// ForTopic resolves a topic key.
func (s Stack) ForTopic(k *Key) Effective { return s.resolve(k, DynamicTopicConfig) }

// ForGroup resolves a group key.
func (s Stack) ForGroup(k *Key) Effective { return s.resolve(k, DynamicGroupConfig) }

// ForClientMetrics resolves a client-metrics key.
func (s Stack) ForClientMetrics(k *Key) Effective { return s.resolve(k, DynamicClientMetricsConfig) }

// ForBroker resolves a broker key.
func (s Stack) ForBroker(k *Key) Effective { return s.resolve(k, UnknownSource) }

// resolve walks the layers, and within a layer the names of the key, as Kafka orders the chain.
func (s Stack) resolve(k *Key, override Source) Effective {
	e := Effective{Key: k}
	names := k.Synonyms
	if k.table == brokerTable {
		names = append([]Synonym{{Name: k.Name}}, k.Synonyms...)
	} else if v, ok := s.Override.Get(k.Name); ok {
		e.Chain = append(e.Chain, Origin{Name: k.Name, Value: v, Source: override})
		e.Value, e.Source = v, override
	}
	for _, layer := range [...]struct {
		set    Set
		source Source
	}{{s.Broker, DynamicBrokerConfig}, {s.Cluster, DynamicDefaultBrokerConfig}, {s.Static, StaticBrokerConfig}} {
		for _, n := range names {
			v, ok := layer.set.Get(n.Name)
			if !ok {
				continue
			}
			if len(e.Chain) == 0 {
				e.Value, e.Source = scale(v, n.Factor), layer.source
			}
			e.Chain = append(e.Chain, Origin{Name: n.Name, Value: v, Source: layer.source})
		}
	}
	if len(e.Chain) == 0 {
		e.Value, e.Null, e.Source = k.Default, k.Null, DefaultConfig
	}
	for _, n := range names {
		if b, ok := brokerTable.Lookup(n.Name); ok && !b.Null {
			if k.Null && e.Source == DefaultConfig && e.Null {
				// A broker key whose own default is null takes that of its coarser synonym, as log.retention.ms does from .hours.
				e.Value, e.Null = scale(b.Default, n.Factor), false
			}
			e.Chain = append(e.Chain, Origin{Name: n.Name, Value: b.Default, Source: DefaultConfig})
		}
	}
	return e
}

// scale converts a number from a synonym's unit. Negative numbers mean "no limit" and stay; a product beyond int64 is the largest int64.
func scale(text string, factor int64) string {
	if factor <= 1 {
		return text
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return text
	}
	if n > math.MaxInt64/factor {
		return strconv.FormatInt(math.MaxInt64, 10)
	}
	return strconv.FormatInt(n*factor, 10)
}
