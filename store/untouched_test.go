package store_test

import (
	"errors"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/record"
)

// A log in which nothing happened since a clean stop is closed without a sync; any change brings the syncs back.
func TestAnUntouchedLogIsClosedWithoutASync(t *testing.T) {
	changes := map[string]func(l *store.Log) error{
		"":         func(*store.Log) error { return nil },
		"an epoch": func(l *store.Log) error { l.AssignEpoch(9, l.End()); return nil },
		"a read":   func(l *store.Log) error { r, err := l.Read(0, l.End(), 100, true); r.Release(); return err },
		"a batch":  func(l *store.Log) error { return l.Append(batch(t, l.End(), 9, 0, 1, 10), 0) },
		"a start":  func(l *store.Log) error { return l.SetStart(1) },
		"a roll":   func(l *store.Log) error { return l.Roll(0) },
		"a snapshot": func(l *store.Log) error {
			return l.SaveProducerSnapshot([]record.ProducerEntry{{ProducerID: 7}})
		},
		"a cut and a batch": func(l *store.Log) error {
			if _, err := l.Truncate(l.End()-1, 0); err != nil {
				return err
			}
			return l.Append(batch(t, l.End(), 3, 0, 1, 10), 0)
		},
	}
	free := map[string]bool{"": true, "an epoch": true, "a read": true}
	for name, change := range changes {
		disk := storetest.NewDisk(1)
		if err := disk.FS().MkdirAll("/", 0o755); err != nil {
			t.Fatal(err)
		}
		hooks := store.LogHooks{Producers: func(dst []record.ProducerEntry) []record.ProducerEntry { return dst }}
		opened := func(fs store.FS) (*store.Directory, *store.Log, store.Recovery) {
			d, _ := openDir(t, fs, "/data")
			l, r, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), hooks, 0)
			if err != nil {
				t.Fatal(err)
			}
			return d, l, r
		}
		d, l, _ := opened(disk.FS())
		for range 3 {
			mustAppend(t, l, batch(t, l.End(), 2, 0, 1, 10))
		}
		flush(t, d, l)
		if err := errors.Join(l.Close(true), d.Close(true, 7)); err != nil {
			t.Fatal(err)
		}

		faults := storetest.Faults(disk.FS())
		d, l, _ = opened(faults)
		if err := change(l); err != nil {
			t.Fatal(name, err)
		}
		end := l.End()
		faults.Add("sync *: EIO")
		err := l.Close(true)
		faults.Clear()
		if free[name] != (err == nil) {
			t.Errorf("after %q the log was closed with %v", name, err)
		}
		if err != nil {
			continue
		}
		if err := d.Close(true, 8); err != nil {
			t.Fatal(err)
		}
		disk.Crash(5)
		d, l, r := opened(disk.FS())
		if r.Mode != store.RecoverClean || !r.Whole || l.End() != end || l.Flushed() != end {
			t.Errorf("after %q and another start: %+v, the end was %d", name, r, end)
		}
		if e, _ := l.EpochEnd(2); e != 2 {
			t.Errorf("after %q the epoch is %d", name, e)
		}
		if err := errors.Join(l.Close(true), d.Close(true, 9)); err != nil {
			t.Fatal(err)
		}
	}
}
