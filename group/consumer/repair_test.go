package consumer_test

import (
	"testing"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
)

// A member that the log has with the classic protocol but without a protocol to answer it with cannot be served: it joins anew.
func TestMuteClassicMemberIsFenced(t *testing.T) {
	w := newWorld(coord.DefaultConfig())
	w.reload([]records.Entry{
		&records.ConsumerGroup{Group: "g", Value: &records.GroupEpoch{Epoch: 1}},
		&records.ConsumerMember{Group: "g", Member: "m", Value: &records.Subscription{Topics: []string{"t"}, RebalanceTimeout: 1000, Classic: &records.Classic{SessionTimeout: 10_000}}},
		&records.Current{Group: "g", Member: "m", Value: &records.CurrentAssignment{MemberEpoch: 1}},
	})
	w.begin()
	w.g.ClassicSync(w.now, &w.config, w.topics, 7, &coord.Sync{Group: "g", Member: "m", Generation: 1}, &w.out)
	if len(w.out.Replies) != 1 {
		t.Fatalf("%d replies", len(w.out.Replies))
	}
	if code := w.out.Replies[0].Answer.(*coord.SyncReply).Code; code != wire.UnknownMemberID {
		t.Fatalf("the sync is answered %v", code)
	}
	w.end()
}
