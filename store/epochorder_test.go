package store_test

import (
	"errors"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// TestTheEpochFileDoesNotGoBackInARound: two works of one log are in one flush round, and the older one writes the epoch file last, as goroutines may have it.
// What the younger one has written stays, or the durable mark lies above an epoch that the file lacks.
func TestTheEpochFileDoesNotGoBackInARound(t *testing.T) {
	disk := storetest.NewDisk(5)
	d, l, _, _ := openOn(t, disk.FS(), smallLog())
	mustAppend(t, l, batch(t, 0, 1, 1000, 2, 200))
	older, _ := l.BeginSync()
	mustAppend(t, l, batch(t, 2, 4, 1000, 2, 200))
	younger, _ := l.BeginSync()
	s, err := d.NewSyncer()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Sync(nil, []store.SyncWork{younger, older}) {
		if _, _, err := l.Synced(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Close(), d.Checkpoint()); err != nil {
		t.Fatal(err)
	}
	disk.Crash(1)
	_, l, _, r := openOn(t, disk.FS(), smallLog())
	if r.End != 4 || l.EpochOf(1) != 1 || l.EpochOf(3) != 4 {
		t.Errorf("%+v, the epochs are %v", r, l.Epochs(nil))
	}
}
