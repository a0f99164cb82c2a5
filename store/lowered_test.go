package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// A full disk keeps it from being written down that what a repair brings is to be compacted anew. Then nothing is put in its place: a process that dies next would
// leave word that it is clean. The word on disk may be of this process, or of the one before.
func TestNothingIsRepairedWhileTheDiskCallsItClean(t *testing.T) {
	for _, before := range []bool{false, true} {
		w := newTwo(t)
		s := w.a
		var faults *storetest.Injector
		reopen := func() {
			s.stop("kill")
			faults = storetest.Faults(s.fs)
			s.fs = faults
			s.open()
		}
		reopen()
		w.forgetTombstone(s)
		if err := s.dir.Checkpoint(); err != nil || s.log.FirstDirty() == 0 {
			t.Fatal(s.log.FirstDirty(), err)
		}
		if before {
			reopen()
		}
		w.harm(1)
		faults.Add("write cleaner-offset-checkpoint*: ENOSPC")
		was := s.names(".log")
		r, err := s.log.BeginRepair(0, s.now)
		if err != nil {
			t.Fatal(err)
		}
		if err = w.fill(r, nil); err == nil {
			_, err = s.log.SwapRepaired(r, s.now)
		}
		if !errors.Is(err, store.ErrNoSpace) {
			t.Errorf("before %t: a repair on a full disk: %v", before, err)
		}
		if err := s.dir.Checkpoint(); !errors.Is(err, store.ErrNoSpace) {
			t.Errorf("before %t: a checkpoint of what is clean no more: %v", before, err)
		}
		faults.Clear()
		if got := s.names(".log"); len(got) != len(was) || len(s.log.Damage()) != 1 {
			t.Errorf("before %t: %v were %v, %v is damaged", before, got, was, s.log.Damage())
		}
		w.mend(nil)
		s.stop("kill")
		s.open()
		if o := s.log.FirstDirty(); o != s.log.Start() {
			t.Errorf("before %t: what lies below %d counts as clean", before, o)
		}
		w.b.want(s.text())
	}
}

// What is compacted further than the disk says is compacted again after a restart, so that a full disk is no reason to fail.
func TestThatMoreIsCleanNeedNotBeWritten(t *testing.T) {
	w := newTwo(t)
	s := w.a
	s.stop("kill")
	faults := storetest.Faults(s.fs)
	s.fs = faults
	s.open()
	faults.Add("write cleaner-offset-checkpoint*: ENOSPC")
	w.forgetTombstone(s)
	if err := s.dir.Checkpoint(); err != nil || s.log.FirstDirty() == 0 {
		t.Errorf("clean below %d, %v", s.log.FirstDirty(), err)
	}
	if faults.Hits() == 0 {
		t.Error("nobody tried to write it")
	}
}

// A log that is deleted and made anew, while a full disk keeps how far the former one was compacted from being taken back, would have that hold for it.
func TestALogThatIsMadeAnewIsNotAsCleanAsTheFormerOne(t *testing.T) {
	w := newTwo(t)
	s := w.a
	s.stop("kill")
	faults := storetest.Faults(s.fs)
	s.fs = faults
	s.open()
	w.forgetTombstone(s)
	if err := s.dir.Checkpoint(); err != nil || s.log.FirstDirty() == 0 {
		t.Fatal(s.log.FirstDirty(), err)
	}
	faults.Add("write cleaner-offset-checkpoint*: ENOSPC")
	if err := s.dir.DeleteLog(s.log); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, _, err := s.dir.OpenLog(testPartition, topicID("another"), s.cfg, store.LogHooks{}, s.now); !errors.Is(err, store.ErrNoSpace) {
			t.Fatalf("a log is made whose name has a line on disk: %v", err)
		}
	}
	faults.Clear()
	s.openLog()
	for range 8 {
		s.put(nil, "a=2")
	}
	s.close()
	s.stop("kill")
	s.open()
	if o := s.log.FirstDirty(); o != 0 {
		t.Errorf("the new log is clean below %d", o)
	}
}

// The word that more is clean got its name, and then the directory could not be synced for lack of space: on disk is the new word or the former one. When less is clean
// after that, be it as little as before, neither may stay.
func TestAWordThatMayBeOnDiskIsTakenBack(t *testing.T) {
	tolerated := 0
	for nth := 1; nth <= 8; nth++ {
		for _, full := range []bool{false, true} {
			for _, how := range []string{"kill", "power loss"} {
				w := newTwo(t)
				s := w.a
				s.stop("kill")
				faults := storetest.Faults(s.fs)
				s.fs = faults
				s.open()
				w.forgetTombstone(s)
				faults.Add(fmt.Sprintf("syncdir data nth %d: ENOSPC", nth))
				if err := s.dir.Checkpoint(); err == nil && faults.Hits() > 0 {
					tolerated++
				}
				faults.Clear()
				w.harm(1)
				if full {
					faults.Add("write cleaner-offset-checkpoint*: ENOSPC")
				}
				r, err := s.log.BeginRepair(0, s.now)
				if err != nil {
					t.Fatal(err)
				}
				if err = w.fill(r, nil); err == nil {
					_, err = s.log.SwapRepaired(r, s.now)
				}
				if err != nil && !errors.Is(err, store.ErrNoSpace) {
					t.Fatal(err)
				}
				mended := err == nil
				if !mended && !full {
					t.Errorf("syncdir %d: %v", nth, err)
				}
				faults.Clear()
				s.stop(how)
				s.open()
				if o := s.log.FirstDirty(); mended && o != s.log.Start() {
					t.Errorf("syncdir %d, full %t, %s: what lies below %d counts as clean, and is what was repaired", nth, full, how, o)
				}
			}
		}
	}
	if tolerated == 0 {
		t.Error("no word was written that may be on disk")
	}
}

// A process dies in a truncation, when the lowered mark is on disk and the word that less is clean is not. The next one knows better, and what it appends there must not
// count as clean when it dies, too.
func TestWhatIsAppendedBelowAnOldWordIsNotClean(t *testing.T) {
	for _, how := range []string{"kill", "power loss"} {
		w := newTwo(t)
		s := w.a
		w.forgetTombstone(s)
		if err := s.dir.Checkpoint(); err != nil {
			t.Fatal(err)
		}
		clean := s.log.FirstDirty()
		s.disk.OnPoint = func(p storetest.Point) {
			if strings.HasPrefix(filepath.Base(p.Name), "cleaner-offset-checkpoint") {
				panic(crashSignal{})
			}
		}
		cut := (&repairHistory{two: w}).interrupted(func() {
			if _, err := s.log.Truncate(clean-2, s.now); err != nil {
				t.Fatal(err)
			}
		})
		if !cut {
			t.Fatal("no word was written")
		}
		s.stop("kill")
		s.open()
		end := s.log.End()
		if end >= clean {
			t.Fatalf("clean below %d, cut to %d", clean, end)
		}
		for s.log.End() <= clean {
			s.put(nil, "a=2")
		}
		s.close()
		s.stop(how)
		s.open()
		if o := s.log.FirstDirty(); o > end {
			t.Errorf("%s: cut to %d, what was appended below %d counts as clean", how, end, o)
		}
	}
}
