package broker_test

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/store"
)

// gatedFS holds up reads and syncs of one topic's segments, which all need the disk.
type gatedFS struct {
	store.FS
	topic   string
	reads   *hangs
	syncs   *hangs
	reading chan struct{} // has room for one: a read is held up
	syncing chan struct{}
}

type gatedFile struct {
	coldFile
	fs *gatedFS
}

func (g *gatedFS) OpenFile(name string, flag int, perm fs.FileMode) (store.File, error) {
	f, err := g.FS.OpenFile(name, flag, perm)
	if err == nil && strings.Contains(name, "/"+g.topic+"-") && strings.HasSuffix(name, ".log") {
		return gatedFile{coldFile{f}, g}, nil
	}
	return f, err
}

// ReadAt implements store.File.
func (f gatedFile) ReadAt(p []byte, off int64) (int, error) {
	f.fs.reads.waitAndSay(f.fs.reading)
	return f.coldFile.ReadAt(p, off)
}

// Sync implements store.File.
func (f gatedFile) Sync() error {
	f.fs.syncs.waitAndSay(f.fs.syncing)
	return f.coldFile.Sync()
}

// waitAndSay says that it waits.
func (h *hangs) waitAndSay(at chan struct{}) {
	h.mu.Lock()
	gate := h.gate
	h.mu.Unlock()
	if gate == nil {
		return
	}
	select {
	case at <- struct{}{}:
	default:
	}
	<-gate
}

// TestALogOnLoanHoldsUpNobodyElse: a slow look-up in one log keeps no other log of its directory from being synced, and its own records become durable when it
// is back.
func TestALogOnLoanHoldsUpNobodyElse(t *testing.T) {
	disk := &gatedFS{FS: store.OS(), topic: "slow", reads: &hangs{}, syncs: &hangs{}, reading: make(chan struct{}, 1), syncing: make(chan struct{}, 1)}
	r := startOn(t, disk, t.TempDir())
	t.Cleanup(disk.reads.end)
	t.Cleanup(disk.syncs.end)
	r.createTopic("slow", 1, "segment.bytes", "1048576")
	r.createTopic("other", 1)
	c := r.raw()
	c.fill("slow", 0, 30, 100_000)

	await := func(what string, ch chan struct{}) {
		t.Helper()
		select {
		case <-ch:
		case <-time.After(20 * time.Second):
			t.Fatal("waited in vain for " + what)
		}
	}
	disk.syncs.begin()
	for range 2 { // one is being synced, the other waits for the next round
		if p := c.produced(produce(9, 1, "slow", 0, batch("x"))); p.ErrorCode != 0 {
			t.Fatal(p.ErrorCode)
		}
		if len(disk.syncing) == 0 {
			awaitFact(t, "the sync to begin", func() bool { return len(disk.syncing) == 1 })
		}
	}
	disk.reads.begin()
	reader := r.raw()
	req := fetch(11, "slow", 0, 3)
	id := reader.send(req)
	await("the look-up", disk.reading)
	disk.syncs.end()

	if p := c.produced(produce(9, -1, "other", 0, batch("y"))); p.ErrorCode != 0 {
		t.Errorf("another log: error %d", p.ErrorCode)
	}
	disk.reads.end()
	if p := reader.receive(id, req).(*kmsg.FetchResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 || len(p.RecordBatches) == 0 {
		t.Errorf("the look-up: error %d, %d bytes", p.ErrorCode, len(p.RecordBatches))
	}
	if p := c.produced(produce(9, -1, "slow", 0, batch("z"))); p.ErrorCode != 0 {
		t.Errorf("the log that was on loan: error %d", p.ErrorCode)
	}
	awaitFact(t, "what was written before to be durable", func() bool { return c.end("slow", 0) == 33 })
}
