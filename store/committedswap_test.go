package store_test

import (
	"fmt"
	"os"
	"testing"
)

// TestACommittedSegmentOutlivesTheNextCompaction: the process died behind the last rename of a swap, the next one began another compaction of the segment, and
// the power failed: the disk has the name before that rename, and the new .cleaned file beside it. What was committed is all there is.
func TestACommittedSegmentOutlivesTheNextCompaction(t *testing.T) {
	for n := range 3 {
		s := newStory(t)
		for i := range 3 {
			s.put(nil, fmt.Sprint("a", i, "=1"), fmt.Sprint("b", i, "=1"))
			s.close()
		}
		s.put(nil, "z=1")
		s.close()
		want := s.text()
		s.stop("kill")
		name := fmt.Sprintf("/data/orders-3/%020d.log", 2*n)
		if err := s.fs.Rename(name, name+".swap"); err != nil {
			t.Fatal(err)
		}
		f, err := s.fs.OpenFile(name+".cleaned", os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		s.open()
		if s.text() != want {
			t.Errorf("segment %d: read %q, want %q", n, s.text(), want)
		}
		if left := append(s.names(".swap"), s.names(".cleaned")...); len(left) > 0 {
			t.Errorf("segment %d: %v are left", n, left)
		}
	}
}
