package store_test

import (
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
)

// TestWhatIsMissingIsFoundUntilItWasHeard takes the tail of a log away from a broker that was killed. It finds that, and is killed before anybody has heard it, as
// often as you like: what one run has cut, the next one must not take for whole.
func TestWhatIsMissingIsFoundUntilItWasHeard(t *testing.T) {
	const file = "/data/orders-3/00000000000000000000.log"
	disk := storetest.NewDisk(1)
	d, l, _, _ := openOn(t, disk.FS(), smallLog())
	appendSome(t, l, 5)
	if err := tryFlush(t, d, l); err != nil {
		t.Fatal(err)
	}
	appendSome(t, l, 1)
	flushed, size := l.Flushed(), l.Size()
	disk.Kill()
	b := contents(t, disk.FS(), file)
	overwrite(t, disk.FS(), file, b[:size-10]) // in the last batch

	open := func() (*store.Directory, *store.Log, store.Recovery) {
		t.Helper()
		d, l, o, r := openOn(t, disk.FS(), smallLog())
		if o.Mode != store.RecoverSameBoot || l.Flushed() < flushed {
			t.Fatalf("%v, flushed %d of %d", o.Mode, l.Flushed(), flushed)
		}
		return d, l, r
	}
	for run := range 3 {
		d, l, r := open()
		if r.Whole {
			t.Fatalf("run %d takes the log for whole: %+v", run, r)
		}
		appendSome(t, l, 1)
		if err := tryFlush(t, d, l); err != nil {
			t.Fatal(err)
		}
		disk.Kill()
	}
	_, l, r := open()
	if r.Whole {
		t.Fatalf("%+v", r)
	}
	l.Confessed()
	disk.Kill()
	if _, _, r = open(); !r.Whole {
		t.Fatalf("it was heard, and is found again: %+v", r)
	}
}

// TestWhatWasNotToldIsFoundByTheNextRun: a run that finds records lost may die before anybody has heard that, with no log opened. The page cache that the next one
// finds is not that of those who wrote the records.
func TestWhatWasNotToldIsFoundByTheNextRun(t *testing.T) {
	disk := storetest.NewDisk(1)
	open := func(mode store.RecoveryMode, untold bool) *store.Directory {
		t.Helper()
		d, o, err := store.OpenDirectory(store.DirectoryOptions{FS: disk.FS(), Path: "/data", Broker: 1, Rand: seeded(9), Generations: &store.Generations{}, Parallel: 1})
		if err != nil {
			t.Fatal(err)
		}
		if !o.Created && (o.Mode != mode || o.Untold != untold) {
			t.Fatalf("%v, untold: %t; want %v, %t", o.Mode, o.Untold, mode, untold)
		}
		return d
	}
	stop := func(d *store.Directory, epoch ident.BrokerEpoch) {
		t.Helper()
		if err := d.Close(true, epoch); err != nil {
			t.Fatal(err)
		}
	}
	open(0, true).Told()
	disk.Kill()
	open(store.RecoverSameBoot, false)
	disk.Crash(1)
	open(store.RecoverVerify, true)
	for range 3 {
		disk.Kill()
		open(store.RecoverSameBoot, true)
	}
	disk.Kill()
	open(store.RecoverSameBoot, true).Told()
	disk.Kill()
	stop(open(store.RecoverSameBoot, false), ident.NoBrokerEpoch)
	open(store.RecoverClean, true) // who stopped in order was never registered
	disk.Kill()
	stop(open(store.RecoverSameBoot, true), 7)
	open(store.RecoverClean, false)
	disk.Kill()
	stop(open(store.RecoverSameBoot, false), 8)
	disk.Crash(2)
	open(store.RecoverClean, false)
}

// TestOfManyLogsTheFirstIsNamed: what is said of a directory that is not closed clean is the same in equal histories, so that a simulation repeats itself.
func TestOfManyLogsTheFirstIsNamed(t *testing.T) {
	for range 5 {
		d, _, _, _ := openOn(t, storetest.NewDisk(1).FS(), smallLog())
		for _, n := range []int32{2, 0, 1} {
			if _, _, err := d.OpenLog(ident.TopicPartition{Topic: "accounts", Partition: n}, topicID("accounts"), smallLog(), store.LogHooks{}, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Close(true, 1); err == nil || !strings.Contains(err.Error(), "the log of accounts-0 was not closed clean") {
			t.Fatalf("four logs are open: %v", err)
		}
	}
}

// TestALossThatWasToldByTheRegistrationIsNotToldAgain: a run whose registration names no replica as whole, because a loss of power was not told yet, has nothing to
// confess of one that lacks records. When that was heard, and the replica has all again, the next run must not take it back.
func TestALossThatWasToldByTheRegistrationIsNotToldAgain(t *testing.T) {
	const file = "/data/orders-3/00000000000000000000.log"
	disk := storetest.NewDisk(1)
	d, l, _, _ := openOn(t, disk.FS(), smallLog())
	d.Told()
	appendSome(t, l, 5)
	if err := tryFlush(t, d, l); err != nil {
		t.Fatal(err)
	}
	disk.Crash(1)
	_, l, _, _ = openOn(t, disk.FS(), smallLog()) // finds the loss of power, and dies
	appendSome(t, l, 1)
	size := l.Size()
	disk.Kill()
	overwrite(t, disk.FS(), file, contents(t, disk.FS(), file)[:size-10])
	d, l, o, r := openOn(t, disk.FS(), smallLog())
	if o.Mode != store.RecoverSameBoot || !o.Untold || r.Whole {
		t.Fatalf("%+v, %+v", o, r)
	}
	d.Told()
	appendSome(t, l, 1) // what it lacks
	if err := tryFlush(t, d, l); err != nil {
		t.Fatal(err)
	}
	disk.Kill()
	if _, _, o, r = openOn(t, disk.FS(), smallLog()); o.Untold || !r.Whole {
		t.Fatalf("it was told, and is found again: %+v, %+v", o, r)
	}
}

// TestNoLogIsMarkedStrictBeforeALossWasTold: what is on stable storage by then may not be all that the log had told, and the mark says that it is.
func TestNoLogIsMarkedStrictBeforeALossWasTold(t *testing.T) {
	disk := storetest.NewDisk(1)
	strict := func(set bool) *store.Directory {
		t.Helper()
		d, l, _, _ := openOn(t, disk.FS(), smallLog())
		appendSome(t, l, 1)
		if err := tryFlush(t, d, l); err != nil {
			t.Fatal(err)
		}
		l.SetStrict(set)
		if err := d.Checkpoint(); err != nil {
			t.Fatal(err)
		}
		return d
	}
	found := func(want bool, when string) {
		t.Helper()
		d, _, _, _ := openOn(t, disk.FS(), smallLog())
		if got := d.Strict(testPartition); got != want {
			t.Fatalf("%s: marked strict: %t", when, got)
		}
		disk.Kill()
	}
	strict(false).Told()
	disk.Crash(1)
	strict(true)
	disk.Kill()
	found(false, "by a run that nobody has heard of")
	d := strict(true)
	d.Told()
	if err := d.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	disk.Kill()
	found(true, "by one that was heard")
	disk.Crash(2)
	strict(true)
	disk.Kill()
	found(true, "before the loss")
}
