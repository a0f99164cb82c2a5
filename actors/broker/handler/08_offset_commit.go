package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// OffsetCommit (8), versions 2 to 10.
//
// As in Kafka: partitions that do not exist are refused one by one with UNKNOWN_TOPIC_OR_PARTITION, whatever becomes of the others; from version 10 on, where
// topics are named by id, a topic that does not exist is UNKNOWN_TOPIC_ID; when none of the partitions exists the coordinator is not asked; the retention of
// versions 2 to 4 counts from the commit.

// Versions of OffsetCommit and OffsetFetch that matter here.
const (
	offsetsTopicIDs  = 10 // the first that names topics by id (KIP-848)
	retentionVersion = 4  // the last that says how long a commit is kept (KIP-211)
)

// retentionByDefault says that a commit is kept for offsets.retention.minutes.
const retentionByDefault = -1

func offsetCommit(c *Call) {
	req := c.Request.(*kmsg.OffsetCommitRequest)
	cmd := &coord.Commit{
		Version: c.Version, Group: req.Group, Member: req.MemberID, Instance: text(req.InstanceID), Generation: req.Generation, Retention: retentionByDefault,
		Client: c.coordClient(), Topics: make([]coord.CommitTopic, len(req.Topics)),
	}
	if c.Version <= retentionVersion {
		cmd.Retention = req.RetentionTimeMillis
	}
	known := false
	for i := range req.Topics {
		t := &req.Topics[i]
		out := &cmd.Topics[i]
		out.Name, out.ID = t.Topic, t.TopicID
		topic, missing := c.topicNamed(t.Topic, t.TopicID, c.Version >= offsetsTopicIDs)
		if topic != nil {
			out.Name, out.ID = topic.Name, topic.ID
		}
		out.Partitions = make([]coord.CommitPartition, len(t.Partitions))
		for j := range t.Partitions {
			p := &t.Partitions[j]
			code := missing
			if topic != nil && (p.Partition < 0 || int(p.Partition) >= len(topic.Partitions)) {
				code = wire.UnknownTopicOrPartition
			}
			known = known || code == wire.NoError
			out.Partitions[j] = coord.CommitPartition{
				Partition: p.Partition, Offset: ident.Offset(p.Offset), LeaderEpoch: ident.LeaderEpoch(p.LeaderEpoch), Metadata: text(p.Metadata), Code: int16(code),
			}
		}
	}
	if !known {
		c.Respond(refusedCommit(cmd, wire.NoError))
		return
	}
	coordinated(c, req.Group, cmd, func(a *coord.CommitReply) {
		resp := kmsg.NewPtrOffsetCommitResponse()
		for i := range a.Topics {
			t := kmsg.NewOffsetCommitResponseTopic()
			t.Topic, t.TopicID = a.Topics[i].Name, a.Topics[i].ID
			for _, p := range a.Topics[i].Partitions {
				t.Partitions = append(t.Partitions, committedPartition(p.Partition, p.Code))
			}
			resp.Topics = append(resp.Topics, t)
		}
		c.Respond(resp)
	}, func(code wire.ErrorCode) { c.Respond(refusedCommit(cmd, code)) })
}

func committedPartition(partition int32, code wire.ErrorCode) kmsg.OffsetCommitResponseTopicPartition {
	p := kmsg.NewOffsetCommitResponseTopicPartition()
	p.Partition, p.ErrorCode = partition, int16(code)
	return p
}

// refusedCommit answers each partition with what is wrong with it, or else with the code.
func refusedCommit(cmd *coord.Commit, code wire.ErrorCode) *kmsg.OffsetCommitResponse {
	resp := kmsg.NewPtrOffsetCommitResponse()
	for i := range cmd.Topics {
		t := kmsg.NewOffsetCommitResponseTopic()
		t.Topic, t.TopicID = cmd.Topics[i].Name, cmd.Topics[i].ID
		for j := range cmd.Topics[i].Partitions {
			p := &cmd.Topics[i].Partitions[j]
			own := code
			if p.Code != 0 {
				own = wire.ErrorCode(p.Code)
			}
			t.Partitions = append(t.Partitions, committedPartition(p.Partition, own))
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}
