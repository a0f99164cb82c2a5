package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

func TestAHeartbeatIsTranslatedAndUsedAgain(t *testing.T) {
	versions(t, wire.KeyHeartbeat, 0, func(t *testing.T, version int16) {
		t.Helper()
		var h handler.Heartbeat
		for _, want := range []coord.Heartbeat{
			{Group: "g", Member: "m", Generation: 3}, {Group: "g", Member: "m", Generation: 4}, {Group: "h", Member: "other", Instance: "i", Generation: -1},
		} {
			req := kmsg.NewPtrHeartbeatRequest()
			req.SetVersion(version)
			req.Group, req.MemberID, req.Generation = want.Group, want.Member, want.Generation
			if want.Instance != "" {
				req.InstanceID = new(want.Instance)
			}
			if version < 3 {
				want.Instance = ""
			}
			body := req.AppendTo(nil)
			if err := h.Decode(version, body); err != nil {
				t.Fatal(err)
			}
			clear(body) // nothing of the frame is kept
			same(t, "the command", h.Command, want)
			for _, tc := range []struct {
				answer coord.Answer
				code   wire.ErrorCode
			}{
				{&coord.HeartbeatReply{Code: wire.RebalanceInProgress}, wire.RebalanceInProgress},
				{&coord.ErrorReply{Code: wire.NotCoordinator}, wire.NotCoordinator},
				{&coord.ListReply{}, wire.UnknownServerError},
			} {
				h.Answer(tc.answer)
				resp := kmsg.NewPtrHeartbeatResponse()
				resp.SetVersion(version)
				if err := resp.ReadFrom(h.AppendTo(nil, version)); err != nil {
					t.Fatal(err)
				}
				code(t, "the answer", resp.ErrorCode, tc.code)
			}
		}
	})
}
