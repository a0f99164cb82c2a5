package broker_test

import (
	"testing"

	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
)

func TestALogThatCouldNotBeOpenedForLackOfSpaceOrDescriptorsServesWhenThereAreSome(t *testing.T) {
	for _, rule := range []string{"open *.log: EMFILE", "open *.log: ENOSPC"} {
		disk := storetest.Faults(store.OS())
		r := startOn(t, disk, t.TempDir())
		c := r.raw()
		disk.Add(rule)
		r.createTopic("short", 1)
		if p := c.produced(produce(9, -1, "short", 0, batch("x"))); p.ErrorCode != 56 {
			t.Errorf("%s: error %d, want KAFKA_STORAGE_ERROR", rule, p.ErrorCode)
		}
		if !r.Ready() {
			t.Errorf("%s: a shortage takes the broker down", rule)
		}
		disk.Clear()
		eventually(t, "the log is opened", func() bool {
			return c.produced(produce(9, -1, "short", 0, batch("x"))).ErrorCode == 0
		})
	}
}

func TestALackOfDescriptorsRefusesWritesAndIsNoBrokenDisk(t *testing.T) {
	disk := storetest.Faults(store.OS())
	r := startOn(t, disk, t.TempDir())
	r.createTopic("short", 1)
	c := r.raw()
	if end := c.end("short", 0); end != 0 { // the log is open, and rests
		t.Fatalf("a new log ends at %d", end)
	}
	disk.Add("open *: EMFILE")
	if p := c.produced(produce(9, -1, "short", 0, batch("x"))); p.ErrorCode != 56 {
		t.Errorf("error %d, want KAFKA_STORAGE_ERROR", p.ErrorCode)
	}
	disk.Clear()
	if p := c.produced(produce(9, -1, "short", 0, batch("x"))); p.ErrorCode != 0 || p.BaseOffset != 0 {
		t.Errorf("with descriptors again: error %d, offset %d", p.ErrorCode, p.BaseOffset)
	}
	if !r.Ready() {
		t.Error("a lack of descriptors takes the broker down")
	}
}
