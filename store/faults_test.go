package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
)

// openOn opens directory and log on any file system, without a ghost.
func openOn(t testing.TB, fs store.FS, cfg store.LogConfig) (*store.Directory, *store.Log, store.Opened, store.Recovery) {
	t.Helper()
	d, o, err := store.OpenDirectory(store.DirectoryOptions{
		FS: fs, Path: "/data", Broker: 1, Rand: seeded(5), Generations: &store.Generations{}, Parallel: 1, BallastBytes: 8192,
	})
	if err != nil {
		t.Fatal(err)
	}
	l, r, err := d.OpenLog(testPartition, topicID("orders"), cfg, store.LogHooks{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return d, l, o, r
}

func tryFlush(t testing.TB, d *store.Directory, l *store.Log) error {
	t.Helper()
	s, err := d.NewSyncer()
	if err != nil {
		return err
	}
	work, dirty := l.BeginSync()
	if !dirty {
		if l.Flushed() < l.End() {
			return errors.New("nothing to sync, though not all is flushed")
		}
		return nil
	}
	for _, r := range s.Sync(nil, []store.SyncWork{work}) {
		if _, _, err := l.Synced(r); err != nil {
			return err
		}
	}
	return nil
}

func wantOffline(t testing.TB, doing string, err error) {
	t.Helper()
	var coded *store.Error
	if !errors.Is(err, store.ErrDirectoryOffline) || !errors.As(err, &coded) || coded.Code != store.CodeOffline {
		t.Fatalf("%s: %v, expected the directory to be offline", doing, err)
	}
}

func appendSome(t testing.TB, l *store.Log, n int) {
	t.Helper()
	for range n {
		mustAppend(t, l, batch(t, l.End(), 0, 5000, 2, 600))
	}
}

func TestAFailedSyncTakesTheDirectoryOfflineForGood(t *testing.T) {
	for _, rule := range []string{"sync *.log nth 2: EIO", "sync *.log nth 2: ENOSPC", "syncdir orders-3 nth 3: EIO"} {
		t.Run(rule, func(t *testing.T) {
			disk := storetest.NewDisk(1)
			faults := storetest.Faults(disk.FS())
			d, l, _, _ := openOn(t, faults, smallLog())
			faults.Add(rule)
			appendSome(t, l, 3)
			if err := tryFlush(t, d, l); err != nil {
				t.Fatal(err)
			}
			flushed := l.Flushed()
			appendSome(t, l, 40)
			wantOffline(t, "the failed sync", tryFlush(t, d, l))
			if l.Flushed() != flushed {
				t.Fatalf("a failed sync moved the flushed end from %d to %d", flushed, l.Flushed())
			}

			// Nothing works any more, and above all no second sync that succeeds.
			wantOffline(t, "append", l.Append(batch(t, l.End(), 0, 0, 1, 100), 0))
			_, err := l.Read(0, l.End(), 1000, true)
			wantOffline(t, "read", err)
			if _, dirty := l.BeginSync(); dirty {
				t.Error("an offline log wants to be synced")
			}
			wantOffline(t, "checkpoint", d.Checkpoint())
			wantOffline(t, "roll", l.Roll(0))
			wantOffline(t, "clean close", l.Close(true))
			wantOffline(t, "directory close", d.Close(true, 1))
			if _, err := disk.FS().Stat("/data/io-error"); err != nil {
				t.Errorf("no error mark: %v", err)
			}
		})
	}
}

// After a failed sync the cache holds pages that look clean and are on no platter.
// The next broker of this boot must not count them as durable by syncing again.
func TestWhatAFailedSyncLeftIsCopiedBeforeItCounts(t *testing.T) {
	for name, before := range map[string]func(*storetest.Injector, *storetest.Disk){
		"error mark written":    func(*storetest.Injector, *storetest.Disk) {},
		"error mark fails too":  func(f *storetest.Injector, _ *storetest.Disk) { f.Add("open io-error*: EIO") },
		"block removed as well": func(_ *storetest.Injector, d *storetest.Disk) { _ = d.FS().Remove("/data/control-block") },
	} {
		t.Run(name, func(t *testing.T) {
			disk := storetest.NewDisk(1)
			faults := storetest.Faults(disk.FS())
			before(faults, disk)
			d, l, _, _ := openOn(t, faults, smallLog())
			appendSome(t, l, 30)
			if err := tryFlush(t, d, l); err != nil {
				t.Fatal(err)
			}
			appendSome(t, l, 50)
			before(faults, disk)
			faults.Add("sync *.log: EIO")
			wantOffline(t, "the failed sync", tryFlush(t, d, l))
			want := readGhost(t, disk, l)

			disk.Kill()
			_, l, o, r := openOn(t, disk.FS(), smallLog())
			if o.Mode != store.RecoverCopy || r.Mode != store.RecoverCopy {
				t.Fatalf("opened by %d, log by %d, expected a copy", o.Mode, r.Mode)
			}
			if l.End() != want || r.Flushed != l.End() || !r.Whole {
				t.Fatalf("%+v, expected all up to %d, flushed", r, want)
			}
			// It counts as flushed: so a power loss right now takes nothing.
			disk.Crash(3)
			d, l, _, r = openOn(t, disk.FS(), smallLog())
			if l.End() != want || len(r.Damage) > 0 {
				t.Fatalf("after the copy a power loss left %+v of %d", r, want)
			}
			if err := errors.Join(tryFlush(t, d, l), l.Close(true), d.Close(true, 1)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// readGhost is the log's end, asked of a log that is offline.
func readGhost(t testing.TB, _ *storetest.Disk, l *store.Log) ident.Offset {
	t.Helper()
	return l.End()
}

func TestTheErrorMarkGoesWhenEveryLogIsRecovered(t *testing.T) {
	disk := storetest.NewDisk(1)
	faults := storetest.Faults(disk.FS())
	d, l, _, _ := openOn(t, faults, smallLog())
	other := ident.TopicPartition{Topic: "orders", Partition: 4}
	m, _, err := d.OpenLog(other, topicID("orders"), smallLog(), store.LogHooks{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	appendSome(t, l, 5)
	appendSome(t, m, 5)
	faults.Add("sync *.log: EIO")
	wantOffline(t, "flush", tryFlush(t, d, l))

	disk.Kill()
	_, _, o, _ := openOn(t, disk.FS(), smallLog())
	if !o.ErrorMarked {
		t.Fatal("the error is not on record")
	}
	marked := func() bool {
		_, err := disk.FS().Stat("/data/io-error")
		return err == nil
	}
	if !marked() {
		t.Fatal("the mark went before the second log was recovered")
	}
	// A process that dies here has to begin again.
	disk.Kill()
	d, l, o, _ = openOn(t, disk.FS(), smallLog())
	if o.Mode != store.RecoverCopy {
		t.Fatalf("mode %d after a death in the middle of the recovery", o.Mode)
	}
	m, r, err := d.OpenLog(other, topicID("orders"), smallLog(), store.LogHooks{}, 0)
	if err != nil || r.Mode != store.RecoverCopy || m.End() != l.End() {
		t.Fatal(r, err)
	}
	if marked() {
		t.Fatal("the mark is still there")
	}
	disk.Kill()
	if _, _, o, r = openOn(t, disk.FS(), smallLog()); o.Mode != store.RecoverSameBoot || r.Mode != store.RecoverSameBoot {
		t.Fatalf("mode %d, %d after everything was recovered", o.Mode, r.Mode)
	}
}

func TestAFullDiskRefusesTheAppendAndChangesNothing(t *testing.T) {
	for _, mode := range []store.AppendMode{store.AppendMapped, store.AppendWritten} {
		disk := storetest.NewDisk(1)
		cfg := smallLog()
		cfg.Append = mode
		d, l, _, _ := openOn(t, disk.FS(), cfg)
		appendSome(t, l, 10)
		disk.Capacity = disk.Used() + 20000
		var refused error
		for refused == nil {
			before := l.End()
			if refused = l.Append(batch(t, l.End(), 0, 5000, 2, 600), 0); refused != nil && l.End() != before {
				t.Fatal("a refused append moved the end")
			}
		}
		if !errors.Is(refused, store.ErrNoSpace) {
			t.Fatal(refused)
		}
		end, size, segments := l.End(), l.Size(), l.Segments()
		for range 3 {
			if err := l.Append(batch(t, l.End(), 0, 5000, 2, 600), 0); !errors.Is(err, store.ErrNoSpace) {
				t.Fatal(err)
			}
		}
		if l.End() != end || l.Size() != size || l.Segments() != segments {
			t.Fatalf("refused appends led from %d, %d, %d to %d, %d, %d", end, size, segments, l.End(), l.Size(), l.Segments())
		}
		if got := readAll(t, l, 0, end, 1<<20); len(got) != int(end)/2 {
			t.Fatalf("%d batches are read on the full disk", len(got))
		}
		if err := tryFlush(t, d, l); err != nil || l.Flushed() != end {
			t.Fatal(err)
		}

		// Deleting is what frees the disk, so it has to work on a full one.
		if err := l.SetStart(end / 2); err != nil {
			t.Fatal(err)
		}
		if err := tryFlush(t, d, l); err != nil {
			t.Fatalf("the log start could not be made durable on a full disk: %v", err)
		}
		trimmed, err := l.ApplyRetention(0, end)
		if err != nil || trimmed.Segments == 0 {
			t.Fatalf("%+v, %v", trimmed, err)
		}
		if err := tryFlush(t, d, l); err != nil {
			t.Fatal(err)
		}
		used := disk.Used()
		if _, err := l.ApplyRetention(100_000, end); err != nil || disk.Used() >= used {
			t.Fatalf("deletion led from %d to %d bytes: %v", used, disk.Used(), err)
		}
		appendSome(t, l, 2) // there is space again, and nobody was restarted
		disk.Capacity = 0
		appendSome(t, l, 50)
		if err := errors.Join(tryFlush(t, d, l), l.Close(true), d.Close(true, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestABrokerStartsOnAFullDisk(t *testing.T) {
	disk := storetest.NewDisk(1)
	d, l, _, _ := openOn(t, disk.FS(), smallLog())
	appendSome(t, l, 30)
	if err := tryFlush(t, d, l); err != nil {
		t.Fatal(err)
	}
	end := l.End()
	for _, power := range []bool{false, true} {
		if power {
			disk.Crash(7)
		} else {
			disk.Kill()
		}
		disk.Capacity = disk.Used()
		d, l, _, r := openOn(t, disk.FS(), smallLog())
		if l.End() != end || !r.Whole {
			t.Fatalf("power loss %t: %+v, expected %d", power, r, end)
		}
		if err := tryFlush(t, d, l); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEverySingleRefusalIsHarmless lets each operation of a history fail once for
// lack of space: the call that met it may be repeated, and nothing is missing.
func TestEverySingleRefusalIsHarmless(t *testing.T) {
	hits := 0
	for _, op := range []string{"open", "write", "allocate", "truncate"} {
		for n := 1; n < 60; n++ {
			disk := storetest.NewDisk(1)
			faults := storetest.Faults(disk.FS())
			d, l, _, _ := openOn(t, faults, smallLog())
			faults.Add(fmt.Sprintf("%s * nth %d: ENOSPC", op, n))
			step := fmt.Sprintf("%s %d", op, n)
			again := func(what string, do func() error) {
				t.Helper()
				for range 3 {
					err := do()
					if err == nil {
						return
					}
					if !errors.Is(err, store.ErrNoSpace) {
						t.Fatalf("%s: %s: %v", step, what, err)
					}
				}
				t.Fatalf("%s: %s was refused again and again", step, what)
			}
			for i := range 30 {
				// Rising timestamps, so that closing a segment writes into its time index.
				v := batch(t, l.End(), 0, 5000+ident.Millis(10*i), 2, 900)
				again("append", func() error { return l.Append(v, 0) })
				if i%9 == 8 {
					again("flush", func() error { return tryFlush(t, d, l) })
				}
			}
			again("checkpoint", d.Checkpoint)
			again("flush", func() error {
				if l.Flushed() == l.End() {
					return nil
				}
				return tryFlush(t, d, l)
			})
			if got := readAll(t, l, 0, l.End(), 1<<20); len(got) != 30 {
				t.Fatalf("%s: %d batches", step, len(got))
			}
			disk.Crash(uint64(n))
			_, l, _, r := openOn(t, disk.FS(), smallLog())
			if l.End() != 60 || len(r.Damage) > 0 {
				t.Fatalf("%s: recovered %+v", step, r)
			}
			hits += faults.Hits()
		}
	}
	if hits < 20 {
		t.Fatalf("%d refusals: the test does not test it", hits)
	}
}

func TestATornWriteIsAnIOError(t *testing.T) {
	disk := storetest.NewDisk(1)
	faults := storetest.Faults(disk.FS(), "write *.log nth 12: torn")
	cfg := smallLog()
	cfg.Append = store.AppendWritten
	d, l, _, _ := openOn(t, faults, cfg)
	appendSome(t, l, 11)
	if err := tryFlush(t, d, l); err != nil {
		t.Fatal(err)
	}
	end := l.End()
	wantOffline(t, "the torn append", l.Append(batch(t, l.End(), 0, 0, 2, 3000), 0))
	if l.End() != end {
		t.Fatal("the torn batch counts")
	}
	disk.Crash(1)
	_, l, _, r := openOn(t, disk.FS(), cfg)
	if l.End() != end || len(r.Damage) > 0 {
		t.Fatalf("%+v, expected the end %d", r, end)
	}
}

func TestFaultRulesAreReadOrRefused(t *testing.T) {
	for _, bad := range []string{
		"", "sync", "sync *.log", "sync *.log: EWHAT", "sync *.log nth: EIO", "sync *.log nth x: EIO",
		"sleep *: EIO", "write *: short", "write *: short -1", "write [: EIO",
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "storetest") {
					t.Errorf("rule %q was accepted: %v", bad, r)
				}
			}()
			storetest.Faults(storetest.NewDisk(1).FS(), bad)
		}()
	}
}
