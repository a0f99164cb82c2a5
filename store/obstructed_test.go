package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
)

// twoLogs makes a directory on the machine's file system with two closed logs of
// several segments.
func twoLogs(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	d, _ := openDir(t, store.OS(), dir)
	for i := range int32(2) {
		l := openOdd(t, d, i)
		appendSome(t, l, 40)
		if err := l.Close(true); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(true, 1); err != nil {
		t.Fatal(err)
	}
	return dir
}

func openOdd(t *testing.T, d *store.Directory, i int32) *store.Log {
	t.Helper()
	l, err := tryOdd(d, i)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func tryOdd(d *store.Directory, i int32) (*store.Log, error) {
	l, _, err := d.OpenLog(ident.TopicPartition{Topic: "odd", Partition: i}, topicID("odd"), smallLog(), store.LogHooks{}, 0)
	return l, err
}

// inPlace puts a directory that is not empty in the place of a file.
func inPlace(t *testing.T, name string) {
	t.Helper()
	err := os.Remove(name)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err = errors.Join(err, os.Mkdir(name, 0o755), os.WriteFile(filepath.Join(name, "inside"), []byte("x"), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// first is the first file of a partition's directory that ends in suffix.
func first(t *testing.T, dir, suffix string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s in %s: %v", suffix, dir, err)
	}
	return names[0]
}

// wantObstructed checks that an error is the log's own.
func wantObstructed(t *testing.T, d *store.Directory, err error) {
	t.Helper()
	coded, ok := errors.AsType[*store.Error](err)
	if !ok || coded.Code != store.CodeObstructed || !errors.Is(err, store.ErrObstructed) {
		t.Fatalf("%v, expected %s", err, store.CodeObstructed)
	}
	if d.Offline() != nil {
		t.Fatalf("the directory is offline: %v", d.Offline())
	}
}

func TestADirectoryInPlaceOfACacheIsRenamed(t *testing.T) {
	for _, suffix := range []string{".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint", "leader-epoch-checkpoint.tmp"} {
		t.Run(suffix, func(t *testing.T) {
			dir := twoLogs(t)
			name := filepath.Join(dir, "odd-0", suffix)
			if strings.HasSuffix(suffix, "index") {
				name = first(t, filepath.Join(dir, "odd-0"), suffix)
			} else if suffix == ".snapshot" {
				name = filepath.Join(dir, "odd-0", "00000000000000000080.snapshot")
			}
			inPlace(t, name)
			d, _ := openDir(t, store.OS(), dir)
			l := openOdd(t, d, 0)
			if l.Start() != 0 || l.End() != 80 {
				t.Fatalf("the log is [%d, %d), expected [0, 80)", l.Start(), l.End())
			}
			appendSome(t, l, 40) // over some segments
			if err := errors.Join(l.Close(true), openOdd(t, d, 1).Close(true), d.Close(true, 2)); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(name+"-stray", "inside")); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestADirectoryInPlaceOfASegmentCostsOneLog(t *testing.T) {
	dir := twoLogs(t)
	inPlace(t, first(t, filepath.Join(dir, "odd-0"), ".log"))
	d, _ := openDir(t, store.OS(), dir)
	_, err := tryOdd(d, 0)
	wantObstructed(t, d, err)
	l := openOdd(t, d, 1)
	appendSome(t, l, 3)
	if err := errors.Join(d.Checkpoint(), l.Close(true), d.Close(true, 2)); err != nil {
		t.Fatal(err)
	}
}

func TestAFileInPlaceOfALogsDirectoryCostsOneLog(t *testing.T) {
	dir := twoLogs(t)
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "odd-0")), os.WriteFile(filepath.Join(dir, "odd-0"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	d, _ := openDir(t, store.OS(), dir)
	_, err := tryOdd(d, 0)
	wantObstructed(t, d, err)
	if err := errors.Join(openOdd(t, d, 1).Close(true), d.Close(true, 2)); err != nil {
		t.Fatal(err)
	}
}

func TestADirectoryInPlaceOfACheckpointsCopyIsRenamed(t *testing.T) {
	for _, name := range []string{
		"log-start-offset-checkpoint", "log-start-offset-checkpoint.sealed",
		"recovery-point-offset-checkpoint", "recovery-point-offset-checkpoint.sealed", "recovery-point-offset-checkpoint.sealed.tmp",
		".kafka_cleanshutdown",
	} {
		t.Run(name, func(t *testing.T) {
			dir := twoLogs(t)
			inPlace(t, filepath.Join(dir, name))
			d, o := openDir(t, store.OS(), dir)
			if clean := o.Mode == store.RecoverClean; clean == (name == ".kafka_cleanshutdown") {
				t.Fatalf("recovery mode %s", o.Mode)
			}
			l := openOdd(t, d, 0)
			if l.End() != 80 {
				t.Fatalf("the log ends at %d, expected 80", l.End())
			}
			if err := errors.Join(d.Checkpoint(), l.Close(true), openOdd(t, d, 1).Close(true), d.Close(true, 2)); err != nil {
				t.Fatal(err)
			}
			_, again := openDir(t, store.OS(), dir)
			if again.Mode != store.RecoverClean {
				t.Fatalf("recovery mode %s after a clean stop", again.Mode)
			}
		})
	}
}

// What may not be opened is as it was when it may be again.
func TestForbiddenFilesCostOneLogUntilTheyAreAllowed(t *testing.T) {
	for _, rule := range []string{"open partition.metadata: EACCES", "open *.log: EACCES", "open leader-epoch-checkpoint: EACCES", "readdir orders-3: EACCES"} {
		t.Run(rule, func(t *testing.T) {
			disk := storetest.NewDisk(1)
			d, l, _, _ := openOn(t, disk.FS(), smallLog())
			appendSome(t, l, 40)
			if err := errors.Join(l.Close(true), d.Close(true, 1)); err != nil {
				t.Fatal(err)
			}
			faults := storetest.Faults(disk.FS(), rule)
			d, o := openDir(t, faults, "/data")
			if o.Mode != store.RecoverClean {
				t.Fatalf("recovery mode %s", o.Mode)
			}
			_, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
			wantObstructed(t, d, err)
			if err := errors.Join(d.Checkpoint(), d.Close(true, 2)); err != nil {
				t.Fatal(err)
			}
			faults.Clear()
			d, _ = openDir(t, faults, "/data")
			l, r, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
			if err != nil || l.End() != 80 || !r.Whole || len(r.Damage) > 0 {
				t.Fatalf("%+v, %v, expected the whole log", r, err)
			}
		})
	}
}

// A running log whose files are taken away is of no further use; the directory is.
func TestALogThatLosesAFileWhileItRunsStopsAlone(t *testing.T) {
	disk := storetest.NewDisk(1)
	faults := storetest.Faults(disk.FS())
	d, l, _, _ := openOn(t, faults, smallLog())
	other, _, err := d.OpenLog(ident.TopicPartition{Topic: "other"}, topicID("other"), smallLog(), store.LogHooks{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	appendSome(t, l, 2)
	faults.Add("open *.log: EACCES")
	for err == nil && l.End() < 1000 {
		err = l.Append(batch(t, l.End(), 0, 5000, 2, 600), 0)
	}
	wantObstructed(t, d, err)
	end := l.End()
	wantObstructed(t, d, l.Append(batch(t, end, 0, 5000, 2, 600), 0))
	if err := tryFlush(t, d, l); err != nil || l.Flushed() != end {
		t.Fatalf("flushed to %d, %v, expected %d", l.Flushed(), err, end)
	}
	faults.Clear()
	appendSome(t, other, 40)
	if err := errors.Join(l.Close(false), other.Close(true), d.Checkpoint()); err != nil {
		t.Fatal(err)
	}
	l, r, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
	if err != nil || l.End() != end || !r.Whole {
		t.Fatalf("%+v, %v, expected a whole log to %d", r, err, end)
	}
}
