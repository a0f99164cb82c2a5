package store_test

import (
	"testing"

	"github.com/troupe-broker/troupe/store"
)

// A length that is wrong leads into the middle of a later batch, so that a walk by headers takes sound batches for damaged ones, and where the damage begins for a later
// position. When the batch with that length is mended first, the sound ones are in front of the range that is still to be mended, and must not be written once more.
func TestARepairPutsBackNothingThatIsThere(t *testing.T) {
	mended := 0
	for bit := range uint(4) {
		w := newWorld(t, 1, smallLog())
		for w.log.Segments() < 2 {
			opAppend{1, 100, 0}.run(w)
		}
		w.flush()
		pos := int64(len(w.ghost.batches[0]))
		first, size := w.ghost.batches[1], int64(len(w.ghost.batches[1]))
		wrong := size ^ 256<<bit
		if wrong < size {
			continue
		}
		behind := store.OffsetRange{From: first.NextOffset()}
		end := pos + size
		for _, b := range w.ghost.batches[2:] { // up to the batch in which the wrong length ends
			behind.To, end = b.NextOffset(), end+int64(len(b))
			if end >= pos+wrong {
				break
			}
		}
		w.disk.Flip(segmentFile(0, "log"), pos+10, bit)
		for _, r := range []store.OffsetRange{behind, {From: first.BaseOffset(), To: first.NextOffset()}} {
			if err := w.log.Condemn(r, w.now); err != nil {
				t.Errorf("bit %d: condemn %v of batches of %d bytes, length %d: %v", bit, r, size, wrong, err)
			}
		}
		w.mend()
		w.condemnAll()
		if d := w.log.Damage(); len(d) > 0 {
			t.Errorf("bit %d: %v is damaged after the repair", bit, d)
		}
		w.sameAsGhost()
		mended++
	}
	if mended == 0 {
		t.Error("no length became longer")
	}
}
