package config

import (
	"cmp"
	"iter"
	"slices"
)

// Table is all keys of one kind of resource, sorted by name.
type Table struct {
	Resource ResourceType // 0: quota keys, which are no configs but live beside them
	keys     []*Key
}

// Topic returns the keys of topics.
func Topic() *Table { return topicTable }

// Broker returns the keys of brokers.
func Broker() *Table { return brokerTable }

// Group returns the keys of group resources.
func Group() *Table { return groupTable }

// ClientMetrics returns the keys of client-metrics resources.
func ClientMetrics() *Table { return clientMetricsTable }

var (
	topicTable         = newTable(TopicResource, topicKeys)
	brokerTable        = newTable(BrokerResource, brokerKeys...)
	groupTable         = newTable(GroupResource, groupKeys)
	clientMetricsTable = newTable(ClientMetricsResource, clientMetricsKeys)
	quotaTable         = newTable(0, quotaKeys)
)

func newTable(resource ResourceType, lists ...[]Key) *Table {
	t := &Table{Resource: resource}
	for _, list := range lists {
		for i := range list {
			k := &list[i]
			k.table = t
			t.keys = append(t.keys, k)
		}
	}
	slices.SortFunc(t.keys, func(a, b *Key) int { return cmp.Compare(a.Name, b.Name) })
	return t
}

// Lookup finds a key by its exact name.
func (t *Table) Lookup(name string) (*Key, bool) {
	i, found := slices.BinarySearchFunc(t.keys, name, func(k *Key, name string) int { return cmp.Compare(k.Name, name) })
	if !found {
		return nil, false
	}
	return t.keys[i], true
}

// All yields the keys in the order of their names.
func (t *Table) All() iter.Seq[*Key] { return slices.Values(t.keys) }

// Len is the number of keys.
func (t *Table) Len() int { return len(t.keys) }
