package store_test

import (
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// follower opens a log for a test of what a follower does with it.
func follower(t *testing.T, producers func([]record.ProducerEntry) []record.ProducerEntry) *store.Log {
	t.Helper()
	d, _ := openDir(t, storetest.NewDisk(1).FS(), "/data")
	l, _, err := d.OpenLog(ident.TopicPartition{Topic: "t"}, topicID("t"), smallLog(), store.LogHooks{Producers: producers}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestAFollowerForgetsTheEpochsOfItsEmptyLeaderships: the next leader's batches may be of
// an older epoch (KAFKA-10706).
func TestAFollowerForgetsTheEpochsOfItsEmptyLeaderships(t *testing.T) {
	l := follower(t, nil)
	mustAppend(t, l, batch(t, 0, 1, 0, 4, 100))
	l.AssignEpoch(5, 4)
	l.AssignEpoch(7, 4)
	l.CutEpochs(0) // never what a batch has
	if got, want := l.Epochs(nil), []store.Epoch{{Epoch: 1, Start: 0}}; !slices.Equal(got, want) {
		t.Fatalf("epochs %v, want %v", got, want)
	}
	mustAppend(t, l, batch(t, 4, 3, 0, 1, 100))
	if got := l.LastEpoch(); got != 3 {
		t.Errorf("last epoch %d, want 3", got)
	}
}

// TestAGapBelongsToTheEpochAboveIt: compaction left nothing between offsets 4 and 20, and
// whatever another replica still has there of epoch 1 was overruled.
func TestAGapBelongsToTheEpochAboveIt(t *testing.T) {
	l := follower(t, nil)
	mustAppend(t, l, batch(t, 0, 1, 0, 4, 100))
	mustAppend(t, l, batch(t, 20, 6, 0, 2, 100))
	if e, end := l.EpochEnd(1); e != 1 || end != 4 {
		t.Errorf("epoch 1 ends as epoch %d at %d, want 4", e, end)
	}
}

// TestProducersAreReplayedAfterATruncation: from the newest snapshot that is left, and
// the batches above it.
func TestProducersAreReplayedAfterATruncation(t *testing.T) {
	snapshot := record.ProducerEntry{ProducerID: 7, LastSequence: 1, CurrentTxnFirstOffset: -1}
	l := follower(t, func(dst []record.ProducerEntry) []record.ProducerEntry { return append(dst, snapshot) })
	for o := range ident.Offset(6) {
		mustAppend(t, l, batch(t, o, 1, 0, 1, 100))
		if o == 2 {
			if err := l.Roll(0); err != nil { // which makes a snapshot at 3
				t.Fatal(err)
			}
		}
	}
	replay := func() (at []ident.Offset, bases []ident.Offset) {
		err := l.ReplayProducers(func(o ident.Offset, p []record.ProducerEntry) {
			if len(p) != 1 || p[0].ProducerID != 7 {
				t.Errorf("snapshot at %d: %v", o, p)
			}
			at = append(at, o)
		}, func(h record.View) { bases = append(bases, h.BaseOffset()) })
		if err != nil {
			t.Fatal(err)
		}
		return at, bases
	}
	for _, c := range []struct {
		to        ident.Offset
		at, bases []ident.Offset
	}{
		{6, []ident.Offset{3}, []ident.Offset{3, 4, 5}},
		{4, []ident.Offset{3}, []ident.Offset{3}},
		{2, nil, []ident.Offset{0, 1}},
		{0, nil, nil},
	} {
		if _, err := l.Truncate(c.to, 0); err != nil {
			t.Fatal(err)
		}
		if at, bases := replay(); !slices.Equal(at, c.at) || !slices.Equal(bases, c.bases) {
			t.Errorf("truncated to %d: snapshots %v and batches %v, want %v and %v", c.to, at, bases, c.at, c.bases)
		}
	}
}

// TestWhatIsLeftAfterATruncationIsSynced: a sync was under way when the log was cut, and
// its result is of another generation. Nothing is appended afterwards, and all the same
// what is left has to become durable, or a high watermark that counts flushed ends waits
// for it for ever.
func TestWhatIsLeftAfterATruncationIsSynced(t *testing.T) {
	for _, rolled := range []bool{false, true} {
		d, _ := openDir(t, storetest.NewDisk(1).FS(), "/data")
		l, _, err := d.OpenLog(ident.TopicPartition{Topic: "t"}, topicID("t"), smallLog(), store.LogHooks{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for o := range ident.Offset(6) {
			mustAppend(t, l, batch(t, o, 1, 0, 1, 100))
			if rolled && o == 3 {
				if err := l.Roll(0); err != nil {
					t.Fatal(err)
				}
			}
		}
		syncer, err := d.NewSyncer()
		if err != nil {
			t.Fatal(err)
		}
		work, dirty := l.BeginSync()
		if !dirty {
			t.Fatal("six batches were appended, and nothing is dirty")
		}
		if end, err := l.Truncate(4, 0); err != nil || end != 4 {
			t.Fatal(end, err)
		}
		for _, r := range syncer.Sync(nil, []store.SyncWork{work}) {
			if flushed, moved, err := l.Synced(r); err != nil || moved {
				t.Fatalf("a result of the generation before the cut moved the flushed end to %d: %v", flushed, err)
			}
		}
		if err := syncer.Close(); err != nil {
			t.Fatal(err)
		}
		if flushed := flush(t, d, l); flushed != 4 {
			t.Errorf("rolled=%v: the log ends at 4 and is flushed to %d", rolled, flushed)
		}
	}
}

// TestWhatWasHandedOutAboveACutIsVoid: who holds records that a truncation takes away must
// not send them any more; what lies below is what it was.
func TestWhatWasHandedOutAboveACutIsVoid(t *testing.T) {
	for _, how := range []struct {
		name string
		roll bool // above the cut a segment goes as a whole
		cut  func(l *store.Log) error
		void []bool // by batch
	}{
		{"inside of a segment", false, func(l *store.Log) error { _, err := l.Truncate(3, 0); return err }, []bool{false, false, false, true, true, true}},
		{"whole segments", true, func(l *store.Log) error { _, err := l.Truncate(2, 0); return err }, []bool{false, false, true, true, true, true}},
		{"twice", false, func(l *store.Log) error {
			if _, err := l.Truncate(4, 0); err != nil {
				return err
			}
			_, err := l.Truncate(1, 0)
			return err
		}, []bool{false, true, true, true, true, true}},
		{"everything", false, func(l *store.Log) error { return l.Restart(100, 0) }, []bool{true, true, true, true, true, true}},
	} {
		d, _ := openDir(t, storetest.NewDisk(1).FS(), "/data")
		l, _, err := d.OpenLog(ident.TopicPartition{Topic: "t"}, topicID("t"), smallLog(), store.LogHooks{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var held []store.Region
		for o := range ident.Offset(6) {
			mustAppend(t, l, batch(t, o, 1, 0, 1, 100))
			if how.roll && o == 2 {
				if err := l.Roll(0); err != nil {
					t.Fatal(err)
				}
			}
			r, err := l.Read(o, o+1, 1, true)
			if err != nil || r.Len() == 0 || r.Void() {
				t.Fatalf("%s: reading offset %d: %d bytes, void %v, %v", how.name, o, r.Len(), r.Void(), err)
			}
			held = append(held, r)
		}
		if err := how.cut(l); err != nil {
			t.Fatal(err)
		}
		for o := range held {
			if got := held[o].Void(); got != how.void[o] {
				t.Errorf("%s: the region at %d is void: %v, want %v", how.name, o, got, how.void[o])
			}
			part := held[o].Slice(0, held[o].Len()-1)
			if part.Void() != how.void[o] {
				t.Errorf("%s: a part of the region at %d is void: %v", how.name, o, part.Void())
			}
			held[o].Release()
		}
		if err := l.Close(true); err != nil {
			t.Fatal(err)
		}
	}
}
