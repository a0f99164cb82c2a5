package store_test

import (
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// cuts are the two ways in which a log loses its end.
var cuts = map[string]func(l *store.Log) error{
	"truncate": func(l *store.Log) error { _, err := l.Truncate(9, 0); return err },
	"restart":  func(l *store.Log) error { return l.Restart(500, 0) },
}

func TestACutIsRefusedOnAFullDiskAndWorksWhenThereIsSpace(t *testing.T) {
	for name, cut := range cuts {
		for _, rules := range [][]string{{"allocate *: ENOSPC", "write *: ENOSPC"}, {"open *: EMFILE"}} {
			disk := storetest.NewDisk(1)
			faults := storetest.Faults(disk.FS())
			d, l, _, _ := openOn(t, faults, smallLog())
			appendSome(t, l, 20)
			if err := tryFlush(t, d, l); err != nil {
				t.Fatal(err)
			}
			end, generation, size := l.End(), l.Generation(), l.Size()
			for _, rule := range rules {
				faults.Add(rule)
			}
			if err := cut(l); !store.IsRetriable(err) {
				t.Fatalf("%s with %v: %v", name, rules, err)
			}
			if l.End() != end || l.Generation() != generation || l.Size() != size {
				t.Fatalf("%s was refused, and the log ends at %d in place of %d", name, l.End(), end)
			}
			faults.Clear()
			if got := readAll(t, l, 0, end, 1<<20); len(got) != 20 {
				t.Fatalf("%s was refused, and %d of 20 batches are left", name, len(got))
			}
			if err := cut(l); err != nil {
				t.Fatalf("%s with space again: %v", name, err)
			}
			mustAppend(t, l, batch(t, l.End(), 1, 0, 1, 10))
		}
	}
}

// Whatever one operation of a cut meets a full disk, or lacks a descriptor: it is refused before it began, or goes on.
func TestASingleRefusalNeverStopsACutHalfway(t *testing.T) {
	refused, done := 0, 0
	for name, cut := range cuts {
		for _, op := range []string{"open", "write", "allocate", "truncate", "rename"} {
			for _, errno := range []string{"ENOSPC", "EMFILE"} {
				for n := 1; n < 25; n++ {
					step := fmt.Sprintf("%s, %s %d: %s", name, op, n, errno)
					disk := storetest.NewDisk(1)
					faults := storetest.Faults(disk.FS())
					d, l, _, _ := openOn(t, faults, smallLog())
					appendSome(t, l, 20)
					if err := tryFlush(t, d, l); err != nil {
						t.Fatal(err)
					}
					before := l.End()
					faults.Add(fmt.Sprintf("%s * nth %d: %s", op, n, errno))
					err := cut(l)
					hit := faults.Hits() > 0
					faults.Clear()
					switch {
					case err == nil:
						if hit {
							done++
						}
					case store.IsRetriable(err) && l.End() == before:
						refused++
						if err := cut(l); err != nil {
							t.Fatalf("%s: again: %v", step, err)
						}
					default:
						t.Fatalf("%s: %v, the log ends at %d", step, err, l.End())
					}
					end := l.End()
					mustAppend(t, l, batch(t, end, 1, 0, 1, 10))
					if err := tryFlush(t, d, l); err != nil {
						t.Fatalf("%s: flush: %v", step, err)
					}
					disk.Crash(uint64(n))
					_, l, _, r := openOn(t, disk.FS(), smallLog())
					if l.End() != end+1 || len(r.Damage) > 0 {
						t.Fatalf("%s: recovered %+v, expected %d", step, r, end+1)
					}
					if !hit {
						break // there are not so many operations
					}
				}
			}
		}
	}
	if refused < 4 || done < 10 {
		t.Fatalf("%d refused, %d done in spite of it: the test does not test it", refused, done)
	}
}
