package store_test

import (
	"os"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestALogThatNobodyOpenedIsDeleted: a directory whose other logs are closed clean says so at its end, although one that an unclean stop left was not opened
// again; what has its name and is another topic's, or is open, stays; an error mark that waited for it ends.
func TestALogThatNobodyOpenedIsDeleted(t *testing.T) {
	disk := storetest.NewDisk(1)
	fs := disk.FS()
	open := func() (*store.Directory, store.Opened) {
		t.Helper()
		d, opened, err := store.OpenDirectory(store.DirectoryOptions{FS: fs, Path: "/data", Broker: 1, Rand: seeded(5), Generations: &store.Generations{}, Parallel: 1, BallastBytes: 4096})
		if err != nil {
			t.Fatal(err)
		}
		return d, opened
	}
	log := func(d *store.Directory, topic string, id byte) *store.Log {
		t.Helper()
		l, _, err := d.OpenLog(ident.TopicPartition{Topic: topic}, ident.TopicID{id}, store.DefaultLogConfig(), store.LogHooks{}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	d, _ := open()
	log(d, "kept", 1)
	log(d, "gone", 2)
	mark, err := fs.OpenFile("/data/io-error", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	disk.Kill()
	if err := mark.Close(); err == nil {
		t.Fatal("the process is not dead")
	}

	fs = disk.FS()
	d, opened := open()
	if len(opened.Logs) != 2 || !opened.ErrorMarked {
		t.Fatalf("there are %v, error mark: %v", opened.Logs, opened.ErrorMarked)
	}
	kept := log(d, "kept", 1)
	gone := ident.TopicPartition{Topic: "gone"}
	if err := d.DeleteUnopened(ident.TopicPartition{Topic: "kept"}, ident.TopicID{1}); err == nil {
		t.Error("an open log was deleted")
	}
	if err := d.DeleteUnopened(gone, ident.TopicID{9}); err != nil || !strings.Contains(disk.Dump(), "/data/gone-0/") {
		t.Errorf("another topic's log was deleted, or missed: %v\n%s", err, disk.Dump())
	}
	if err := d.DeleteUnopened(gone, ident.TopicID{2}); err != nil {
		t.Error(err)
	}
	if left := disk.Dump(); strings.Contains(left, "/data/gone-0") || strings.Contains(left, "io-error") {
		t.Errorf("it is still there, or the error mark is:\n%s", left)
	}
	if err := d.DeleteUnopened(gone, ident.TopicID{2}); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if err := kept.Close(true); err != nil {
		t.Error(err)
	}
	if err := d.Close(true, 7); err != nil {
		t.Errorf("the stop is not clean: %v", err)
	}
	d, opened = open()
	if opened.CleanEpoch != 7 || len(opened.Logs) != 1 {
		t.Errorf("the next start finds the clean marker of %d, and %v", opened.CleanEpoch, opened.Logs)
	}
	if err := d.Close(false, 0); err != nil {
		t.Error(err)
	}
	if err := d.DeleteUnopened(gone, ident.TopicID{2}); err == nil {
		t.Error("a closed directory deleted a log")
	}
}
