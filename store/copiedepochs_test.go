package store_test

import (
	"errors"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// syncBroken makes a sync that fails, and takes the directory offline.
func syncBroken(t *testing.T, d *store.Directory, l *store.Log) {
	t.Helper()
	s, err := d.NewSyncer()
	if err != nil {
		t.Fatal(err)
	}
	w, _ := l.BeginSync()
	for _, r := range s.Sync(nil, []store.SyncWork{w}) {
		if _, _, err := l.Synced(r); !errors.Is(err, store.ErrDirectoryOffline) {
			t.Fatalf("a sync on a broken disk: %v", err)
		}
	}
}

// TestTheMarkOfACopyWaitsForTheEpochFile: after a sync that failed the log is copied and counts as flushed at once; its durable mark may not, as long as the
// epoch file lacks an epoch below it. A power cut after the next checkpoint would have the batches counted to an older epoch.
func TestTheMarkOfACopyWaitsForTheEpochFile(t *testing.T) {
	for seed := range uint64(8) {
		disk := storetest.NewDisk(5)
		broken := storetest.Faults(disk.FS())
		d, _ := openDir(t, broken, "/data")
		l, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, batch(t, 0, 1, 1000, 2, 200))
		flush(t, d, l)
		mustAppend(t, l, batch(t, 2, 4, 1000, 2, 200))
		broken.Add("sync *.log from 1: EIO")
		syncBroken(t, d, l)
		disk.Kill()
		d, opened := openDir(t, disk.FS(), "/data")
		_, r, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if opened.Mode != store.RecoverCopy || r.End != 4 || r.Flushed != 4 {
			t.Fatalf("%+v, %+v", opened, r)
		}
		if err := d.Checkpoint(); err != nil {
			t.Fatal(err)
		}
		disk.Crash(seed)
		d, _ = openDir(t, disk.FS(), "/data")
		l, r, err = d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if r.End != 4 || l.EpochOf(1) != 1 || l.EpochOf(2) != 4 || l.EpochOf(3) != 4 {
			t.Errorf("seed %d: the log ends at %d, the epochs are %v", seed, r.End, l.Epochs(nil))
		}
		if err := errors.Join(l.Close(true), d.Close(true, 1)); err != nil {
			t.Error(err)
		}
	}
}

// TestACopyMakesItsDirectoryAnew: the first sync of a log failed, or its process died in it. What the log is copied into counts as flushed at once, and the
// names of its directory and of its identity have to be as durable as that, or a power cut takes all of it.
func TestACopyMakesItsDirectoryAnew(t *testing.T) {
	for seed := range uint64(8) {
		disk := storetest.NewDisk(5)
		broken := storetest.Faults(disk.FS())
		d, _ := openDir(t, broken, "/data")
		l, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, batch(t, 0, 1, 1000, 2, 200))
		broken.Add("sync partition.metadata from 1: EIO")
		syncBroken(t, d, l)
		disk.Kill()
		d, opened := openDir(t, disk.FS(), "/data")
		if _, r, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0); err != nil || opened.Mode != store.RecoverCopy || r.Flushed != 2 {
			t.Fatalf("%+v, %+v, %v", opened, r, err)
		}
		disk.Crash(seed)
		d, opened = openDir(t, disk.FS(), "/data")
		if len(opened.Logs) != 1 || len(opened.Strays) != 0 {
			t.Fatalf("seed %d: after the power cut there is %+v", seed, opened)
		}
		l, r, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
		if err != nil || r.End != 2 || r.Created {
			t.Fatalf("seed %d: %+v, %v", seed, r, err)
		}
		if err := errors.Join(l.Close(true), d.Close(true, 1)); err != nil {
			t.Error(err)
		}
	}
}
