package handler

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/checkup"
	"github.com/troupe-broker/troupe/wire/ident"
)

// DescribeLogDirs (35), versions 1 to 5.
//
// As in Kafka: null asks for all partitions; partitions that do not lie here are left out; a directory that is offline is KAFKA_STORAGE_ERROR and
// lists nothing; sizes of the volume from version 4 on. Different: no directory is ever cordoned and no replica is ever a future one, as replicas do not
// move between directories. A request with the tagged field of package checkup, which `troupe partition` sends, gets a report of each replica with the answer; with one
// that makes no sense, or without naming its partitions, it is INVALID_REQUEST, and a field of the response says why. A replica with a report is listed, too, when
// its directory is offline.

func describeLogDirs(c *Call) {
	req := c.Request.(*kmsg.DescribeLogDirsRequest)
	wanted := map[ident.TopicPartition]bool{}
	for i := range req.Topics {
		for _, p := range req.Topics[i].Partitions {
			wanted[ident.TopicPartition{Topic: req.Topics[i].Topic, Partition: p}] = true
		}
	}
	told := func(reports map[ident.TopicPartition]checkup.Report) {
		c.Env.Ports.Directories(func(directories []Directory) {
			c.Respond(logDirs(directories, func(tp ident.TopicPartition) bool { return req.Topics == nil || wanted[tp] }, reports))
		})
	}
	field, ordered := taggedField(&req.UnknownTags, checkup.Tag)
	if !ordered {
		told(nil)
		return
	}
	order, err := checkup.DecodeOrder(field)
	if n := len(wanted); err == nil && (n == 0 || n > checkup.PlacesMax) {
		err = fmt.Errorf("an order for %d partitions; it has to name 1 to %d", n, checkup.PlacesMax)
	}
	if err != nil {
		resp := kmsg.NewPtrDescribeLogDirsResponse()
		resp.ErrorCode = int16(wire.InvalidRequest) // which version 2 has no room for
		refusal := checkup.Refusal{Error: err.Error()}
		resp.UnknownTags.Set(checkup.Tag, refusal.Encode())
		c.Respond(resp)
		return
	}
	places := make([]ident.TopicPartition, 0, len(wanted))
	for tp := range wanted {
		places = append(places, tp)
	}
	slices.SortFunc(places, ident.TopicPartition.Compare)
	c.Env.Ports.Checkup(order, places, told)
}

// taggedField finds an unknown tagged field.
func taggedField(tags *kmsg.Tags, key uint32) (value []byte, found bool) {
	tags.Each(func(k uint32, v []byte) {
		if k == key {
			value, found = v, true
		}
	})
	return value, found
}

// logDirs makes the response, with reports of replicas where there are some.
func logDirs(directories []Directory, wanted func(ident.TopicPartition) bool, reports map[ident.TopicPartition]checkup.Report) *kmsg.DescribeLogDirsResponse {
	resp := kmsg.NewPtrDescribeLogDirsResponse()
	for i := range directories {
		d := &directories[i]
		out := kmsg.NewDescribeLogDirsResponseDir()
		out.Dir, out.TotalBytes, out.UsableBytes = d.Path, d.TotalBytes, d.FreeBytes
		if !d.Online {
			out.ErrorCode = int16(wire.KafkaStorageError)
		}
		replicas := slices.Clone(d.Replicas)
		slices.SortFunc(replicas, func(a, b DirectoryReplica) int { return a.TopicPartition.Compare(b.TopicPartition) })
		for _, r := range replicas {
			report, reported := reports[r.TopicPartition]
			if !wanted(r.TopicPartition) || !d.Online && !reported {
				continue
			}
			if n := len(out.Topics); n == 0 || out.Topics[n-1].Topic != r.TopicPartition.Topic {
				t := kmsg.NewDescribeLogDirsResponseDirTopic()
				t.Topic = r.TopicPartition.Topic
				out.Topics = append(out.Topics, t)
			}
			p := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
			p.Partition, p.Size, p.OffsetLag = r.TopicPartition.Partition, r.SizeBytes, r.OffsetLag
			if reported {
				p.UnknownTags.Set(checkup.Tag, report.Encode())
			}
			t := &out.Topics[len(out.Topics)-1]
			t.Partitions = append(t.Partitions, p)
		}
		resp.Dirs = append(resp.Dirs, out)
	}
	return resp
}
