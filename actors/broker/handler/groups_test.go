package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// answering makes the coordinators answer by what they are asked; what is not in the table is refused with NOT_COORDINATOR.
func (k *kit) answering(t *testing.T, answer func(group string, c coord.Command) coord.Answer) {
	t.Helper()
	k.ports.coordinator = func(group string, c coord.Command) coord.Answer {
		if a := answer(group, c); a != nil {
			return a
		}
		return &coord.ErrorReply{Code: wire.NotCoordinator}
	}
}

// last is the command that a coordinator was asked last.
func last[C coord.Command](t *testing.T, k *kit) C {
	t.Helper()
	if len(k.ports.asked) == 0 {
		t.Fatal("no coordinator was asked")
	}
	c, ok := k.ports.asked[len(k.ports.asked)-1].(C)
	if !ok {
		t.Fatalf("a coordinator was asked %T", k.ports.asked[len(k.ports.asked)-1])
	}
	return c
}

func groupKit(t *testing.T) *kit {
	t.Helper()
	records := append(smallCluster(), topic("t", 1, replicas(1), replicas(1))...)
	records = append(records, topic(cluster.OffsetsTopic, 2, replicas(1), replicas(2), replicas(3))...)
	k := newKit(t, append(records, &cluster.FeatureLevelRecord{Name: cluster.GroupVersion, Level: 1})...)
	k.client.ID = "client"
	return k
}

func TestOffsetCommitIsTranslated(t *testing.T) {
	versions(t, wire.KeyOffsetCommit, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := groupKit(t)
		k.answering(t, func(_ string, c coord.Command) coord.Answer {
			reply := &coord.CommitReply{}
			for _, ct := range c.(*coord.Commit).Topics {
				r := coord.CommitTopicReply{Name: ct.Name, ID: ct.ID}
				for _, p := range ct.Partitions {
					r.Partitions = append(r.Partitions, coord.PartitionCode{Partition: p.Partition, Code: wire.ErrorCode(p.Code)})
				}
				reply.Topics = append(reply.Topics, r)
			}
			return reply
		})
		request := func(names ...string) *kmsg.OffsetCommitRequest {
			req := kmsg.NewPtrOffsetCommitRequest()
			req.Group, req.MemberID, req.Generation, req.RetentionTimeMillis, req.InstanceID = "g", "m", 5, 900, new("i")
			for _, name := range names {
				rt := kmsg.NewOffsetCommitRequestTopic()
				rt.Topic = name
				if topic, ok := k.image.Topic(name); ok {
					rt.TopicID = topic.ID
				} else {
					rt.TopicID[0] = 99
				}
				for _, n := range []int32{0, 7} {
					p := kmsg.NewOffsetCommitRequestTopicPartition()
					p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = n, 40, 3, new("note")
					rt.Partitions = append(rt.Partitions, p)
				}
				req.Topics = append(req.Topics, rt)
			}
			return req
		}
		missing := wire.UnknownTopicOrPartition
		if version >= 10 {
			missing = wire.UnknownTopicID
		}
		resp := k.ask(version, request("t", "absent")).(*kmsg.OffsetCommitResponse)
		for i, want := range [][2]wire.ErrorCode{{wire.NoError, wire.UnknownTopicOrPartition}, {missing, missing}} {
			for j, w := range want {
				code(t, "partition", resp.Topics[i].Partitions[j].ErrorCode, w)
			}
		}
		cmd := last[*coord.Commit](t, k)
		retention, instance, epoch := int64(-1), "", ident.NoLeaderEpoch
		if version <= 4 {
			retention = 900
		}
		if version >= 7 {
			instance = "i"
		}
		if version >= 6 {
			epoch = 3
		}
		if cmd.Version != version || cmd.Group != "g" || cmd.Member != "m" || cmd.Generation != 5 || cmd.Retention != retention || cmd.Instance != instance {
			t.Errorf("the command: %+v", cmd)
		}
		same(t, "the topic", cmd.Topics[0], coord.CommitTopic{Name: "t", ID: ident.TopicID{0: 1}, Partitions: []coord.CommitPartition{
			{Partition: 0, Offset: 40, LeaderEpoch: epoch, Metadata: "note"},
			{Partition: 7, Offset: 40, LeaderEpoch: epoch, Metadata: "note", Code: int16(wire.UnknownTopicOrPartition)},
		}})
		// When nothing exists, the coordinator is not asked.
		k.ports.asked = nil
		resp = k.ask(version, request("absent")).(*kmsg.OffsetCommitResponse)
		code(t, "nothing exists", resp.Topics[0].Partitions[0].ErrorCode, missing)
		if len(k.ports.asked) != 0 {
			t.Error("the coordinator was asked about nothing")
		}
		k.answering(t, func(string, coord.Command) coord.Answer { return nil })
		resp = k.ask(version, request("t")).(*kmsg.OffsetCommitResponse)
		code(t, "refused", resp.Topics[0].Partitions[0].ErrorCode, wire.NotCoordinator)
		code(t, "refused, and no such partition", resp.Topics[0].Partitions[1].ErrorCode, wire.UnknownTopicOrPartition)
	})
}

func TestOffsetFetchOfOneGroupIsTranslated(t *testing.T) {
	for version := int16(1); version <= 7; version++ {
		k := groupKit(t)
		k.ports.watermarks = func(p handler.Place) (start, high ident.Offset) { return 3, 9 }
		k.answering(t, func(_ string, c coord.Command) coord.Answer {
			ask := c.(*coord.FetchOffsets)
			reply := &coord.FetchOffsetsReply{Group: ask.Group}
			if ask.All {
				reply.Topics = []coord.FetchedTopic{{Name: "all", Partitions: []coord.FetchedOffset{{Partition: 1, Offset: 8, LeaderEpoch: 2, Metadata: "x"}}}}
				return reply
			}
			for _, at := range ask.Topics {
				reply.Topics = append(reply.Topics, coord.FetchedTopic{Name: at.Name, Partitions: []coord.FetchedOffset{{Partition: 4, Offset: -1, LeaderEpoch: -1}}})
			}
			return reply
		})
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Group = "g"
		rt := kmsg.NewOffsetFetchRequestTopic()
		rt.Topic, rt.Partitions = "t", []int32{4}
		req.Topics = append(req.Topics, rt)
		resp := k.ask(version, req).(*kmsg.OffsetFetchResponse)
		if p := resp.Topics[0].Partitions[0]; p.Partition != 4 || p.Offset != -1 || p.ErrorCode != 0 || p.Metadata == nil || *p.Metadata != "" {
			t.Errorf("v%d: %+v", version, p)
		}
		cmd := last[*coord.FetchOffsets](t, k)
		same(t, "what is asked", cmd.Topics, []coord.FetchTopic{{Name: "t", Partitions: []coord.FetchPartition{{Partition: 4, LogStart: 3, HighWatermark: 9}}}})
		if cmd.MemberEpoch != -1 || cmd.All || len(k.ports.told) != 1 {
			t.Errorf("v%d: %+v; %d answers were told on", version, cmd, len(k.ports.told))
		}
		if version >= 2 {
			req.Topics = nil
			resp = k.ask(version, req).(*kmsg.OffsetFetchResponse)
			if len(resp.Topics) != 1 || resp.Topics[0].Topic != "all" || resp.Topics[0].Partitions[0].Offset != 8 {
				t.Errorf("v%d, all topics: %+v", version, resp)
			}
			req.Topics = []kmsg.OffsetFetchRequestTopic{rt}
		}
		k.answering(t, func(string, coord.Command) coord.Answer { return &coord.ErrorReply{Code: wire.CoordinatorNotAvailable} })
		resp = k.ask(version, req).(*kmsg.OffsetFetchResponse)
		if version >= 2 {
			code(t, "refused", resp.ErrorCode, wire.NotCoordinator)
		} else {
			code(t, "refused, of a partition", resp.Topics[0].Partitions[0].ErrorCode, wire.NotCoordinator)
		}
	}
}

func TestOffsetFetchOfManyGroupsAnswersEachInItsPlace(t *testing.T) {
	versions(t, wire.KeyOffsetFetch, 8, func(t *testing.T, version int16) {
		t.Helper()
		k := groupKit(t)
		k.answering(t, func(group string, c coord.Command) coord.Answer {
			ask := c.(*coord.FetchOffsets)
			switch group {
			case "one":
				if version >= 9 && (ask.Member != "m" || ask.MemberEpoch != 6) {
					t.Errorf("%+v", ask)
				}
				if len(ask.Topics) != 1 || ask.Topics[0].Name != "t" || !ask.RequireStable {
					t.Errorf("%+v", ask)
				}
				return &coord.FetchOffsetsReply{Group: group, Topics: []coord.FetchedTopic{
					{Name: "t", Partitions: []coord.FetchedOffset{{Partition: 0, Offset: 5, LeaderEpoch: 1, Metadata: "n"}}},
				}}
			case "all":
				return &coord.FetchOffsetsReply{Group: group, Topics: []coord.FetchedTopic{
					{Name: "t", Partitions: []coord.FetchedOffset{{Offset: 7}}}, {Name: "forgotten", Partitions: []coord.FetchedOffset{{Offset: 8}}},
				}}
			}
			return nil
		})
		req := kmsg.NewPtrOffsetFetchRequest()
		req.RequireStable = true
		for _, name := range []string{"one", "none", "all"} {
			g := kmsg.NewOffsetFetchRequestGroup()
			g.Group, g.MemberID, g.MemberEpoch = name, new("m"), 6
			if name == "one" {
				absent, rt := kmsg.NewOffsetFetchRequestGroupTopic(), kmsg.NewOffsetFetchRequestGroupTopic()
				absent.TopicID, absent.Partitions = [16]byte{99}, []int32{2}
				rt.Topic, rt.TopicID, rt.Partitions = "t", [16]byte{1}, []int32{0}
				if version >= 10 {
					g.Topics = append(g.Topics, absent)
				}
				g.Topics = append(g.Topics, rt)
			}
			req.Groups = append(req.Groups, g)
		}
		resp := k.ask(version, req).(*kmsg.OffsetFetchResponse)
		if len(resp.Groups) != 3 || resp.Groups[0].Group != "one" || resp.Groups[1].Group != "none" || resp.Groups[2].Group != "all" {
			t.Fatalf("%+v", resp.Groups)
		}
		topics := resp.Groups[0].Topics
		if version >= 10 {
			code(t, "an unknown id", topics[0].Partitions[0].ErrorCode, wire.UnknownTopicID)
			if topics[1].TopicID != [16]byte{1} {
				t.Errorf("%+v", topics[1])
			}
			topics = topics[1:]
		}
		if p := topics[0].Partitions[0]; p.Offset != 5 || p.LeaderEpoch != 1 || *p.Metadata != "n" {
			t.Errorf("%+v", p)
		}
		code(t, "refused", resp.Groups[1].ErrorCode, wire.NotCoordinator)
		// A topic that nobody can name any more cannot be told by its id.
		if n := len(resp.Groups[2].Topics); version < 10 && n != 2 || version >= 10 && n != 1 {
			t.Errorf("all topics: %d", n)
		}
	})
}

func TestFindCoordinatorTellsTheLeaderOfThePartition(t *testing.T) {
	versions(t, wire.KeyFindCoordinator, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := groupKit(t)
		find := func(kind int8, key string) (node int32, host string, port int32, got int16) {
			t.Helper()
			req := kmsg.NewPtrFindCoordinatorRequest()
			req.CoordinatorType, req.CoordinatorKey, req.CoordinatorKeys = kind, key, []string{key}
			resp := k.ask(version, req).(*kmsg.FindCoordinatorResponse)
			if version < 4 {
				return resp.NodeID, resp.Host, resp.Port, resp.ErrorCode
			}
			c := resp.Coordinators[0]
			if c.Key != key {
				t.Errorf("key %q, want %q", c.Key, key)
			}
			return c.NodeID, c.Host, c.Port, c.ErrorCode
		}
		// By Java's hash "c" is 99, "d" 100, "e" 101; there are three partitions, and the third broker is fenced.
		if node, host, port, got := find(0, "d"); node != 2 || host != "b2" || port != 9092 || got != 0 {
			t.Errorf("d: %d %s:%d, error %d", node, host, port, got)
		}
		if node, host, _, got := find(0, "c"); node != 1 || host != "b1" || got != 0 {
			t.Errorf("c: %d %s, error %d", node, host, got)
		}
		if node, _, port, got := find(0, "e"); node != -1 || port != -1 || wire.ErrorCode(got) != wire.CoordinatorNotAvailable {
			t.Errorf("a fenced leader: %d, error %d", node, got)
		}
		k.ports.offsetsTopic = func() wire.ErrorCode { return wire.CoordinatorNotAvailable }
		if _, _, _, got := find(0, "c"); wire.ErrorCode(got) != wire.CoordinatorNotAvailable {
			t.Errorf("without the topic: error %d", got)
		}
		k.ports.offsetsTopic = nil // need not be asked
		if version >= 1 {
			if _, _, _, got := find(1, "txn"); wire.ErrorCode(got) != wire.TransactionalIDAuthorizationFailed {
				t.Errorf("a transaction: error %d", got)
			}
			if _, _, _, got := find(2, "share"); wire.ErrorCode(got) != wire.InvalidRequest {
				t.Errorf("a share group: error %d", got)
			}
			if _, _, _, got := find(9, "x"); wire.ErrorCode(got) != wire.InvalidRequest {
				t.Errorf("an unknown type: error %d", got)
			}
		}
	})
}

func TestJoinGroupIsTranslated(t *testing.T) {
	versions(t, wire.KeyJoinGroup, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := groupKit(t)
		k.answering(t, func(string, coord.Command) coord.Answer {
			return &coord.JoinReply{
				Generation: 4, ProtocolType: "consumer", Protocol: "range", Leader: "m", Member: "m", SkipAssignment: true,
				Members: []coord.JoinedMember{{Member: "m", Instance: "i", Metadata: []byte("s")}, {Member: "n"}},
			}
		})
		req := kmsg.NewPtrJoinGroupRequest()
		req.Group, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis, req.ProtocolType, req.InstanceID, req.Reason = "g", 10_000, 20_000, "consumer", new("i"), new("why")
		p := kmsg.NewJoinGroupRequestProtocol()
		p.Name, p.Metadata = "range", []byte("wants")
		req.Protocols = append(req.Protocols, p)
		resp := k.ask(version, req).(*kmsg.JoinGroupResponse)
		cmd := last[*coord.Join](t, k)
		rebalance, instance := int32(20_000), ""
		if version == 0 {
			rebalance = 10_000
		}
		if version >= 5 {
			instance = "i"
		}
		if cmd.RebalanceTimeout != rebalance || cmd.SessionTimeout != 10_000 || cmd.Instance != instance || cmd.RequireKnownMember != (version >= 4) ||
			cmd.SkipAssignment != (version >= 9) || (cmd.Reason == "why") != (version >= 8) || len(cmd.NewMember) < 37 || cmd.Client.ID != "client" {
			t.Errorf("the command: %+v", cmd)
		}
		same(t, "protocols", cmd.Protocols, []coord.Protocol{{Name: "range", Metadata: []byte("wants")}})
		if resp.ErrorCode != 0 || resp.Generation != 4 || deref(resp.Protocol) != "range" || resp.LeaderID != "m" || resp.MemberID != "m" || resp.SkipAssignment != (version >= 9) {
			t.Errorf("the answer: %+v", resp)
		}
		if len(resp.Members) != 2 || resp.Members[0].MemberID != "m" || string(resp.Members[0].ProtocolMetadata) != "s" || version >= 5 && deref(resp.Members[0].InstanceID) != "i" {
			t.Errorf("members: %+v", resp.Members)
		}
		req.MemberID = "known"
		k.answering(t, func(string, coord.Command) coord.Answer { return nil })
		resp = k.ask(version, req).(*kmsg.JoinGroupResponse)
		code(t, "refused", resp.ErrorCode, wire.NotCoordinator)
		if resp.MemberID != "known" || resp.Generation != -1 || version >= 7 && resp.Protocol != nil {
			t.Errorf("refused: %+v", resp)
		}
	})
}

func TestWhatIsJoinedWithDoesNotAliasTheFrame(t *testing.T) {
	k := groupKit(t)
	k.answering(t, func(string, coord.Command) coord.Answer { return nil })
	req := kmsg.NewPtrJoinGroupRequest()
	req.SetVersion(9)
	p := kmsg.NewJoinGroupRequestProtocol()
	p.Metadata = []byte("metadata")
	req.Protocols = append(req.Protocols, p)
	body := req.AppendTo(nil)
	decoded, err := wire.DecodeBody(wire.KeyJoinGroup, 9, body)
	if err != nil {
		t.Fatal(err)
	}
	call := &handler.Call{Key: 11, Version: 9, Request: decoded, Client: &k.client, Env: &handler.Env{Image: k.image, Ports: &k.ports}}
	call.Begin(&outcome{})
	handler.For(11)(call)
	clear(body)
	if got := string(last[*coord.Join](t, k).Protocols[0].Metadata); got != "metadata" {
		t.Errorf("the command changed with the frame: %q", got)
	}
}

func TestSyncGroupIsTranslated(t *testing.T) {
	versions(t, wire.KeySyncGroup, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := groupKit(t)
		k.answering(t, func(string, coord.Command) coord.Answer {
			return &coord.SyncReply{ProtocolType: "consumer", Protocol: "range", Assignment: []byte("yours")}
		})
		req := kmsg.NewPtrSyncGroupRequest()
		req.Group, req.MemberID, req.Generation, req.InstanceID, req.ProtocolType, req.Protocol = "g", "m", 3, new("i"), new("consumer"), new("range")
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = "n", []byte("theirs")
		req.GroupAssignment = append(req.GroupAssignment, a)
		resp := k.ask(version, req).(*kmsg.SyncGroupResponse)
		want := coord.Sync{Group: "g", Member: "m", Generation: 3, Assignments: []coord.MemberAssignment{{Member: "n", Assignment: []byte("theirs")}}}
		if version >= 3 {
			want.Instance = "i"
		}
		if version >= 5 {
			want.ProtocolType, want.Protocol = "consumer", "range"
		}
		same(t, "the command", *last[*coord.Sync](t, k), want)
		if resp.ErrorCode != 0 || string(resp.MemberAssignment) != "yours" || version >= 5 && deref(resp.Protocol) != "range" {
			t.Errorf("the answer: %+v", resp)
		}
		if version >= 5 {
			req.Protocol = nil
			code(t, "without a protocol", k.ask(version, req).(*kmsg.SyncGroupResponse).ErrorCode, wire.InconsistentGroupProtocol)
		}
	})
}

func TestLeaveGroupIsTranslated(t *testing.T) {
	versions(t, wire.KeyLeaveGroup, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := groupKit(t)
		k.answering(t, func(_ string, c coord.Command) coord.Answer {
			reply := &coord.LeaveReply{}
			for _, m := range c.(*coord.Leave).Members {
				reply.Members = append(reply.Members, coord.LeftMember{Member: m.Member, Instance: m.Instance, Code: wire.UnknownMemberID})
			}
			return reply
		})
		req := kmsg.NewPtrLeaveGroupRequest()
		req.Group, req.MemberID = "g", "m"
		static := kmsg.NewLeaveGroupRequestMember()
		static.InstanceID, static.Reason = new("i"), new("why")
		req.Members = append(req.Members, static)
		resp := k.ask(version, req).(*kmsg.LeaveGroupResponse)
		cmd := last[*coord.Leave](t, k)
		if version < 3 {
			same(t, "one leaves", cmd.Members, []coord.LeavingMember{{Member: "m"}})
			code(t, "the answer", resp.ErrorCode, wire.UnknownMemberID)
			return
		}
		if cmd.Members[0].Instance != "i" || cmd.Members[0].Member != "" || (cmd.Members[0].Reason == "why") != (version >= 5) {
			t.Errorf("%+v", cmd.Members)
		}
		code(t, "the answer", resp.ErrorCode, wire.NoError)
		code(t, "the member", resp.Members[0].ErrorCode, wire.UnknownMemberID)
	})
}

func TestDescribeGroupsKeepsTheOrderAndTellsTheUnknownByVersion(t *testing.T) {
	versions(t, wire.KeyDescribeGroups, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := groupKit(t)
		k.answering(t, func(group string, _ coord.Command) coord.Answer {
			switch group {
			case "known":
				return &coord.DescribeReply{Group: group, State: "Stable", ProtocolType: "consumer", Protocol: "range", Members: []coord.DescribedMember{
					{Member: "m", Instance: "i", Client: coord.Client{ID: "c", Host: "/h"}, Metadata: []byte("s"), Assignment: []byte("a")},
				}}
			case "unknown":
				return &coord.DescribeReply{Code: wire.GroupIDNotFound, Message: "not found", Group: group, State: "Dead"}
			}
			return nil
		})
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Groups, req.IncludeAuthorizedOperations = []string{"elsewhere", "unknown", "known", "known", "unknown"}, true
		resp := k.ask(version, req).(*kmsg.DescribeGroupsResponse)
		if len(resp.Groups) != 3 {
			t.Errorf("%d answers to five mentions of three groups", len(resp.Groups))
		}
		code(t, "elsewhere", resp.Groups[0].ErrorCode, wire.NotCoordinator)
		unknown := resp.Groups[1]
		if version < 6 {
			code(t, "unknown", unknown.ErrorCode, wire.NoError)
		} else {
			code(t, "unknown", unknown.ErrorCode, wire.GroupIDNotFound)
		}
		if unknown.Group != "unknown" || unknown.State != "Dead" {
			t.Errorf("%+v", unknown)
		}
		known := resp.Groups[2]
		if known.State != "Stable" || known.Members[0].ClientHost != "/h" || string(known.Members[0].MemberAssignment) != "a" || version >= 4 && deref(known.Members[0].InstanceID) != "i" {
			t.Errorf("%+v", known)
		}
		if version >= 3 && known.AuthorizedOperations != 1<<3|1<<6|1<<8|1<<10|1<<11 {
			t.Errorf("operations %b", known.AuthorizedOperations)
		}
		req.IncludeAuthorizedOperations = false
		if ops := k.ask(version, req).(*kmsg.DescribeGroupsResponse).Groups[2].AuthorizedOperations; version >= 3 && ops != -1<<31 {
			t.Errorf("operations that nobody asked for: %d", ops)
		}
	})
}

func TestListGroupsMergesTheCoordinatorsHere(t *testing.T) {
	versions(t, wire.KeyListGroups, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := groupKit(t)
		answers := []coord.Answer{
			&coord.ListReply{Groups: []coord.ListedGroup{{Group: "a", ProtocolType: "consumer", State: "Stable", Type: "Classic"}}},
			&coord.ErrorReply{Code: wire.NotCoordinator},          // another broker lists those
			&coord.ErrorReply{Code: wire.CoordinatorNotAvailable}, // and nobody these
			&coord.ListReply{Groups: []coord.ListedGroup{{Group: "b", State: "Empty", Type: "Consumer"}}},
		}
		k.ports.coordinators = func(coord.Command) []coord.Answer { return answers }
		req := kmsg.NewPtrListGroupsRequest()
		req.StatesFilter, req.TypesFilter = []string{"stable"}, []string{"classic"}
		resp := k.ask(version, req).(*kmsg.ListGroupsResponse)
		cmd := last[*coord.List](t, k)
		if (len(cmd.States) == 1) != (version >= 4) || (len(cmd.Types) == 1) != (version >= 5) {
			t.Errorf("the command: %+v", cmd)
		}
		if len(resp.Groups) != 2 || resp.Groups[0].Group != "a" || resp.Groups[1].Group != "b" || version >= 4 && resp.Groups[0].GroupState != "Stable" || version >= 5 && resp.Groups[1].GroupType != "Consumer" {
			t.Errorf("%+v", resp.Groups)
		}
		answers = append(answers, &coord.ErrorReply{Code: wire.CoordinatorLoadInProgress})
		resp = k.ask(version, req).(*kmsg.ListGroupsResponse)
		code(t, "one loads", resp.ErrorCode, wire.CoordinatorLoadInProgress)
		if len(resp.Groups) != 0 {
			t.Errorf("%+v", resp.Groups)
		}
	})
}

func TestDeleteGroupsAnswersEachInItsPlace(t *testing.T) {
	versions(t, wire.KeyDeleteGroups, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := groupKit(t)
		k.answering(t, func(group string, _ coord.Command) coord.Answer {
			switch group {
			case "empty":
				return &coord.CodeReply{}
			case "busy":
				return &coord.CodeReply{Code: wire.NonEmptyGroup}
			}
			return nil
		})
		req := kmsg.NewPtrDeleteGroupsRequest()
		req.Groups = []string{"busy", "elsewhere", "empty"}
		resp := k.ask(version, req).(*kmsg.DeleteGroupsResponse)
		for i, want := range []wire.ErrorCode{wire.NonEmptyGroup, wire.NotCoordinator, wire.NoError} {
			code(t, req.Groups[i], resp.Groups[i].ErrorCode, want)
			if resp.Groups[i].Group != req.Groups[i] {
				t.Errorf("%q in the place of %q", resp.Groups[i].Group, req.Groups[i])
			}
		}
	})
}

func TestOffsetDeleteAsksForWhatExists(t *testing.T) {
	k := groupKit(t)
	k.answering(t, func(_ string, c coord.Command) coord.Answer {
		same(t, "the command", *c.(*coord.DeleteOffsets), coord.DeleteOffsets{Group: "g", Topics: []coord.DeleteTopic{{Name: "t", Partitions: []int32{1, 0}}}})
		return &coord.DeleteOffsetsReply{Topics: []coord.CommitTopicReply{{Name: "t", Partitions: []coord.PartitionCode{
			{Partition: 1, Code: wire.GroupSubscribedToTopic}, {Partition: 0},
		}}}}
	})
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = "g"
	for _, name := range []string{"absent", "t"} {
		rt := kmsg.NewOffsetDeleteRequestTopic()
		rt.Topic = name
		for _, n := range []int32{1, 5, 0} {
			p := kmsg.NewOffsetDeleteRequestTopicPartition()
			p.Partition = n
			rt.Partitions = append(rt.Partitions, p)
		}
		req.Topics = append(req.Topics, rt)
	}
	resp := k.ask(0, req).(*kmsg.OffsetDeleteResponse)
	unknown := wire.UnknownTopicOrPartition
	for i, want := range [][]wire.ErrorCode{{unknown, unknown, unknown}, {wire.GroupSubscribedToTopic, unknown, wire.NoError}} {
		for j, w := range want {
			code(t, req.Topics[i].Topic, resp.Topics[i].Partitions[j].ErrorCode, w)
		}
	}
	k.answering(t, func(string, coord.Command) coord.Answer { return &coord.DeleteOffsetsReply{Code: wire.GroupIDNotFound} })
	code(t, "no such group", k.ask(0, req).(*kmsg.OffsetDeleteResponse).ErrorCode, wire.GroupIDNotFound)
}

func TestConsumerGroupHeartbeatIsTranslated(t *testing.T) {
	versions(t, wire.KeyConsumerGroupHeartbeat, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := groupKit(t)
		reply := &coord.ConsumerHeartbeatReply{Member: "m", MemberEpoch: 5, HeartbeatInterval: 3000}
		k.answering(t, func(string, coord.Command) coord.Answer { return reply })
		req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		req.Group, req.MemberID, req.MemberEpoch, req.RebalanceTimeoutMillis = "g", "m", 5, -1
		resp := k.ask(version, req).(*kmsg.ConsumerGroupHeartbeatResponse)
		cmd := last[*coord.ConsumerHeartbeat](t, k)
		if cmd.Topics != nil || cmd.Owned != nil || cmd.Regex != nil || cmd.Assignor != nil || (cmd.NewMember != "") != (version == 0) || cmd.RebalanceTimeout != -1 {
			t.Errorf("as before: %+v", cmd)
		}
		if resp.Assignment != nil || deref(resp.MemberID) != "m" || resp.MemberEpoch != 5 || resp.HeartbeatIntervalMillis != 3000 {
			t.Errorf("nothing new: %+v", resp)
		}
		reply.Assigned, reply.Assignment = true, []coord.TopicPartitions{{Topic: ident.TopicID{7}, Partitions: []int32{1, 2}}}
		req.SubscribedTopicNames, req.Topics, req.RackID = []string{}, []kmsg.ConsumerGroupHeartbeatRequestTopic{{TopicID: [16]byte{7}, Partitions: []int32{1}}}, new("r")
		resp = k.ask(version, req).(*kmsg.ConsumerGroupHeartbeatResponse)
		cmd = last[*coord.ConsumerHeartbeat](t, k)
		if cmd.Topics == nil || len(cmd.Owned) != 1 || cmd.Owned[0].Topic != (ident.TopicID{7}) || deref(cmd.Rack) != "r" {
			t.Errorf("in full: %+v", cmd)
		}
		if resp.Assignment == nil || len(resp.Assignment.Topics) != 1 || len(resp.Assignment.Topics[0].Partitions) != 2 {
			t.Errorf("an assignment: %+v", resp.Assignment)
		}
		reply.Assignment = nil
		if resp = k.ask(version, req).(*kmsg.ConsumerGroupHeartbeatResponse); resp.Assignment == nil {
			t.Error("an empty assignment is not the same as none")
		}
		if cmd.IntervalMin != 0 {
			t.Errorf("any client can be told an interval of %d ms", cmd.IntervalMin)
		}
		k.client.SoftwareName, k.client.SoftwareVersion = "confluent-kafka-python", "2.16.1-librdkafka-2.16.0"
		k.ask(version, req)
		if cmd = last[*coord.ConsumerHeartbeat](t, k); cmd.IntervalMin != 1000 {
			t.Errorf("librdkafka can be told an interval of %d ms", cmd.IntervalMin)
		}
		k.apply(&cluster.FeatureLevelRecord{Name: cluster.GroupVersion, Level: 0})
		k.ports.coordinator = nil // must not be asked
		code(t, "without the feature", k.ask(version, req).(*kmsg.ConsumerGroupHeartbeatResponse).ErrorCode, wire.UnsupportedVersion)
		describe := kmsg.NewPtrConsumerGroupDescribeRequest()
		describe.Groups = []string{"g"}
		code(t, "described without the feature", k.ask(version, describe).(*kmsg.ConsumerGroupDescribeResponse).Groups[0].ErrorCode, wire.UnsupportedVersion)
	})
}

func TestConsumerGroupDescribeIsTranslated(t *testing.T) {
	versions(t, wire.KeyConsumerGroupDescribe, 0, func(t *testing.T, version int16) {
		t.Helper()
		k := groupKit(t)
		k.answering(t, func(group string, _ coord.Command) coord.Answer {
			if group != "known" {
				return &coord.ConsumerDescribeReply{Code: wire.GroupIDNotFound, Message: "Group " + group + " not found.", Group: group}
			}
			return &coord.ConsumerDescribeReply{Group: group, State: "Stable", GroupEpoch: 3, AssignmentEpoch: 2, Assignor: "uniform", Members: []coord.ConsumerMember{{
				Member: "m", HasRack: true, Rack: "r", Epoch: 2, Client: coord.Client{ID: "c", Host: "/h"}, Topics: []string{"t"}, Type: 1,
				Assignment: []coord.TopicPartitions{{Topic: ident.TopicID{1}, Name: "t", Partitions: []int32{0}}},
			}}}
		})
		req := kmsg.NewPtrConsumerGroupDescribeRequest()
		req.Groups = []string{"unknown", "", "known"}
		resp := k.ask(version, req).(*kmsg.ConsumerGroupDescribeResponse)
		code(t, "unknown", resp.Groups[0].ErrorCode, wire.GroupIDNotFound)
		code(t, "empty", resp.Groups[1].ErrorCode, wire.InvalidGroupID)
		g := resp.Groups[2]
		if g.Epoch != 3 || g.AssignmentEpoch != 2 || g.AssignorName != "uniform" || g.AuthorizedOperations != -1<<31 {
			t.Errorf("%+v", g)
		}
		m := g.Members[0]
		if m.InstanceID != nil || deref(m.RackID) != "r" || m.SubscribedTopicRegex != nil || m.Assignment.TopicPartitions[0].Topic != "t" || version >= 1 && m.MemberType != 1 {
			t.Errorf("%+v", m)
		}
	})
}
