package broker_test

import (
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/store"
)

// slowOffsets is a disk on which, from some time on, no sync of the topic of the offsets ends before it is let go.
type slowOffsets struct {
	store.FS
	hangs atomic.Bool
	began chan struct{} // one for each
	let   chan struct{} // closed: they end
}

// OpenFile implements store.FS.
func (s *slowOffsets) OpenFile(name string, flag int, perm fs.FileMode) (store.File, error) {
	f, err := s.FS.OpenFile(name, flag, perm)
	if err == nil && strings.Contains(name, "__consumer_offsets") && strings.HasSuffix(name, ".log") {
		f = &slowFile{f, s}
	}
	return f, err
}

type slowFile struct {
	store.File
	disk *slowOffsets
}

// Sync implements store.File.
func (f *slowFile) Sync() error {
	if !f.disk.hangs.Load() {
		return f.File.Sync()
	}
	select {
	case f.disk.began <- struct{}{}:
	default:
	}
	<-f.disk.let
	return f.File.Sync()
}

// TestAProducerDoesNotWaitForTheSyncOfCommits: while a commit waits for the disk, what is produced with acks=all is synced and acknowledged; and the commit is
// not acknowledged before its own sync has returned.
func TestAProducerDoesNotWaitForTheSyncOfCommits(t *testing.T) {
	disk := &slowOffsets{FS: store.OS(), began: make(chan struct{}, 1), let: make(chan struct{})}
	r := startOn(t, disk, t.TempDir(), quick...)
	r.createTopic("orders", 1, "write.caching", "false")
	c, producer := r.raw(), r.raw()
	c.findCoordinator("readers")
	disk.hangs.Store(true)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 8, "readers", -1
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic = "orders"
	topic.Partitions = append(topic.Partitions, kmsg.NewOffsetCommitRequestTopicPartition())
	topic.Partitions[0].Offset = 7
	req.Topics = append(req.Topics, topic)
	answered := make(chan int16, 1)
	go func() {
		defer close(answered) // it may end without an answer
		answered <- c.ask(req).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
	}()
	<-disk.began
	for range 3 {
		if p := producer.produced(produce(9, -1, "orders", 0, batch("x"))); p.ErrorCode != 0 {
			t.Errorf("a produce beside the sync of a commit is answered %d", p.ErrorCode)
		}
	}
	select {
	case code := <-answered:
		t.Errorf("the commit was answered %d before it was synced", code)
	default:
	}
	close(disk.let)
	if code, ok := <-answered; !ok || code != 0 {
		t.Errorf("the commit is answered %d, %v", code, ok)
	}
}
