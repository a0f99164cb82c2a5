package store_test

import (
	"slices"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// TestACutTakesWhatIsKeptOfTheRecordsWithIt: epochs and producer snapshots of what was cut off say something wrong of the records that come in its place.
func TestACutTakesWhatIsKeptOfTheRecordsWithIt(t *testing.T) {
	l := follower(t, func(dst []record.ProducerEntry) []record.ProducerEntry {
		return append(dst, record.ProducerEntry{ProducerID: 7, LastSequence: 1, CurrentTxnFirstOffset: -1})
	})
	for o := range ident.Offset(6) {
		mustAppend(t, l, batch(t, o, 1+ident.LeaderEpoch(o/2), 0, 1, 100))
		if o == 2 {
			if err := l.Roll(0); err != nil { // which makes a snapshot at 3
				t.Fatal(err)
			}
		}
	}
	if _, err := l.Truncate(2, 0); err != nil {
		t.Fatal(err)
	}
	if got, want := l.Epochs(nil), []store.Epoch{{Epoch: 1, Start: 0}}; !slices.Equal(got, want) {
		t.Errorf("epochs %v, want %v", got, want)
	}
	for o := ident.Offset(2); o < 6; o++ {
		mustAppend(t, l, batch(t, o, 4, 0, 1, 100))
	}
	if got, want := l.Epochs(nil), []store.Epoch{{Epoch: 1, Start: 0}, {Epoch: 4, Start: 2}}; !slices.Equal(got, want) {
		t.Errorf("epochs %v, want %v", got, want)
	}
	var read []ident.Offset
	err := l.ReplayProducers(func(o ident.Offset, _ []record.ProducerEntry) {
		t.Errorf("the snapshot at %d is of records that were cut off", o)
	}, func(v record.View) { read = append(read, v.BaseOffset()) })
	if want := []ident.Offset{0, 1, 2, 3, 4, 5}; err != nil || !slices.Equal(read, want) {
		t.Errorf("batches %v, want %v: %v", read, want, err)
	}
}
