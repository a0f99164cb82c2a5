package store_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// TestADirectoryKnowsTheRunsThatHadIt: what was written down is there after a loss of power, a copy of an earlier day does not know what came later, and what
// cannot be read, or written, makes
// it believed less.
func TestADirectoryKnowsTheRunsThatHadIt(t *testing.T) {
	run := func(n byte) [16]byte { return [16]byte{n, 15: n} }
	note := func(disk *storetest.Disk, fs store.FS, n byte) [][16]byte {
		t.Helper()
		d, _, err := store.OpenDirectory(store.DirectoryOptions{FS: fs, Path: "/data", Broker: 1, Rand: seeded(5), Generations: &store.Generations{}, Parallel: 1, BallastBytes: 4096})
		if err != nil {
			t.Fatal(err)
		}
		before, err := d.NoteRun(run(n))
		if err != nil {
			t.Fatal(err)
		}
		disk.Crash(uint64(n))
		return before
	}
	disk := storetest.NewDisk(1)
	if got := note(disk, disk.FS(), 1); len(got) > 0 {
		t.Errorf("a new directory had %v", got)
	}
	early := disk.Clone()
	if got := note(disk, disk.FS(), 2); !slices.Equal(got, [][16]byte{run(1)}) {
		t.Errorf("runs %v", got)
	}
	if got := note(early, early.FS(), 3); !slices.Equal(got, [][16]byte{run(1)}) {
		t.Errorf("runs of a copy %v", got)
	}
	full := storetest.Faults(disk.FS(), "write broker-runs*: ENOSPC")
	if got := note(disk, full, 4); !slices.Equal(got, [][16]byte{run(1), run(2)}) {
		t.Errorf("runs on a full disk %v", got)
	}
	if got := note(disk, disk.FS(), 5); !slices.Equal(got, [][16]byte{run(1), run(2)}) {
		t.Errorf("runs after a full disk %v", got)
	}
	disk.Flip("/data/broker-runs", 3, 1)
	if got := note(disk, disk.FS(), 6); len(got) > 0 {
		t.Errorf("runs by a damaged list %v", got)
	}
	fs := disk.FS()
	if err := errors.Join(fs.Remove("/data/broker-runs"), fs.MkdirAll("/data/broker-runs", 0o755)); err != nil {
		t.Fatal(err)
	}
	if got := note(disk, fs, 8); len(got) > 0 {
		t.Errorf("runs by a directory %v", got)
	}
	if got := note(disk, disk.FS(), 9); !slices.Equal(got, [][16]byte{run(8)}) {
		t.Errorf("runs after there was a directory in their place %v", got)
	}
	for n := range 300 {
		note(disk, disk.FS(), byte(n))
	}
	if got := note(disk, disk.FS(), 7); len(got) != 256 || got[255] != run(43) {
		t.Errorf("%d runs, the newest %v", len(got), got[len(got)-1])
	}
}
