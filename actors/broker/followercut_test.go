package broker

import (
	"crypto/rand"
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// TestACutWhoseProducersCouldNotBeReadIsDoneAgain: the log is cut at the base of a batch, below what was asked for, and then there is no descriptor to read the state
// of idempotent producers with. Asked once more, the log has less than what is to be left of it, and the replica went offline for that.
func TestACutWhoseProducersCouldNotBeReadIsDoneAgain(t *testing.T) {
	disk := storetest.Faults(storetest.NewDisk(1).FS())
	d, _, err := store.OpenDirectory(store.DirectoryOptions{FS: disk, Path: "/data", Broker: 1, Rand: rand.Reader, Generations: &store.Generations{}, Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := store.DefaultLogConfig()
	c.SegmentBytes = 4 << 10
	hooks := store.LogHooks{Producers: func(dst []record.ProducerEntry) []record.ProducerEntry {
		return append(dst, record.ProducerEntry{ProducerID: 7, CoordinatorEpoch: -1, CurrentTxnFirstOffset: ident.NoOffset})
	}}
	file, _, err := d.OpenLog(ident.TopicPartition{Topic: "orders"}, ident.TopicID{1}, c, hooks, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 { // each of three records, and in a segment of its own
		b := record.NewBuilder()
		for range 3 {
			b.Append(1000, nil, make([]byte, 1000))
		}
		out, err := b.Finish(nil)
		if err != nil {
			t.Fatal(err)
		}
		v := record.View(out)
		v.SetBaseOffset(file.End())
		v.SetLeaderEpoch(1)
		if err := file.Append(v, 1000); err != nil {
			t.Fatal(err)
		}
	}
	j := &cutLog{file: file, to: 10, rebuild: true, max: 9}
	disk.Add("open *.snapshot: EMFILE")
	if m := j.cut(1000); !store.IsRetriable(m.err) || file.End() != 9 {
		t.Fatalf("%v, the log ends at %d: the test does not test it", m.err, file.End())
	}
	disk.Clear()
	if m := j.cut(1000); m.err != nil || m.end != 9 || file.End() != 9 || m.producers == nil || m.producers.Len() != 1 {
		t.Errorf("again: %+v, the log ends at %d", m, file.End())
	}
}
