package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// story is a compacted log to which records are put by hand.
type story struct {
	t     *testing.T
	disk  *storetest.Disk
	fs    store.FS
	cfg   store.LogConfig
	dir   *store.Directory
	log   *store.Log
	now   ident.Millis
	known []record.ProducerEntry // that the partition remembers
	seen  map[ident.ProducerID]record.ProducerEntry
}

func newStory(t *testing.T, change ...func(*store.LogConfig)) *story {
	t.Helper()
	s := &story{t: t, disk: storetest.NewDisk(1), now: 1_000_000}
	s.cfg = smallLog()
	s.cfg.Compact, s.cfg.DeleteRetained = true, false
	s.cfg.DeleteRetentionMs = 5000
	for _, c := range change {
		c(&s.cfg)
	}
	s.fs = s.disk.FS()
	if err := s.fs.MkdirAll("/", 0o755); err != nil {
		t.Fatal(err)
	}
	s.open()
	return s
}

func (s *story) open() {
	s.t.Helper()
	s.dir, _ = openDir(s.t, s.fs, "/data")
	s.openLog()
}

func (s *story) openLog() {
	s.t.Helper()
	s.seen = map[ident.ProducerID]record.ProducerEntry{}
	l, _, err := s.dir.OpenLog(testPartition, topicID("orders"), s.cfg, store.LogHooks{
		OnBatch:   func(v record.View) { replay(s.seen, v) },
		Producers: func(dst []record.ProducerEntry) []record.ProducerEntry { return append(dst, s.known...) },
	}, s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	s.log = l
}

// stop ends the process, by a kill or a clean stop, or its machine by a power loss.
func (s *story) stop(how string) {
	s.t.Helper()
	switch how {
	case "kill":
		s.disk.Kill()
	case "clean":
		if err := errors.Join(s.log.Close(true), s.dir.Close(true, 1)); err != nil {
			s.t.Fatal(err)
		}
	case "power loss":
		s.disk.Crash(1)
	default:
		s.t.Fatalf("no process ends by %q", how)
	}
	s.fs = s.disk.FS()
}

// put appends one batch; each word is key=value, or key alone for a tombstone.
func (s *story) put(change func(*record.Builder), words ...string) ident.Offset {
	s.t.Helper()
	b := record.NewBuilder()
	b.LeaderEpoch = 0
	if change != nil {
		change(b)
	}
	for _, w := range words {
		key, value, has := strings.Cut(w, "=")
		v := []byte(value)
		if !has {
			v = nil
		}
		b.Append(s.now, []byte(key), v)
	}
	out, err := b.Finish(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	v := record.View(out)
	v.SetBaseOffset(s.log.End())
	mustAppend(s.t, s.log, v)
	return v.BaseOffset()
}

// close closes the active segment, and makes all durable.
func (s *story) close() {
	s.t.Helper()
	if err := s.log.Roll(s.now); err != nil {
		s.t.Fatal(err)
	}
	flush(s.t, s.dir, s.log)
}

// clean does a whole run.
func (s *story) clean(o store.CleanOptions) store.CleanStats {
	s.t.Helper()
	if o.LoadFactor == 0 {
		o.MapBytes, o.LoadFactor = 1<<16, 0.9
	}
	run, err := s.log.BeginClean(s.now, s.log.End(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	if run == nil {
		return store.CleanStats{}
	}
	for range 1000 {
		step, err := run.Work(s.now)
		if err != nil {
			s.t.Fatal(err)
		}
		switch step {
		case store.CleanSwap:
			if err := s.log.SwapCleaned(run, s.now); err != nil {
				s.t.Fatal(err)
			}
		case store.CleanAgain:
		case store.CleanDone:
			return s.log.EndClean(run)
		}
	}
	s.t.Fatal("the run does not end")
	return store.CleanStats{}
}

// batches reads all that is there.
func (s *story) batches() []record.View {
	return readAll(s.t, s.log, s.log.Start(), s.log.End(), 1<<20)
}

// text is what a consumer reads.
func (s *story) text() string {
	s.t.Helper()
	var out []string
	for _, v := range s.batches() {
		for _, r := range recordsOf(s.t, v) {
			w := fmt.Sprintf("%d:%s", r.offset, r.key)
			if r.value != nil {
				w += "=" + string(r.value)
			}
			out = append(out, w)
		}
	}
	return strings.Join(out, " ")
}

func (s *story) want(text string) {
	s.t.Helper()
	if got := s.text(); got != text {
		s.t.Fatalf("read %q, want %q", got, text)
	}
}

// names lists the files of the partition that end so.
func (s *story) names(suffix string) []string {
	s.t.Helper()
	list, err := s.fs.ReadDir("/data/orders-3")
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		if strings.HasSuffix(e.Name, suffix) {
			out = append(out, e.Name)
		}
	}
	return out
}
