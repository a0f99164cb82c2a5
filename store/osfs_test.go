package store_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
)

func TestAFaultInTheMappingIsToldFromABug(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	path := t.TempDir()
	d, _ := openDir(t, store.OS(), path)
	l, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, batch(t, 0, 0, 0, 1, 100))
	// Somebody cuts the file under the mapping.
	if err := os.Truncate(filepath.Join(path, "orders-3", "00000000000000000000.log"), 0); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			r := recover()
			if _, fault := r.(interface{ Addr() uintptr }); !fault {
				t.Errorf("the append ended with %v, a fault was expected", r)
			}
		}()
		_ = l.Append(batch(t, 1, 0, 0, 1, 100), 0)
	}()
	if l.End() != 1 {
		t.Errorf("the faulty append moved the end to %d", l.End())
	}
}

func TestManyLogsAreSyncedInOneRound(t *testing.T) {
	d, _, err := store.OpenDirectory(store.DirectoryOptions{FS: store.OS(), Path: t.TempDir(), Broker: 1, Rand: seeded(1), Generations: &store.Generations{}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.NewSyncer()
	if err != nil {
		t.Fatal(err)
	}
	var logs []*store.Log
	for i := range int32(40) {
		l, _, err := d.OpenLog(ident.TopicPartition{Topic: "many", Partition: i}, topicID("many"), smallLog(), store.LogHooks{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, l)
	}
	for round := range 3 {
		var works []store.SyncWork
		for _, l := range logs {
			appendSome(t, l, 1+round)
			w, dirty := l.BeginSync()
			if !dirty {
				t.Fatal("nothing to sync after an append")
			}
			works = append(works, w)
			appendSome(t, l, 1) // while the round runs
		}
		results := s.Sync(nil, works)
		for i, r := range results {
			if r.Log() != logs[i] {
				t.Fatal("the results are not in the order of the works")
			}
			flushed, moved, err := logs[i].Synced(r)
			if err != nil || !moved || flushed != r.End || flushed >= logs[i].End() {
				t.Fatalf("flushed %d, moved %t, %v; the log ends at %d", flushed, moved, err, logs[i].End())
			}
		}
	}
	for _, l := range logs {
		if err := l.Close(true); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Close(), d.Close(true, 1)); err != nil {
		t.Fatal(err)
	}
}

// With a file system of its own, many files are synced by one call.
func TestManyLogsAreSyncedByOneCallWhereTheDiskIsOurs(t *testing.T) {
	disk := storetest.NewDisk(1)
	disk.WholeSync = true
	calls := map[string]int{}
	disk.OnPoint = func(p storetest.Point) { calls[p.Op]++ }
	d, l, _, _ := openOn(t, disk.FS(), smallLog())
	s, err := d.NewSyncer()
	if err != nil {
		t.Fatal(err)
	}
	logs := []*store.Log{l}
	for i := range int32(20) {
		l, _, err := d.OpenLog(ident.TopicPartition{Topic: "more", Partition: i}, topicID("more"), smallLog(), store.LogHooks{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, l)
	}
	sync := func(logs []*store.Log) {
		t.Helper()
		var works []store.SyncWork
		for _, l := range logs {
			appendSome(t, l, 1)
			w, _ := l.BeginSync()
			works = append(works, w)
		}
		for i, r := range s.Sync(nil, works) {
			if flushed, _, err := logs[i].Synced(r); err != nil || flushed != logs[i].End() {
				t.Fatal(flushed, err)
			}
		}
	}
	sync(logs) // new epochs have files of their own to be written
	clear(calls)
	sync(logs)
	if calls["syncfs"] != 1 || calls["sync"] != 0 {
		t.Errorf("21 logs were synced by %v", calls)
	}
	clear(calls)
	sync(logs[:2])
	if calls["syncfs"] != 0 || calls["sync"] != 2 {
		t.Errorf("2 logs were synced by %v", calls)
	}
	disk.Crash(1)
	_, l, _, r := openOn(t, disk.FS(), smallLog())
	if l.End() != 6 || len(r.Damage) > 0 {
		t.Errorf("recovered %+v", r)
	}
}

// A full disk of the kernel's own, not of the twin: a tmpfs of eight megabytes.
func TestAFullTmpfsRefusesAndResumes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	path := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	for _, mode := range []store.AppendMode{store.AppendMapped, store.AppendWritten} {
		t.Run(fmt.Sprint("mode ", mode), func(t *testing.T) {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			d, _, err := store.OpenDirectory(store.DirectoryOptions{
				FS: store.OS(), Path: filepath.Join(path, fmt.Sprint("data", mode)), Broker: 1, Rand: seeded(1), Generations: &store.Generations{}, BallastBytes: 64 << 10,
			})
			if err != nil {
				t.Fatal(err)
			}
			c := smallLog()
			c.SegmentBytes, c.Append, c.FileDeleteDelayMs = 256<<10, mode, 0
			l, _, err := d.OpenLog(testPartition, topicID("orders"), c, store.LogHooks{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			v := batch(t, 0, 0, 0, 1, 10_000)
			for {
				v.SetBaseOffset(l.End())
				end := l.End()
				if err = l.Append(v, 0); err != nil {
					if l.End() != end {
						t.Fatal("a refused append moved the end")
					}
					break
				}
			}
			if !errors.Is(err, store.ErrNoSpace) || l.End() < 50 {
				t.Fatalf("after %d batches: %v", l.End(), err)
			}
			if got := readAll(t, l, 0, l.End(), 100_000); len(got) != int(l.End()) {
				t.Fatalf("%d of %d batches are read on the full disk", len(got), l.End())
			}
			if err := tryFlush(t, d, l); err != nil {
				t.Fatal(err)
			}
			drop(t, d, l)
			for range 20 {
				v.SetBaseOffset(l.End())
				mustAppend(t, l, v)
			}
			if err := errors.Join(l.Close(true), d.Close(true, 1)); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(d.Path()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestWhatIsResidentHasArrived has the disk read a file ahead. While that is under way the pages are there, and whoever reads them would wait.
func TestWhatIsResidentHasArrived(t *testing.T) {
	f, err := store.OS().OpenFile(filepath.Join(t.TempDir(), "file"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	const size, page = 8 << 20, 4 << 10
	for at := int64(0); at < size; at += page {
		if _, err := f.WriteAt(make([]byte, page), at); err != nil {
			t.Fatal(err)
		}
	}
	fd, ok := f.Fd()
	if err := f.Sync(); err != nil || !ok {
		t.Fatal(err, ok)
	}
	b := make([]byte, page)
	for range 5 {
		if err := unix.Fadvise(int(fd), 0, 0, unix.FADV_DONTNEED); err != nil {
			t.Fatal(err)
		}
		if f.Resident(0, size) {
			t.Skip("nothing leaves the memory of this file system")
		}
		f.(interface{ WillNeed(off, n int64) }).WillNeed(0, size)
		for tries := 0; !f.Resident(0, size); tries++ {
			if tries > 10_000_000 {
				t.Fatal("what the disk was asked for does not come")
			}
			runtime.Gosched()
		}
		for at := int64(size - page); at >= 0; at -= page { // what was asked for last comes last
			if _, err := f.ReadNow(b, at); err != nil {
				t.Fatalf("all is said to be there, and page %d is not: %v", at/page, err)
			}
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTheOSTellsWhatIsResident(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	f, err := store.OS().OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	const size, page = 1 << 20, 4 << 10
	for at := int64(0); at < size; at += page { // page by page: a large folio leaves the cache only as a whole
		if _, err := f.WriteAt(make([]byte, page), at); err != nil {
			t.Fatal(err)
		}
	}
	if !f.Resident(0, size) {
		t.Error("bytes that were just written are said to need the disk")
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	fd, ok := f.Fd()
	if !ok {
		t.Fatal("no descriptor")
	}
	// First the middle, then the rest: a region whose ends are in memory waits as well.
	b := make([]byte, 100)
	cached := func(off, n int64) uint64 {
		var is unix.Cachestat_t
		span := unix.CachestatRange{Off: uint64(off), Len: uint64(n)}
		if err := unix.Cachestat(uint(fd), &span, &is, 0); err != nil {
			return uint64(n / page) // the kernel cannot say, and then nothing is claimed
		}
		return is.Cache
	}
	for _, gone := range []struct{ off, n int64 }{{size / 4, size / 2}, {0, size}} {
		if err := unix.Fadvise(int(fd), gone.off, gone.n, unix.FADV_DONTNEED); err != nil {
			t.Fatal(err)
		}
		if left := cached(0, size); f.Resident(0, size) != (left == size/page) {
			t.Errorf("without bytes %d to %d, but for what the kernel kept, %d of %d pages are there, and Resident says %v", gone.off, gone.off+gone.n, left, size/page, f.Resident(0, size))
		}
		there := cached(size/2, page) // before the read, which has the kernel fetch the page
		if _, err := f.ReadNow(b, size/2); there == 0 && !errors.Is(err, store.ErrWouldWait) {
			t.Errorf("reading at once what is not in memory: %v", err)
		}
	}
	if n, err := f.ReadAt(b, size/2); n != len(b) || err != nil {
		t.Fatal(n, err)
	}
	if n, err := f.ReadNow(b, size/2); n != len(b) || err != nil {
		t.Errorf("reading at once what was just read: %d, %v", n, err)
	}
	if n, err := f.ReadAt(b, size-10); n != 10 || !errors.Is(err, io.EOF) {
		t.Fatal(n, err)
	}
	if n, err := f.ReadNow(b, size-10); n != 10 || !errors.Is(err, io.EOF) {
		t.Errorf("reading at once beyond the end: %d, %v", n, err)
	}
}
