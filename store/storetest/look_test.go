package storetest_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/store/storetest"
)

// TestPlatterIsTheLeastThatAPowerCutLeaves: of names and bytes only what was synced; and looking changes nothing.
func TestPlatterIsTheLeastThatAPowerCutLeaves(t *testing.T) {
	d := storetest.NewDisk(1)
	fsys := d.FS()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(fsys.MkdirAll("/a", 0o755))
	f, err := fsys.OpenFile("/a/f", os.O_RDWR|os.O_CREATE, 0o644)
	must(err)
	_, err = f.WriteAt([]byte("synced"), 0)
	must(err)
	must(f.Sync())
	if _, err := d.Platter().Read("/a/f"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file whose name was not synced: %v", err)
	}
	for _, name := range []string{"/", "/a"} {
		dir, err := fsys.OpenDir(name)
		must(err)
		must(errors.Join(dir.Sync(), dir.Close()))
	}
	_, err = f.WriteAt([]byte("and more"), 6)
	must(err)
	must(fsys.Rename("/a/f", "/a/g"))
	read := func(l storetest.Look, name, want string) {
		t.Helper()
		if b, err := l.Read(name); err != nil || string(b) != want {
			t.Errorf("%s is %q (%v), not %q", name, b, err, want)
		}
	}
	read(d.Platter(), "/a/f", "synced")
	read(d.Cache(), "/a/g", "syncedand more")
	for _, x := range []struct {
		look storetest.Look
		want string
	}{{d.Platter(), "f"}, {d.Cache(), "g"}} {
		list, err := x.look.List("/a")
		must(err)
		if len(list) != 1 || list[0].Name != x.want || list[0].Dir {
			t.Errorf("%v, not %s", list, x.want)
		}
		whole, err := x.look.Read("/a/" + x.want)
		must(err)
		if files, err := x.look.Files("/a", x.want); err != nil || len(files) != 1 || files[0].Name != x.want || !bytes.Equal(files[0].Bytes, whole) {
			t.Errorf("%v (%v), not the bytes of %s", files, err, x.want)
		}
		if files, err := x.look.Files("/a", ".log"); err != nil || len(files) > 0 {
			t.Errorf("%v (%v), whose names end otherwise", files, err)
		}
	}
	if _, err := d.Cache().Read("/a"); err == nil {
		t.Error("a directory was read")
	}
	if _, err := d.Platter().List("/b"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	must(f.Close())
	d.Overwrite("/a/g", []byte("noise"))
	read(d.Cache(), "/a/g", "noise")
	read(d.Platter(), "/a/f", "noise")
	if used := d.Used(); used != 5 {
		t.Errorf("%d bytes are used", used)
	}
	d.Crash(3) // the rename may have survived or not
	list, err := d.Cache().List("/a")
	must(err)
	if len(list) != 1 || !slices.Contains([]string{"f", "g"}, list[0].Name) {
		t.Errorf("after a power cut: %v", list)
	}
}
