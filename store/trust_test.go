package store_test

import (
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// What this process has written it knows; what it has found it knows when it has been through it.
func TestWhatWasThereBeforeIsNotTrustedUntilItIsSummedUp(t *testing.T) {
	w := newFilled(t, 12, opAppend{2, 700, 0})
	read := func(from, to ident.Offset) store.Region {
		t.Helper()
		r, err := w.log.Read(from, to, 1<<20, true)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	trusted := func(from, to ident.Offset) bool {
		t.Helper()
		r := read(from, to)
		defer r.Release()
		return r.Trusted()
	}
	check := func(from, to ident.Offset) {
		t.Helper()
		r := read(from, to)
		defer r.Release()
		if n, _, err := r.Check(nil); err != nil || n != int64(r.Len()) {
			t.Fatalf("%d of %d bytes are sound, %v", n, r.Len(), err)
		}
	}
	if !trusted(0, 4) {
		t.Error("what was just appended is not trusted")
	}
	w.flush()
	for _, how := range []string{"kill", "clean", "power loss"} {
		w.end(how)
		w.open()
		if trusted(0, 4) {
			t.Fatalf("after %s what was there before is trusted", how)
		}
		check(0, 4)
		if !trusted(0, 4) || !trusted(2, 4) {
			t.Errorf("after %s what was summed up is not trusted", how)
		}
		if trusted(2, 8) {
			t.Errorf("after %s more is trusted than was summed up", how)
		}
		check(4, 8)
		if !trusted(0, 8) {
			t.Errorf("after %s what was summed up piece by piece is not trusted", how)
		}
		end := w.log.End()
		opAppend{2, 300, 0}.run(w)
		w.flush()
		if !trusted(end, w.log.End()) {
			t.Errorf("after %s what was appended is not trusted", how)
		}
	}
}
