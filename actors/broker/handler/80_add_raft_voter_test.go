package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

func TestVotersAreAddedAndRemoved(t *testing.T) {
	key := [16]byte{7, 1}
	var got cluster.Command
	var reply cluster.Reply
	k := newKit(t, smallCluster()...)
	k.ports.controller = func(cmd cluster.Command) cluster.Reply {
		got = cmd
		return reply
	}
	versions(t, wire.KeyAddRaftVoter, 0, func(t *testing.T, version int16) {
		t.Helper()
		req := kmsg.NewPtrAddRaftVoterRequest()
		req.ClusterID, req.VoterID, req.VoterDirectoryID, req.TimeoutMillis = new("c1"), 3, key, 5000
		reply = cluster.Reply{Body: &cluster.AddVoterReply{}}
		if resp := k.ask(version, req).(*kmsg.AddRaftVoterResponse); resp.ErrorCode != 0 {
			t.Errorf("%+v", resp)
		}
		cmd, ok := got.(*cluster.AddVoter)
		if !ok || cmd.Cluster != "c1" || cmd.Broker != 3 || cmd.Directory != ident.DirectoryID(key) || cmd.Deadline == 0 {
			t.Errorf("%+v", got)
		}
		reply = cluster.Reply{Err: &cluster.Error{Code: wire.DuplicateVoter, Message: "twice"}}
		if resp := k.ask(version, req).(*kmsg.AddRaftVoterResponse); resp.ErrorCode != int16(wire.DuplicateVoter) || resp.ErrorMessage == nil || *resp.ErrorMessage != "twice" {
			t.Errorf("%+v", resp)
		}
		req.VoterDirectoryID, got = [16]byte{}, nil
		if resp := k.ask(version, req).(*kmsg.AddRaftVoterResponse); resp.ErrorCode != int16(wire.InvalidRequest) || got != nil {
			t.Errorf("a voter without a directory: %+v", resp)
		}
	})
	versions(t, wire.KeyRemoveRaftVoter, 0, func(t *testing.T, version int16) {
		t.Helper()
		req := kmsg.NewPtrRemoveRaftVoterRequest()
		req.VoterID, req.VoterDirectoryID = 3, key
		reply = cluster.Reply{Body: &cluster.RemoveVoterReply{}}
		if resp := k.ask(version, req).(*kmsg.RemoveRaftVoterResponse); resp.ErrorCode != 0 {
			t.Errorf("%+v", resp)
		}
		cmd, ok := got.(*cluster.RemoveVoter)
		if !ok || cmd.Cluster != "" || cmd.Broker != 3 || cmd.Directory != ident.DirectoryID(key) {
			t.Errorf("%+v", got)
		}
		reply = cluster.Reply{Err: &cluster.Error{Code: wire.VoterNotFound, Message: "nobody"}}
		if resp := k.ask(version, req).(*kmsg.RemoveRaftVoterResponse); resp.ErrorCode != int16(wire.VoterNotFound) {
			t.Errorf("%+v", resp)
		}
		req.VoterID, got = -1, nil
		if resp := k.ask(version, req).(*kmsg.RemoveRaftVoterResponse); resp.ErrorCode != int16(wire.InvalidRequest) || got != nil {
			t.Errorf("a negative voter: %+v", resp)
		}
		reply = cluster.Reply{Body: &cluster.AddVoterReply{}}
		req.VoterID = 3
		if resp := k.ask(version, req).(*kmsg.RemoveRaftVoterResponse); resp.ErrorCode != int16(wire.UnknownServerError) {
			t.Errorf("the answer to another question: %+v", resp)
		}
	})
}
