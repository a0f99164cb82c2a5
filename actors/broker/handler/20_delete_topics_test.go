package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

func TestDeleteTopicsByNameAndById(t *testing.T) {
	versions(t, wire.KeyDeleteTopics, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t)
		want := []cluster.TopicRef{{Name: "a"}, {Name: "b"}}
		if version >= 6 {
			want = []cluster.TopicRef{{Name: "a"}, {ID: ident.TopicID{7}}, {Name: "c", ID: ident.TopicID{8}}}
		}
		k.ports.controller = func(cmd cluster.Command) cluster.Reply {
			got := cmd.(*cluster.DeleteTopics)
			same(t, "topics", got.Topics, want)
			if got.Deadline != 1000+30*1000000 {
				t.Errorf("deadline %d", got.Deadline)
			}
			body := &cluster.DeleteTopicsReply{Topics: []cluster.DeletedTopic{
				{Name: "a", ID: ident.TopicID{6}},
				{Name: want[1].Name, ID: want[1].ID, Err: &cluster.Error{Code: wire.UnknownTopicID, Message: "why"}},
			}}
			return cluster.Reply{Body: body}
		}
		resp := k.ask(version, deleteRequest(version)).(*kmsg.DeleteTopicsResponse)
		code(t, "deleted", resp.Topics[0].ErrorCode, wire.NoError)
		code(t, "unknown", resp.Topics[1].ErrorCode, wire.UnknownTopicID)
		same(t, "name", deref(resp.Topics[0].Topic), "a")
		if version >= 5 {
			same(t, "message", deref(resp.Topics[1].ErrorMessage), "why")
		}
		if version >= 6 {
			same(t, "null name of the unknown", resp.Topics[1].Topic, (*string)(nil))
			same(t, "ids", [][16]byte{resp.Topics[0].TopicID, resp.Topics[1].TopicID}, [][16]byte{{6}, {7}})
		} else {
			same(t, "name", deref(resp.Topics[1].Topic), "b")
		}
	})
}

func deleteRequest(version int16) *kmsg.DeleteTopicsRequest {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = 30
	if version < 6 {
		req.TopicNames = []string{"a", "b"}
		return req
	}
	named, byID, both := kmsg.NewDeleteTopicsRequestTopic(), kmsg.NewDeleteTopicsRequestTopic(), kmsg.NewDeleteTopicsRequestTopic()
	named.Topic = new("a")
	byID.TopicID = [16]byte{7}
	both.Topic, both.TopicID = new("c"), [16]byte{8}
	req.Topics = append(req.Topics, named, byID, both)
	return req
}

func TestDeletionSwitchedOffIsToldAsTheVersionCan(t *testing.T) {
	versions(t, wire.KeyDeleteTopics, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t)
		k.ports.controller = func(cluster.Command) cluster.Reply {
			return cluster.Reply{Err: &cluster.Error{Code: wire.TopicDeletionDisabled, Message: "off"}}
		}
		resp := k.ask(version, deleteRequest(version)).(*kmsg.DeleteTopicsResponse)
		want := wire.TopicDeletionDisabled
		if version < 3 {
			want = wire.InvalidRequest
		}
		if n := len(resp.Topics); n < 2 {
			t.Fatalf("%d topics", n)
		}
		for i := range resp.Topics {
			code(t, "refused", resp.Topics[i].ErrorCode, want)
		}
	})
}
