package broker

import (
	"testing"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/group"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// A load goes on behind offsets that are missing, up to the end that the log had when it began.
func TestALoadPassesOverMissingOffsets(t *testing.T) {
	l := &groupLoad{end: ident.NoOffset}
	for _, step := range []struct {
		start, end, reached ident.Offset
		next                ident.Offset
		moved               bool
	}{
		{start: 5, end: 20, reached: 0, next: 5, moved: true},    // what was below has been deleted
		{start: 5, end: 25, reached: 5, next: 5, moved: false},   // the rest is not committed yet
		{start: 5, end: 25, reached: 20, next: 20, moved: true},  // a gap, up to the end
		{start: 5, end: 25, reached: 20, next: 20, moved: false}, // done
	} {
		if moved := l.advance(step.start, step.end, step.reached); moved != step.moved || l.next != step.next || l.end != 20 {
			t.Errorf("%+v: moved %v to %d, end %d", step, moved, l.next, l.end)
		}
	}
}

// A batch that cannot be taken apart ends a load: what it said is not known. A record that cannot be understood is passed over.
func TestWhatEndsALoadAndWhatDoesNot(t *testing.T) {
	commit := &records.OffsetCommit{Group: "g", Topic: "t", Value: &records.Offset{Offset: 5, LeaderEpoch: -1, ExpireTime: ident.NoTimestamp}}
	batch := func(entries ...[]byte) []byte {
		b := record.NewBuilder()
		for _, value := range entries {
			b.Append(1, commit.AppendKey(nil), value)
		}
		made, err := b.Finish(nil)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	good, bad := commit.AppendValue(nil), []byte{0, 1, 7}
	torn := batch(good)
	miscounted := batch(good)
	miscounted[60] = 9 // of the records
	for _, tc := range []struct {
		name         string
		bytes        []byte
		fails        bool
		applied, bad int64
	}{
		{name: "sound", bytes: batch(good, good), applied: 2},
		{name: "a record that cannot be understood", bytes: batch(good, bad, good), applied: 2, bad: 1},
		{name: "a torn batch", bytes: torn[:len(torn)-1], fails: true},
		{name: "fewer records than it says", bytes: miscounted, fails: true, applied: 1},
	} {
		l := &groupLoad{shard: group.New(coord.DefaultConfig(), viewTopics(cluster.NewImage()))}
		j := &loadGroups{load: l, log: zerolog.Nop()}
		bug, err := j.guarded(tc.bytes)
		if bug != "" || (err != nil) != tc.fails || l.bad != tc.bad || l.applied != tc.applied {
			t.Errorf("%s: bug %q, error %v, %d records applied, %d bad", tc.name, bug, err, l.applied, l.bad)
		}
	}
}
