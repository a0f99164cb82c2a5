package store_test

import (
	"testing"

	"github.com/troupe-broker/troupe/store"
)

// What is damaged below the log start, in a segment that is there for what lies above, is nobody's to read: it keeps no log from being compacted.
func TestDamageBelowTheLogStartStopsNoCompaction(t *testing.T) {
	for n := range 3 {
		s := newStory(t)
		s.put(nil, "a=1")
		size := int64(len(s.batches()[0]))
		for _, w := range []string{"b=1", "c=1", "b=2"} {
			s.put(nil, w)
		}
		s.close()
		s.put(nil, "z=1")
		s.close()
		start := s.log.Start() + 2
		if n == 2 {
			start-- // the damage reaches up to it and beyond
		}
		if err := s.log.SetStart(start); err != nil {
			t.Fatal(err)
		}
		flush(t, s.dir, s.log)
		s.disk.Flip(segmentFile(0, "log"), size*int64(min(n, 1))+size-1, 1)
		if n == 2 {
			run, err := s.log.BeginClean(s.now, s.log.End(), store.CleanOptions{MapBytes: 1 << 16, LoadFactor: 0.9})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := run.Work(s.now); err == nil || run.Unsound() != (store.OffsetRange{From: 1, To: 2}) {
				t.Errorf("%v is told, %v", run.Unsound(), err)
			}
			continue
		}
		if st := s.clean(store.CleanOptions{}); st.Segments == 0 {
			t.Errorf("batch %d: nothing was compacted: %+v", n, st)
		}
		s.want("2:c=1 3:b=2 4:z=1")
		s.stop("kill")
		s.open()
		s.want("2:c=1 3:b=2 4:z=1")
		if d := s.log.Damage(); len(d) > 0 {
			t.Errorf("%v is damaged", d)
		}
	}
}
