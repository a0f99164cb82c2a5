package store_test

import (
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// TestACopyThatFailedIsMadeOnce: a recovery that copies what is above the durable mark fails when the copy has its name and the old file was not cut yet. The
// next one took the copy for two segments of one name; retention, which let the first of them go, took the file away from the other.
func TestACopyThatFailedIsMadeOnce(t *testing.T) {
	for _, rule := range []string{
		"syncdir orders-3 nth 1: EIO", "open 00000000000000000002.log: EIO", "truncate 00000000000000000000.log: EIO", "sync 00000000000000000000.log: EIO",
	} {
		disk := storetest.NewDisk(5)
		broken := storetest.Faults(disk.FS())
		d, l, _, _ := openOn(t, broken, smallLog())
		appendSome(t, l, 1)
		if err := errors.Join(tryFlush(t, d, l), d.Checkpoint()); err != nil {
			t.Fatal(err)
		}
		appendSome(t, l, 2)
		broken.Add("sync *.log from 1: EIO")
		syncBroken(t, d, l)
		disk.Kill()

		failToOpen(t, disk, rule)
		var cut *storetest.Disk
		disk.OnPoint = func(p storetest.Point) {
			if p.Op == "truncate" && path.Base(p.Name) == "00000000000000000000.log" {
				cut = disk.Clone()
			}
		}
		d, l, o, r := openOn(t, disk.FS(), smallLog())
		disk.OnPoint = nil
		if o.Mode != store.RecoverCopy || r.End != 6 || len(r.Damage) > 0 {
			t.Fatalf("%s: %+v, %+v", rule, o, r)
		}
		if n := logFiles(t, disk); l.Segments() != n {
			t.Errorf("%s: %d segments in %d files", rule, l.Segments(), n)
		}
		if cut != nil { // it was not before the failure
			cutPower(t, cut)
		}
		appendSome(t, l, 40) // several segments
		end := l.End()
		if err := l.SetStart(2); err != nil {
			t.Fatal(err)
		}
		if err := tryFlush(t, d, l); err != nil {
			t.Fatal(err)
		}
		if _, err := l.ApplyRetention(1, end); err != nil {
			t.Fatal(err)
		}
		if err := tryFlush(t, d, l); err != nil {
			t.Fatal(err)
		}
		disk.Kill()
		_, l, _, r = openOn(t, disk.FS(), smallLog())
		if got := len(readAll(t, l, 2, end, 1<<20)); l.Start() != 2 || l.End() != end || got != int(end)/2-1 {
			t.Errorf("%s: %d batches are read of [%d, %d), %+v", rule, got, l.Start(), l.End(), r)
		}
	}
}

// cutPower cuts the power of copies of a disk. What is cut off is there as a copy by then.
func cutPower(t *testing.T, disk *storetest.Disk) {
	t.Helper()
	for seed := range uint64(8) {
		c := disk.Clone()
		c.Crash(seed)
		if _, l, _, r := openOn(t, c.FS(), smallLog()); l.End() != 6 {
			t.Errorf("cut %d: %+v", seed, r)
		}
	}
}

// failToOpen opens the log on a disk that fails by a rule, and ends the process.
func failToOpen(t *testing.T, disk *storetest.Disk, rule string) {
	t.Helper()
	broken := storetest.Faults(disk.FS())
	d, _ := openDir(t, broken, "/data")
	broken.Add(rule)
	if _, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0); !errors.Is(err, store.ErrDirectoryOffline) {
		t.Fatalf("%s: %v", rule, err)
	}
	disk.Kill()
}

// logFiles counts the segments in the directory of the log.
func logFiles(t *testing.T, disk *storetest.Disk) int {
	t.Helper()
	entries, err := disk.FS().ReadDir("/data/orders-3")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if strings.HasSuffix(e.Name, ".log") {
			n++
		}
	}
	return n
}
