package broker_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/store"
)

// coldFS says of every file of a topic that reading it needs the disk.
type coldFS struct {
	store.FS
	topic string
}

type coldFile struct{ store.File }

func (coldFile) Resident(int64, int64) bool { return false }

func (coldFile) ReadNow([]byte, int64) (int, error) { return 0, store.ErrWouldWait }

func (c coldFS) OpenFile(name string, flag int, perm fs.FileMode) (store.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	if err == nil && strings.Contains(name, c.topic) {
		return coldFile{f}, nil
	}
	return f, err
}

// startColdReplicas starts brokers on disks on which reading a file of topic t needs the disk.
func startColdReplicas(t *testing.T, settings ...string) *replicas {
	t.Helper()
	var disks [3]store.FS
	for i := range disks {
		disks[i] = coldFS{store.OS(), "/t-"}
	}
	return startReplicasOn(t, disks, settings...)
}

// flip changes one byte of a file.
func flip(t *testing.T, name string, at int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}

func TestDamageThatAColdReadMeetsIsNotServedFromThenOn(t *testing.T) {
	r := startOn(t, coldFS{store.OS(), "worn"}, t.TempDir())
	r.createTopic("worn", 1, "segment.bytes", "1048576")
	c := r.raw()
	c.fill("worn", 0, 40, 100_000)
	name := filepath.Join(r.dir, "worn-0", "00000000000000000000.log")
	flip(t, name, 250_000) // in the batch at offset 2

	// What is sound is served, and ends where the damage begins.
	p := c.fetched(fetch(11, "worn", 0, 0))
	if p.ErrorCode != 0 || len(p.RecordBatches) < 200_000 || len(p.RecordBatches) > 210_000 {
		t.Fatalf("before the damage: error %d, %d bytes", p.ErrorCode, len(p.RecordBatches))
	}
	for range 3 {
		if p = c.fetched(fetch(11, "worn", 0, 2)); p.ErrorCode != 2 || len(p.RecordBatches) != 0 {
			t.Fatalf("the damaged batch: error %d, want CORRUPT_MESSAGE; %d bytes", p.ErrorCode, len(p.RecordBatches))
		}
	}
	for _, offset := range []int64{3, 8, 39} {
		if p = c.fetched(fetch(11, "worn", 0, offset)); p.ErrorCode != 0 || len(p.RecordBatches) < 100_000 {
			t.Errorf("behind the damage, at %d: error %d, %d bytes", offset, p.ErrorCode, len(p.RecordBatches))
		}
	}
	if p := c.produced(produce(9, -1, "worn", 0, batch("after"))); p.ErrorCode != 0 || p.BaseOffset != 40 {
		t.Errorf("writing: error %d, offset %d", p.ErrorCode, p.BaseOffset)
	}
	for want, count := range map[string]int64{
		`partition_damaged_ranges{partition="0",topic="worn"}`:      1,
		`partition_damaged_reads_total{partition="0",topic="worn"}`: 3,
	} {
		if got := r.metric(want); got != count {
			t.Errorf("%s is %d, want %d", want, got, count)
		}
	}
}

// The first batch of the answer is damaged: there is nothing to serve before it.
func TestDamageAtTheBeginningOfAColdReadIsRefusedAtOnce(t *testing.T) {
	r := startOn(t, coldFS{store.OS(), "worn"}, t.TempDir())
	r.createTopic("worn", 1, "segment.bytes", "1048576")
	c := r.raw()
	c.fill("worn", 0, 40, 100_000)
	flip(t, filepath.Join(r.dir, "worn-0", "00000000000000000000.log"), 250_000)
	if p := c.fetched(fetch(11, "worn", 0, 2)); p.ErrorCode != 2 || len(p.RecordBatches) != 0 {
		t.Fatalf("error %d, want CORRUPT_MESSAGE; %d bytes", p.ErrorCode, len(p.RecordBatches))
	}
	if p := c.fetched(fetch(11, "worn", 0, 3)); p.ErrorCode != 0 || len(p.RecordBatches) < 100_000 {
		t.Errorf("behind the damage: error %d, %d bytes", p.ErrorCode, len(p.RecordBatches))
	}
}

// What a load of groups and the cleaner have to read is read with the log on loan, and comes to the same.
func TestColdLogsAreLoadedAndCompacted(t *testing.T) {
	cold := coldFS{coldFS{store.OS(), "__consumer_offsets"}, "state"}
	dir := t.TempDir()
	settings := []string{"offsets.topic.num.partitions=1", "log.cleaner.backoff.ms=20", "log.cleaner.max.compaction.lag.ms=1000"}
	r := startOn(t, cold, dir, append(slices.Clone(settings), "log.cleaner.threads=0")...)
	r.compacted("state")
	c := r.raw()
	c.findCoordinator("g")
	for offset := range int64(20) {
		if code := c.commit("g", "state", offset, strings.Repeat("m", 4000)); code != 0 {
			t.Fatalf("commit %d: error %d", offset, code)
		}
	}
	cl := r.client(kgo.DefaultProduceTopic("state"), kgo.ProducerBatchCompression(kgo.NoCompression()))
	for range 40 {
		if err := cl.ProduceSync(within(t, 10*time.Second), &kgo.Record{Key: []byte("k"), Value: make([]byte, 60_000)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	cl.Close()
	r.stop()
	r = startOn(t, cold, dir, settings...)
	if got := r.committed("g", "state")[0]; got != 19 {
		t.Errorf("after the restart: %d", got)
	}
	eventually(t, "the log is compacted", func() bool { return r.metric("cleaner_dropped_records_total") >= 16 })
	if n := r.metric("cleaner_uncleanable_partitions"); n != 0 {
		t.Errorf("%d logs are not compacted", n)
	}
}
