package store_test

import (
	"testing"

	"github.com/troupe-broker/troupe/store"
)

// A damaged batch whose header says that it goes on above the log start, which lies right behind it. Nobody is to be given it who reads from the start: not before
// a restart, nor after it, and not from the file that a repair of what is damaged beside it has written.
func TestDamageBelowTheLogStartIsReadByNobody(t *testing.T) {
	const lastOffsetDelta = 23 // where its four bytes are
	for _, compact := range []bool{true, false} {
		w := newTwo(t)
		for _, s := range []*story{w.a, w.b} {
			s.cfg.Compact = compact
			s.log.Configure(s.cfg)
		}
		for _, s := range []*story{w.a, w.b} {
			for _, word := range []string{"a=1", "b=1", "c=1", "d=1"} {
				s.put(nil, word)
			}
			s.close()
		}
		w.put("z=1")
		s := w.a
		size := int64(len(s.batches()[0]))
		s.disk.Flip(segmentFile(0, "log"), size+lastOffsetDelta+2, 1)
		if err := s.log.Condemn(store.OffsetRange{From: 1, To: 2}, s.now); err != nil {
			t.Fatal(err)
		}
		if d := s.log.Damage(); len(d) != 1 || d[0] != (store.OffsetRange{From: 1, To: 2}) {
			t.Fatalf("%v is damaged", d)
		}
		if _, err := s.log.NewDamage(s.now); err != nil {
			t.Fatal(err)
		}
		for _, s := range []*story{w.a, w.b} {
			if err := s.log.SetStart(2); err != nil {
				t.Fatal(err)
			}
			flush(t, s.dir, s.log)
		}
		want := func(text string) {
			t.Helper()
			if d := s.log.Damage(); len(d) > 0 {
				t.Errorf("%v is damaged, below the log start", d)
			}
			s.want(text)
		}
		restart := func() {
			t.Helper()
			if err := s.dir.Checkpoint(); err != nil {
				t.Fatal(err)
			}
			s.stop("kill")
			s.open()
		}
		want("2:c=1 3:d=1 4:z=1")
		restart()
		want("2:c=1 3:d=1 4:z=1")
		if r, err := s.log.BeginRepair(0, s.now); r != nil || err != nil {
			t.Errorf("a repair of what nobody reads begins: %v", err)
		}
		w.harm(3)
		w.mend(nil)
		want("2:c=1 3:d=1 4:z=1")
		restart()
		want("2:c=1 3:d=1 4:z=1")
		if compact {
			w.put("c=2", "d=2")
			if st := s.clean(store.CleanOptions{}); st.Segments == 0 {
				t.Errorf("nothing was compacted: %+v", st)
			}
			want("4:z=1 5:c=2 6:d=2")
			continue
		}
		if err := s.log.SetStart(4); err != nil {
			t.Fatal(err)
		}
		flush(t, s.dir, s.log)
		if _, err := s.log.ApplyRetention(s.now, s.log.End()); err != nil {
			t.Fatal(err)
		}
		want("4:z=1")
	}
}
