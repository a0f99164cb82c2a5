package offsets_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestACommitWithAnEndIsLoadedAsItIs commits as old clients do, with everything that the record of such a commit has no room for: what is alive knows no
// more than what its record says, so that nothing changes when another broker loads it.
func TestACommitWithAnEndIsLoadedAsItIs(t *testing.T) {
	for _, retention := range []int64{-1, 0, hour, math.MaxInt64} {
		b := newBench(t)
		b.group.Fetch(b.now, &coord.FetchOffsets{Group: "g", Client: app, Topics: []coord.FetchTopic{{
			Name: "a", Partitions: []coord.FetchPartition{{LogStart: 1, HighWatermark: 100}},
		}}}, none{}, b.jumps)
		b.jumps.Jumped(&coord.Jumped{Client: app, Topic: "a", Target: 10})
		b.group.Commit(b.now, &b.cfg, &coord.Commit{Group: "g", Client: app, Retention: retention, Topics: []coord.CommitTopic{{
			Name: "a", ID: ident.TopicID{7}, Partitions: []coord.CommitPartition{{Offset: 20, LeaderEpoch: 3, Metadata: "m"}},
		}}}, b.jumps, &b.out)
		e := b.out.Entries[0]
		loaded, err := records.Decode(e.AppendKey(nil), e.AppendValue(nil))
		if err != nil {
			t.Fatal(err)
		}
		alive := b.group.Get("a", 0)
		if got := loaded.(*records.OffsetCommit).Value; !reflect.DeepEqual(got, alive) {
			t.Errorf("kept for %d ms: alive it is %+v, loaded %+v", retention, alive, got)
		}
		if known := alive.Jump != nil && !alive.TopicID.IsZero(); known != (retention < 0) {
			t.Errorf("kept for %d ms: %+v", retention, alive)
		}
		if want := b.now.Wall; retention > 0 && alive.ExpireTime <= want {
			t.Errorf("kept for %d ms: it ends at %d, and it is %d", retention, alive.ExpireTime, want)
		}
	}
}
