package store_test

import (
	"errors"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
)

var testPartition = ident.TopicPartition{Topic: "orders", Partition: 3}

func TestAppendedBatchesAreReadBackAfterACleanRestart(t *testing.T) {
	for _, mode := range []store.AppendMode{store.AppendMapped, store.AppendWritten} {
		path := t.TempDir()
		d, o := openDir(t, store.OS(), path)
		if !o.Created {
			t.Fatalf("a new directory was found as %+v", o)
		}
		c := smallLog()
		c.Append = mode
		l, r, err := d.OpenLog(testPartition, topicID("orders"), c, store.LogHooks{}, 0)
		if err != nil || !r.Created {
			t.Fatal(r, err)
		}
		var want [][]byte
		for i := range 200 {
			v := batch(t, l.End(), ident.LeaderEpoch(i/50), ident.Millis(1000+i), 1+i%3, 200+i)
			want = append(want, v)
			mustAppend(t, l, v)
		}
		if l.Segments() < 3 {
			t.Fatalf("%d segments: the log did not roll", l.Segments())
		}
		check := func() {
			t.Helper()
			for _, max := range []int{1, 700, 5000, 1 << 20} {
				got := readAll(t, l, l.Start(), l.End(), max)
				if len(got) != len(want) {
					t.Fatalf("%d batches in place of %d", len(got), len(want))
				}
				for i := range got {
					if string(got[i]) != string(want[i]) {
						t.Fatalf("batch %d differs", i)
					}
				}
			}
		}
		check()
		if got := flush(t, d, l); got != l.End() {
			t.Fatalf("flushed %d of %d", got, l.End())
		}
		end := l.End()
		if err := errors.Join(l.Close(true), d.Close(true, 7)); err != nil {
			t.Fatal(err)
		}

		d, o = openDir(t, store.OS(), path)
		if o.Mode != store.RecoverClean || o.CleanEpoch != 7 || len(o.Logs) != 1 || o.Logs[0].Partition != testPartition {
			t.Fatalf("found %+v", o)
		}
		l, r, err = d.OpenLog(testPartition, topicID("orders"), c, store.LogHooks{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if l.End() != end || l.Flushed() != end || r.Mode != store.RecoverClean || !r.Whole {
			t.Fatalf("recovered %+v, end was %d", r, end)
		}
		check()
		if e, o := l.EpochEnd(1); e != 1 || o != 200 {
			t.Logf("epoch 1 ends at %d, %d", e, o)
		}
		if err := errors.Join(l.Close(true), d.Close(true, 8)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestALogIsNotClosedCleanWhileAShareOfItIsOut has a flush round that has not synced its share yet: closing syncs the rest, and its end must not count as durable.
func TestALogIsNotClosedCleanWhileAShareOfItIsOut(t *testing.T) {
	disk := storetest.NewDisk(1)
	d, _, err := directoryOn(disk)
	if err != nil {
		t.Fatal(err)
	}
	l, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	appendSome(t, l, 20)
	if _, dirty := l.BeginSync(); !dirty {
		t.Fatal("nothing is dirty")
	}
	if err := l.Close(true); err == nil {
		t.Error("a log was closed clean, and nobody knows when its records are synced")
	}
	disk.Crash(1)
	if d, _, err = directoryOn(disk); err != nil {
		t.Fatal(err)
	}
	l, r, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
	if err != nil || len(l.Damage()) != 0 {
		t.Errorf("what was not synced counts as durable: %+v, damage %v (%v)", r, l.Damage(), err)
	}
}
