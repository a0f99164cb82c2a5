package coord_test

import (
	"testing"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

func TestHeartbeatsAreAnsweredWithoutAllocation(t *testing.T) {
	var out coord.Out
	for code := range wire.ErrorCode(1000) {
		code := code - 10
		out.Reset()
		out.ReplyHeartbeat(7, code)
		if got := out.Replies[0].Answer.(*coord.HeartbeatReply).Code; got != code || out.Replies[0].Request != 7 {
			t.Fatalf("the answer to request %v is %v, want %v", out.Replies[0].Request, got, code)
		}
	}
	for _, code := range []wire.ErrorCode{wire.NoError, wire.RebalanceInProgress, wire.UnknownServerError} {
		if n := testing.AllocsPerRun(100, func() { out.Reset(); out.ReplyHeartbeat(1, code) }); n != 0 {
			t.Errorf("answering %v allocates %v times", code, n)
		}
	}
}

func TestRepliesWaitForWhatWasProposedBefore(t *testing.T) {
	var out coord.Out
	out.Reply(1, &coord.CodeReply{})
	out.Propose(nil)
	out.Propose(nil)
	out.Reply(2, &coord.CodeReply{})
	out.Reset()
	out.Propose(nil)
	out.Reply(3, &coord.CodeReply{})
	if out.Proposed() != 3 || len(out.Entries) != 1 || len(out.Replies) != 1 {
		t.Fatalf("after a reset: %d proposed, %d entries, %d replies", out.Proposed(), len(out.Entries), len(out.Replies))
	}
	if got := out.Replies[0]; got.Request != ident.RequestID(3) || got.After != 3 {
		t.Errorf("the reply is %+v, want one to 3 after 3 entries", got)
	}
}
