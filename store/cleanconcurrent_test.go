package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
)

// TestCompactionBesideItsOwner has a run work on a goroutine of its own, and swaps done
// by a third one, while the log's owner goes on: for the race detector, and on a real disk.
func TestCompactionBesideItsOwner(t *testing.T) {
	s := newStory(t, func(c *store.LogConfig) { c.FileDeleteDelayMs = 0 })
	if err := errors.Join(s.log.Close(true), s.dir.Close(true, 1)); err != nil {
		t.Fatal(err)
	}
	var background worker
	d, _, err := store.OpenDirectory(store.DirectoryOptions{
		FS: store.OS(), Path: t.TempDir() + "/data", Broker: 1, Rand: seeded(1), Generations: &store.Generations{}, Background: background.Run,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.dir = d
	s.openLog()
	type worked struct {
		step store.CleanStep
		err  error
	}
	var run *store.CleanRun
	results := make(chan worked, 1)
	work := func() {
		r, now := run, s.now
		go func() {
			step, err := r.Work(now)
			results <- worked{step, err}
		}()
	}
	swaps := 0
	for i := range 3000 {
		s.now += 5
		s.put(nil, fmt.Sprintf("k%d=%d", i%17, i), fmt.Sprintf("j%d=%d", i%5, i))
		switch {
		case i%20 == 0:
			flush(t, s.dir, s.log)
		case i%7 == 0:
			s.batches()
		case i%31 == 0:
			if _, err := s.log.ApplyRetention(s.now, s.log.End()); err != nil {
				t.Fatal(err)
			}
		}
		if run == nil {
			if run, err = s.log.BeginClean(s.now, s.log.End(), store.CleanOptions{MapBytes: 1 << 16, LoadFactor: 0.9}); err != nil {
				t.Fatal(err)
			}
			if run != nil {
				work()
			}
			continue
		}
		select {
		case w := <-results:
			switch {
			case w.err != nil:
				t.Fatal(w.err)
			case w.step == store.CleanDone:
				s.log.EndClean(run)
				run = nil
				continue
			case w.step == store.CleanSwap:
				if err := s.log.SwapCleaned(run, s.now); err != nil {
					t.Fatal(err)
				}
				swaps++
			}
			work()
		default:
		}
	}
	if run != nil {
		<-results
		s.log.EndClean(run)
	}
	background.Wait()
	s.close()
	s.clean(store.CleanOptions{})
	background.Wait()
	if got := strings.Count(s.text(), "="); got != 17+5 {
		t.Fatalf("%d records of 22 keys: %s", got, s.text())
	}
	if swaps == 0 {
		t.Fatal("nothing was swapped meanwhile")
	}
	if err := errors.Join(s.log.Close(true), s.dir.Close(true, 1)); err != nil {
		t.Fatal(err)
	}
	background.Wait()
}
