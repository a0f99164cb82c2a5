package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// An operator reads in the log that indexes were missing: it must be said when they were, and never after an ordinary stop.
func TestIndexesAreCountedAsMissingOnlyWhereOneWasDue(t *testing.T) {
	for _, c := range []struct {
		what    string
		batches int
		remove  string
		rebuilt int
	}{
		{"one small batch, stopped in order", 1, "", 0},
		{"enough for entries, stopped in order", 20, "", 0},
		{"one small batch, its empty index lost", 1, "*.index", 0},
		{"enough for entries, the index lost", 20, "*.index", 1},
		{"enough for entries, the time index lost", 20, "*.timeindex", 1},
	} {
		t.Run(c.what, func(t *testing.T) {
			path := t.TempDir()
			d, _ := openDir(t, store.OS(), path)
			l, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.batches {
				mustAppend(t, l, batch(t, l.End(), 0, ident.Millis(1000+i), 1, 200))
			}
			flush(t, d, l)
			if err := errors.Join(l.Close(true), d.Close(true, 1)); err != nil {
				t.Fatal(err)
			}
			if c.remove != "" {
				files, err := filepath.Glob(filepath.Join(path, "orders-3", c.remove))
				if err != nil || len(files) != 1 {
					t.Fatal(files, err)
				}
				if err := os.Remove(files[0]); err != nil {
					t.Fatal(err)
				}
			}
			d, _ = openDir(t, store.OS(), path)
			l, r, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), store.LogHooks{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if r.IndexesRebuilt != c.rebuilt {
				t.Errorf("%d segments had their indexes built anew, want %d", r.IndexesRebuilt, c.rebuilt)
			}
			if err := errors.Join(l.Close(true), d.Close(true, 2)); err != nil {
				t.Fatal(err)
			}
		})
	}
}
