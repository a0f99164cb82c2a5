package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

func TestDescribeLogDirsTellsWhatLiesWhere(t *testing.T) {
	versions(t, wire.KeyDescribeLogDirs, 0, func(t *testing.T, version int16) {
		t.Helper()
		at := func(topic string, n int32, size int64) handler.DirectoryReplica {
			return handler.DirectoryReplica{TopicPartition: ident.TopicPartition{Topic: topic, Partition: n}, SizeBytes: size, OffsetLag: size / 10}
		}
		k := newKit(t)
		k.ports.directories = func() []handler.Directory {
			return []handler.Directory{
				{Path: "/d1", Online: true, TotalBytes: 1000, FreeBytes: 400, Replicas: []handler.DirectoryReplica{at("b", 0, 30), at("a", 1, 20), at("a", 0, 10)}},
				{Path: "/d2", TotalBytes: -1, FreeBytes: -1, Replicas: []handler.DirectoryReplica{at("a", 2, 40)}},
			}
		}
		part := func(n int32, size int64) kmsg.DescribeLogDirsResponseDirTopicPartition {
			return kmsg.DescribeLogDirsResponseDirTopicPartition{Partition: n, Size: size, OffsetLag: size / 10}
		}
		dirs := func(topics ...kmsg.DescribeLogDirsResponseDirTopic) []kmsg.DescribeLogDirsResponseDir {
			d1 := kmsg.DescribeLogDirsResponseDir{Dir: "/d1", Topics: topics, TotalBytes: -1, UsableBytes: -1}
			if version >= 4 {
				d1.TotalBytes, d1.UsableBytes = 1000, 400
			}
			return []kmsg.DescribeLogDirsResponseDir{d1, {Dir: "/d2", ErrorCode: int16(wire.KafkaStorageError), TotalBytes: -1, UsableBytes: -1}}
		}
		norm := func(got []kmsg.DescribeLogDirsResponseDir) []kmsg.DescribeLogDirsResponseDir {
			for i := range got {
				if len(got[i].Topics) == 0 {
					got[i].Topics = nil
				}
			}
			return got
		}
		all := kmsg.NewPtrDescribeLogDirsRequest()
		all.Topics = nil
		same(t, "all", norm(k.ask(version, all).(*kmsg.DescribeLogDirsResponse).Dirs), dirs(
			kmsg.DescribeLogDirsResponseDirTopic{Topic: "a", Partitions: []kmsg.DescribeLogDirsResponseDirTopicPartition{part(0, 10), part(1, 20)}},
			kmsg.DescribeLogDirsResponseDirTopic{Topic: "b", Partitions: []kmsg.DescribeLogDirsResponseDirTopicPartition{part(0, 30)}},
		))
		some := kmsg.NewPtrDescribeLogDirsRequest()
		rt := kmsg.NewDescribeLogDirsRequestTopic()
		rt.Topic, rt.Partitions = "a", []int32{1, 99}
		some.Topics = append(some.Topics, rt)
		same(t, "some", norm(k.ask(version, some).(*kmsg.DescribeLogDirsResponse).Dirs), dirs(
			kmsg.DescribeLogDirsResponseDirTopic{Topic: "a", Partitions: []kmsg.DescribeLogDirsResponseDirTopicPartition{part(1, 20)}},
		))
		none := kmsg.NewPtrDescribeLogDirsRequest()
		none.Topics = []kmsg.DescribeLogDirsRequestTopic{}
		same(t, "none", norm(k.ask(version, none).(*kmsg.DescribeLogDirsResponse).Dirs), dirs())
	})
}
