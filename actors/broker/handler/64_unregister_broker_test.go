package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
)

func TestUnregisterBrokerAsksTheController(t *testing.T) {
	versions(t, wire.KeyUnregisterBroker, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := newKit(t)
		var reply cluster.Reply
		k.ports.controller = func(cmd cluster.Command) cluster.Reply {
			if got := cmd.(*cluster.UnregisterBroker); got.Broker != 7 {
				t.Errorf("%+v", got)
			}
			return reply
		}
		for _, c := range []struct {
			reply cluster.Reply
			want  wire.ErrorCode
		}{
			{cluster.Reply{Body: &cluster.UnregisterBrokerReply{}}, wire.NoError},
			{cluster.Reply{Err: &cluster.Error{Code: wire.BrokerIDNotRegistered, Message: "no"}}, wire.BrokerIDNotRegistered},
			{cluster.Reply{Body: &cluster.CreatePartitionsReply{}}, wire.UnknownServerError},
		} {
			req := kmsg.NewPtrUnregisterBrokerRequest()
			req.BrokerID, reply = 7, c.reply
			resp := k.ask(version, req).(*kmsg.UnregisterBrokerResponse)
			code(t, "answer", resp.ErrorCode, c.want)
			if (resp.ErrorMessage != nil) != (c.want != 0) {
				t.Errorf("message %v with %v", resp.ErrorMessage, c.want)
			}
		}
	})
}
