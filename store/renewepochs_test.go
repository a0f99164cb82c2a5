package store_test

import (
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/record"
)

// The batches with which an epoch began are compacted away, and the epoch file is lost. What is rebuilt from the batches has the gap be the epoch's: the leader may have
// what was there, and a replica that was cut off may have something else there, of an older epoch, which has to go.
func TestAnEpochThatIsReadFromTheBatchesBeginsBelowItsGap(t *testing.T) {
	for _, how := range []string{"kill", "clean", "power loss"} {
		t.Run(how, func(t *testing.T) {
			w := newTwo(t)
			w.put("a=1", "x=1")
			next := func(b *record.Builder) { b.LeaderEpoch = 1 }
			for _, words := range [][]string{{"a=2"}, {"a", "y=1"}, {"c=1"}} {
				for _, s := range []*story{w.a, w.b} {
					s.put(next, words...)
					s.close()
				}
			}
			w.a.clean(store.CleanOptions{})
			s := w.a
			s.stop(how)
			if err := s.fs.Remove("/data/orders-3/leader-epoch-checkpoint"); err != nil {
				t.Fatal(err)
			}
			s.open()
			if _, end := s.log.EpochEnd(0); end != 2 {
				t.Errorf("epoch 0 ends at %d, and what is behind offset 1 is of epoch 1", end)
			}
			w.harm(1)
			w.mend(nil)
			w.b.want(w.a.text())
		})
	}
}

// The first batches of the log are compacted away: the epoch begins where the log does.
func TestAnEpochThatIsReadFromTheBatchesBeginsWithTheLog(t *testing.T) {
	s := newStory(t)
	for _, words := range [][]string{{"a=0"}, {"a=1", "x=1"}, {"c=1"}} {
		s.put(nil, words...)
		s.close()
	}
	s.clean(store.CleanOptions{})
	s.want("1:a=1 2:x=1 3:c=1")
	s.stop("kill")
	if err := s.fs.Remove("/data/orders-3/leader-epoch-checkpoint"); err != nil {
		t.Fatal(err)
	}
	s.open()
	if list := s.log.Epochs(nil); len(list) != 1 || list[0] != (store.Epoch{Epoch: 0, Start: 0}) {
		t.Errorf("the epochs are %v", list)
	}
}
