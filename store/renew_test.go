package store_test

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// two are replicas of one compacted log. The second one leads.
type two struct {
	t    *testing.T
	a, b *story
}

func newTwo(t *testing.T) *two {
	t.Helper()
	return &two{t, newStory(t), newStory(t)}
}

// put appends one batch to both, and rolls.
func (w *two) put(words ...string) {
	w.t.Helper()
	for _, s := range []*story{w.a, w.b} {
		s.put(nil, words...)
		s.close()
	}
}

// wait lets time go by at both.
func (w *two) wait(ms ident.Millis) { w.a.now, w.b.now = w.a.now+ms, w.b.now+ms }

// forgetTombstone has a key deleted at both, and compacted at s until its tombstone has gone, too.
func (w *two) forgetTombstone(s *story) {
	w.t.Helper()
	w.put("a=1", "x=1")
	w.put("a", "b=1")
	w.put("c=1")
	s.clean(store.CleanOptions{})
	w.wait(6000)
	w.put("c=2")
	s.clean(store.CleanOptions{})
}

// harm destroys the batch that has offset o at a, and has it condemned.
func (w *two) harm(o ident.Offset) {
	w.t.Helper()
	pos := map[string]int64{}
	for _, v := range w.a.batches() {
		name := w.a.segmentOf(v.BaseOffset())
		if v.BaseOffset() <= o && o <= v.LastOffset() {
			w.a.disk.Flip("/data/orders-3/"+name, pos[name]+int64(len(v))-1, 2)
			if err := w.a.log.Condemn(store.OffsetRange{From: v.BaseOffset(), To: v.NextOffset()}, w.a.now); err != nil {
				w.t.Fatal(err)
			}
			return
		}
		pos[name] += int64(len(v))
	}
	w.t.Fatalf("no batch has offset %d", o)
}

// segmentOf is the file that has the batch at o.
func (s *story) segmentOf(o ident.Offset) string {
	s.t.Helper()
	at := ""
	for _, name := range s.names(".log") {
		if base := ident.Offset(mustAtoi(s.t, name[:20])); base <= o {
			at = name
		}
	}
	return at
}

// give answers like a leader.
func (s *story) give(want store.OffsetRange) (batches []byte, next ident.Offset, shape uint64) {
	s.t.Helper()
	batches, next = healthy(s.batches(), want.From, want.To)
	return batches, next, s.log.Shape()
}

// mend mends a with what b has; between is called before each of its answers. It tells whether everything was copied.
func (w *two) mend(between func(n int)) (renewed bool) {
	w.t.Helper()
	for tries := 0; len(w.a.log.Damage()) > 0; tries++ {
		if tries > 10 {
			w.t.Fatalf("%v is not mended", w.a.log.Damage())
		}
		r, err := w.a.log.BeginRepair(0, w.a.now)
		if err != nil || r == nil {
			w.t.Fatalf("no repair begins: %v", err)
		}
		err = w.fill(r, between)
		if errors.Is(err, store.ErrRepairOver) {
			r.Abandon()
			continue
		}
		if err != nil {
			w.t.Fatal(err)
		}
		renewed = renewed || r.Renews()
		if _, err := w.a.log.SwapRepaired(r, w.a.now); err != nil {
			w.t.Fatal(err)
		}
	}
	return renewed
}

func (w *two) fill(r *store.Repair, between func(n int)) error {
	for n := 0; n < 1000; {
		step, err := r.Work()
		if err != nil || step == store.RepairReady {
			return err
		}
		if step == store.RepairWants {
			if between != nil {
				between(n)
			}
			n++
			if err := r.Put(w.b.give(r.Wants())); err != nil {
				return err
			}
		}
	}
	w.t.Fatal("the repair does not end")
	return nil
}

// The leader has not compacted yet, and the damaged replica has forgotten the tombstone.
func TestARepairDoesNotBringBackADeletedKey(t *testing.T) {
	w := newTwo(t)
	w.forgetTombstone(w.a)
	w.a.want("1:x=1 3:b=1 5:c=2")
	w.harm(1)
	if !w.mend(nil) {
		t.Error("the range was taken alone")
	}
	w.a.want("0:a=1 1:x=1 2:a 3:b=1 4:c=1 5:c=2")
	w.b.want(w.a.text())
	w.a.stop("kill")
	w.a.open()
	w.b.want(w.a.text())
}

// The leader has compacted further, and has forgotten the tombstone that is damaged here.
func TestARepairDoesNotForgetATombstone(t *testing.T) {
	w := newTwo(t)
	w.forgetTombstone(w.b)
	w.harm(2)
	if !w.mend(nil) {
		t.Error("the range was taken alone")
	}
	w.a.want("1:x=1 3:b=1 4:c=1 5:c=2")
}

// What nobody has compacted comes back alone.
func TestARangeThatNobodyHasCompactedComesBackAlone(t *testing.T) {
	w := newTwo(t)
	w.put("a=1", "x=1")
	w.put("a=2", "b=1")
	w.put("c=1")
	w.a.clean(store.CleanOptions{})
	w.b.clean(store.CleanOptions{})
	w.put("a=3", "d=1")
	w.put("b=2", "e=1")
	was := w.a.text()
	w.harm(6)
	if w.mend(nil) {
		t.Error("all of it was fetched")
	}
	w.a.want(was)
}

// A compaction of the leader while it is asked would mix two states of its log: one that has the record, and one that has lost its tombstone.
func TestARenewalSeesTheLeaderAtOneMoment(t *testing.T) {
	w := newTwo(t)
	w.put("a=1", "pad="+strings.Repeat("p", 4000))
	w.put("a", "pad2="+strings.Repeat("p", 4000))
	w.put("c=1")
	w.a.clean(store.CleanOptions{})
	w.wait(6000)
	w.put("c=2")
	w.a.clean(store.CleanOptions{})
	w.harm(1)
	cleaned := false
	w.mend(func(n int) {
		if n < 2 || cleaned {
			return
		}
		cleaned = true
		w.b.clean(store.CleanOptions{})
		w.wait(6000)
		w.put("c=3")
		w.b.clean(store.CleanOptions{})
	})
	if !cleaned {
		t.Fatal("the leader was asked once only")
	}
	if text := w.a.text(); strings.Contains(text, ":a") {
		t.Errorf("the key is back: %.100q", text)
	}
}

// A leader of an older build does not tell how its log is compacted.
func TestNothingIsMixedWithTheRangeOfALeaderThatDoesNotTell(t *testing.T) {
	w := newTwo(t)
	w.forgetTombstone(w.a)
	w.harm(1)
	r, err := w.a.log.BeginRepair(0, w.a.now)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; err == nil && n < 100; n++ {
		var step store.RepairStep
		if step, err = r.Work(); err == nil && step == store.RepairWants {
			batches, next, _ := w.b.give(r.Wants())
			err = r.Put(batches, next, 0)
		}
	}
	if !errors.Is(err, store.ErrRepairOver) {
		t.Fatal(err)
	}
	r.Abandon()
	if len(w.a.log.Damage()) != 1 || len(w.a.names(".renewed")) > 0 {
		t.Errorf("%v is damaged, there are %v", w.a.log.Damage(), w.a.names(".renewed"))
	}
	w.mend(nil)
	w.b.want(w.a.text())
}

// A follower, or a consumer, that copies from a replica while all of its compacted part is replaced gets the bytes that it was promised, and goes on in the new files.
func TestAReaderGoesOnWhileTheCompactedPartIsReplaced(t *testing.T) {
	w := newTwo(t)
	w.forgetTombstone(w.a)
	w.harm(1)
	r, err := w.a.log.Read(3, w.a.log.End(), 1, true)
	if err != nil || r.Len() == 0 {
		t.Fatalf("%d bytes behind the damage, %v", r.Len(), err)
	}
	before := make([]byte, r.Len())
	if _, err := r.ReadAt(before, 0); err != nil {
		t.Fatal(err)
	}
	if !w.mend(nil) {
		t.Fatal("the range was taken alone")
	}
	after := make([]byte, r.Len())
	if _, err := r.ReadAt(after, 0); err != nil || r.Void() || !bytes.Equal(before, after) {
		t.Errorf("the bytes in flight have changed: void %t, %v", r.Void(), err)
	}
	r.Release()
	if got := readAll(t, w.a.log, r.Next(), w.a.log.End(), 1<<20); len(got) == 0 || got[0].BaseOffset() < r.Next() {
		t.Errorf("%d batches from %d on", len(got), r.Next())
	}
	if _, err := w.a.log.ApplyRetention(w.a.now+1_000_000, w.a.log.End()); err != nil {
		t.Fatal(err)
	}
	if left := w.a.names(".deleted"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	w.b.want(w.a.text())
}

func mustAtoi(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
