package cluster

import (
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Delta says what one batch changed. Every list is sorted and names each thing once, with its state before and after the whole batch. A nil From or
// To means that it did not exist then.
type Delta struct {
	Index      uint64
	Whole      bool              // the image was replaced by a snapshot; the lists compare it with the one before
	Topics     []TopicDelta      // created, deleted, enlarged or reconfigured; by name
	Partitions []PartitionDelta  // created, changed or deleted with their topic; by topic name and number
	Brokers    []BrokerDelta     // registered, fenced, unfenced, gone; by id
	Configs    []config.Resource // whose overrides changed; topics too
	Features   bool
	Voters     bool
}

// TopicDelta is a topic that changed. A topic deleted and created again under its name in one batch has two ids.
type TopicDelta struct{ From, To *Topic }

// PartitionDelta is a partition that changed. Topic is the state after the batch, or before it when the topic is gone.
type PartitionDelta struct {
	Topic     *Topic
	Partition int32
	From, To  *Partition
}

// BrokerDelta is a broker that changed.
type BrokerDelta struct {
	ID       ident.BrokerID
	From, To *Broker
}

// Empty tells whether nothing visible changed.
func (d *Delta) Empty() bool {
	return !d.Whole && len(d.Topics) == 0 && len(d.Partitions) == 0 && len(d.Brokers) == 0 && len(d.Configs) == 0 && !d.Features && !d.Voters
}
