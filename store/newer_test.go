package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// What a directory that cannot be used says, and to whom.

func TestAPartitionOfANewerFormatIsRefusedAloneAndKept(t *testing.T) {
	disk := storetest.NewDisk(1)
	d, l, _, _ := openOn(t, disk.FS(), smallLog())
	appendSome(t, l, 20)
	if err := tryFlush(t, d, l); err != nil {
		t.Fatal(err)
	}
	end := l.End()
	if err := errors.Join(l.Close(true), d.Close(true, 1)); err != nil {
		t.Fatal(err)
	}
	const name = "/data/orders-3/partition.metadata"
	sound := contentOf(t, disk.FS(), name)
	overwrite(t, disk.FS(), name, []byte("version: 7\ntopic_id: abc\n"))
	for range 2 { // the first start must not lose what the second needs
		d, o := openDir(t, disk.FS(), "/data")
		if len(o.Logs) != 0 || len(o.Strays) != 0 {
			t.Fatalf("found %+v", o)
		}
		_, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
		known, ok := errors.AsType[*store.Error](err)
		if !ok || known.Code != store.CodeNewer || !errors.Is(err, store.ErrNewerFormat) {
			t.Fatalf("the log of a newer format: %v", err)
		}
		for _, word := range []string{"partition.metadata in /data/orders-3", "version 7", "start the version that wrote it"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q does not say %q", err, word)
			}
		}
		if err := d.Close(true, 2); err != nil {
			t.Fatal(err)
		}
	}
	overwrite(t, disk.FS(), name, sound)
	_, l, _, r := openOn(t, disk.FS(), smallLog())
	if got := readAll(t, l, 0, end, 1<<20); len(got) != 20 || l.End() != end || !r.Whole {
		t.Fatalf("%d batches, the end is %d: %+v", len(got), l.End(), r)
	}
}

func contentOf(t *testing.T, fs store.FS, name string) []byte {
	t.Helper()
	f, err := fs.OpenFile(name, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, n)
	if k, err := f.ReadAt(b, 0); k != len(b) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAReadOnlyFileSystemIsNamed(t *testing.T) {
	for _, rule := range []string{"mkdir data: EROFS", "any .lock: EROFS"} {
		disk := storetest.NewDisk(1)
		if !strings.HasPrefix(rule, "mkdir") {
			d, l, _, _ := openOn(t, disk.FS(), smallLog())
			if err := errors.Join(l.Close(true), d.Close(true, 1)); err != nil {
				t.Fatal(err)
			}
		}
		faults := storetest.Faults(disk.FS(), rule)
		_, _, err := store.OpenDirectory(store.DirectoryOptions{FS: faults, Path: "/data", Broker: 1, Rand: seeded(1), Generations: &store.Generations{}})
		if faults.Hits() == 0 {
			t.Fatalf("nothing met %q", rule)
		}
		known, ok := errors.AsType[*store.Error](err)
		if !ok || known.Code != store.CodeNoPermission || !strings.Contains(err.Error(), "mount it so that it can be written") {
			t.Errorf("%s: %v", rule, err)
		}
	}
}
