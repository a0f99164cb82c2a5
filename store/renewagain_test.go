package store_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

// The process died when the file that names the renewed segments was removed, which no sync has made durable. The next process began another renewal, and the power
// failed: the disk may have that file, and beside it segments that are half written.
func TestARenewalThatIsDoneNamesNothingOfTheNextOne(t *testing.T) {
	w := newTwo(t)
	pad := strings.Repeat("p", 3000)
	w.put("a=1", "x="+pad)
	w.put("a=2", "b="+pad)
	w.put("a=3", "c="+pad)
	w.b.clean(store.CleanOptions{})
	w.harm(3)
	s := w.a
	s.disk.OnPoint = func(p storetest.Point) {
		if p.Op == "remove" && filepath.Base(p.Name) == "renewed-segments" {
			panic(crashSignal{})
		}
	}
	if !(&repairHistory{two: w}).interrupted(func() { w.mend(nil) }) {
		t.Fatal("the file was not removed")
	}
	s.stop("kill")
	s.open()
	w.harm(3)
	r, err := s.log.BeginRepair(0, s.now)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	err = w.fill(r, func(int) {
		if len(s.names(".log.renewed")) == 0 {
			return
		}
		for seed := range uint64(64) {
			again := *s
			if again.disk = s.disk.Clone(); seed == 0 {
				again.disk.Kill()
			} else {
				again.disk.Crash(seed)
			}
			again.fs = again.disk.FS()
			again.open()
			again.look()
			(&two{t, &again, w.b}).mend(nil)
			for _, k := range []string{"a", "b", "c", "x"} {
				if got, want := lastOf(&again, k), lastOf(w.b, k); got != want {
					t.Fatalf("crash %d: %s is at %.20q, not %.20q: %.200q", seed, k, got, want, again.text())
				}
			}
			tried++
		}
	})
	if err != nil || tried == 0 {
		t.Errorf("%d crashes, %v", tried, err)
	}
}

// lastOf is the last record of a key.
func lastOf(s *story, key string) string {
	last := ""
	for word := range strings.SplitSeq(s.text(), " ") {
		if _, rest, _ := strings.Cut(word, ":"); rest == key || strings.HasPrefix(rest, key+"=") {
			last = word
		}
	}
	return last
}
