package cluster

import (
	"testing"

	"github.com/troupe-broker/troupe/wire/ident"
)

// A topic that brokers make for themselves is content with the brokers there are; a user's is refused.
func TestAnInternalTopicTakesTheReplicasThereAre(t *testing.T) {
	for _, internal := range []bool{false, true} {
		c := &Controller{options: Options{Broker: 1}.withDefaults()}
		image, _, err := NewImage().Apply(1, 1, []Record{
			&ClusterRecord{ClusterID: "c"}, &RegisterBrokerRecord{Broker: Broker{ID: 1, Epoch: 1, Directories: []ident.DirectoryID{{9}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		c.next = image
		compact := "compact"
		d := c.createTopics(&CreateTopics{Topics: []NewTopic{{
			Name: OffsetsTopic, ID: ident.TopicID{5}, Partitions: 50, ReplicationFactor: 3, Internal: internal, Configs: []ConfigValue{{Name: "cleanup.policy", Value: &compact}},
		}}})
		created := d.body.(*CreateTopicsReply).Topics[0]
		if internal && (created.Err != nil || created.ReplicationFactor != 1 || created.Partitions != 50) || !internal && created.Err == nil {
			t.Errorf("internal %v: %+v", internal, created)
		}
	}
}
