package store_test

import (
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// TestAForgottenStrictFlagIsNotOnDisk: while the disk is full the flag cannot be taken back, and however often that is tried, nobody is told that it was.
func TestAForgottenStrictFlagIsNotOnDisk(t *testing.T) {
	disk := storetest.NewDisk(1)
	faults := storetest.Faults(disk.FS())
	d, l, _, _ := openOn(t, faults, smallLog())
	appendSome(t, l, 1)
	flush(t, d, l)
	l.SetStrict(true)
	if err := d.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	faults.Add("write recovery-point-*: ENOSPC")
	l.SetStrict(false)
	for range 2 {
		if err := d.ForgetStrict(l.Partition()); !store.IsNoSpace(err) {
			t.Fatalf("on a full disk: %v", err)
		}
	}
	if !strictAfter(t, disk) {
		t.Fatal("the flag is gone, which nobody could write: the test shows nothing")
	}
	faults.Clear()
	if err := d.ForgetStrict(l.Partition()); err != nil {
		t.Fatal(err)
	}
	if strictAfter(t, disk) {
		t.Error("the flag was taken back, and a loss of power brought it again")
	}
}

// TestAStrictFlagIsAsItWasSetLast: a job that is late writes what holds now, not what held when it was asked for.
func TestAStrictFlagIsAsItWasSetLast(t *testing.T) {
	disk := storetest.NewDisk(1)
	d, l, _, _ := openOn(t, disk.FS(), smallLog())
	forget := func() {
		t.Helper()
		if err := d.ForgetStrict(l.Partition()); err != nil {
			t.Fatal(err)
		}
	}
	appendSome(t, l, 1)
	flush(t, d, l)
	l.SetStrict(true)
	if err := d.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	l.SetStrict(false)
	l.SetStrict(true) // before the job for the first has come to it
	forget()
	if !strictAfter(t, disk) {
		t.Error("a flag that was set anew is gone")
	}
	l.SetStrict(false)
	forget()
	if err := d.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if strictAfter(t, disk) {
		t.Error("a flag that was taken back is on disk")
	}
}

// strictAfter tells whether the flag would be found after a loss of power now.
func strictAfter(t *testing.T, disk *storetest.Disk) bool {
	t.Helper()
	after := disk.Clone()
	after.Crash(1)
	d, _, err := directoryOn(after)
	if err != nil {
		t.Fatal(err)
	}
	return d.Strict(testPartition)
}
