package handler_test

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// TestAPartitionThatIsAskedForAgainIsAnsweredOnce asks for one partition again and again, in one list and over several of the same topic: each answer to it
// could have the metadata of its commit.
func TestAPartitionThatIsAskedForAgainIsAnsweredOnce(t *testing.T) {
	for _, version := range []int16{1, 7, 8, 9} {
		k := newKit(t)
		var asked [][]int32
		k.ports.coordinator = func(_ string, c coord.Command) coord.Answer {
			reply := &coord.FetchOffsetsReply{}
			for _, topic := range c.(*coord.FetchOffsets).Topics {
				told := coord.FetchedTopic{Name: topic.Name}
				var partitions []int32
				for _, p := range topic.Partitions {
					partitions = append(partitions, p.Partition)
					told.Partitions = append(told.Partitions, coord.FetchedOffset{Partition: p.Partition})
				}
				asked = append(asked, partitions)
				reply.Topics = append(reply.Topics, told)
			}
			return reply
		}
		lists := map[string][][]int32{"a": {{3, 1, 3, 3}, {1, 2}}, "b": {{1, 1}}}
		req := kmsg.NewPtrOffsetFetchRequest()
		group := kmsg.NewOffsetFetchRequestGroup()
		for _, name := range []string{"a", "b"} {
			for _, list := range lists[name] {
				req.Topics = append(req.Topics, kmsg.OffsetFetchRequestTopic{Topic: name, Partitions: slices.Clone(list)})
				group.Topics = append(group.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: name, Partitions: slices.Clone(list)})
			}
		}
		req.Groups = append(req.Groups, group)
		resp := k.ask(version, req).(*kmsg.OffsetFetchResponse)
		if want := [][]int32{{3, 1}, {2}, {1}}; !slices.EqualFunc(asked, want, slices.Equal) {
			t.Errorf("v%d: asked for %v, want %v", version, asked, want)
		}
		if topics := max(len(resp.Topics), groupTopics(resp)); topics != 3 {
			t.Errorf("v%d: %d topics in the answer, want those of the request", version, topics)
		}
	}
}

func groupTopics(resp *kmsg.OffsetFetchResponse) int {
	if len(resp.Groups) == 0 {
		return 0
	}
	if resp.Groups[0].ErrorCode != int16(wire.NoError) {
		return -1
	}
	return len(resp.Groups[0].Topics)
}
