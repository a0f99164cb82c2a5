package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
)

// wantRecords reads the log to its end, which must be n.
func wantRecords(t *testing.T, l *store.Log, n int) {
	t.Helper()
	if l.End() != ident.Offset(n) {
		t.Fatalf("the log ends at %d, expected %d", l.End(), n)
	}
	all := readAll(t, l, 0, l.End(), 1<<20)
	if len(all) == 0 || all[0].BaseOffset() != 0 || all[len(all)-1].NextOffset() != ident.Offset(n) {
		t.Fatalf("%d batches do not cover [0, %d)", len(all), n)
	}
}

// openFiles counts the descriptors of this process that lie below dir.
func openFiles(t *testing.T, dir string) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	n := 0
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, dir) {
			n++
		}
	}
	return n
}

func TestThousandsOfIdleLogsHoldNoDescriptors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	open := func() (*store.Directory, []*store.Log) {
		d, _ := openDir(t, store.OS(), dir)
		var logs []*store.Log
		for i := range 200 {
			l, _, err := d.OpenLog(ident.TopicPartition{Topic: "many", Partition: int32(i)}, topicID("many"), smallLog(), store.LogHooks{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			logs = append(logs, l)
		}
		return d, logs
	}
	idle := func(when string) {
		if n := openFiles(t, dir); n > 20 {
			t.Fatalf("%s: %d descriptors for 200 logs with nothing to do", when, n)
		}
	}
	d, logs := open()
	idle("made")
	for _, l := range logs {
		appendSome(t, l, 3)
		if err := tryFlush(t, d, l); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the first look finds them busy, the second idle
		for _, l := range logs {
			if _, err := l.ApplyRetention(0, l.End()); err != nil {
				t.Fatal(err)
			}
		}
	}
	idle("idle")
	for _, l := range logs {
		wantRecords(t, l, 6)
		appendSome(t, l, 2) // they wake
		wantRecords(t, l, 10)
		if err := l.Close(true); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(true, 1); err != nil {
		t.Fatal(err)
	}
	d, logs = open()
	idle("opened again")
	for _, l := range logs {
		wantRecords(t, l, 10)
		if err := l.Close(false); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(false, 1); err != nil {
		t.Fatal(err)
	}
}

func TestReadingManySegmentsHoldsFewDescriptors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d, _ := openDir(t, store.OS(), dir)
	open := func() *store.Log {
		l, _, err := d.OpenLog(ident.TopicPartition{Topic: "rolled"}, topicID("rolled"), smallLog(), store.LogHooks{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	for range 100 {
		appendSome(t, l, 1)
		if err := l.Roll(0); err != nil {
			t.Fatal(err)
		}
		if err := tryFlush(t, d, l); err != nil {
			t.Fatal(err)
		}
	}
	few := func(when string) {
		if n := openFiles(t, dir); n > 40 {
			t.Fatalf("%s: %d descriptors for one log of %d segments", when, n, l.Segments())
		}
	}
	few("written")
	wantRecords(t, l, 200)
	few("read")
	if err := l.Close(false); err != nil {
		t.Fatal(err)
	}
	l = open()
	few("recovered")
	wantRecords(t, l, 200)
	if err := l.Close(false); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(false, 1); err != nil {
		t.Fatal(err)
	}
}

// TestALackOfDescriptorsIsNoBrokenDisk lets every opening of a file fail for lack of
// descriptors, one after the other: the log refuses, and goes on by itself.
func TestALackOfDescriptorsIsNoBrokenDisk(t *testing.T) {
	for n := 1; n < 30; n++ {
		disk := storetest.NewDisk(1)
		faults := storetest.Faults(disk.FS())
		d, l, _, _ := openOn(t, faults, smallLog())
		faults.Add(fmt.Sprintf("open * nth %d: EMFILE", n))
		want := 0
		for range 40 {
			if err := l.Append(batch(t, l.End(), 0, 0, 1, 1000), 0); err == nil {
				want++
			} else if !store.IsExhausted(err) || !store.IsRetriable(err) {
				t.Fatalf("opening %d: %v", n, err)
			}
			if err := tryFlush(t, d, l); err != nil && !store.IsRetriable(err) {
				t.Fatalf("opening %d: a sync failed: %v", n, err)
			}
		}
		if d.Offline() != nil {
			t.Fatalf("opening %d took the directory out of service: %v", n, d.Offline())
		}
		if l.End() != ident.Offset(want) {
			t.Fatalf("opening %d: the log ends at %d after %d appends", n, l.End(), want)
		}
		wantRecords(t, l, want)
	}
}

func TestALogThatCouldNotBeMadeDoesNotForbidTheCleanMarker(t *testing.T) {
	disk := storetest.NewDisk(1)
	faults := storetest.Faults(disk.FS())
	d, l, _, _ := openOn(t, faults, smallLog())
	faults.Add("open *.log nth 1: EMFILE")
	other := ident.TopicPartition{Topic: "other"}
	if _, _, err := d.OpenLog(other, topicID("other"), smallLog(), store.LogHooks{}, 0); !store.IsExhausted(err) {
		t.Fatalf("%v, expected a lack of descriptors", err)
	}
	if err := l.Close(true); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(true, 7); err != nil {
		t.Fatal(err)
	}
	if _, o := openDir(t, disk.FS(), "/data"); o.Mode != store.RecoverClean || o.CleanEpoch != 7 {
		t.Fatalf("opened %+v, expected clean", o)
	}
}
