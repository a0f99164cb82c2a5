package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/troupe-broker/troupe/store"
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
	if err := d.Close(true, 1); err != nil {
		t.Fatal(err)
	}
}
