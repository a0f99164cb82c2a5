package broker_test

import (
	"path/filepath"
	"testing"
)

// A bit has turned before this process came, and the page cache has it: somebody has read the file. Such pages are summed up once, when they are read first.
func TestDamageInWarmPagesThatAnotherProcessLeftIsNotServed(t *testing.T) {
	dir := t.TempDir()
	r := startIn(t, dir)
	r.createTopic("worn", 1, "segment.bytes", "1048576")
	r.raw().fill("worn", 0, 40, 100_000)
	r.stop()
	flip(t, filepath.Join(dir, "worn-0", "00000000000000000000.log"), 250_000) // in the batch at offset 2
	last := filepath.Join(dir, "worn-0", "00000000000000000030.log")           // the active one, which is read through its mapping
	flip(t, last, 250_000)
	r = startIn(t, dir)
	c := r.raw()
	for range 2 {
		if p := c.fetched(fetch(11, "worn", 0, 0)); p.ErrorCode != 0 || len(p.RecordBatches) < 200_000 || len(p.RecordBatches) > 210_000 {
			t.Fatalf("before the damage: error %d, %d bytes", p.ErrorCode, len(p.RecordBatches))
		}
		for _, offset := range []int64{2, 32} {
			if p := c.fetched(fetch(11, "worn", 0, offset)); p.ErrorCode != 2 || len(p.RecordBatches) != 0 {
				t.Errorf("the damaged batch at %d: error %d, want CORRUPT_MESSAGE; %d bytes", offset, p.ErrorCode, len(p.RecordBatches))
			}
		}
		if p := c.fetched(fetch(11, "worn", 0, 5)); p.ErrorCode != 0 || len(p.RecordBatches) < 100_000 {
			t.Errorf("behind the damage: error %d, %d bytes", p.ErrorCode, len(p.RecordBatches))
		}
	}
}
