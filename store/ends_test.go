package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/record"
)

// A file of a compacted log that has gone, or was cut between two batches, is no gap that compaction has left.
func TestAMissingSegmentOfACompactedLogIsNoticed(t *testing.T) {
	for _, how := range []string{"kill", "clean", "power loss"} {
		for _, what := range []string{"first", "middle", "last but one", "two", "cut", "emptied"} {
			t.Run(how+", "+what, func(t *testing.T) {
				w := newTwo(t)
				for i := range 12 {
					long := strings.Repeat("x", 3000)
					w.put(fmt.Sprintf("k%d=%s", i, long), "a=1", "b=1")
					w.put(fmt.Sprintf("l%d=%s", i, long), "a=2", "a")
				}
				w.a.clean(store.CleanOptions{})
				w.put("z=1")
				names := w.a.names(".log")
				if len(names) < 5 {
					t.Fatalf("there are %v", names)
				}
				if err := w.a.dir.Checkpoint(); err != nil {
					t.Fatal(err)
				}
				s := w.a
				if how == "power loss" {
					syncAt(t, s.fs, "/data/orders-3/segment-ends")
				}
				s.stop(how)
				gone := map[string][]int{"first": {0}, "middle": {1}, "last but one": {len(names) - 2}, "two": {1, 2}}[what]
				for _, i := range gone {
					if err := s.fs.Remove("/data/orders-3/" + names[i]); err != nil {
						t.Fatal(err)
					}
				}
				switch name := "/data/orders-3/" + names[1]; what {
				case "cut":
					b := contents(t, s.fs, name)
					overwrite(t, s.fs, name, b[:firstSize(t, b)])
				case "emptied":
					overwrite(t, s.fs, name, nil)
				}
				s.open()
				if len(s.log.Damage()) == 0 {
					t.Fatalf("of %v %v went, and nobody noticed", names, gone)
				}
				w.mend(nil)
				w.a.clean(store.CleanOptions{})
				w.b.clean(store.CleanOptions{})
				w.a.want(w.b.text())
				s.stop("kill")
				s.open()
				if d := s.log.Damage(); len(d) > 0 {
					t.Errorf("%v is damaged after a repair", d)
				}
				w.a.want(w.b.text())
			})
		}
	}
}

// syncAt makes a file durable, as time would.
func syncAt(t *testing.T, fs store.FS, name string) {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	d, err := fs.OpenDir(filepath.Dir(name))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close(), d.Sync(), d.Close()); err != nil {
		t.Fatal(err)
	}
}

// firstSize is the length of the first batch.
func firstSize(t *testing.T, b []byte) int {
	t.Helper()
	v, rest, err := record.Split(b)
	if err != nil || len(rest) == 0 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	return len(v)
}
