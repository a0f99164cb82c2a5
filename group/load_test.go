package group_test

import (
	"testing"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
)

// TestALoadToleratesWhatNoStepLeaves loads logs that we do not write, as others may have, or an operator who cut one.
func TestALoadToleratesWhatNoStepLeaves(t *testing.T) {
	generation := &records.Generation{ProtocolType: "consumer", Generation: 3, StateTime: 1}
	epoch := &records.GroupEpoch{Epoch: 5}
	for _, c := range []struct {
		name string
		log  []records.Entry
		want string // type and state of the group; empty: there is none
	}{
		{"both types", []records.Entry{&records.GroupMetadata{Group: "g", Value: generation}, &records.ConsumerGroup{Group: "g", Value: epoch}}, "Consumer Empty"},
		{"the tombstone of the old type comes late", []records.Entry{
			&records.GroupMetadata{Group: "g", Value: generation}, &records.ConsumerGroup{Group: "g", Value: epoch}, &records.GroupMetadata{Group: "g"},
		}, "Consumer Empty"},
		{"tombstones only", []records.Entry{
			&records.GroupMetadata{Group: "g"}, &records.ConsumerGroup{Group: "g"}, &records.ConsumerMember{Group: "g", Member: "m"},
			&records.OffsetCommit{Group: "g", Topic: "a"}, &records.PartitionMetadata{Group: "g"},
		}, ""},
		{"a record of the past", []records.Entry{&records.GroupMetadata{Group: "g", Value: generation}, &records.PartitionMetadata{Group: "g"}}, "Classic Empty"},
		{"an offset before its group", []records.Entry{
			&records.OffsetCommit{Group: "g", Topic: "a", Value: &records.Offset{Offset: 1, ExpireTime: -1}}, &records.ConsumerGroup{Group: "g", Value: epoch},
		}, "Consumer Empty"},
	} {
		w := newWorld(coord.DefaultConfig())
		w.shard, w.out = w.fold(c.log), coord.Out{}
		w.shard.Loaded(w.now, &w.out)
		w.log = append(c.log, w.out.Entries...)
		got := ""
		if groups := w.ask(t, &coord.List{}).(*coord.ListReply).Groups; len(groups) > 0 {
			got = groups[0].Type + " " + groups[0].State
		}
		if got != c.want {
			t.Errorf("%s: the group is %q, want %q", c.name, got, c.want)
		}
		w.check(t, w.log)
		w.wait(8 * 24 * 3_600_000)
		if left := w.shard.Entries(); len(left) > 0 {
			t.Errorf("%s: %s is left after eight days", c.name, show(left[0]))
		}
		w.check(t, w.log)
	}
}
