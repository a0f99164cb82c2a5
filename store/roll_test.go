package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// onDisk opens a log on a fresh memory disk.
func onDisk(t testing.TB, cfg store.LogConfig) (*storetest.Disk, *store.Directory, *store.Log) {
	t.Helper()
	disk := storetest.NewDisk(1)
	d, l, _, _ := openOn(t, disk.FS(), cfg)
	return disk, d, l
}

func TestASegmentIsClosedBeforeItOutgrowsItsSize(t *testing.T) {
	cfg := smallLog()
	disk, _, l := onDisk(t, cfg)
	for range 100 {
		mustAppend(t, l, batch(t, l.End(), 0, 0, 1, 1000))
	}
	for _, name := range filesOf(t, disk.FS(), ".log") {
		if n := len(contents(t, disk.FS(), name)); n > int(cfg.SegmentBytes) {
			t.Errorf("%s has %d bytes, at most %d are allowed", name, n, cfg.SegmentBytes)
		}
	}
	// A batch that alone is larger gets a segment of its own.
	mustAppend(t, l, batch(t, l.End(), 0, 0, 1, int(cfg.SegmentBytes)+5000))
	mustAppend(t, l, batch(t, l.End(), 0, 0, 1, 10))
	if got := readAll(t, l, 0, l.End(), 1<<20); len(got) != 102 {
		t.Fatalf("%d batches", len(got))
	}
}

func TestASegmentIsClosedByTheTimeItsRecordsSpan(t *testing.T) {
	cfg := smallLog()
	cfg.SegmentMs = 1000
	_, _, l := onDisk(t, cfg)
	add := func(ts, now ident.Millis) int {
		t.Helper()
		if err := l.Append(batch(t, l.End(), 0, ts, 1, 10), now); err != nil {
			t.Fatal(err)
		}
		return l.Segments()
	}
	// By the records' timestamps, whatever the clock says.
	for _, step := range []struct {
		ts, now  ident.Millis
		segments int
	}{{5000, 0, 1}, {5999, 9_000_000, 1}, {6000, 0, 1}, {6001, 0, 2}, {7001, 0, 2}, {7002, 0, 3}, {100, 0, 3}} {
		if got := add(step.ts, step.now); got != step.segments {
			t.Fatalf("timestamp %d led to %d segments, expected %d", step.ts, got, step.segments)
		}
	}
	// By the clock when there are none.
	if err := l.Roll(10_000); err != nil {
		t.Fatal(err)
	}
	before := l.Segments()
	for _, step := range []struct {
		now  ident.Millis
		more int
	}{{10_000, 0}, {11_000, 0}, {11_001, 1}} {
		v := batch(t, l.End(), 0, 0, 1, 10)
		v.StampLogAppendTime(ident.NoTimestamp)
		if err := l.Append(v, step.now); err != nil {
			t.Fatal(err)
		}
		if l.Segments() != before+step.more {
			t.Fatalf("at %d: %d segments, expected %d", step.now, l.Segments(), before+step.more)
		}
	}
}

func TestJitterDiffersByPartitionAndNotByRun(t *testing.T) {
	cfg := smallLog()
	cfg.SegmentMs, cfg.SegmentJitterMs = 100_000, 50_000
	// lasts is how long the first segment of a partition lasts.
	lasts := func(partition int32) ident.Millis {
		d, _, err := store.OpenDirectory(store.DirectoryOptions{FS: storetest.NewDisk(1).FS(), Path: "/data", Rand: seeded(1), Generations: &store.Generations{}})
		if err != nil {
			t.Fatal(err)
		}
		l, _, err := d.OpenLog(ident.TopicPartition{Topic: "t", Partition: partition}, topicID("t"), cfg, store.LogHooks{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for ts := ident.Millis(1000); ; ts += 500 {
			mustAppend(t, l, batch(t, l.End(), 0, ts, 1, 1))
			if l.Segments() == 2 {
				return ts
			}
		}
	}
	a, b, again := lasts(1), lasts(2), lasts(1)
	if a == b || a != again {
		t.Fatalf("segments of partitions 1, 2, 1 last %d, %d, %d", a, b, again)
	}
	if a < 50_000 || a > 102_000 {
		t.Fatalf("a segment lasts %d of 50,000 to 100,000", a)
	}
}

func TestASegmentIsClosedWhenItsIndexIsFull(t *testing.T) {
	cfg := smallLog()
	cfg.SegmentBytes, cfg.IndexIntervalBytes, cfg.SegmentIndexBytes = 1<<20, 0, 120
	disk, _, l := onDisk(t, cfg)
	for i := range 100 {
		mustAppend(t, l, batch(t, l.End(), 0, ident.Millis(i*10), 1, 10))
	}
	if l.Segments() < 5 {
		t.Fatalf("%d segments", l.Segments())
	}
	for _, suffix := range []string{".index", ".timeindex"} {
		for _, name := range filesOf(t, disk.FS(), suffix) {
			if n := len(contents(t, disk.FS(), name)); n > 120 {
				t.Errorf("%s has %d bytes", name, n)
			}
		}
	}
	if got := readAll(t, l, 0, l.End(), 300); len(got) != 100 {
		t.Fatalf("%d batches", len(got))
	}
}

func TestOffsetsBeyondASegmentsReachBeginANewOne(t *testing.T) {
	disk, d, l := onDisk(t, smallLog())
	offsets := []ident.Offset{0, 1 << 31, 1<<31 + 5, 1 << 40, 1<<40 + 1<<31 - 2}
	for _, o := range offsets {
		mustAppend(t, l, batch(t, o, 0, 0, 1, 10))
	}
	check := func(l *store.Log) {
		t.Helper()
		for _, o := range offsets {
			r, err := l.Read(o, l.End(), 1, true)
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, r.Len())
			if _, err := r.ReadAt(b, 0); err != nil || record.View(b).BaseOffset() != o {
				t.Fatalf("at %d: %v, %v", o, record.View(b).BaseOffset(), err)
			}
			r.Release()
		}
		// From inside a gap reading goes on behind it.
		r, err := l.Read(77, l.End(), 1<<20, true)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, r.Len())
		if _, err := r.ReadAt(b, 0); err != nil || record.View(b).BaseOffset() != offsets[1] {
			t.Fatalf("from a gap: %v, %v", record.View(b).BaseOffset(), err)
		}
		r.Release()
	}
	check(l)
	if err := tryFlush(t, d, l); err != nil {
		t.Fatal(err)
	}
	disk.Crash(1)
	_, l, _, r := openOn(t, disk.FS(), smallLog())
	if l.End() != offsets[len(offsets)-1]+1 || len(r.Damage) > 0 {
		t.Fatalf("recovered %+v", r)
	}
	check(l)
}

func TestRetentionByTimeGoesByTheNewestRecord(t *testing.T) {
	cfg := smallLog()
	cfg.RetentionMs = 1000
	disk, _, l := onDisk(t, cfg)
	disk.SetNow(1000) // when the files are written
	add := func(ts ident.Millis) {
		t.Helper()
		mustAppend(t, l, batch(t, l.End(), 0, ts, 1, 10))
		if err := l.Roll(0); err != nil {
			t.Fatal(err)
		}
	}
	for _, ts := range []ident.Millis{100, 5000, 200, 6000} {
		add(ts)
	}
	apply := func(now ident.Millis, hw ident.Offset) ident.Offset {
		t.Helper()
		trimmed, err := l.ApplyRetention(now, hw)
		if err != nil {
			t.Fatal(err)
		}
		return trimmed.Start
	}
	if got := apply(1100, 4); got != 0 {
		t.Fatalf("at the limit it is kept, start %d", got)
	}
	if got := apply(1101, 0); got != 0 {
		t.Fatalf("above the high watermark nothing goes, start %d", got)
	}
	if got := apply(1101, 4); got != 1 {
		t.Fatalf("start %d", got)
	}
	// The third segment is old, but the second, before it, is not.
	if got := apply(5500, 4); got != 1 {
		t.Fatalf("start %d", got)
	}
	if got := apply(6001, 4); got != 3 {
		t.Fatalf("start %d", got)
	}
	// A timestamp in the future does not keep a segment for ever: the file's own
	// time counts.
	disk.SetNow(7000)
	add(99_000_000)
	if got := apply(7900, 5); got != 4 {
		t.Fatalf("start %d", got)
	}
	if got := apply(8002, 5); got != 5 {
		t.Fatalf("a record of the far future kept its segment: start %d", got)
	}
}

func TestTheActiveSegmentAgesToo(t *testing.T) {
	cfg := smallLog()
	cfg.RetentionMs = 1000
	_, _, l := onDisk(t, cfg)
	mustAppend(t, l, batch(t, 0, 0, 100, 3, 10))
	if trimmed, err := l.ApplyRetention(1000, 3); err != nil || trimmed.Segments != 0 {
		t.Fatal(trimmed, err)
	}
	trimmed, err := l.ApplyRetention(5000, 3)
	if err != nil || trimmed.Segments != 1 || l.Start() != 3 || l.End() != 3 || l.Size() != 0 {
		t.Fatalf("%+v, %v: [%d, %d), %d bytes", trimmed, err, l.Start(), l.End(), l.Size())
	}
	mustAppend(t, l, batch(t, 3, 0, 5000, 1, 10))
	if got := readAll(t, l, 3, 4, 100); len(got) != 1 {
		t.Fatal("the log does not go on")
	}
}

func TestEndOffsetsOfEpochs(t *testing.T) {
	_, _, l := onDisk(t, smallLog())
	for _, step := range []struct {
		epoch ident.LeaderEpoch
		n     int
	}{{2, 3}, {2, 1}, {5, 2}, {9, 4}} {
		mustAppend(t, l, batch(t, l.End(), step.epoch, 0, step.n, 10))
	}
	l.AssignEpoch(12, l.End()) // a leader that has appended nothing yet
	for _, c := range []struct {
		ask, epoch ident.LeaderEpoch
		end        ident.Offset
	}{
		{-1, -1, -1}, {0, 0, 0}, {1, 1, 0}, {2, 2, 4}, {3, 2, 4}, {4, 2, 4}, {5, 5, 6}, {8, 5, 6}, {9, 9, 10}, {11, 9, 10}, {12, 12, 10}, {13, -1, -1},
	} {
		if epoch, end := l.EpochEnd(c.ask); epoch != c.epoch || end != c.end {
			t.Errorf("the end of epoch %d is %d, %d; expected %d, %d", c.ask, epoch, end, c.epoch, c.end)
		}
	}
	if l.LastEpoch() != 12 || fmt.Sprint(l.Epochs(nil)) != "[{2 0} {5 4} {9 6} {12 10}]" {
		t.Fatalf("epochs %v", l.Epochs(nil))
	}
}

func TestReadsStayInBounds(t *testing.T) {
	_, _, l := onDisk(t, smallLog())
	for range 10 {
		mustAppend(t, l, batch(t, l.End(), 0, 0, 3, 100))
	}
	if err := l.SetStart(4); err != nil {
		t.Fatal(err)
	}
	for _, o := range []ident.Offset{-1, 0, 3, 31, 1 << 50} {
		_, err := l.Read(o, l.End(), 100, true)
		var bounds *store.OffsetError
		if !errors.Is(err, store.ErrOffsetOutOfRange) || !errors.As(err, &bounds) || bounds.Start != 4 || bounds.End != 30 {
			t.Errorf("offset %d: %v", o, err)
		}
	}
	for _, c := range []struct {
		from, upTo ident.Offset
		max        int
		minOne     bool
		batches    int
		next       ident.Offset
	}{
		{30, 30, 100, true, 0, 30},    // the end: nothing yet
		{5, 5, 100, true, 0, 5},       // nothing is allowed
		{5, 8, 1 << 20, true, 1, 8},   // [3, 6): the batch at 6 reaches beyond 8
		{5, 9, 1 << 20, true, 2, 9},   // both
		{6, 30, 10, false, 0, 6},      // the first batch does not fit
		{6, 30, 10, true, 1, 9},       // but one there shall be
		{6, 30, 1 << 20, true, 8, 30}, // all
		{6, 100, 1 << 20, true, 8, 30},
	} {
		r, err := l.Read(c.from, c.upTo, c.max, c.minOne)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, r.Len())
		if r.Len() > 0 {
			if _, err := r.ReadAt(b, 0); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		for len(b) > 0 {
			if _, b, err = record.Split(b); err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != c.batches || r.Next() != c.next {
			t.Errorf("[%d, %d) at most %d, at least one %t: %d batches, next %d; expected %d, %d", c.from, c.upTo, c.max, c.minOne, n, r.Next(), c.batches, c.next)
		}
		r.Release()
	}
}

func TestALogThatCannotBeMappedIsWritten(t *testing.T) {
	disk := storetest.NewDisk(1)
	d, l, _, _ := openOn(t, storetest.Faults(disk.FS(), "map *.log: ENOMEM"), smallLog())
	appendSome(t, l, 40)
	if err := tryFlush(t, d, l); err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, l, 0, l.End(), 5000); len(got) != 40 {
		t.Fatalf("%d batches", len(got))
	}
}

func TestAppendsThatBreakTheOrderPanic(t *testing.T) {
	_, _, l := onDisk(t, smallLog())
	mustAppend(t, l, batch(t, 0, 5, 0, 3, 10))
	for what, v := range map[string]record.View{
		"an offset that is taken": batch(t, 2, 5, 0, 1, 10),
		"an epoch that is over":   batch(t, 3, 4, 0, 1, 10),
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was accepted", what)
				}
			}()
			_ = l.Append(v, 0)
		}()
	}
	if l.End() != 3 {
		t.Fatalf("the log ends at %d", l.End())
	}
}
