package broker_test

import (
	"maps"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
)

// elect asks this broker for elections: of these partitions of a topic, or of all there are when it has no name. It returns the code of each partition
// in the answer.
func (r *running) elect(kind int8, topic string, partitions ...int32) map[string]map[int32]wire.ErrorCode {
	r.t.Helper()
	req := kmsg.NewPtrElectLeadersRequest()
	req.ElectionType, req.TimeoutMillis = kind, 20_000
	if topic != "" {
		req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: topic, Partitions: partitions}}
	}
	resp := ask[*kmsg.ElectLeadersResponse](r, req)
	if resp.ErrorCode != 0 {
		r.t.Fatalf("elections are refused: %v", wire.ErrorCode(resp.ErrorCode))
	}
	out := map[string]map[int32]wire.ErrorCode{}
	for i := range resp.Topics {
		codes := map[int32]wire.ErrorCode{}
		for _, p := range resp.Topics[i].Partitions {
			codes[p.Partition] = wire.ErrorCode(p.ErrorCode)
		}
		out[resp.Topics[i].Topic] = codes
	}
	return out
}

const (
	preferred = 0
	unclean   = 1
)

// elected compares the codes of elections.
func elected(t *testing.T, got, want map[string]map[int32]wire.ErrorCode) {
	t.Helper()
	if !maps.EqualFunc(got, want, maps.Equal) {
		t.Errorf("the elections ended with %v, want %v", got, want)
	}
}

// one is the answer about one partition.
func one(topic string, partition int32, code wire.ErrorCode) map[string]map[int32]wire.ErrorCode {
	return map[string]map[int32]wire.ErrorCode{topic: {partition: code}}
}

func TestAPreferredLeaderLeadsAgainWhenItIsAskedFor(t *testing.T) {
	t.Parallel()
	c := startReplicas(t)
	c.create("t", 3, nil)
	gone := c.leader("t", 0)
	c.stop(gone)
	other := c.running[c.leader("t", 0)]
	elected(t, other.elect(preferred, "t", 0), one("t", 0, wire.PreferredLeaderNotAvailable))
	c.again(gone)
	c.whole("t")
	if c.leader("t", 0) == gone {
		t.Fatal("it leads again before anybody asked")
	}
	// Whatever broker is asked tells of the outcome when it has answered.
	for i := range 3 {
		other = c.running[i]
		want := one("t", 0, wire.ElectionNotNeeded)
		if i == 0 {
			want = one("t", 0, wire.NoError)
		}
		elected(t, other.elect(preferred, "t", 0), want)
		if p := other.metadata("t").Topics[0].Partitions; partitionOf(p, 0).Leader != int32(gone+1) {
			t.Errorf("broker %d was asked for an election and tells of %+v", i+1, p)
		}
	}
	elected(t, other.elect(unclean, "t", 1, 3), map[string]map[int32]wire.ErrorCode{"t": {1: wire.ElectionNotNeeded, 3: wire.UnknownTopicOrPartition}})
	elected(t, other.elect(preferred, "none", 0), one("none", 0, wire.UnknownTopicOrPartition))
	elected(t, other.elect(preferred, ""), map[string]map[int32]wire.ErrorCode{})
}

func partitionOf(partitions []kmsg.MetadataResponseTopicPartition, number int32) kmsg.MetadataResponseTopicPartition {
	for _, p := range partitions {
		if p.Partition == number {
			return p
		}
	}
	return kmsg.MetadataResponseTopicPartition{Leader: -2}
}

func TestAnUncleanElectionTakesWhoIsThere(t *testing.T) {
	t.Parallel()
	c := startReplicas(t)
	for topic, replicas := range map[string][]int32{"t": {2, 3}, "lonely": {2}} {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.TimeoutMillis = 20_000
		nt := kmsg.NewCreateTopicsRequestTopic()
		nt.Topic, nt.NumPartitions, nt.ReplicationFactor = topic, -1, -1
		nt.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Replicas: replicas}}
		req.Topics = append(req.Topics, nt)
		if resp := ask[*kmsg.CreateTopicsResponse](c.running[0], req); resp.Topics[0].ErrorCode != 0 {
			t.Fatalf("%+v", resp.Topics[0])
		}
	}
	first := c.running[0]
	state := func(topic string) kmsg.MetadataResponseTopicPartition {
		return first.metadata(topic).Topics[0].Partitions[0]
	}
	c.stop(2)
	awaitFact(t, "broker 3 to be out of sync", func() bool { return len(state("t").ISR) == 1 })
	c.stop(1)
	c.again(2)
	awaitFact(t, "the partition to have no leader", func() bool { return state("t").Leader == -1 && state("lonely").Leader == -1 })
	elected(t, first.elect(preferred, "t", 0), one("t", 0, wire.PreferredLeaderNotAvailable))
	elected(t, first.elect(unclean, ""), map[string]map[int32]wire.ErrorCode{"t": {0: wire.NoError}, "lonely": {0: wire.EligibleLeadersNotAvailable}})
	if p := state("t"); p.Leader != 3 {
		t.Errorf("after the unclean election the partition is %+v", p)
	}
}
