package storetest_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// behaviour is a script that every file system must answer alike. It returns what
// it saw, one line a step.
func behaviour(t *testing.T, fsys store.FS, root string) []string {
	t.Helper()
	var seen []string
	note := func(what string, values ...any) {
		for i, v := range values {
			if err, ok := v.(error); ok {
				values[i] = kind(err)
			}
		}
		seen = append(seen, what+" "+fmt.Sprint(values...))
	}
	in := func(name string) string { return filepath.Join(root, name) }

	note("mkdir", fsys.MkdirAll(in("a/b"), 0o755), fsys.MkdirAll(in("a/b"), 0o755))
	_, err := fsys.OpenFile(in("a/none"), os.O_RDWR, 0)
	note("open what is not there", err)
	_, err = fsys.OpenFile(in("a/b"), os.O_RDWR, 0)
	note("open a directory", err)
	_, err = fsys.OpenFile(in("x/y"), os.O_RDWR|os.O_CREATE, 0o644)
	note("create below nothing", err)
	f, err := fsys.OpenFile(in("a/f"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fsys.OpenFile(in("a/f"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	note("create twice", err)

	n, err := f.WriteAt([]byte("hello"), 3)
	size, _ := f.Size()
	note("write behind a hole", n, err, size)
	b := make([]byte, 10)
	n, err = f.ReadAt(b, 0)
	note("read beyond the end", n, err, fmt.Sprintf("%q", b[:n]))
	n, err = f.ReadAt(b, 100)
	note("read from beyond the end", n, err)
	note("allocate", f.Allocate(0, 8192))
	size, _ = f.Size()
	n, err = f.ReadAt(b, 4)
	note("allocated", size, n, err, fmt.Sprintf("%q", b[:n]))
	note("allocate less", f.Allocate(0, 10))
	size, _ = f.Size()
	note("keeps the size", size)

	m, err := f.Map(0, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	copy(m.Bytes()[100:], "mapped")
	n, err = f.ReadAt(b[:6], 100)
	note("a mapped write is read", n, err, string(b[:6]))
	_, err = f.WriteAt([]byte("written"), 200)
	note("a write is seen in the mapping", err, string(m.Bytes()[200:207]))
	note("truncate", f.Truncate(4), f.Truncate(4096))
	n, err = f.ReadAt(b, 0)
	note("what was cut off reads as zeros", n, err, fmt.Sprintf("%q", b[:n]))
	note("sync", f.Sync(), m.Sync())
	note("unmap", m.Close())

	before, err := f.Identity()
	note("identity", err)
	note("rename", fsys.Rename(in("a/f"), in("a/g")))
	after, err := f.Identity()
	info, _ := fsys.Stat(in("a/g"))
	note("keeps its identity", err, before == after, info.ID == before, info.Size, info.Dir)
	note("rename what is gone", fsys.Rename(in("a/f"), in("a/h")))
	g, err := fsys.OpenFile(in("a/h"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := g.Identity()
	note("another file", other == before)
	note("rename over it", fsys.Rename(in("a/g"), in("a/h")), g.Close())
	list, err := fsys.ReadDir(in("a"))
	note("list", list, err)
	_, err = fsys.ReadDir(in("none"))
	note("list what is not there", err)
	note("remove a directory that is not empty", fsys.Remove(in("a")))
	note("remove", fsys.Remove(in("a/h")), fsys.Remove(in("a/h")))
	n, err = f.ReadAt(b[:4], 0)
	note("an unlinked file is read", n, err, f.Close())

	d, err := fsys.OpenDir(in("a"))
	if err != nil {
		t.Fatal(err)
	}
	note("rename a directory", fsys.Rename(in("a"), in("z")))
	note("sync it by its handle", d.Sync(), d.Close())
	note("remove all", fsys.RemoveAll(in("z")), fsys.RemoveAll(in("z")))
	_, err = fsys.Stat(in("z"))
	note("gone", err)

	lock, err := fsys.Lock(in("lock"))
	note("lock", err)
	_, err = fsys.Lock(in("lock"))
	note("lock twice", err)
	note("unlock", lock.Close())
	lock, err = fsys.Lock(in("lock"))
	note("lock again", err, lock.Close())
	return seen
}

// kind reduces an error to what callers ask of it.
func kind(err error) string {
	for _, known := range []error{fs.ErrNotExist, fs.ErrExist, store.ErrLocked, io.EOF, syscall.ENOTEMPTY, syscall.EISDIR, syscall.ENOTDIR} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return err.Error()
}

func TestTheTwinAnswersLikeTheMachine(t *testing.T) {
	machine := behaviour(t, store.OS(), t.TempDir())
	disk := storetest.NewDisk(1)
	if err := disk.FS().MkdirAll("/root", 0o755); err != nil {
		t.Fatal(err)
	}
	twins := map[string]store.FS{
		"disk":           disk.FS(),
		"without faults": storetest.Faults(storetest.NewDisk(1).FS()),
		"slow":           storetest.Slow(storetest.NewDisk(1).FS(), func(string, string) {}),
	}
	for name, fsys := range twins {
		if name != "disk" {
			if err := fsys.MkdirAll("/root", 0o755); err != nil {
				t.Fatal(err)
			}
		}
		twin := behaviour(t, fsys, "/root")
		for i := range machine {
			if machine[i] != twin[i] {
				t.Errorf("%s: %s; the machine: %s", name, twin[i], machine[i])
			}
		}
	}
}

func TestAPowerLossKeepsWhatWasSyncedAndAnySubsetOfTheRest(t *testing.T) {
	kept, lost, torn := 0, 0, 0
	for seed := range uint64(60) {
		d := storetest.NewDisk(seed)
		fsys := d.FS()
		f, err := fsys.OpenFile("/f", os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		write := func(at int64, fill byte) {
			b := make([]byte, 4*storetest.SectorBytes)
			for i := range b {
				b[i] = fill
			}
			if _, err := f.WriteAt(b, at); err != nil {
				t.Fatal(err)
			}
		}
		dir, err := fsys.OpenDir("/")
		if err != nil {
			t.Fatal(err)
		}
		write(0, 1)
		if err := errors.Join(f.Sync(), dir.Sync()); err != nil {
			t.Fatal(err)
		}
		write(0, 2)
		write(4*storetest.SectorBytes, 3)
		if _, err := fsys.OpenFile("/unsynced", os.O_RDWR|os.O_CREATE, 0o644); err != nil {
			t.Fatal(err)
		}
		d.Crash(seed)

		if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, storetest.ErrDead) {
			t.Fatalf("a handle survived: %v", err)
		}
		f, err = d.FS().OpenFile("/f", os.O_RDWR, 0)
		if err != nil {
			t.Fatal("a synced name is gone: ", err)
		}
		size, err := f.Size()
		if err != nil || size < 4*storetest.SectorBytes {
			t.Fatalf("%d bytes, %v", size, err)
		}
		b := make([]byte, size)
		if _, err := f.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
		for at := 0; at < 4*storetest.SectorBytes; at += storetest.SectorBytes {
			switch b[at] {
			case 1:
				lost++
			case 2:
				kept++
			default:
				t.Fatalf("seed %d: byte %d is %d", seed, at, b[at])
			}
			if b[at] != b[at+storetest.SectorBytes-1] {
				t.Fatal("a sector was torn")
			}
		}
		if _, err := d.FS().Stat("/unsynced"); err == nil {
			torn++
		}
	}
	if kept < 20 || lost < 20 || torn < 10 || torn > 50 {
		t.Fatalf("kept %d, lost %d sectors, %d of 60 names: not any subset", kept, lost, torn)
	}
}

func TestAFailedSyncWashesThePagesClean(t *testing.T) {
	d := storetest.NewDisk(1)
	faults := storetest.Faults(d.FS(), "sync f nth 1: EIO")
	f, err := faults.OpenFile("/f", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := faults.OpenDir("/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("precious"), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	// The second sync succeeds, and proves nothing.
	if err := errors.Join(f.Sync(), dir.Sync()); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 8)
	if _, err := f.ReadAt(b, 0); err != nil || string(b) != "precious" {
		t.Fatal("the cache forgot: ", err)
	}
	d.Crash(1)
	f, err = d.FS().OpenFile("/f", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := f.ReadAt(b, 0); n == 8 && string(b) == "precious" {
		t.Fatal("the bytes of a failed sync are on the platter")
	}
}

func TestEqualSeedsGiveEqualDisks(t *testing.T) {
	run := func() string {
		d := storetest.NewDisk(5)
		d.Writeback = 50
		for i := range 30 {
			f, err := d.FS().OpenFile(fmt.Sprintf("/f%d", i%7), os.O_RDWR|os.O_CREATE, 0o644)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt(make([]byte, i*300), int64(i*100)); err != nil {
				t.Fatal(err)
			}
			if i%4 == 0 {
				if err := f.Sync(); err != nil {
					t.Fatal(err)
				}
			}
		}
		d.Crash(9)
		return d.Dump()
	}
	if a, b := run(), run(); a != b {
		t.Fatalf("two runs of a seed differ:\n%s\n%s", a, b)
	}
}

func TestAMappedWriteBeyondTheEndIsABusError(t *testing.T) {
	d := storetest.NewDisk(1)
	f, err := d.FS().OpenFile("/f", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Allocate(0, 1000); err != nil {
		t.Fatal(err)
	}
	m, err := f.Map(0, 8192)
	if err != nil {
		t.Fatal(err)
	}
	m.Bytes()[1000] = 1
	defer func() {
		if recover() == nil {
			t.Fatal("a write beyond the end went unnoticed")
		}
	}()
	_ = f.Sync()
}
