package store_test

import (
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// TestASegmentThatIsSplitAtTheMarkHasLostNothing: compaction joined what was flushed and what was not into one segment, and left nothing right below the durable
// mark. After a sync that failed a recovery made a segment of its own of what lies above; the rest ended below the mark, where a file that was written before
// the compaction told that a segment ended there, and the gap counted as damage.
func TestASegmentThatIsSplitAtTheMarkHasLostNothing(t *testing.T) {
	const ends = "/data/orders-3/segment-ends"
	s := newStory(t)
	s.stop("clean")
	broken := storetest.Faults(s.fs)
	s.fs = broken
	s.open()
	s.put(nil, "a=1")
	s.put(nil, "b=1")
	s.close()
	if err := s.dir.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	before := contents(t, s.fs, ends)
	s.put(nil, "b=2")
	s.close()
	s.clean(store.CleanOptions{})
	s.put(nil, "c=1")
	broken.Add("sync *.log from 1: EIO")
	syncBroken(t, s.dir, s.log)
	s.stop("kill")
	// The newer ones were not written any more.
	overwrite(t, s.fs, ends, before)
	if err := s.fs.Remove("/data/control-block"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.open()
		if d := s.log.Damage(); len(d) > 0 {
			t.Fatalf("%v is damaged", d)
		}
		s.want("0:a=1 2:b=2 3:c=1")
		s.stop("kill")
	}
}
