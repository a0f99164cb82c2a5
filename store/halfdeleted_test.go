package store_test

import (
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestALogThatWasDeletedHalfLeavesNothingToTheNext: its directory has another name already, and that this is durable could not be seen to, for want of a
// descriptor. A topic that is created again under the name has a new log, which neither ends where the former one did nor misses what that one had.
func TestALogThatWasDeletedHalfLeavesNothingToTheNext(t *testing.T) {
	tp, first, second := ident.TopicPartition{Topic: "orders"}, ident.TopicID{1}, ident.TopicID{2}
	for name, remove := range map[string]func(*store.Directory, *store.Log) error{
		"open":   func(d *store.Directory, l *store.Log) error { return d.DeleteLog(l) },
		"closed": func(d *store.Directory, l *store.Log) error { _ = l.Close(false); return d.DeleteUnopened(tp, first) },
		"stray": func(d *store.Directory, l *store.Log) error {
			_ = l.Close(false)
			_, _, err := d.OpenLog(tp, second, store.DefaultLogConfig(), store.LogHooks{}, 1000)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			faults := storetest.Faults(storetest.NewDisk(1).FS())
			d, _ := openDir(t, faults, "/data")
			l, _, err := d.OpenLog(tp, first, store.DefaultLogConfig(), store.LogHooks{}, 1000)
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, l, batch(t, 0, 0, 0, 3, 10))
			flush(t, d, l)
			if err := d.Checkpoint(); err != nil {
				t.Fatal(err)
			}
			faults.Add("open data: EMFILE")
			if err := remove(d, l); err == nil {
				t.Fatal("nothing was in its way")
			}
			faults.Clear()
			again, r, err := d.OpenLog(tp, second, store.DefaultLogConfig(), store.LogHooks{}, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if again.Start() != 0 || again.End() != 0 || !r.Whole || len(again.Damage()) > 0 {
				t.Errorf("the new log has offsets %d to %d, %+v", again.Start(), again.End(), r)
			}
		})
	}
}
