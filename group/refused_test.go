package group_test

import (
	"testing"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/wire"
)

// TestARefusedCommitTellsWhatIsWrongWithEachPartition: a partition that does not exist does not exist for a stranger either.
func TestARefusedCommitTellsWhatIsWrongWithEachPartition(t *testing.T) {
	s := newScales()
	s.shard.Step(s.now, 1, &coord.Commit{Group: "g", Member: "stranger", Generation: 5, Retention: -1, Topics: []coord.CommitTopic{{
		Name: "a", Partitions: []coord.CommitPartition{{Offset: 1}, {Partition: 9, Offset: 1, Code: int16(wire.UnknownTopicOrPartition)}},
	}}}, &s.out)
	got := s.out.Replies[0].Answer.(*coord.CommitReply).Topics[0].Partitions
	if got[0].Code != wire.IllegalGeneration || got[1].Code != wire.UnknownTopicOrPartition {
		t.Errorf("%+v", got)
	}
}
