package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
)

// stampOf is the timestamp of batch i: ten rise, ten fall, and then a greater one comes. So the greatest of a segment is not at its end.
func stampOf(i int) ident.Millis {
	return ident.Millis(100_000*(i/20) + 1000 + 10*min(i%20, 20-i%20))
}

// TestTimeIndexesThatHaveLostTheirLastEntries takes entries from the end of a time index, whose offset index is whole: however the log is opened then, and
// whatever is appended to it, each timestamp is found where it is.
func TestTimeIndexesThatHaveLostTheirLastEntries(t *testing.T) {
	const batches, entry = 60, 12
	for _, restart := range []string{"clean", "kill", "power"} {
		pristine := storetest.NewDisk(7)
		d, _ := openDir(t, pristine.FS(), "/data")
		l, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range batches {
			mustAppend(t, l, batch(t, l.End(), 0, stampOf(i), 1, 400))
		}
		flush(t, d, l)
		if err := errors.Join(l.Close(restart == "clean"), d.Close(restart == "clean", 1)); err != nil {
			t.Fatal(err)
		}
		names, err := pristine.Cache().List("/data/orders-3")
		if err != nil {
			t.Fatal(err)
		}
		tried := 0
		for _, n := range names {
			name := "/data/orders-3/" + n.Name
			if !strings.HasSuffix(name, ".timeindex") {
				continue
			}
			index, err := pristine.Cache().Read(name)
			if err != nil {
				t.Fatal(err)
			}
			for left := 0; left < len(index); left += entry {
				tried++
				disk := pristine.Clone()
				disk.Overwrite(name, index[:left])
				if restart == "power" {
					disk.Crash(1)
				} else {
					disk.Kill()
				}
				findsAllTimes(t, disk, batches)
				if t.Failed() {
					t.Fatalf("%s: %s has %d entries left of %d", restart, n.Name, left/entry, len(index)/entry)
				}
			}
		}
		if tried < 8 {
			t.Errorf("%s: %d indexes were cut", restart, tried)
		}
	}
}

// findsAllTimes opens a log of batches of one record each, appends one that is a little older than the newest, and looks for all timestamps.
func findsAllTimes(t *testing.T, disk *storetest.Disk, batches int) {
	t.Helper()
	d, _ := openDir(t, disk.FS(), "/data")
	l, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	newest, first := ident.NoTimestamp, make(map[ident.Millis]int)
	for i := range batches {
		if stampOf(i) > newest {
			newest = stampOf(i)
			first[newest] = i
		}
	}
	mustAppend(t, l, batch(t, l.End(), 0, newest-15, 1, 400))
	for ts, i := range first {
		at, found, err := l.OffsetForTimestamp(ts, l.End())
		if err != nil || !found || at.Offset != ident.Offset(i) {
			t.Errorf("timestamp %d is found at %d (%v, %v), and is at %d", ts, at.Offset, found, err, i)
		}
	}
	if at, found, err := l.OffsetForTimestamp(newest+1, l.End()); err != nil || found {
		t.Errorf("a timestamp that no record has is found at %d, %v", at.Offset, err)
	}
	if at, found, err := l.MaxTimestamp(l.End()); err != nil || !found || at.Timestamp != newest {
		t.Errorf("the greatest timestamp is %d (%v, %v), not %d", at.Timestamp, found, err, newest)
	}
	if err := errors.Join(l.Close(false), d.Close(false, 1)); err != nil {
		t.Error(err)
	}
}
