package store_test

import (
	"errors"
	"os"
	"testing"

	"github.com/troupe-broker/troupe/store"
)

const damageFile = "/data/orders-3/damaged-offsets"

// What a reader found unsound is not served after a restart either, though nothing reads it from the disk at the start, until the bytes are sound again.
func TestDamageIsRememberedOverARestart(t *testing.T) {
	for _, how := range []string{"kill", "clean", "power loss"} {
		t.Run(how, func(t *testing.T) {
			w := newFilled(t, 12, opAppend{2, 700, 0})
			pos := int64(100)
			for _, b := range w.ghost.batches[:5] {
				pos += int64(len(b))
			}
			bad := w.ghost.batches[5]
			want := store.OffsetRange{From: bad.BaseOffset(), To: bad.NextOffset()}
			w.disk.Flip(segmentFile(0, "log"), pos, 3)
			if err := w.log.Condemn(want, 0); err != nil {
				t.Fatal(err)
			}
			if news, err := w.log.NewDamage(0); err != nil || len(news) != 1 {
				t.Fatalf("news %v, %v", news, err)
			}
			w.flush()
			for range 2 {
				w.end(how)
				_, r := w.open()
				if len(r.Damage) != 1 || r.Damage[0] != want || !r.Whole {
					t.Fatalf("recovered %+v, %v is damaged", r, want)
				}
				gapIsKept(t, w, want)
			}
			w.end(how)
			w.disk.Flip(segmentFile(0, "log"), pos, 3) // as if somebody had put the file back
			if _, r := w.open(); len(r.Damage) != 0 {
				t.Fatalf("recovered %+v, all bytes are sound", r)
			}
			readAll(t, w.log, 0, w.log.End(), 1000)
			if f, err := w.disk.FS().OpenFile(damageFile, os.O_RDONLY, 0); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("%v is still there: %v", f, err)
			}
		})
	}
}

// The file is advice: whatever it holds, the log is what its batches say.
func TestTheFileOfDamageMayBeNoise(t *testing.T) {
	for what, content := range map[string][]byte{
		"empty":          {},
		"noise":          []byte("\x00\xff\x13 nothing"),
		"newer":          store.Seal([]byte("7\n0\n")),
		"sound batches":  store.Seal([]byte("0\n1\n2 6\n")),
		"middle of one":  store.Seal([]byte("0\n1\n1 3\n")),
		"above the end":  store.Seal([]byte("0\n1\n1000 2000\n")),
		"turned around":  store.Seal([]byte("0\n1\n6 2\n")),
		"no numbers":     store.Seal([]byte("0\n1\nfrom to\n")),
		"below nothing":  store.Seal([]byte("0\n1\n-7 2\n")),
		"the whole file": store.Seal([]byte("0\n2\n0 9\n9 9000000000\n")),
	} {
		t.Run(what, func(t *testing.T) {
			w := newFilled(t, 30, opAppend{2, 700, 0})
			w.disk.Kill()
			overwrite(t, w.disk.FS(), damageFile, content)
			if _, r := w.open(); len(r.Damage) != 0 || !r.Whole {
				t.Fatalf("recovered %+v", r)
			}
			if got := readAll(t, w.log, 0, w.log.End(), 5000); len(got) != 30 {
				t.Fatalf("%d batches were read", len(got))
			}
		})
	}
}

// The end of a log that was lost below the mark stays on record until it is mended; also that of a compacted log, of whose gaps none tells of a loss by itself.
func TestALogDoesNotForgetThatItHasLostItsEnd(t *testing.T) {
	for _, how := range []string{"kill", "clean", "power loss"} {
		for _, policy := range []string{"delete", "compact"} {
			t.Run(policy+"/"+how, func(t *testing.T) { forgetsNotItsEnd(t, how, policy == "compact") })
		}
	}
}

func forgetsNotItsEnd(t *testing.T, how string, compact bool) {
	t.Helper()
	cfg := smallLog()
	cfg.Compact, cfg.DeleteRetained = compact, !compact
	w := newWorld(t, 1, cfg)
	for w.log.Segments() < 3 {
		opAppend{3, 900, 0}.run(w)
	}
	for range 5 {
		opAppend{3, 900, 0}.run(w)
	}
	bases := segmentBases(t, w)
	w.flush()
	opCheckpoint{}.run(w)
	w.end(how)
	last := segmentFile(bases[len(bases)-1], "log")
	overwrite(t, w.disk.FS(), last, contents(t, w.disk.FS(), last)[:2500])
	_, r := w.open()
	if r.Whole || len(r.Damage) != 1 || r.Damage[0].To != w.ghost.end {
		t.Fatalf("recovered %+v", r)
	}
	lost := r.Damage[0]
	w.log.Confessed()
	for _, again := range []string{"kill", "clean", "power loss"} {
		w.flush()
		w.end(again)
		if _, r := w.open(); r.Whole {
			t.Fatalf("after %s: %+v", again, r)
		}
		gapIsKept(t, w, lost)
		w.log.Confessed()
	}
	w.mend()
	w.sameAsGhost()
	w.flush()
	w.end(how)
	if _, r := w.open(); !r.Whole || len(r.Damage) > 0 {
		t.Fatalf("after the repair: %+v", r)
	}
	w.sameAsGhost()
}
