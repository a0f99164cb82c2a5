package store_test

import (
	"testing"

	"github.com/troupe-broker/troupe/store/storetest"
)

// TestATruncationThatAKilledProcessBeganIsFinishedOnDisk: the control block knows of the
// truncation, the durable mark does not yet; the process is killed, the next one goes on,
// and then the power fails. The mark must not claim what was truncated.
func TestATruncationThatAKilledProcessBeganIsFinishedOnDisk(t *testing.T) {
	for point := 1; ; point++ {
		w := newWorld(t, 7, smallLog())
		for range 6 {
			opAppend{2, 400, 0}.run(w)
		}
		w.flush()
		opCheckpoint{}.run(w)
		killed := func() (killed bool) {
			defer func() {
				if p := recover(); p != nil {
					killed = p == stop
				}
			}()
			n := 0
			w.disk.OnPoint = func(storetest.Point) {
				if n++; n == point {
					panic(stop)
				}
			}
			opTruncate{4}.run(w)
			return false
		}()
		w.disk.OnPoint = nil
		if !killed {
			if point < 5 {
				t.Fatal("a truncation has no points")
			}
			return
		}
		w.disk.Kill()
		w.open()
		end := w.log.End()
		opAppend := batch(t, end, w.log.LastEpoch()+1, w.now, 1, 100)
		mustAppend(t, w.log, opAppend)
		for seed := range uint64(4) {
			disk := w.disk.Clone()
			disk.Crash(seed)
			again := &world{t: t, disk: disk, cfg: w.cfg, now: w.now}
			_, r := again.open()
			if !r.Whole || len(r.Damage) > 0 || again.log.End() < end {
				t.Fatalf("point %d: the log ended at %d; after the power loss: %+v", point, end, r)
			}
		}
	}
}
