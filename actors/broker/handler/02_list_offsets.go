package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// ListOffsets (2), versions 1 to 11.
//
// As in Kafka: a lookup by time finds the first record at or after it, inside a batch too; the special timestamps from -1 to -6 each have a version from
// which they are served; a leader whose high watermark has not caught up with its election answers OFFSET_NOT_AVAILABLE, LEADER_NOT_AVAILABLE below
// version 5; a partition that is asked for twice is refused. Different: a request that says it comes from a replica is answered as a client's, since
// followers do not use this API here; nothing is ever tiered, so the timeout of version 10 has nothing to wait for.

// timestampVersions says from which version on a special timestamp may be asked for (ReplicaManager.java); the index is the timestamp, negated.
var timestampVersions = [...]int16{
	-TimestampLatest: 1, -TimestampEarliest: 1, -TimestampMax: 7, -TimestampEarliestLocal: 8, -TimestampLatestTiered: 9, -TimestampEarliestUpload: 11,
}

func listOffsets(c *Call) {
	req := c.Request.(*kmsg.ListOffsetsRequest)
	resp := kmsg.NewPtrListOffsetsResponse()
	resp.Topics = make([]kmsg.ListOffsetsResponseTopic, len(req.Topics))
	g := gathering(func() { c.Respond(resp) })
	mentioned := map[ident.TopicPartition]int{}
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			mentioned[ident.TopicPartition{Topic: req.Topics[i].Topic, Partition: req.Topics[i].Partitions[j].Partition}]++
		}
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		out := &resp.Topics[i]
		*out = kmsg.NewListOffsetsResponseTopic()
		out.Topic = t.Topic
		out.Partitions = make([]kmsg.ListOffsetsResponseTopicPartition, len(t.Partitions))
		for j := range t.Partitions {
			p := &t.Partitions[j]
			o := &out.Partitions[j]
			*o = kmsg.NewListOffsetsResponseTopicPartition()
			o.Partition = p.Partition
			switch {
			case mentioned[ident.TopicPartition{Topic: t.Topic, Partition: p.Partition}] > 1:
				o.ErrorCode = int16(wire.InvalidRequest)
				continue
			case !servesTimestamp(c.Version, p.Timestamp):
				o.ErrorCode = int16(wire.UnsupportedVersion)
				continue
			}
			g.expect()
			question := ListOffset{
				Timestamp: p.Timestamp, LeaderEpoch: ident.LeaderEpoch(p.CurrentLeaderEpoch), ReadCommitted: req.IsolationLevel == 1,
			}
			c.Env.Ports.ListOffset(Place{Topic: t.Topic, Partition: p.Partition}, question, func(a ListedOffset) {
				if a.Code == wire.OffsetNotAvailable && c.Version < 5 {
					a.Code = wire.LeaderNotAvailable
				}
				o.ErrorCode = int16(a.Code)
				if a.Code == wire.NoError {
					o.Offset, o.Timestamp, o.LeaderEpoch = int64(a.Offset), int64(a.Timestamp), int32(a.LeaderEpoch)
				}
				g.arrived()
			})
		}
	}
	g.arrived()
}

// servesTimestamp tells whether a version may ask for a timestamp.
func servesTimestamp(version int16, timestamp int64) bool {
	if timestamp >= 0 {
		return true
	}
	return timestamp > -int64(len(timestampVersions)) && version >= timestampVersions[-timestamp]
}
