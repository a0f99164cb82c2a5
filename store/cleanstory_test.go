package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

func TestCompactionKeepsTheLastRecordOfEachKey(t *testing.T) {
	s := newStory(t)
	s.put(nil, "a=1", "b=1", "c=1")
	s.close()
	s.put(nil, "a=2", "c")
	s.close()
	s.put(nil, "b=2") // in the active segment, which is not looked at
	stats := s.clean(store.CleanOptions{})
	s.want("1:b=1 3:a=2 4:c 5:b=2")
	if stats.To != 5 || stats.Dropped != 2 || stats.Segments != 2 || s.log.FirstDirty() != 5 {
		t.Fatalf("%+v", stats)
	}
	if c, err := s.log.Cleanable(s.now, s.log.End()); err != nil || c.Dirty != 0 || c.Due {
		t.Fatalf("%+v, %v", c, err)
	}
}

// Catalogue 93, 103, 104.
func TestCompactionLeavesMarkersAndTransactionsAlone(t *testing.T) {
	s := newStory(t)
	marker := func(b *record.Builder) { b.Control, b.ProducerID, b.ProducerEpoch = true, 4, 0 }
	open := func(b *record.Builder) {
		b.Transactional, b.ProducerID, b.ProducerEpoch, b.BaseSequence = true, 4, 0, 0
	}
	s.put(nil, "a=1", "\x00\x00\x00\x00=user")
	s.put(open, "a=aborted")
	s.put(marker, "\x00\x00\x00\x00=abort")
	s.put(nil, "\x00\x00\x00\x00=user2")
	s.put(marker, "a=commit")
	s.close()
	s.put(nil, "z=1")
	s.clean(store.CleanOptions{})
	s.want("0:a=1 2:a=aborted 3:\x00\x00\x00\x00=abort 4:\x00\x00\x00\x00=user2 5:a=commit 6:z=1")
}

// Catalogue 95.
func TestATombstoneStaysForItsTimeAfterWhatItDeletesHasGone(t *testing.T) {
	s := newStory(t)
	s.put(nil, "a=1")
	s.close()
	s.put(nil, "a", "b=1")
	s.close()
	s.now += 100_000 // it is old, but nobody has cleaned
	s.clean(store.CleanOptions{})
	s.want("1:a 2:b=1")
	horizon := s.now + 5000
	for _, v := range s.batches() {
		if v.Count() > 0 && v.DeleteHorizon() != horizon {
			t.Fatalf("the horizon is %d, want %d", v.DeleteHorizon(), horizon)
		}
	}
	s.now += 4999
	s.put(nil, "c=1")
	s.close()
	s.clean(store.CleanOptions{})
	s.want("1:a 2:b=1 3:c=1")
	s.now++
	s.put(nil, "c=2")
	s.close()
	s.clean(store.CleanOptions{})
	s.want("2:b=1 4:c=2")
}

// Catalogue 95 and 100 together: a tombstone whose key the first run did not know yet
// still has all its time when the second one takes away what it deletes.
func TestATombstonesTimeBeginsWhenItsKeyIsKnown(t *testing.T) {
	s := newStory(t)
	s.put(nil, "a=1", "b=1", "c=1", "c=2", "a")
	s.close()
	full := store.CleanOptions{MapBytes: 2 * 24, LoadFactor: 0.99}
	if stats := s.clean(full); !stats.Full || stats.To != 1 {
		t.Fatalf("%+v", stats)
	}
	s.now += 100_000
	for s.log.FirstDirty() < 5 {
		s.clean(store.CleanOptions{})
	}
	s.want("1:b=1 3:c=2 4:a")
	for _, v := range s.batches() {
		if v.DeleteHorizon() != s.now+5000 {
			t.Fatalf("the horizon is %d at %d", v.DeleteHorizon(), s.now)
		}
	}
}

// Catalogue 96.
func TestTheLastSequenceOfAProducerOutlivesItsRecords(t *testing.T) {
	s := newStory(t)
	from := func(id ident.ProducerID, seq ident.Sequence) func(*record.Builder) {
		return func(b *record.Builder) { b.ProducerID, b.ProducerEpoch, b.BaseSequence = id, 0, seq }
	}
	s.put(from(1, 0), "a=1", "b=1")
	s.put(from(1, 2), "a=2", "b=2")
	s.put(from(2, 0), "a=3") // of a producer that the partition has forgotten
	s.put(nil, "a=4", "b=4")
	s.close()
	s.known = []record.ProducerEntry{{ProducerID: 1, LastSequence: 3, LastOffset: 3}}
	s.clean(store.CleanOptions{})
	s.want("5:a=4 6:b=4")
	var empty []string
	for _, v := range s.batches() {
		if v.Count() == 0 {
			h := v.Header()
			empty = append(empty, fmt.Sprintf("%d:%d+%d", h.ProducerID, h.BaseSequence, h.LastOffsetDelta))
		}
	}
	if fmt.Sprint(empty) != "[1:2+1]" {
		t.Fatalf("the headers left are %v", empty)
	}
	s.stop("kill")
	for _, n := range s.names(".snapshot") {
		if err := s.fs.Remove("/data/orders-3/" + n); err != nil {
			t.Fatal(err)
		}
	}
	s.open()
	if p := s.seen[1]; p.LastSequence != 3 || p.LastOffset != 3 {
		t.Fatalf("after a restart producer 1 is %+v", p)
	}
}

// Catalogue 97 and 99: nothing but headers with gaps between them.
func TestALogOfEmptyBatchesIsCleanedToo(t *testing.T) {
	s := newStory(t, func(c *store.LogConfig) { c.DeleteRetentionMs = 0 })
	for range 5 {
		s.put(nil, "a=1", "b=1")
		s.put(nil, "a", "b")
		s.close()
	}
	for range 3 { // the tombstones go with the second
		s.put(nil, "z=1")
		s.close()
		s.clean(store.CleanOptions{})
	}
	s.want("22:z=1")
	s.put(nil, "z")
	s.close()
	for range 3 {
		s.clean(store.CleanOptions{})
		s.stop("kill")
		s.open()
		if err := s.fs.Remove("/data/cleaner-offset-checkpoint"); err != nil && !strings.Contains(err.Error(), "not exist") {
			t.Fatal(err)
		}
		flush(t, s.dir, s.log)
	}
	if s.text() != "" && s.text() != "23:z" {
		t.Fatalf("read %q", s.text())
	}
	if s.log.End() != 24 {
		t.Fatalf("the log ends at %d", s.log.End())
	}
}

// Catalogue 98.
func TestABatchLargerThanTheBufferIsCleaned(t *testing.T) {
	s := newStory(t, func(c *store.LogConfig) { c.SegmentBytes = 4 << 20 })
	large := strings.Repeat("x", 400<<10)
	s.put(nil, "a="+large, "b="+large)
	s.put(nil, "a="+large)
	s.close()
	s.clean(store.CleanOptions{MapBytes: 4096, LoadFactor: 0.9, BufferBytes: 1})
	s.want("1:b=" + large + " 2:a=" + large)
}

// Catalogue 100.
func TestKeysThatDoNotFitAreLeftToTheNextRun(t *testing.T) {
	s := newStory(t)
	for i := range 40 {
		s.put(nil, fmt.Sprintf("k%d=old", i), fmt.Sprintf("j%d=old", i))
		s.put(nil, fmt.Sprintf("k%d=new", i))
		if i%7 == 0 {
			s.close()
		}
	}
	s.close()
	runs, last := 0, ident.Offset(-1)
	for {
		stats := s.clean(store.CleanOptions{MapBytes: 10 * 24, LoadFactor: 0.9})
		if stats.To == stats.From {
			break
		}
		if stats.To <= last {
			t.Fatalf("run %d went to %d, the one before to %d", runs, stats.To, last)
		}
		last = stats.To
		runs++
	}
	if runs < 8 || strings.Count(s.text(), "=new") != 40 || strings.Count(s.text(), "k0=old") != 0 || strings.Count(s.text(), "j") != 40 {
		t.Fatalf("%d runs left %s", runs, s.text())
	}
}

// Catalogue 101.
func TestALogThatStartsInItsActiveSegmentIsClean(t *testing.T) {
	s := newStory(t)
	s.put(nil, "a=1")
	s.close()
	s.put(nil, "a=2")
	flush(t, s.dir, s.log)
	if err := s.log.SetStart(s.log.End()); err != nil {
		t.Fatal(err)
	}
	if stats := s.clean(store.CleanOptions{}); stats.Segments != 0 {
		t.Fatalf("%+v", stats)
	}
}

// Catalogue 102: what takes the ground from under a run that has written its group.
func TestARunEndsWhenItsLogChanges(t *testing.T) {
	for name, change := range map[string]func(*story){
		"compact is no policy any more": func(s *story) {
			s.cfg.Compact = false
			s.log.Configure(s.cfg)
		},
		"retention has taken a source": func(s *story) {
			s.cfg.DeleteRetained, s.cfg.RetentionBytes = true, 0
			s.log.Configure(s.cfg)
			if _, err := s.log.ApplyRetention(s.now, s.log.End()); err != nil {
				s.t.Fatal(err)
			}
			flush(s.t, s.dir, s.log)
		},
		"a truncation has cut a source": func(s *story) {
			if _, err := s.log.Truncate(1, s.now); err != nil {
				s.t.Fatal(err)
			}
			s.put(func(b *record.Builder) { b.LeaderEpoch = 1 }, "a=other")
		},
		"the log was deleted": func(s *story) {
			if err := s.dir.DeleteLog(s.log); err != nil {
				s.t.Fatal(err)
			}
			s.openLog()
			s.put(nil, "a=fresh")
		},
		"a source is damaged": func(s *story) {
			if err := s.log.Condemn(store.OffsetRange{From: 0, To: 1}, s.now); err != nil {
				s.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.put(nil, "a=1")
			s.put(nil, "a=2")
			s.put(nil, "a=3")
			s.close()
			s.put(nil, "b=1")
			log := s.log
			run, err := log.BeginClean(s.now, log.End(), store.CleanOptions{MapBytes: 4096, LoadFactor: 0.9})
			if err != nil {
				t.Fatal(err)
			}
			for step := store.CleanAgain; step != store.CleanSwap; {
				if step, err = run.Work(s.now); err != nil {
					t.Fatal(err)
				}
			}
			change(s)
			before := ""
			if name != "a source is damaged" {
				before = s.text()
			}
			if err := log.SwapCleaned(run, s.now); err == nil {
				t.Fatal("the group was swapped all the same")
			}
			if step, err := run.Work(s.now); !errors.Is(err, store.ErrCleanAborted) {
				t.Fatalf("the run goes on with %d, %v", step, err)
			}
			log.EndClean(run)
			if name != "a source is damaged" {
				s.want(before)
			}
			if left := s.names(".cleaned"); len(left) > 0 {
				t.Fatalf("left over: %v", left)
			}
		})
	}
}

// A batch that does not pass its checksum decides nothing.
func TestDamageStopsCompaction(t *testing.T) {
	s := newStory(t)
	s.put(nil, "a=1")
	s.put(nil, "a=2")
	s.close()
	s.put(nil, "a=3")
	s.close()
	s.disk.Flip("/data/orders-3/00000000000000000000.log", 75, 3)
	run, err := s.log.BeginClean(s.now, s.log.End(), store.CleanOptions{MapBytes: 4096, LoadFactor: 0.9})
	if err != nil {
		t.Fatal(err)
	}
	_, err = run.Work(s.now)
	known, coded := errors.AsType[*store.Error](err)
	if !errors.Is(err, store.ErrDamaged) || !coded || known.Code != store.CodeDamaged {
		t.Fatalf("damage gave %v", err)
	}
	if stats := s.log.EndClean(run); stats.Segments != 0 || s.dir.Offline() != nil || s.log.Segments() != 3 {
		t.Fatalf("%+v", stats)
	}
	if bad := run.Unsound(); bad != (store.OffsetRange{From: 1, To: 2}) {
		t.Fatalf("unsound is %v", bad)
	}
	if err := s.log.Condemn(run.Unsound(), s.now); err != nil {
		t.Fatal(err)
	}
	if run, err := s.log.BeginClean(s.now, s.log.End(), store.CleanOptions{}); !errors.Is(err, store.ErrDamaged) {
		t.Fatalf("a damaged log is cleaned: %v, %v", run, err)
	}
}

func TestAFullDiskPutsCompactionOff(t *testing.T) {
	for _, rule := range []string{"write *.log.cleaned: ENOSPC", "open *.log.cleaned: ENOSPC", "write *index.cleaned: ENOSPC", "open *.log: EMFILE"} {
		s := newStory(t, func(c *store.LogConfig) { c.IndexIntervalBytes = 0 })
		faults := storetest.Faults(s.disk.FS())
		if err := errors.Join(s.log.Close(true), s.dir.Close(true, 1)); err != nil {
			t.Fatal(err)
		}
		s.fs = faults
		s.open()
		for range 30 {
			s.put(nil, "a=1", "b=2")
		}
		s.close()
		before := s.text()
		run, err := s.log.BeginClean(s.now, s.log.End(), store.CleanOptions{MapBytes: 4096, LoadFactor: 0.9})
		if err != nil {
			t.Fatal(err)
		}
		faults.Add(rule)
		for step := store.CleanAgain; err == nil && step == store.CleanAgain; {
			step, err = run.Work(s.now)
		}
		if !store.IsRetriable(err) {
			t.Fatalf("%s: %v", rule, err)
		}
		faults.Clear()
		s.log.EndClean(run)
		s.want(before)
		if left := s.names(".cleaned"); len(left) > 0 || s.dir.Offline() != nil {
			t.Fatalf("%s: left over %v, %v", rule, left, s.dir.Offline())
		}
		s.clean(store.CleanOptions{})
		s.want("58:a=1 59:b=2")
	}
}

// What a socket holds does not change under it.
func TestARegionOutlivesTheSwapOfItsSegment(t *testing.T) {
	s := newStory(t, func(c *store.LogConfig) { c.FileDeleteDelayMs = 0 })
	s.put(nil, "a=1")
	s.put(nil, "a=2")
	s.close()
	region, err := s.log.Read(0, 2, 1<<20, true)
	if err != nil {
		t.Fatal(err)
	}
	defer region.Release()
	before, after := make([]byte, region.Len()), make([]byte, region.Len())
	if _, err := region.ReadAt(before, 0); err != nil {
		t.Fatal(err)
	}
	s.clean(store.CleanOptions{})
	s.now += 10
	if _, err := s.log.ApplyRetention(s.now, 0); err != nil {
		t.Fatal(err)
	}
	if left := s.names(".deleted"); len(left) > 0 {
		t.Fatalf("the sources are still there: %v", left)
	}
	if _, err := region.ReadAt(after, 0); err != nil || !bytes.Equal(before, after) {
		t.Fatalf("the bytes changed, %v", err)
	}
	s.want("1:a=2")
}

func TestCompactionLags(t *testing.T) {
	s := newStory(t, func(c *store.LogConfig) {
		c.MinCompactionLagMs, c.MaxCompactionLagMs, c.MinCleanableRatio = 1000, 3000, 0.99
	})
	s.put(nil, "a=1")
	s.close()
	s.put(nil, "a=2")
	s.close()
	look := func() store.Cleanable {
		c, err := s.log.Cleanable(s.now, s.log.End())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	s.now += 999
	if c := look(); c.Dirty != 0 {
		t.Fatalf("too young, and %+v", c)
	}
	s.now++
	if c := look(); c.Dirty == 0 || !c.Due { // all of it is dirty: above any ratio
		t.Fatalf("%+v", c)
	}
	s.clean(store.CleanOptions{})
	s.put(nil, "b=1")
	s.close()
	s.now += 1000
	if c := look(); c.Dirty == 0 || c.Due || c.Ratio() <= 0 || c.Ratio() >= 0.99 {
		t.Fatalf("%+v", c)
	}
	s.now += 2001
	if c := look(); !c.Due || c.Overdue != 1 {
		t.Fatalf("overdue: %+v", c)
	}
}

func TestTheCleanersCheckpointIsKafkasAndACache(t *testing.T) {
	const name = "/data/cleaner-offset-checkpoint"
	s := newStory(t)
	s.put(nil, "a=1")
	s.put(nil, "a=2")
	s.close()
	s.clean(store.CleanOptions{})
	restart := func(text string, kept bool) {
		t.Helper()
		if err := errors.Join(s.log.Close(true), s.dir.Close(true, 1)); err != nil {
			t.Fatal(err)
		}
		f, err := s.fs.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if kept {
			have := make([]byte, 100)
			if n, _ := f.ReadAt(have, 0); string(have[:n]) != text { // it ends before the buffer does
				t.Fatalf("the file says %q, want %q", have[:n], text)
			}
		} else if _, err := f.WriteAt([]byte(text), 0); err != nil {
			t.Fatal(err)
		} else if err := f.Truncate(int64(len(text))); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		s.open()
	}
	restart("0\n1\norders 3 2\n", true)
	if s.log.FirstDirty() != 2 {
		t.Fatalf("first dirty %d", s.log.FirstDirty())
	}
	for _, noise := range []string{"0\n1\norders 3 700\n", "noise", ""} {
		restart(noise, false)
		if s.log.FirstDirty() != 0 {
			t.Fatalf("%q: first dirty %d", noise, s.log.FirstDirty())
		}
		s.clean(store.CleanOptions{})
		s.want("1:a=2")
	}
	if err := s.dir.DeleteLog(s.log); err != nil {
		t.Fatal(err)
	}
	s.openLog()
	if s.log.FirstDirty() != 0 {
		t.Fatalf("a new log is dirty from %d on", s.log.FirstDirty())
	}
}

// A log that is deleted while a run writes must not take its directory down.
func TestARunWhoseLogIsDeletedHarmsNobody(t *testing.T) {
	for point := 1; point < 40; point++ {
		s := newStory(t, func(c *store.LogConfig) { c.IndexIntervalBytes = 0 })
		for range 40 {
			s.put(nil, "a=1", "b=2")
		}
		s.close()
		run, err := s.log.BeginClean(s.now, s.log.End(), store.CleanOptions{MapBytes: 4096, LoadFactor: 0.9})
		if err != nil {
			t.Fatal(err)
		}
		n, deleted := 0, false
		s.disk.OnPoint = func(p storetest.Point) {
			if n++; n == point && !deleted && !strings.HasSuffix(p.Name, ".log.cleaned") { // that one is made under the lock
				deleted = true
				if err := s.dir.DeleteLog(s.log); err != nil {
					t.Fatal(err)
				}
			}
		}
		step := store.CleanAgain
		for err == nil && step == store.CleanAgain {
			step, err = run.Work(s.now)
		}
		s.disk.OnPoint = nil
		if !deleted {
			continue
		}
		if err == nil {
			err = s.log.SwapCleaned(run, s.now)
		}
		if err == nil {
			t.Fatalf("point %d: a deleted log was compacted", point)
		}
		run.Abandon()
		if off := s.dir.Offline(); off != nil {
			t.Fatalf("point %d: %v", point, off)
		}
	}
}

// A repair puts another file in the place of one that a compaction reads by its name. The compaction is over then: what it would find at its positions is no damage,
// and what has come is not clean.
func TestACompactionEndsWithTheRepairOfWhatItReads(t *testing.T) {
	s := newStory(t)
	s.put(nil, "a=1")
	s.put(nil, "a=2")
	s.close()
	s.put(nil, "b=3")
	s.close()
	// repair gets the batch at offset 1 again from a replica that has it in more bytes.
	repair := func() {
		t.Helper()
		if err := s.log.Condemn(store.OffsetRange{From: 1, To: 2}, s.now); err != nil {
			t.Fatal(err)
		}
		b := record.NewBuilder()
		b.LeaderEpoch = 0
		b.Append(s.now, []byte("a"), []byte(strings.Repeat("2", 100)))
		out, err := b.Finish(nil)
		if err != nil {
			t.Fatal(err)
		}
		record.View(out).SetBaseOffset(1)
		r, err := s.log.BeginRepair(0, s.now)
		if err != nil {
			t.Fatal(err)
		}
		if err := fillFrom(t, r, []record.View{out}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.log.SwapRepaired(r, s.now); err != nil {
			t.Fatal(err)
		}
		for len(s.names(".repaired"))+len(s.names(".swap")) > 0 {
			runtime.Gosched()
		}
	}
	begin := func() *store.CleanRun {
		t.Helper()
		run, err := s.log.BeginClean(s.now, s.log.End(), store.CleanOptions{MapBytes: 4096, LoadFactor: 0.9})
		if err != nil || run == nil {
			t.Fatalf("no run begins: %v", err)
		}
		if step, err := run.Work(s.now); err != nil || step != store.CleanAgain {
			t.Fatalf("the keys are noted: step %d, %v", step, err)
		}
		return run
	}
	run := begin()
	repair()
	if _, err := run.Work(s.now); !errors.Is(err, store.ErrCleanAborted) || run.Unsound() != (store.OffsetRange{}) {
		t.Errorf("a run after the repair of what it reads: %v, unsound %v", err, run.Unsound())
	}
	s.log.EndClean(run)

	run = begin()
	for step := store.CleanAgain; step != store.CleanDone; {
		var err error
		if step, err = run.Work(s.now); err != nil {
			t.Fatal(err)
		}
		if step == store.CleanSwap {
			if err := s.log.SwapCleaned(run, s.now); err != nil {
				t.Fatal(err)
			}
		}
	}
	repair()
	if s.log.EndClean(run); s.log.FirstDirty() > 1 {
		t.Errorf("what was repaired at offset 1 counts as clean up to %d", s.log.FirstDirty())
	}
}
