package store_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// One owner appends, reads and deletes; a flusher syncs what the owner hands it;
// readers check regions for as long as they hold them; jobs reserve ahead and
// unlink. Run with -race.
func TestOwnerFlusherAndReadersWorkAtOnce(t *testing.T) {
	jobs := &worker{}
	d, _, err := store.OpenDirectory(store.DirectoryOptions{
		FS: store.OS(), Path: t.TempDir(), Broker: 1, Rand: seeded(1), Generations: &store.Generations{}, Background: jobs.Run,
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.NewSyncer()
	if err != nil {
		t.Fatal(err)
	}
	c := smallLog()
	c.SegmentBytes, c.FileDeleteDelayMs, c.AppendWriteMin = 64<<10, 0, 4<<10
	l, _, err := d.OpenLog(testPartition, topicID("orders"), c, store.LogHooks{}, 0)
	if err != nil {
		t.Fatal(err)
	}

	works, results := make(chan store.SyncWork, 1), make(chan store.SyncResult, 1)
	regions := make(chan store.Region, 64)
	var helpers sync.WaitGroup
	helpers.Go(func() {
		defer close(results)
		for w := range works {
			for _, r := range s.Sync(nil, []store.SyncWork{w}) {
				results <- r
			}
		}
	})
	for range 2 {
		helpers.Go(func() {
			for r := range regions {
				if err := verify(&r); err != nil {
					t.Error(err)
				}
				r.Release()
			}
		})
	}
	own(t, l, works, results, regions)
	close(works)
	for r := range results {
		if _, _, err := l.Synced(r); err != nil {
			t.Error(err)
		}
	}
	close(regions)
	helpers.Wait()
	err = l.Close(true) // which may give the last jobs
	jobs.Wait()
	if err := errors.Join(err, s.Close(), d.Close(true, 1)); err != nil {
		t.Fatal(err)
	}
}

// own is the owner's life, for a second or so.
func own(t *testing.T, l *store.Log, works chan<- store.SyncWork, results <-chan store.SyncResult, regions chan<- store.Region) {
	t.Helper()
	small, large := batch(t, 0, 0, 0, 1, 300), batch(t, 0, 0, 0, 1, 6000)
	syncing, end := false, time.Now().Add(time.Second)
	for i := 0; time.Now().Before(end); i++ {
		v := small
		if i%10 == 0 {
			v = large
		}
		v.SetBaseOffset(l.End())
		mustAppend(t, l, v)
		if !syncing {
			w, dirty := l.BeginSync()
			if syncing = dirty; dirty {
				works <- w
			}
		}
		select {
		case r := <-results:
			syncing = false
			if _, _, err := l.Synced(r); err != nil {
				t.Fatal(err)
			}
		default:
		}
		from := max(l.Start(), l.End()-ident.Offset(i%200)-1)
		r, err := l.Read(from, l.End(), 20_000, true)
		if err != nil {
			t.Fatal(err)
		}
		regions <- r
		if i%500 == 499 {
			retire(t, l)
		}
	}
}

func retire(t *testing.T, l *store.Log) {
	t.Helper()
	if err := l.SetStart(max(l.Start(), l.Flushed()-100)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ApplyRetention(1, l.Flushed()); err != nil {
		t.Fatal(err)
	}
}

// verify reads a region both ways.
func verify(r *store.Region) error {
	b := make([]byte, r.Len())
	if _, err := r.ReadAt(b, 0); err != nil {
		return err
	}
	if m := r.Mapped(); m != nil && string(m) != string(b) {
		return errors.New("mapping and file differ")
	}
	for len(b) > 0 {
		v, rest, err := record.Split(b)
		if err != nil {
			return err
		}
		if err := v.VerifyCRC(); err != nil {
			return err
		}
		b = rest
	}
	return nil
}
