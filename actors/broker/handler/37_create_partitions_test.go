package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Behaviour 65, as far as it is translation: an assignment that is there and empty is not one that is missing.
func TestCreatePartitionsHandsEverythingOn(t *testing.T) {
	versions(t, wire.KeyCreatePartitions, 0, func(t *testing.T, version int16) {
		t.Helper()
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.TimeoutMillis, req.ValidateOnly = 30, true
		add := func(name string, count int32, assignment []kmsg.CreatePartitionsRequestTopicAssignment) {
			rt := kmsg.NewCreatePartitionsRequestTopic()
			rt.Topic, rt.Count, rt.Assignment = name, count, assignment
			req.Topics = append(req.Topics, rt)
		}
		a := kmsg.NewCreatePartitionsRequestTopicAssignment()
		a.Replicas = []int32{3, 1}
		add("auto", 5, nil)
		add("manual", 6, []kmsg.CreatePartitionsRequestTopicAssignment{a})
		add("empty", 7, []kmsg.CreatePartitionsRequestTopicAssignment{})
		k := newKit(t)
		reply := cluster.Reply{Body: &cluster.CreatePartitionsReply{Topics: []cluster.TopicResult{
			{Name: "auto"}, {Name: "manual", Err: &cluster.Error{Code: wire.InvalidPartitions, Message: "why"}}, {Name: "empty"},
		}}}
		k.ports.controller = func(cmd cluster.Command) cluster.Reply {
			got := cmd.(*cluster.CreatePartitions)
			if got.Deadline != 1000+30*1000000 || !got.ValidateOnly || got.Entropy == 0 {
				t.Errorf("%+v", got)
			}
			same(t, "topics", got.Topics, []cluster.MorePartitions{
				{Name: "auto", Count: 5}, {Name: "manual", Count: 6, Assignment: [][]ident.BrokerID{{3, 1}}}, {Name: "empty", Count: 7, Assignment: [][]ident.BrokerID{}},
			})
			return reply
		}
		same(t, "answer", k.ask(version, req).(*kmsg.CreatePartitionsResponse).Topics, []kmsg.CreatePartitionsResponseTopic{
			{Topic: "auto"}, {Topic: "manual", ErrorCode: int16(wire.InvalidPartitions), ErrorMessage: new("why")}, {Topic: "empty"},
		})
		reply = cluster.Reply{Err: &cluster.Error{Code: wire.RequestTimedOut, Message: "late"}}
		for _, topic := range k.ask(version, req).(*kmsg.CreatePartitionsResponse).Topics {
			code(t, topic.Topic, topic.ErrorCode, wire.RequestTimedOut)
		}
	})
}
