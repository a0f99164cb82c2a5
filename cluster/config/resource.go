package config

import (
	"cmp"
	"fmt"
)

// ResourceType is the kind of thing a config belongs to. The numbers are the protocol's.
type ResourceType int8

const (
	TopicResource         ResourceType = 2
	BrokerResource        ResourceType = 4
	BrokerLoggerResource  ResourceType = 8
	ClientMetricsResource ResourceType = 16
	GroupResource         ResourceType = 32
)

// String returns the word Kafka's tools use.
func (t ResourceType) String() string {
	switch t {
	case TopicResource:
		return "topic"
	case BrokerResource:
		return "broker"
	case BrokerLoggerResource:
		return "broker-logger"
	case ClientMetricsResource:
		return "client-metrics"
	case GroupResource:
		return "group"
	}
	return fmt.Sprintf("resource type %d", int8(t))
}

// Resource is what a config belongs to: a topic or group by name, a broker by its id in decimal, all brokers by BrokerResource and an empty name.
type Resource struct {
	Type ResourceType
	Name string
}

// String prints type and name.
func (r Resource) String() string {
	if r.Type == BrokerResource && r.Name == "" {
		return "broker default"
	}
	return r.Type.String() + " " + r.Name
}

// Compare orders by type, then by name.
func (r Resource) Compare(other Resource) int {
	if c := cmp.Compare(r.Type, other.Type); c != 0 {
		return c
	}
	return cmp.Compare(r.Name, other.Name)
}
