package handler_test

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

func partitionsRequest(limit int32, cursor string, topics ...string) *kmsg.DescribeTopicPartitionsRequest {
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = limit
	for _, name := range topics {
		rt := kmsg.NewDescribeTopicPartitionsRequestTopic()
		rt.Topic = name
		req.Topics = append(req.Topics, rt)
	}
	if cursor != "" {
		c := kmsg.NewDescribeTopicPartitionsRequestCursor()
		if _, err := fmt.Sscanf(cursor, "%1s%d", &c.Topic, &c.Partition); err != nil {
			panic(err)
		}
		req.Cursor = &c
	}
	return req
}

// page draws an answer: topics with their partitions, then the cursor.
func page(resp *kmsg.DescribeTopicPartitionsResponse) string {
	s := ""
	for i := range resp.Topics {
		t := &resp.Topics[i]
		s += deref(t.Topic)
		if t.ErrorCode != 0 {
			s += "!" + wire.ErrorCode(t.ErrorCode).String()
		}
		for j := range t.Partitions {
			s += fmt.Sprint(t.Partitions[j].Partition)
		}
		s += " "
	}
	if resp.NextCursor != nil {
		s += fmt.Sprint("-> ", resp.NextCursor.Topic, resp.NextCursor.Partition)
	}
	return s
}

func TestPartitionsComePageByPage(t *testing.T) {
	records := smallCluster()
	records = append(records, topic("a", 1, replicas(1), replicas(1), replicas(1))...)
	records = append(records, topic("b", 2, replicas(1))...)
	records = append(records, topic("d", 3, replicas(1), replicas(1))...)
	for _, c := range []struct {
		what string
		req  *kmsg.DescribeTopicPartitionsRequest
		want string
	}{
		{"all", partitionsRequest(2000, ""), "a012 b0 d01 "},
		{"first page", partitionsRequest(2, ""), "a01 -> a2"},
		{"second page", partitionsRequest(2, "a2"), "a2 b0 -> d0"},
		{"last page", partitionsRequest(2, "d0"), "d01 "},
		{"a page that ends with a topic", partitionsRequest(3, ""), "a012 -> b0"},
		{"a page that ends with the last topic", partitionsRequest(6, ""), "a012 b0 d01 "},
		{"no page is empty", partitionsRequest(0, ""), "a0 -> a1"},
		{"nor less", partitionsRequest(-5, "a1"), "a1 -> a2"},
		{"a cursor behind the last partition", partitionsRequest(9, "a3"), "a b0 d01 "},
		{"a cursor at a topic that is gone", partitionsRequest(9, "c1"), "d01 "},
		{"by name, sorted, each once", partitionsRequest(9, "", "d", "a", "x", "d"), "a012 d01 x!UNKNOWN_TOPIC_OR_PARTITION "},
		{"by name, a page", partitionsRequest(4, "", "a", "b", "x"), "a012 b0 -> x0"},
		{"by name, from a cursor", partitionsRequest(9, "b0", "a", "b", "d"), "b0 d01 "},
		{"an impossible name", partitionsRequest(9, "", "no/pe"), "no/pe!INVALID_TOPIC_EXCEPTION "},
		{"a cursor outside of the list", partitionsRequest(9, "b0", "a", "d"), "a!INVALID_REQUEST d!INVALID_REQUEST "},
		{"a negative partition", partitionsRequest(9, "b-1", "b"), "b!INVALID_REQUEST "},
	} {
		k := newKit(t, records...)
		if got := page(k.ask(0, c.req).(*kmsg.DescribeTopicPartitionsResponse)); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	k := newKit(t, records...)
	k.static = config.SetOf(config.Entry{Name: "max.request.partition.size.limit", Value: "1"})
	if got, want := page(k.ask(0, partitionsRequest(2000, "")).(*kmsg.DescribeTopicPartitionsResponse)), "a0 -> a1"; got != want {
		t.Errorf("the broker's own limit: %q, want %q", got, want)
	}
}

func TestAPartitionIsDescribedWithItsEligibleReplicas(t *testing.T) {
	records := smallCluster()
	records = append(records, &cluster.TopicRecord{Name: "t", ID: ident.TopicID{0: 9}}, &cluster.PartitionRecord{Topic: ident.TopicID{0: 9}, Partition: cluster.Partition{
		Replicas: replicas(2, 3, 1), Directories: make([]ident.DirectoryID, 3), ISR: replicas(2), ELR: replicas(1), LastKnownELR: replicas(3), Leader: 2, LeaderEpoch: 8,
	}}, &cluster.PartitionRecord{Topic: ident.TopicID{0: 9}, Number: 1, Partition: cluster.Partition{
		Replicas: replicas(2), Directories: make([]ident.DirectoryID, 1), ELR: replicas(2), LastKnownELR: replicas(2), Leader: ident.NoBroker, LeaderEpoch: 3,
	}})
	k := newKit(t, records...)
	resp := k.ask(0, partitionsRequest(10, "")).(*kmsg.DescribeTopicPartitionsResponse)
	top := resp.Topics[0]
	if ident.TopicID(top.TopicID) != (ident.TopicID{0: 9}) || top.IsInternal || top.AuthorizedOperations != 3576 {
		t.Errorf("%+v", top)
	}
	if second := top.Partitions[1]; second.LastKnownELR == nil || second.EligibleLeaderReplicas == nil {
		t.Error("null would say that this broker does not know of eligible replicas")
	}
	same(t, "partitions", top.Partitions, []kmsg.DescribeTopicPartitionsResponseTopicPartition{
		{
			Partition: 0, LeaderID: 2, LeaderEpoch: 8, Replicas: []int32{2, 3, 1}, ISR: []int32{2}, EligibleLeaderReplicas: []int32{1},
			LastKnownELR: []int32{}, OfflineReplicas: []int32{3}, // while there is a leader, the set is the controller's
		},
		{
			Partition: 1, LeaderID: -1, LeaderEpoch: 3, Replicas: []int32{2}, ISR: []int32{}, EligibleLeaderReplicas: []int32{2},
			LastKnownELR: []int32{2}, OfflineReplicas: []int32{},
		},
	})
}
