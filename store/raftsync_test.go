package store_test

import (
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// TestARaftLogOutlivesSyncsThatFailAgainAndAgain: after a failed sync the log is written anew, and that sync may fail, too, in one process after the other. What was
// saved before is on the disk all the time: no start may take what only memory holds for the better half, and write over the other one.
func TestARaftLogOutlivesSyncsThatFailAgainAndAgain(t *testing.T) {
	open := func(fs store.FS) (*store.RaftLog, store.RaftState, error) {
		d, _, err := store.OpenDirectory(store.DirectoryOptions{
			FS: fs, Path: "/data", Broker: 1, Rand: seeded(8), Generations: &store.Generations{}, Parallel: 1, BallastBytes: 4096, RaftReserveBytes: 32 << 10,
		})
		if err != nil {
			return nil, store.RaftState{}, err
		}
		return d.OpenRaftLog()
	}
	begin := map[string]func(*store.RaftLog) error{
		"save": func(r *store.RaftLog) error { return r.Save(store.RaftSave{Entries: entries(5, 5, 1)}) },
		"compact": func(r *store.RaftLog) error {
			return r.Compact([]byte("h"), store.RaftSnapshot{Index: 2, Term: 1, Data: []byte("all")}, entries(3, 4, 1))
		},
	}
	for name, work := range begin {
		for first := 1; first <= 3; first++ {
			for second := 1; second <= 4; second++ {
				t.Run(fmt.Sprintf("%s %d %d", name, first, second), func(t *testing.T) {
					disk := storetest.NewDisk(uint64(first*8 + second))
					faults := storetest.Faults(disk.FS())
					r, _, err := open(faults)
					if err != nil {
						t.Fatal(err)
					}
					if err := r.Save(store.RaftSave{Hard: []byte("h"), Entries: entries(1, 4, 1)}); err != nil {
						t.Fatal(err)
					}
					faults.Add(fmt.Sprintf("sync *.raftlog nth %d: EIO", first))
					_ = work(r) // fails, or has fewer syncs
					for range 4 {
						disk.Kill()
						faults := storetest.Faults(disk.FS())
						faults.Add(fmt.Sprintf("sync *.raftlog from %d: EIO", second))
						_, _, _ = open(faults) // likewise
					}
					for seed := range uint64(8) {
						image := disk.Clone()
						image.Crash(seed)
						if _, s, err := open(image.FS()); err != nil {
							t.Errorf("cut %d: %v", seed, err)
						} else if n := len(s.Entries); n == 0 || s.Entries[n-1].Index < 4 || s.Snapshot.Index+uint64(n) < 4 {
							t.Errorf("cut %d: %d entries behind %d, four were saved", seed, n, s.Snapshot.Index)
						}
					}
				})
			}
		}
	}
}
