package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// consume reads from an offset to the end as a broker does for a consumer, which goes on behind the last batch that it was given. It is told of what is damaged.
func (w *world) consume(from ident.Offset, bytesMax int, given func(record.View)) (told []store.OffsetRange) {
	w.t.Helper()
	for tries := 0; from < w.log.End(); tries++ {
		if tries > 1000 {
			w.t.Fatalf("a consumer does not get beyond %d: %v", from, w.log.Damage())
		}
		r, err := w.log.Read(from, w.log.End(), bytesMax, true)
		if errors.Is(err, store.ErrDamaged) {
			for _, d := range w.log.Damage() {
				if d.From <= from && from < d.To {
					told, from = append(told, store.OffsetRange{From: from, To: d.To}), d.To
				}
			}
			continue
		}
		if err != nil {
			w.t.Fatal(err)
		}
		sound := int64(r.Len())
		if !r.Trusted() {
			var bad store.OffsetRange
			if sound, bad, err = r.Check(nil); err != nil {
				w.t.Fatal(err)
			}
			if bad.From = max(bad.From, w.log.Start()); sound < int64(r.Len()) && bad.From < bad.To {
				if err := w.log.Condemn(bad, w.now); err != nil {
					w.t.Fatal(err)
				}
			}
		}
		b := make([]byte, sound)
		if _, err := r.ReadAt(b, 0); err != nil && sound > 0 {
			w.t.Fatal(err)
		}
		if r.Len() == 0 {
			from = r.Next()
		}
		r.Release()
		for len(b) > 0 {
			var v record.View
			if v, b, err = record.Split(b); err != nil {
				w.t.Fatal(err)
			}
			given(v)
			from = v.NextOffset()
		}
	}
	return told
}

// Offsets, length and epoch of a batch are not in its checksum. Whichever bit of them turns, in whichever batch, and wherever a consumer begins: what it is given is what
// was appended, and what it is not given it is told of.
func TestWhatNoChecksumCoversIsNotServedWhenItIsWrong(t *testing.T) {
	cfg := smallLog()
	cfg.SegmentBytes = 3 << 10
	first := newWorld(t, 1, cfg)
	for n := 0; first.log.Segments() < 3; n++ {
		opAppend{3, 200, 0}.run(first)
		if n%4 == 2 {
			opEpoch{}.run(first)
		}
	}
	first.flush()
	opCheckpoint{}.run(first)
	first.end("clean")
	pos, size := int64(0), int64(len(contents(t, first.disk.FS(), segmentFile(0, "log"))))
	for nth, truth := range first.ghost.batches {
		if pos == size {
			break
		}
		for at, bit := range flips {
			flipped := record.View(bytes.Clone(truth))
			flipped[at] ^= 1 << bit
			// An epoch that fell, or rose to that of the batch behind it, shows only by what is in front.
			inOrder := at >= 12 && flipped.LeaderEpoch() <= first.ghost.batches[nth+1].LeaderEpoch()
			for i, from := range []ident.Offset{0, truth.BaseOffset(), truth.BaseOffset() + 1, truth.NextOffset()} {
				if testing.Short() && (nth+int(at)*8+int(bit)+i)%8 > 0 {
					continue
				}
				for _, bytesMax := range []int{1, 1 << 20} {
					w := &world{t: t, disk: first.disk.Clone(), cfg: cfg, now: first.now, epoch: first.epoch, ghost: first.ghost}
					w.disk.Flip(segmentFile(0, "log"), pos+at, bit)
					w.open()
					if wrong := w.consumed(from, bytesMax, nth, inOrder); wrong != "" {
						t.Errorf("batch %d, byte %d, bit %d, read from %d by %d bytes: %s", nth, at, bit, from, bytesMax, wrong)
					}
				}
			}
		}
		pos += int64(len(truth))
	}
}

// consumed tells what is wrong with what a consumer was given, but for the epoch of the nth batch if that is let pass.
func (w *world) consumed(from ident.Offset, bytesMax, nth int, pass bool) (wrong string) {
	truth := w.ghost.batches[nth]
	at := map[ident.Offset]record.View{}
	for _, v := range w.ghost.batches {
		at[v.BaseOffset()] = v
	}
	had := make([]bool, w.ghost.end)
	told := w.consume(from, bytesMax, func(v record.View) {
		want := at[v.BaseOffset()]
		if pass && v.BaseOffset() == truth.BaseOffset() {
			v = bytes.Clone(v)
			v.SetLeaderEpoch(truth.LeaderEpoch())
		}
		if !bytes.Equal(v, want) {
			wrong = fmt.Sprintf("the batch that was given for offset %d, of epoch %d, was never appended", v.BaseOffset(), v.LeaderEpoch())
			return
		}
		for o := v.BaseOffset(); o <= v.LastOffset(); o++ {
			had[o] = true
		}
	})
	// A batch whose header is wrong can put the one next to it in the wrong, and no other.
	first, last := w.ghost.batches[max(nth-1, 0)].BaseOffset(), w.ghost.batches[min(nth+1, len(w.ghost.batches)-1)].LastOffset()
	for _, r := range told {
		if r.From < first || r.To > last+1 {
			return fmt.Sprintf("%v is called damaged, and %d to %d is", r, truth.BaseOffset(), truth.LastOffset())
		}
		for o := r.From; o < r.To; o++ {
			had[o] = true
		}
	}
	for o := from; o < w.ghost.end && wrong == ""; o++ {
		if !had[o] {
			wrong = fmt.Sprintf("offset %d was passed over", o)
		}
	}
	return wrong
}

// The first batch of a segment of two epochs gets the second of them: sound batches of the first one are behind it, whoever comes upon it, and after a restart.
func TestAnEpochThatRoseIsTheDamageOfOneBatch(t *testing.T) {
	for name, find := range map[string]func(w *world){
		"a reader": func(w *world) { w.condemnAll() },
		"a range": func(w *world) {
			_ = w.log.Condemn(store.OffsetRange{From: 0, To: w.ghost.batches[0].NextOffset()}, w.now)
		},
		"a later one": func(w *world) {
			_ = w.log.Condemn(store.OffsetRange{From: w.ghost.batches[1].BaseOffset(), To: w.ghost.batches[1].NextOffset()}, w.now)
			w.condemnAll()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFilled(t, 6, opAppend{2, 700, 0})
			opEpoch{}.run(w)
			for range 6 {
				opAppend{2, 700, 0}.run(w)
			}
			if err := w.log.Roll(0); err != nil {
				t.Fatal(err)
			}
			w.flush()
			opCheckpoint{}.run(w)
			w.end("clean")
			w.disk.Flip(segmentFile(0, "log"), 15, 0)
			if a, b := w.ghost.batches[0].LeaderEpoch(), w.ghost.batches[6].LeaderEpoch(); b != a+1 || a&1 != 0 {
				t.Fatalf("the epochs are %d and %d", a, b)
			}
			w.open()
			find(w)
			sound := w.ghost.batches[2].BaseOffset()
			for _, how := range []string{"kill", "clean", "power loss"} {
				for _, d := range w.log.Damage() {
					if d.To > sound {
						t.Fatalf("%v is damaged, and all is sound from %d on", w.log.Damage(), sound)
					}
				}
				w.end(how)
				w.open()
			}
		})
	}
}

// A base offset that rose, a batch behind it that is none, and another one further on: between the first two there is nothing to write down, and a walk that goes
// around the third must not be led back to the second for ever.
func TestAWalkAroundDamageComesToAnEnd(t *testing.T) {
	cfg := smallLog()
	cfg.IndexIntervalBytes = 1 << 20 // walks begin at the segment's beginning
	w := newWorld(t, 1, cfg)
	for range 8 {
		opAppend{1, 100, 0}.run(w)
	}
	if err := w.log.Roll(0); err != nil {
		t.Fatal(err)
	}
	w.flush()
	opCheckpoint{}.run(w)
	w.end("clean")
	w.open()
	at := make([]int64, 8)
	for n := 1; n < len(at); n++ {
		at[n] = at[n-1] + int64(len(w.ghost.batches[n-1]))
	}
	for _, f := range []struct{ at, bit int64 }{{at[0] + 7, 0}, {at[1] + 16, 0}, {at[4] + 16, 0}} {
		w.disk.Flip(segmentFile(0, "log"), f.at, uint(f.bit))
	}
	given := 0
	for from := w.ghost.end - 1; from >= 0; from-- {
		w.consume(from, 1, func(v record.View) {
			if v.BaseOffset() == 2 || v.BaseOffset() == 3 {
				given++
			}
		})
	}
	if given == 0 {
		t.Error("the sound batches were never given")
	}
}

// An epoch that no checksum covers is damage after a restart, too, until it is mended.
func TestAnEpochThatIsWrongIsStillDamageAfterARestart(t *testing.T) {
	w := newFilled(t, 12, opAppend{2, 700, 0})
	if err := w.log.Roll(0); err != nil {
		t.Fatal(err)
	}
	w.flush()
	opCheckpoint{}.run(w)
	w.end("clean")
	w.disk.Flip(segmentFile(0, "log"), 15, 4)
	w.open()
	w.condemnAll()
	want := store.OffsetRange{From: 0, To: w.ghost.batches[0].NextOffset()}
	for _, how := range []string{"kill", "clean", "power loss"} {
		if d := w.log.Damage(); len(d) != 1 || d[0] != want {
			t.Fatalf("%v is damaged, not %v", d, want)
		}
		w.end(how)
		w.open()
	}
	w.mend()
	w.sameAsGhost()
}
