package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

func entries(from, to, term uint64) []store.RaftEntry {
	var list []store.RaftEntry
	for i := from; i <= to; i++ {
		list = append(list, store.RaftEntry{Index: i, Term: term, Kind: int32(i % 2), Data: fmt.Appendf(nil, "entry %d of term %d", i, term)})
	}
	return list
}

func reopenRaft(t *testing.T, path string) (*store.Directory, *store.RaftLog, store.RaftState) {
	t.Helper()
	d, _ := openDir(t, store.OS(), path)
	r, s, err := d.OpenRaftLog()
	if err != nil {
		t.Fatal(err)
	}
	return d, r, s
}

func TestARaftLogIsReadBackAsItWasSaved(t *testing.T) {
	path := t.TempDir()
	d, r, s := reopenRaft(t, path)
	if !s.Created {
		t.Fatalf("a new log was found as %+v", s)
	}
	for _, save := range []store.RaftSave{
		{Hard: []byte("term 1")},
		{Entries: entries(1, 10, 1)},
		{Hard: []byte("term 2"), Entries: entries(6, 8, 2)}, // a conflict drops 9 and 10
		{},
	} {
		if err := r.Save(save); err != nil {
			t.Fatal(err)
		}
	}
	want := append(entries(1, 5, 1), entries(6, 8, 2)...)
	if err := errors.Join(r.Close(), d.Close(true, 1)); err != nil {
		t.Fatal(err)
	}

	d, r, s = reopenRaft(t, path)
	if s.Created || string(s.Hard) != "term 2" || !reflect.DeepEqual(s.Entries, want) {
		t.Fatalf("found %+v", s)
	}
	snapshot := store.RaftSnapshot{Index: 7, Term: 2, Data: []byte("all up to 7")}
	size := r.Size()
	if err := r.Compact([]byte("term 3"), snapshot, want[7:]); err != nil {
		t.Fatal(err)
	}
	if r.Size() >= size {
		t.Errorf("compaction led from %d to %d bytes", size, r.Size())
	}
	if err := r.Save(store.RaftSave{Entries: entries(9, 9, 3)}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Close(), d.Close(true, 1)); err != nil {
		t.Fatal(err)
	}

	d, r, s = reopenRaft(t, path)
	want = append(want[7:], entries(9, 9, 3)...)
	if string(s.Hard) != "term 3" || !reflect.DeepEqual(s.Snapshot, snapshot) || !reflect.DeepEqual(s.Entries, want) {
		t.Fatalf("found %+v", s)
	}
	received := store.RaftSnapshot{Index: 100, Term: 9, Data: []byte("all up to 100")}
	if err := r.Save(store.RaftSave{Snapshot: &received, Hard: []byte("term 9")}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Close(), d.Close(true, 1)); err != nil {
		t.Fatal(err)
	}
	d, r, s = reopenRaft(t, path)
	if !reflect.DeepEqual(s.Snapshot, received) || len(s.Entries) != 0 {
		t.Fatalf("found %+v", s)
	}
	if err := errors.Join(r.Close(), d.Close(true, 1)); err != nil {
		t.Fatal(err)
	}
}

func TestALostRaftLogIsNotBegunAnew(t *testing.T) {
	path := t.TempDir()
	d, r, _ := reopenRaft(t, path)
	if err := errors.Join(r.Save(store.RaftSave{Hard: []byte("voted")}), r.Close(), d.Close(true, 1)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(path, "raft")); err != nil {
		t.Fatal(err)
	}
	d, _ = openDir(t, store.OS(), path)
	_, _, err := d.OpenRaftLog()
	var coded *store.Error
	if !errors.As(err, &coded) || coded.Code != store.CodeRaft {
		t.Fatalf("a node that may have voted got %v", err)
	}
	// An older copy could be elected, so nobody is to be led to one.
	if !strings.Contains(err.Error(), "give this broker an empty data directory") {
		t.Fatalf("the operator is told: %v", err)
	}
	if err := d.Close(true, 1); err != nil {
		t.Fatal(err)
	}
}

// TestARaftLogHasItsRoomAfterAPowerCut has the power fail after the log was made, or an older build that synced one of its files only, and then the disk filled
// up by somebody else: the metadata has to be compacted all the same.
func TestARaftLogHasItsRoomAfterAPowerCut(t *testing.T) {
	open := func(disk *storetest.Disk) (*store.Directory, *store.RaftLog) {
		t.Helper()
		d, _, err := directoryOn(disk)
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := d.OpenRaftLog()
		if err != nil {
			t.Fatal(err)
		}
		return d, r
	}
	fill := func(disk *storetest.Disk) { disk.Capacity = disk.Used() }
	compact := func(disk *storetest.Disk, seed uint64) {
		t.Helper()
		_, r := open(disk)
		for i := range uint64(4) {
			if err := r.Save(store.RaftSave{Hard: []byte("h"), Entries: entries(2*i+1, 2*i+2, 1)}); err != nil {
				t.Fatalf("seed %d: save: %v", seed, err)
			}
			if err := r.Compact([]byte("h"), store.RaftSnapshot{Index: 2*i + 1, Term: 1, Data: []byte("all")}, entries(2*i+2, 2*i+2, 1)); err != nil {
				t.Fatalf("seed %d: compact: %v", seed, err)
			}
		}
	}
	for seed := range uint64(20) {
		disk := storetest.NewDisk(seed)
		open(disk)
		disk.Crash(seed)
		fill(disk)
		compact(disk, seed)

		older := storetest.NewDisk(seed)
		open(older)
		older.Kill()
		f, err := older.FS().OpenFile("/data/raft/1.raftlog", os.O_RDWR, 0)
		if err == nil {
			err = errors.Join(f.Truncate(0), f.Sync(), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		open(older)
		older.Crash(seed)
		fill(older)
		compact(older, seed)
	}
}

// TestARaftLogOutlivesAFailedSync has a save whose sync fails: its bytes stay in
// memory, on pages that count as clean. The next process reads them there, and what
// it saves behind them must not survive a power cut without them.
func TestARaftLogOutlivesAFailedSync(t *testing.T) {
	// Larger than a sector, so that no later save writes what the failed sync left.
	wide := func(i uint64) []store.RaftEntry {
		return []store.RaftEntry{{Index: i, Term: 1, Data: bytes.Repeat([]byte{byte(i)}, 2*storetest.SectorBytes)}}
	}
	for n := 1; n < 4; n++ {
		disk := storetest.NewDisk(uint64(n))
		open := func(fs store.FS) (*store.Directory, *store.RaftLog, store.RaftState, error) {
			d, _, err := store.OpenDirectory(store.DirectoryOptions{
				FS: fs, Path: "/data", Broker: 1, Rand: seeded(8), Generations: &store.Generations{}, Parallel: 1, BallastBytes: 4096, RaftReserveBytes: 32 << 10,
			})
			if err != nil {
				return nil, nil, store.RaftState{}, err
			}
			r, s, err := d.OpenRaftLog()
			return d, r, s, err
		}
		faults := storetest.Faults(disk.FS())
		_, r, _, err := open(faults)
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint64(4) {
			if err := r.Save(store.RaftSave{Hard: []byte("h"), Entries: wide(i + 1)}); err != nil {
				t.Fatal(err)
			}
		}
		faults.Add("sync *.raftlog nth 1: EIO")
		if err := r.Save(store.RaftSave{Entries: wide(5)}); err == nil {
			t.Fatal("a failed sync was not told")
		}
		last := uint64(4)
		for range n {
			disk.Kill()
			_, r, s, err := open(disk.FS())
			if err != nil {
				t.Fatal(err)
			}
			last = uint64(len(s.Entries))
			if err := r.Save(store.RaftSave{Entries: wide(last + 1)}); err != nil {
				t.Fatal(err)
			}
			last++
		}
		for seed := range uint64(8) {
			image := disk.Clone()
			image.Crash(seed)
			_, _, s, err := open(image.FS())
			if err != nil {
				t.Fatalf("%d starts after the failed sync, cut %d: %v", n, seed, err)
			}
			if got := uint64(len(s.Entries)); got != last {
				t.Errorf("%d starts after the failed sync, cut %d: %d entries, %d were saved", n, seed, got, last)
			}
		}
	}
}
