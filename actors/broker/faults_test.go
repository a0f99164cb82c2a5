package broker_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/actors/broker"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/store/storetest"
	"github.com/troupe-broker/troupe/wire/ident"
)

func TestAFullDiskRefusesWritesAndServesReadsUntilThereIsSpace(t *testing.T) {
	disk := storetest.Faults(store.OS())
	r := startOn(t, disk, t.TempDir())
	r.createTopic("full", 1)
	c := r.raw()
	c.fill("full", 0, 5, 1000)
	disk.Add("allocate *: ENOSPC")
	disk.Add("write *.log: ENOSPC")
	refused := func() bool {
		p := c.produced(produce(9, -1, "full", 0, batch(strings.Repeat("x", 60_000))))
		if p.ErrorCode != 0 && p.ErrorCode != 56 {
			t.Fatalf("error %d, want KAFKA_STORAGE_ERROR", p.ErrorCode)
		}
		return p.ErrorCode == 56
	}
	eventually(t, "a write is refused", refused) // the space that was reserved is used up first
	if p := c.fetched(fetch(11, "full", 0, 0)); p.ErrorCode != 0 || len(p.RecordBatches) < 5000 {
		t.Errorf("reading from the full disk: error %d, %d bytes", p.ErrorCode, len(p.RecordBatches))
	}
	if !r.Ready() {
		t.Error("a full disk takes the broker down")
	}
	disk.Clear()
	before := c.end("full", 0)
	if p := c.produced(produce(9, -1, "full", 0, batch("after"))); p.ErrorCode != 0 || p.BaseOffset != before {
		t.Errorf("with space again: error %d, offset %d, want %d", p.ErrorCode, p.BaseOffset, before)
	}
}

func TestAFailedSyncTakesTheDirectoryOfflineAndIsNeverAcknowledged(t *testing.T) {
	for _, rule := range []string{"sync *.log: EIO", "syncfs *: EIO"} {
		disk := storetest.Faults(store.OS())
		r := startOn(t, disk, t.TempDir())
		r.harmed = true
		r.createTopic("lost", 1)
		c := r.raw()
		c.fill("lost", 0, 1, 100)
		disk.Add("sync *.log: EIO")
		disk.Add(rule)
		if p := c.produced(produce(9, -1, "lost", 0, batch("x"))); p.ErrorCode != 56 {
			t.Errorf("%s: error %d, want KAFKA_STORAGE_ERROR", rule, p.ErrorCode)
		}
		disk.Clear() // the disk works again, but what it has is not known any more
		for _, acks := range []int16{-1, 1} {
			if p := c.produced(produce(9, acks, "lost", 0, batch("x"))); p.ErrorCode != 56 {
				t.Errorf("%s: acks %d after the failure: error %d, want KAFKA_STORAGE_ERROR", rule, acks, p.ErrorCode)
			}
		}
		if p := c.fetched(fetch(11, "lost", 0, 0)); p.ErrorCode != 56 {
			t.Errorf("%s: reading after the failure: error %d, want KAFKA_STORAGE_ERROR", rule, p.ErrorCode)
		}
		select {
		case <-r.Failed():
		case <-time.After(5 * time.Second):
			t.Errorf("%s: the only directory is lost, but the broker goes on", rule)
		}
		if r.Ready() || r.Failure() == nil {
			t.Errorf("%s: ready %v, failure %v", rule, r.Ready(), r.Failure())
		}
		r.stop()
	}
}

func TestAnErrorOfAReadTakesTheDirectoryOffline(t *testing.T) {
	for name, fetches := range map[string]bool{"scrub": false, "fetch": true} {
		t.Run(name, func(t *testing.T) {
			disk := storetest.Faults(store.OS())
			values := []string{"log.scrub.interval.ms=3600000"}
			if !fetches {
				values = []string{"log.scrub.interval.ms=20", "log.scrub.max.bytes.per.second=1000000000"}
			}
			r := startOn(t, coldFS{disk, "/unread-"}, t.TempDir(), values...)
			r.harmed = true
			r.createTopic("unread", 1, "segment.bytes", "1048576")
			c := r.raw()
			c.fill("unread", 0, 30, 100_000)
			disk.Add("read 00000000000000000000.log: EIO")
			if fetches {
				c.send(fetch(11, "unread", 0, 0))
			}
			select {
			case <-r.Failed():
			case <-time.After(20 * time.Second):
				t.Errorf("the disk refused %d reads, and the broker goes on", disk.Hits())
			}
		})
	}
}

func TestAnErrorOfAWriteTakesTheDirectoryOffline(t *testing.T) {
	disk := storetest.Faults(store.OS())
	r := startOn(t, disk, t.TempDir())
	r.harmed = true
	r.createTopic("torn", 2, "max.message.bytes", "2000000")
	c := r.raw()
	disk.Add("write *.log: EIO")
	if p := c.produced(produce(9, 1, "torn", 0, batch(strings.Repeat("x", 500_000)))); p.ErrorCode != 56 {
		t.Errorf("error %d, want KAFKA_STORAGE_ERROR", p.ErrorCode)
	}
	eventually(t, "the other partition of the directory is offline", func() bool {
		return c.produced(produce(9, 1, "torn", 1, batch("x"))).ErrorCode == 56
	})
}

func TestAReplicaThatCrashedThreeTimesStartsOfflineAndTheOthersServe(t *testing.T) {
	r := start(t)
	r.createTopic("crashes", 2)
	c := r.raw()
	c.fill("crashes", 0, 1, 10)
	r.stop()
	now := ident.Millis(time.Now().UnixMilli())
	for range 3 {
		b := &runtime.Blame{Actor: "root/crashes-1", Kind: "core.partition", Decision: runtime.Exit}
		if err := broker.RecordBlame(store.OS(), r.dir, b, now); err != nil {
			t.Fatal(err)
		}
	}
	// Others, and long ago, do not count.
	for range 3 {
		for _, b := range []*runtime.Blame{
			{Actor: "root/metadata", Kind: "core.metadata", Decision: runtime.Exit},
			{Actor: "root/crashes-0", Kind: "core.partition", Decision: runtime.Stop},
		} {
			if err := broker.RecordBlame(store.OS(), r.dir, b, now); err != nil {
				t.Fatal(err)
			}
		}
		old := &runtime.Blame{Actor: "root/crashes-0", Kind: "core.partition", Decision: runtime.Exit}
		if err := broker.RecordBlame(store.OS(), r.dir, old, now-11*60*1000); err != nil {
			t.Fatal(err)
		}
	}
	r = startIn(t, r.dir)
	c = r.raw()
	if p := c.produced(produce(9, 1, "crashes", 1, batch("x"))); p.ErrorCode != 56 {
		t.Errorf("the blamed replica: error %d, want KAFKA_STORAGE_ERROR", p.ErrorCode)
	}
	if p := c.produced(produce(9, 1, "crashes", 0, batch("x"))); p.ErrorCode != 0 {
		t.Errorf("the other replica: error %d", p.ErrorCode)
	}
}

func TestAStopFinishesWhatWasBegun(t *testing.T) {
	r := start(t)
	r.createTopic("stops", 1)
	reader, writer := r.raw(), r.raw()
	req := fetch(11, "stops", 0, 0)
	req.MaxWaitMillis = 60_000
	poll := reader.send(req)
	writer.ask(apiVersions(3))
	var writes []int32
	wr := produce(9, -1, "stops", 0, batch("x"))
	for range 5 {
		writes = append(writes, writer.send(wr))
	}
	time.Sleep(50 * time.Millisecond)
	began := time.Now()
	r.stop()
	if d := time.Since(began); d > 8*time.Second {
		t.Errorf("stopping took %v: the long poll was waited for", d)
	}
	if resp := reader.receive(poll, req).(*kmsg.FetchResponse); resp.ErrorCode != 0 {
		t.Errorf("the long poll ended with error %d", resp.ErrorCode)
	}
	for _, id := range writes {
		if p := writer.receive(id, wr).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 {
			t.Errorf("a write that was under way: error %d", p.ErrorCode)
		}
	}
	reader.closed("the broker stopped")
	if c, err := net.Dial("tcp", r.addr); err == nil {
		_ = c.Close()
		t.Error("a stopped broker accepts connections")
	}
	again := startIn(t, r.dir)
	if end := again.raw().end("stops", 0); end != 5 {
		t.Errorf("after the restart the log ends at %d, want 5", end)
	}
}

func TestTheMetricsTellWhatHappened(t *testing.T) {
	r := start(t)
	r.createTopic("counted", 1)
	c := r.raw()
	c.fill("counted", 0, 3, 100)
	c.fetched(fetch(11, "counted", 0, 0))
	c.produced(produce(9, 1, "counted", 0, []byte("no batch")))
	server := httptest.NewServer(r.MetricsHandler())
	defer server.Close()
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", resp.StatusCode, err)
	}
	for _, want := range []string{
		`troupe_partition_append_records_total{partition="0",topic="counted"} 3`,
		`troupe_partition_append_batches_total{partition="0",topic="counted"} 3`,
		`troupe_partition_refused_batches_total{partition="0",topic="counted"} 1`,
		`troupe_partition_log_end_offset{partition="0",topic="counted"} 3`,
		`troupe_partition_high_watermark{partition="0",topic="counted"} 3`,
		`troupe_partition_leader{partition="0",topic="counted"} 1`,
		`troupe_request_seconds_count{api="Produce"} 4`,
		`troupe_request_seconds_count{api="Fetch"} 1`,
		`troupe_actors{kind="core.partition"} 1`,
		`troupe_ready 1`,
		`troupe_directory_online{directory="` + r.dir + `"} 1`,
		`troupe_request_memory_bytes 0`,
		`go_goroutines`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
	ready := httptest.NewRecorder()
	r.ReadyHandler().ServeHTTP(ready, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if ready.Code != http.StatusOK {
		t.Errorf("readyz: status %d while serving", ready.Code)
	}
	r.stop()
	ready = httptest.NewRecorder()
	r.ReadyHandler().ServeHTTP(ready, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if ready.Code != http.StatusServiceUnavailable {
		t.Errorf("readyz: status %d after the stop", ready.Code)
	}
}

func TestAMemoryFaultTakesOneReplicaOfflineAndTheOthersServe(t *testing.T) {
	r := start(t)
	r.harmed = true
	r.createTopic("mapped", 2, "write.caching", "true")
	c := r.raw()
	for p := range int32(2) {
		if got := c.produced(produce(9, 1, "mapped", p, batch("x"))); got.ErrorCode != 0 {
			t.Fatal(got.ErrorCode)
		}
	}
	// Somebody cuts the file under the mapping: the next touch of it is a SIGBUS. The job that writes zeros ahead of the appends may make the file
	// long again just then; it is cut until that has passed.
	var got kmsg.ProduceResponseTopicPartition
	for range 50 {
		if err := os.Truncate(filepath.Join(r.dir, "mapped-0", "00000000000000000000.log"), 0); err != nil {
			t.Fatal(err)
		}
		if got = c.produced(produce(9, 1, "mapped", 0, batch(strings.Repeat("y", 100)))); got.ErrorCode != 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if got.ErrorCode != 56 {
		t.Errorf("error %d, want KAFKA_STORAGE_ERROR", got.ErrorCode)
	}
	for _, version := range []int16{9, 9} {
		if got := c.produced(produce(version, 1, "mapped", 0, batch("z"))); got.ErrorCode != 56 {
			t.Errorf("afterwards: error %d, want KAFKA_STORAGE_ERROR", got.ErrorCode)
		}
		if got := c.produced(produce(version, 1, "mapped", 1, batch("z"))); got.ErrorCode != 0 {
			t.Errorf("the other partition: error %d", got.ErrorCode)
		}
	}
	if !r.Ready() {
		t.Error("one faulty replica takes the broker down")
	}
}
