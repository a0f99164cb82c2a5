package handler

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
)

// DescribeLogDirs (35), versions 1 to 5.
//
// As in Kafka: null asks for all partitions; partitions that do not lie here are left out; a directory that is offline is KAFKA_STORAGE_ERROR and
// lists nothing; sizes of the volume from version 4 on. Different: no directory is ever cordoned and no replica is ever a future one, as replicas do not
// move between directories.

func describeLogDirs(c *Call) {
	req := c.Request.(*kmsg.DescribeLogDirsRequest)
	type place struct {
		topic     string
		partition int32
	}
	wanted := map[place]bool{}
	for i := range req.Topics {
		for _, p := range req.Topics[i].Partitions {
			wanted[place{req.Topics[i].Topic, p}] = true
		}
	}
	c.Env.Ports.Directories(func(directories []Directory) {
		resp := kmsg.NewPtrDescribeLogDirsResponse()
		for i := range directories {
			d := &directories[i]
			out := kmsg.NewDescribeLogDirsResponseDir()
			out.Dir, out.TotalBytes, out.UsableBytes = d.Path, d.TotalBytes, d.FreeBytes
			if !d.Online {
				out.ErrorCode = int16(wire.KafkaStorageError)
				resp.Dirs = append(resp.Dirs, out)
				continue
			}
			replicas := slices.Clone(d.Replicas)
			slices.SortFunc(replicas, func(a, b DirectoryReplica) int { return a.TopicPartition.Compare(b.TopicPartition) })
			for _, r := range replicas {
				if req.Topics != nil && !wanted[place{r.TopicPartition.Topic, r.TopicPartition.Partition}] {
					continue
				}
				if n := len(out.Topics); n == 0 || out.Topics[n-1].Topic != r.TopicPartition.Topic {
					t := kmsg.NewDescribeLogDirsResponseDirTopic()
					t.Topic = r.TopicPartition.Topic
					out.Topics = append(out.Topics, t)
				}
				p := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
				p.Partition, p.Size, p.OffsetLag = r.TopicPartition.Partition, r.SizeBytes, r.OffsetLag
				t := &out.Topics[len(out.Topics)-1]
				t.Partitions = append(t.Partitions, p)
			}
			resp.Dirs = append(resp.Dirs, out)
		}
		c.Respond(resp)
	})
}
