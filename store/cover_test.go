package store_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// The writer puts zeros ahead of itself. They must never reach a batch: neither one of
// this process, small or large, nor one that an earlier process left in the middle of a
// page.
func TestZerosAheadOfTheWriterReachNoBatch(t *testing.T) {
	for name, fs := range map[string]func() (store.FS, string){
		"the machine's disk": func() (store.FS, string) { return store.OS(), t.TempDir() },
		"a disk in memory":   func() (store.FS, string) { return storetest.NewDisk(1).FS(), "/data" },
	} {
		t.Run(name, func(t *testing.T) {
			disk, path := fs()
			rng := rand.New(rand.NewPCG(7, 1))
			c := store.DefaultLogConfig()
			c.SegmentBytes = 2 << 20
			c.AppendWriteMin = 96 << 10
			var want [][]byte
			for life := range 6 {
				d, _ := openDir(t, disk, path)
				l, _, err := d.OpenLog(testPartition, topicID("orders"), c, store.LogHooks{}, 0)
				if err != nil {
					t.Fatal(err)
				}
				for range 40 {
					size := 100 + rng.IntN(8<<10)
					switch rng.IntN(8) {
					case 0:
						size = 40<<10 + rng.IntN(60<<10)
					case 1:
						size = 96<<10 + rng.IntN(400<<10)
					}
					v := batch(t, l.End(), 0, 1000, 1+rng.IntN(3), size)
					want = append(want, v)
					mustAppend(t, l, v)
				}
				got := readAll(t, l, 0, l.End(), 300<<10)
				if len(got) != len(want) {
					t.Fatalf("life %d: %d batches in place of %d", life, len(got), len(want))
				}
				for i := range got {
					if string(got[i]) != string(want[i]) {
						t.Fatalf("life %d: batch %d differs", life, i)
					}
				}
				// Not clean: the next life finds a file that is longer than the log.
				if err := errors.Join(l.Close(false), d.Close(false, 0)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
