package store_test

import (
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// TestASegmentThatCouldNotBeTakenAwayIsNotInTheWay: a full disk refuses a roll, and refuses to take the new segment's file away again. When there is room the log goes
// on, also with a batch that fits into the old segment, and a restart finds what was appended.
func TestASegmentThatCouldNotBeTakenAwayIsNotInTheWay(t *testing.T) {
	for _, end := range []string{"killed", "power", "stopped"} {
		for most := 1; most <= 3; most++ {
			disk := storetest.NewDisk(uint64(most))
			faults := storetest.Faults(disk.FS())
			d, l, _, _ := openOn(t, faults, smallLog())
			faults.Add("write *.index nth 1: ENOSPC")
			for n := range most {
				faults.Add(fmt.Sprintf("remove *.log nth %d: ENOSPC", n+1))
			}
			refused := 0
			for l.Segments() < 3 {
				b := batch(t, l.End(), 0, 5000, 2, 600)
				if refused > 0 && l.Segments() == 1 {
					b = batch(t, l.End(), 0, 5000, 1, 10)
				}
				switch err := l.Append(b, 0); {
				case err == nil:
				case store.IsRetriable(err) && refused < 10:
					refused++
				default:
					t.Fatalf("%s, %d removals fail: %v", end, most, err)
				}
			}
			if refused != most {
				t.Errorf("%s, %d removals fail: %d appends were refused", end, most, refused)
			}
			if err := tryFlush(t, d, l); err != nil {
				t.Fatal(err)
			}
			want := l.End()
			switch end {
			case "killed":
				disk.Kill()
			case "power":
				disk.Crash(1)
			default:
				if err := l.Close(true); err != nil {
					t.Fatal(err)
				}
				if err := d.Close(true, 1); err != nil {
					t.Fatal(err)
				}
			}
			if _, l, _, r := openOn(t, disk.FS(), smallLog()); l.End() != want || !r.Whole {
				t.Errorf("%s, %d removals fail: ends at %d, and did at %d: %+v", end, most, l.End(), want, r)
			}
		}
	}
}
