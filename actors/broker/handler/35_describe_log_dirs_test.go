package handler_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/checkup"
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

// Who does not send the field of an order gets the bytes that Kafka's schema says and no others, whatever unknown fields of others the request has.
func TestWithoutAnOrderTheAnswerIsKafkas(t *testing.T) {
	versions(t, wire.KeyDescribeLogDirs, 1, func(t *testing.T, version int16) {
		t.Helper()
		var want []byte
		number := func(size int, v uint64) {
			for i := size - 1; i >= 0; i-- {
				want = append(want, byte(v>>(8*i)))
			}
		}
		since := func(first int16, size int, v uint64) {
			if version >= first {
				number(size, v)
			}
		}
		flexible := func(compact byte, plain int, v uint64) { // a length, or the number of tagged fields
			if version >= 2 {
				want = append(want, compact)
			} else {
				number(plain, v)
			}
		}
		number(4, 0)      // throttle time
		since(3, 2, 0)    // error code
		flexible(2, 4, 1) // directories
		number(2, 0)      // error code
		flexible(4, 2, 3) // its path
		want = append(want, "/d1"...)
		flexible(2, 4, 1) // topics
		flexible(2, 2, 1)
		want = append(want, 'a')
		flexible(2, 4, 1) // partitions
		number(4, 7)
		number(8, 300)
		number(8, 30)
		number(1, 0) // no future replica
		flexible(0, 0, 0)
		flexible(0, 0, 0)
		since(4, 8, 1000) // of the volume
		since(4, 8, 400)
		since(5, 1, 0) // not cordoned
		flexible(0, 0, 0)
		flexible(0, 0, 0)

		k := newKit(t)
		k.ports.directories = func() []handler.Directory {
			return []handler.Directory{{Path: "/d1", Online: true, TotalBytes: 1000, FreeBytes: 400, Replicas: []handler.DirectoryReplica{
				{TopicPartition: ident.TopicPartition{Topic: "a", Partition: 7}, SizeBytes: 300, OffsetLag: 30},
			}}}
		}
		for _, tags := range [][]uint32{nil, {0, 1, checkup.Tag - 1, checkup.Tag + 1, 1<<31 - 1}} {
			req := kmsg.NewPtrDescribeLogDirsRequest()
			req.Topics = nil
			for _, tag := range tags {
				req.UnknownTags.Set(tag, []byte(`{"do":"repair","divergent":true}`))
			}
			if got := k.ask(version, req).AppendTo(nil); !bytes.Equal(got, want) {
				t.Errorf("with the fields %v: %x, want %x", tags, got, want)
			}
		}
	})
}

// TestReportsRideInATaggedField: what `troupe partition` asks, and nobody else.
func TestReportsRideInATaggedField(t *testing.T) {
	k := newKit(t)
	tp := ident.TopicPartition{Topic: "a", Partition: 1}
	k.ports.directories = func() []handler.Directory {
		return []handler.Directory{{Path: "/d1", Online: true, Replicas: []handler.DirectoryReplica{{TopicPartition: tp}, {TopicPartition: ident.TopicPartition{Topic: "a"}}}}}
	}
	var heard checkup.Order
	k.ports.checkup = func(order checkup.Order, places []ident.TopicPartition) map[ident.TopicPartition]checkup.Report {
		heard = order
		same(t, "places", places, []ident.TopicPartition{{Topic: "a"}, tp})
		return map[ident.TopicPartition]checkup.Report{tp: {Run: 4, Leader: 2}}
	}
	ordering := func(field string, partitions ...int32) *kmsg.DescribeLogDirsRequest {
		req := kmsg.NewPtrDescribeLogDirsRequest()
		rt := kmsg.NewDescribeLogDirsRequestTopic()
		rt.Topic, rt.Partitions = "a", partitions
		req.Topics = append(req.Topics, rt)
		req.UnknownTags.Set(checkup.Tag, []byte(field))
		return req
	}
	resp := k.ask(4, ordering(`{"do":"repair","divergent":true}`, 1, 0, 1)).(*kmsg.DescribeLogDirsResponse)
	same(t, "order", heard, checkup.Order{Do: checkup.Repair, Divergent: true})
	for i, want := range []int{0, 1} { // the report is of partition 1
		n := 0
		resp.Dirs[0].Topics[0].Partitions[i].UnknownTags.Each(func(key uint32, b []byte) {
			n++
			if r, err := checkup.DecodeReport(b); key != checkup.Tag || err != nil || r.Run != 4 || r.Leader != 2 {
				t.Errorf("%d: %s, %v", key, b, err)
			}
		})
		same(t, "reports", n, want)
	}
	none := ordering(`{"do":"look"}`)
	none.Topics = nil
	many := make([]int32, checkup.PlacesMax+1)
	for i := range many {
		many[i] = int32(i)
	}
	for _, bad := range []struct {
		req *kmsg.DescribeLogDirsRequest
		why string
	}{
		{ordering("{"), "does not parse"},
		{ordering(`{"do":"dance"}`), `no order "dance"`},
		{none, "for 0 partitions"},
		{ordering(`{"do":"look"}`, many...), "for 1001 partitions; it has to name 1 to 1000"},
	} {
		for _, version := range []int16{2, 5} {
			// As it goes over the wire: version 2 loses the code, and the words arrive.
			resp := kmsg.NewPtrDescribeLogDirsResponse()
			resp.SetVersion(version)
			if err := resp.ReadFrom(k.ask(version, bad.req).AppendTo(nil)); err != nil {
				t.Fatal(err)
			}
			want, said := int16(wire.InvalidRequest), ""
			if version < 3 {
				want = 0
			}
			resp.UnknownTags.Each(func(tag uint32, b []byte) {
				if r, err := checkup.DecodeRefusal(b); tag == checkup.Tag && err == nil {
					said = r.Error
				}
			})
			if resp.ErrorCode != want || len(resp.Dirs) != 0 || !strings.Contains(said, bad.why) {
				t.Errorf("version %d, %s: %+v, %q", version, bad.why, resp, said)
			}
		}
	}
}

// TestAReplicaOfALostDirectoryIsReported: who ordered something hears of it, and nobody else, as in Kafka.
func TestAReplicaOfALostDirectoryIsReported(t *testing.T) {
	k := newKit(t)
	tp := ident.TopicPartition{Topic: "a", Partition: 1}
	k.ports.directories = func() []handler.Directory {
		return []handler.Directory{{Path: "/d1", Replicas: []handler.DirectoryReplica{{TopicPartition: tp}, {TopicPartition: ident.TopicPartition{Topic: "a"}}}}}
	}
	k.ports.checkup = func(checkup.Order, []ident.TopicPartition) map[ident.TopicPartition]checkup.Report {
		return map[ident.TopicPartition]checkup.Report{tp: {State: "offline", Error: "out of service"}}
	}
	req := kmsg.NewPtrDescribeLogDirsRequest()
	rt := kmsg.NewDescribeLogDirsRequestTopic()
	rt.Topic, rt.Partitions = "a", []int32{0, 1}
	req.Topics = append(req.Topics, rt)
	if resp := k.ask(4, req).(*kmsg.DescribeLogDirsResponse); resp.Dirs[0].ErrorCode != int16(wire.KafkaStorageError) || len(resp.Dirs[0].Topics) != 0 {
		t.Errorf("%+v", resp)
	}
	req.UnknownTags.Set(checkup.Tag, []byte(`{"do":"repair"}`))
	resp := k.ask(4, req).(*kmsg.DescribeLogDirsResponse)
	d := &resp.Dirs[0]
	if d.ErrorCode != int16(wire.KafkaStorageError) || len(d.Topics) != 1 || len(d.Topics[0].Partitions) != 1 || d.Topics[0].Partitions[0].Partition != 1 || d.Topics[0].Partitions[0].UnknownTags.Len() != 1 {
		t.Errorf("%+v", resp)
	}
}
