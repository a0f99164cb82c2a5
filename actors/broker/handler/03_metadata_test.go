package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

func askMetadata(k *kit, version int16, topics ...string) *kmsg.MetadataResponse {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = new(name)
		req.Topics = append(req.Topics, t)
	}
	return k.ask(version, req).(*kmsg.MetadataResponse)
}

func names(resp *kmsg.MetadataResponse) []string {
	out := []string{}
	for i := range resp.Topics {
		out = append(out, deref(resp.Topics[i].Topic))
	}
	return out
}

func withTopics() *[]cluster.Record {
	records := smallCluster()
	records = append(records, topic("a", 1, replicas(1, 2), replicas(2, 1))...)
	records = append(records, topic("b", 2, replicas(1))...)
	return &records
}

// Behaviour 54.
func TestNullAsksForAllTopicsAndEmptyForNone(t *testing.T) {
	versions(t, wire.KeyMetadata, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t, *withTopics()...)
		empty := []string{}
		if version == 0 {
			empty = []string{"a", "b"}
		}
		same(t, "empty list", names(askMetadata(k, version)), empty)
		if version == 0 {
			return
		}
		all := kmsg.NewPtrMetadataRequest()
		all.Topics = nil
		same(t, "null list", names(k.ask(version, all).(*kmsg.MetadataResponse)), []string{"a", "b"})
	})
}

// Behaviours 57, 58 and 60, and the shape of a partition.
func TestMetadataTellsBrokersAndPartitions(t *testing.T) {
	versions(t, wire.KeyMetadata, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t, *withTopics()...)
		resp := askMetadata(k, version, "a")
		rack := new("r2")
		var clusterID *string
		controller := int32(1)
		if version < 1 {
			rack, controller = nil, -1
		}
		if version >= 2 {
			clusterID = new("cluster-id")
		}
		same(t, "brokers", resp.Brokers, []kmsg.MetadataResponseBroker{{NodeID: 1, Host: "b1", Port: 9092}, {NodeID: 2, Host: "b2", Port: 9092, Rack: rack}})
		same(t, "cluster id", resp.ClusterID, clusterID)
		if resp.ControllerID != controller && version >= 1 {
			t.Errorf("controller %d, want %d", resp.ControllerID, controller)
		}
		same(t, "operations on the cluster", resp.AuthorizedOperations, int32(-1<<31))
		top := resp.Topics[0]
		same(t, "operations on the topic", top.AuthorizedOperations, int32(-1<<31))
		if version >= 10 {
			same(t, "topic id", ident.TopicID(top.TopicID), ident.TopicID{0: 1})
		}
		want := kmsg.MetadataResponseTopicPartition{Partition: 1, Leader: 2, LeaderEpoch: 7, Replicas: []int32{2, 1}, ISR: []int32{2}, OfflineReplicas: []int32{}}
		if version < 7 {
			want.LeaderEpoch = -1
		}
		got := top.Partitions[1]
		if len(got.OfflineReplicas) == 0 {
			got.OfflineReplicas = []int32{}
		}
		same(t, "partition", got, want)
	})
}

func TestAuthorizedOperationsAreToldToWhoeverAsks(t *testing.T) {
	versions(t, wire.KeyMetadata, 8, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t, *withTopics()...)
		req := kmsg.NewPtrMetadataRequest()
		req.IncludeClusterAuthorizedOperations, req.IncludeTopicAuthorizedOperations = version <= 10, true
		resp := k.ask(version, req).(*kmsg.MetadataResponse)
		// The figures that a Kafka broker without authorizer gives.
		same(t, "topic", resp.Topics[0].AuthorizedOperations, int32(3576))
		want := int32(8096)
		if version > 10 {
			want = -1 << 31
		}
		same(t, "cluster", resp.AuthorizedOperations, want)
	})
}

// Behaviour 60: only what can be reached by the listener of the request.
func TestMetadataSpeaksOfTheListenerTheRequestCameInBy(t *testing.T) {
	versions(t, wire.KeyMetadata, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t, *withTopics()...)
		k.client.Listener = "EXTERNAL"
		resp := askMetadata(k, version, "a")
		if len(resp.Brokers) != 1 || resp.Brokers[0].NodeID != 2 || resp.Brokers[0].Host != "out2" || resp.Brokers[0].Port != 19092 {
			t.Errorf("brokers %+v", resp.Brokers)
		}
		first, second := resp.Topics[0].Partitions[0], resp.Topics[0].Partitions[1]
		want := wire.ListenerNotFound
		if version < 6 {
			want = wire.LeaderNotAvailable
		}
		code(t, "led by a broker without the listener", first.ErrorCode, want)
		if first.Leader != -1 {
			t.Errorf("leader %d, want -1", first.Leader)
		}
		want = wire.NoError
		if version == 0 {
			want = wire.ReplicaNotAvailable
			same(t, "replicas for a client of version 0", second.Replicas, []int32{2})
		} else {
			same(t, "replicas", second.Replicas, []int32{2, 1})
		}
		code(t, "with a replica that has not the listener", second.ErrorCode, want)
		if version >= 5 {
			same(t, "offline replicas", second.OfflineReplicas, []int32{1})
		}
	})
}

func TestOfflineReplicasAreTheUnreachableOnesAndThoseInDeadDirectories(t *testing.T) {
	records := smallCluster()
	part := cluster.Partition{Replicas: replicas(1, 2, 3, 9), ISR: replicas(1), Leader: ident.NoBroker, Directories: []ident.DirectoryID{
		{15: 201}, directory1, directory1, {},
	}}
	lost := cluster.Partition{Replicas: replicas(1, 2), ISR: replicas(1), Leader: 1, Directories: []ident.DirectoryID{
		ident.DirectoryLost, ident.DirectoryMigrating,
	}}
	records = append(records, &cluster.TopicRecord{Name: "t", ID: ident.TopicID{0: 1}}, registration(9, false, "OTHER"),
		&cluster.PartitionRecord{Topic: ident.TopicID{0: 1}, Partition: part}, &cluster.PartitionRecord{Topic: ident.TopicID{0: 1}, Number: 1, Partition: lost})
	k := newKit(t, records...)
	resp := askMetadata(k, 12, "t")
	p := resp.Topics[0].Partitions[0]
	same(t, "offline", p.OfflineReplicas, []int32{1, 3, 9}) // another directory, fenced, without the listener
	code(t, "no leader", p.ErrorCode, wire.LeaderNotAvailable)
	same(t, "lost", resp.Topics[0].Partitions[1].OfflineReplicas, []int32{1})
}

// Behaviour 55.
func TestUnknownTopicsAreCreatedIfRequestAndBrokerAllow(t *testing.T) {
	versions(t, wire.KeyMetadata, 0, func(t *testing.T, version int16) {
		t.Helper()
		for _, c := range []struct {
			name    string
			request bool
			static  config.Set
			want    bool
		}{
			{"both", true, nil, true},
			{"not the request", false, nil, version < 4}, // the field is 4+, older requests always allow
			{"not the broker", true, config.SetOf(config.Entry{Name: "auto.create.topics.enable", Value: "false"}), false},
		} {
			k := newKit(t, *withTopics()...)
			k.static = c.static
			k.ports.controller = func(cluster.Command) cluster.Reply { return cluster.Reply{} }
			req := kmsg.NewPtrMetadataRequest()
			req.AllowAutoTopicCreation = c.request
			for _, name := range []string{"new", "a", "new", "no/name", "__consumer_offsets"} {
				mt := kmsg.NewMetadataRequestTopic()
				mt.Topic = new(name)
				req.Topics = append(req.Topics, mt)
			}
			resp := k.ask(version, req).(*kmsg.MetadataResponse)
			same(t, "each topic once", names(resp), []string{"new", "a", "no/name", "__consumer_offsets"})
			for i, want := range []wire.ErrorCode{wire.UnknownTopicOrPartition, wire.NoError, wire.InvalidTopicException, wire.UnknownTopicOrPartition} {
				code(t, c.name+": "+names(resp)[i], resp.Topics[i].ErrorCode, want)
			}
			if created := len(k.ports.commands) == 1; created != c.want {
				t.Errorf("%s: %d commands", c.name, len(k.ports.commands))
			} else if created {
				cmd := k.ports.commands[0].(*cluster.CreateTopics)
				if len(cmd.Topics) != 1 || cmd.Topics[0].Name != "new" || cmd.Topics[0].Partitions != -1 || cmd.Topics[0].ReplicationFactor != -1 ||
					cmd.Topics[0].ID.IsZero() || cmd.Entropy == 0 || cmd.ValidateOnly {
					t.Errorf("%s: %+v", c.name, cmd)
				}
			}
			if version >= 1 && !resp.Topics[3].IsInternal {
				t.Error("__consumer_offsets is not called internal")
			}
		}
	})
}

// Behaviour 59's half about ids, and the versions in which the field existed and was not served.
func TestTopicsCanBeAskedForByIdFromVersion12On(t *testing.T) {
	versions(t, wire.KeyMetadata, 10, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t, *withTopics()...)
		req := kmsg.NewPtrMetadataRequest()
		for _, id := range []byte{2, 77, 2} {
			mt := kmsg.NewMetadataRequestTopic()
			mt.TopicID = [16]byte{0: id}
			req.Topics = append(req.Topics, mt)
		}
		if version < 12 {
			for i := range req.Topics {
				req.Topics[i].Topic = new("") // the name may not be null there
			}
		}
		resp := k.ask(version, req).(*kmsg.MetadataResponse)
		if version < 12 {
			for i := range resp.Topics {
				code(t, "id below version 12", resp.Topics[i].ErrorCode, wire.InvalidRequest)
			}
			same(t, "all refused", len(resp.Topics), 3)
			return
		}
		same(t, "names", names(resp), []string{"b", "<null>"})
		code(t, "known", resp.Topics[0].ErrorCode, wire.NoError)
		code(t, "unknown", resp.Topics[1].ErrorCode, wire.UnknownTopicID)
		same(t, "id of the unknown", resp.Topics[1].TopicID, [16]byte{0: 77})
	})
}

// Behaviour 58: a live broker, this one if it lives.
func TestTheControllerIsABrokerThatLives(t *testing.T) {
	k := newKit(t, registration(1, true, "PLAINTEXT"), registration(2, true, "PLAINTEXT"), registration(3, false, "PLAINTEXT"))
	if got := askMetadata(k, 9).ControllerID; got != 3 {
		t.Errorf("controller %d, want the one that lives", got)
	}
	k.apply(&cluster.FenceBrokerRecord{Broker: 3, Epoch: 1})
	if got := askMetadata(k, 9).ControllerID; got != -1 {
		t.Errorf("controller %d, want none", got)
	}
}
