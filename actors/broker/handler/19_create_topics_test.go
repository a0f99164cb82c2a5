package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

func createRequest() *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.ValidateOnly = 30, true
	plain := kmsg.NewCreateTopicsRequestTopic()
	plain.Topic, plain.NumPartitions, plain.ReplicationFactor = "plain", 3, 1
	c := kmsg.NewCreateTopicsRequestTopicConfig()
	c.Name, c.Value = "retention.ms", new("1000")
	null := kmsg.NewCreateTopicsRequestTopicConfig()
	null.Name = "segment.bytes"
	plain.Configs = append(plain.Configs, c, null)
	manual := kmsg.NewCreateTopicsRequestTopic()
	manual.Topic, manual.NumPartitions, manual.ReplicationFactor = "manual", -1, -1
	a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
	a.Partition, a.Replicas = 1, []int32{2, 1}
	manual.ReplicaAssignment = append(manual.ReplicaAssignment, a)
	req.Topics = append(req.Topics, plain, manual, plain)
	return req
}

// Behaviour 62.
func TestCreateTopicsHandsEverythingOnAndTellsEachFate(t *testing.T) {
	versions(t, wire.KeyCreateTopics, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t)
		hidden := &config.Key{Name: "secret", Hidden: true}
		unset := &config.Key{Name: "unset"}
		retention, _ := config.Topic().Lookup("retention.ms")
		k.ports.controller = func(cmd cluster.Command) cluster.Reply {
			got := cmd.(*cluster.CreateTopics)
			if got.Deadline != 1000+30*1000000 || !got.ValidateOnly || got.Entropy == 0 {
				t.Errorf("%+v", got)
			}
			seen := map[ident.TopicID]bool{}
			for i := range got.Topics {
				if id := got.Topics[i].ID; id.IsZero() || seen[id] {
					t.Errorf("topic %d has the id %v, which is zero or given twice", i, id)
				}
				seen[got.Topics[i].ID] = true
				got.Topics[i].ID = ident.TopicID{}
			}
			plain := cluster.NewTopic{
				Name: "plain", Partitions: 3, ReplicationFactor: 1,
				Configs: []cluster.ConfigValue{{Name: "retention.ms", Value: new("1000")}, {Name: "segment.bytes"}},
			}
			manual := cluster.NewTopic{
				Name: "manual", Partitions: -1, ReplicationFactor: -1, Assignment: []cluster.Assignment{{Partition: 1, Brokers: replicas(2, 1)}},
			}
			same(t, "topics", got.Topics, []cluster.NewTopic{plain, manual, plain})
			return cluster.Reply{Body: &cluster.CreateTopicsReply{Topics: []cluster.CreatedTopic{
				{Name: "plain", ID: ident.TopicID{5}, Partitions: 3, ReplicationFactor: 1, Configs: []config.Effective{
					{Key: retention, Value: "1000", Source: config.DynamicTopicConfig},
					{Key: hidden, Value: "xyz", Source: config.StaticBrokerConfig},
					{Key: unset, Null: true, Source: config.DefaultConfig},
				}},
				{Name: "manual", Err: &cluster.Error{Code: wire.InvalidReplicaAssignment, Message: "why"}},
			}}}
		}
		resp := k.ask(version, createRequest()).(*kmsg.CreateTopicsResponse)
		if len(resp.Topics) != 2 {
			t.Fatalf("%+v", resp.Topics)
		}
		created, refused := resp.Topics[0], resp.Topics[1]
		code(t, "created", created.ErrorCode, wire.NoError)
		if created.ErrorMessage != nil {
			t.Errorf("message %q", *created.ErrorMessage)
		}
		code(t, "refused", refused.ErrorCode, wire.InvalidReplicaAssignment)
		same(t, "message", deref(refused.ErrorMessage), "why")
		if version >= 7 {
			same(t, "id", ident.TopicID(created.TopicID), ident.TopicID{5})
			same(t, "no id", ident.TopicID(refused.TopicID), ident.TopicID{})
		}
		if version < 5 {
			return
		}
		same(t, "partitions", []int32{created.NumPartitions, int32(created.ReplicationFactor)}, []int32{3, 1})
		same(t, "none", []int32{refused.NumPartitions, int32(refused.ReplicationFactor)}, []int32{-1, -1})
		same(t, "configs", created.Configs, []kmsg.CreateTopicsResponseTopicConfig{
			{Name: "retention.ms", Value: new("1000"), Source: 1},
			{Name: "secret", Source: 4, IsSensitive: true},
			{Name: "unset", Source: 5},
		})
	})
}

func TestARefusedCommandRefusesEachTopicOnce(t *testing.T) {
	versions(t, wire.KeyCreateTopics, 0, func(t *testing.T, version int16) {
		t.Helper()
		for _, reply := range []cluster.Reply{
			{Err: &cluster.Error{Code: wire.NotController, Message: "not me"}},
			{Body: &cluster.DeleteTopicsReply{}}, // a bug of ours
		} {
			k := newKit(t)
			k.ports.controller = func(cluster.Command) cluster.Reply { return reply }
			resp := k.ask(version, createRequest()).(*kmsg.CreateTopicsResponse)
			want := wire.UnknownServerError
			if reply.Err != nil {
				want = reply.Err.Code
			}
			if len(resp.Topics) != 2 || resp.Topics[0].Topic != "plain" || resp.Topics[1].Topic != "manual" {
				t.Fatalf("%+v", resp.Topics)
			}
			for i := range resp.Topics {
				code(t, resp.Topics[i].Topic, resp.Topics[i].ErrorCode, want)
			}
		}
	})
}

func TestATimeoutOfNothingWaitsForTheAnswer(t *testing.T) {
	k := newKit(t)
	k.ports.controller = func(cmd cluster.Command) cluster.Reply {
		if d := cmd.(*cluster.CreateTopics).Deadline; d != 0 {
			t.Errorf("deadline %d", d)
		}
		return cluster.Reply{Body: &cluster.CreateTopicsReply{}}
	}
	for _, timeout := range []int32{0, -1} {
		req := createRequest()
		req.TimeoutMillis = timeout
		k.ask(7, req)
	}
}
