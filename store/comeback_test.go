package store_test

import (
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
)

// A partition that is moved away and back is kept in another log, of the same topic. After a loss of power that had the durable mark and the flag "strict,
// confirmed" of the first one: a replica that had lost what its page cache had counted as whole, and its epochs were read from a file that was behind them.
func TestALogThatComesBackInheritsNothing(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		disk := storetest.NewDisk(1)
		d, _ := openDir(t, disk.FS(), "/data")
		tp, id := ident.TopicPartition{Topic: "t"}, topicID("t")
		open := func() *store.Log {
			t.Helper()
			l, _, err := d.OpenLog(tp, id, smallLog(), store.LogHooks{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		l := open()
		for o := range ident.Offset(6) {
			mustAppend(t, l, batch(t, o, 1, 0, 1, 100))
		}
		flush(t, d, l)
		l.SetStrict(true)
		if err := d.Checkpoint(); err != nil {
			t.Fatal(err)
		}
		if err := d.DeleteLog(l); err != nil {
			t.Fatal(err)
		}
		if restarted {
			disk.Kill()
			d, _ = openDir(t, disk.FS(), "/data")
		}
		l = open()
		for o := range ident.Offset(6) {
			mustAppend(t, l, batch(t, o, 2, 0, 1, 100))
			if o == 2 {
				flush(t, d, l)
			}
		}
		disk.Crash(1)
		d, _ = openDir(t, disk.FS(), "/data")
		if d.Strict(tp) {
			t.Errorf("restarted=%v: the flag of the first log is the second one's", restarted)
		}
		if _, r, err := d.OpenLog(tp, id, smallLog(), store.LogHooks{}, 0); err != nil || len(r.Damage) > 0 {
			t.Errorf("restarted=%v: what was never synced counts as damage: %+v, %v", restarted, r, err)
		}
	}
}
