package store_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// TestTheNewestSnapshotOutlivesTheRecordsBelowIt: retention takes all that a producer wrote, and a restart still knows the producer, or a batch that is sent
// again would be there twice.
func TestTheNewestSnapshotOutlivesTheRecordsBelowIt(t *testing.T) {
	disk := storetest.NewDisk(9)
	d, _ := openDir(t, disk.FS(), "/data")
	writer := record.ProducerEntry{ProducerID: 77, LastSequence: 5, LastOffset: 5, OffsetDelta: 0, CurrentTxnFirstOffset: ident.NoOffset}
	hooks := store.LogHooks{Producers: func(dst []record.ProducerEntry) []record.ProducerEntry { return append(dst, writer) }}
	l, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), hooks, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		mustAppend(t, l, batch(t, l.End(), 0, 1000, 1, 200))
	}
	if err := l.Roll(0); err != nil { // with a snapshot at 6
		t.Fatal(err)
	}
	mustAppend(t, l, batch(t, l.End(), 0, 1000, 1, 200))
	if err := l.SetStart(l.End()); err != nil {
		t.Fatal(err)
	}
	if trimmed, err := l.ApplyRetention(0, l.End()); err != nil || trimmed.Start != 7 || trimmed.Segments != 1 {
		t.Fatal(trimmed, err)
	}
	flush(t, d, l)
	disk.Kill()
	d, _ = openDir(t, disk.FS(), "/data")
	var found []record.ProducerEntry
	hooks.OnSnapshot = func(_ ident.Offset, producers []record.ProducerEntry) { found = producers }
	if l, _, err = d.OpenLog(testPartition, topicID("orders"), smallLog(), hooks, 0); err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].ProducerID != 77 {
		t.Errorf("after the restart the producers are %v", found)
	}
	if err := errors.Join(l.Close(true), d.Close(true, 1)); err != nil {
		t.Error(err)
	}
}

// TestBatchesBelowTheStartAreReplayed: records were deleted that lie in a segment of which there is no snapshot yet. They are not to be read any more, and
// tell all the same what their producers wrote last, or a batch that is sent again after a kill would be there twice.
func TestBatchesBelowTheStartAreReplayed(t *testing.T) {
	disk := storetest.NewDisk(9)
	d, _ := openDir(t, disk.FS(), "/data")
	var replayed []ident.Offset
	hooks := store.LogHooks{OnBatch: func(v record.View) { replayed = append(replayed, v.BaseOffset()) }}
	l, _, err := d.OpenLog(testPartition, topicID("orders"), smallLog(), hooks, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		mustAppend(t, l, batch(t, l.End(), 0, 1000, 1, 200))
	}
	if err := l.SetStart(2); err != nil {
		t.Fatal(err)
	}
	flush(t, d, l)
	disk.Kill()
	d, _ = openDir(t, disk.FS(), "/data")
	if l, _, err = d.OpenLog(testPartition, topicID("orders"), smallLog(), hooks, 0); err != nil {
		t.Fatal(err)
	}
	want := []ident.Offset{0, 1, 2}
	if l.Start() != 2 || !slices.Equal(replayed, want) {
		t.Errorf("the log starts at %d, the restart showed the batches %v, want %v", l.Start(), replayed, want)
	}
	replayed = nil
	if err := l.ReplayProducers(func(ident.Offset, []record.ProducerEntry) {}, hooks.OnBatch); err != nil || !slices.Equal(replayed, want) {
		t.Errorf("a replay showed the batches %v, want %v; %v", replayed, want, err)
	}
	if err := errors.Join(l.Close(true), d.Close(true, 1)); err != nil {
		t.Error(err)
	}
}
