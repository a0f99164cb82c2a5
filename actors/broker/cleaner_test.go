package broker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/store"
)

// compacted creates a topic of one partition that is compacted as soon as it can be.
func (r *running) compacted(name string) {
	r.t.Helper()
	configs := map[string]*string{}
	for k, v := range map[string]string{
		"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0",
	} {
		configs[k] = &v
	}
	if _, err := r.admin().CreateTopic(within(r.t, 10*time.Second), 1, 1, configs, name); err != nil {
		r.t.Fatal(err)
	}
}

// readTo reads a topic from its start to an offset.
func (r *running) readTo(topic string, end int64) []*kgo.Record {
	r.t.Helper()
	cl := r.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	ctx := within(r.t, 20*time.Second)
	var out []*kgo.Record
	for len(out) == 0 || out[len(out)-1].Offset < end-1 {
		f := cl.PollFetches(ctx)
		if err := f.Err(); err != nil {
			r.t.Fatalf("after %d records: %v", len(out), err)
		}
		out = append(out, f.Records()...)
	}
	return out
}

// metric reads one number of the broker's metrics.
func (r *running) metric(name string) int64 {
	r.t.Helper()
	rec := httptest.NewRecorder()
	r.MetricsHandler().ServeHTTP(rec, httptest.NewRequestWithContext(context.Background(), "GET", "/metrics", nil))
	body, err := io.ReadAll(rec.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^troupe_` + name + ` (\S+)$`).FindSubmatch(body)
	if m == nil {
		r.t.Fatalf("no metric %s", name)
	}
	f, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		r.t.Fatal(err)
	}
	return int64(f)
}

func TestACompactedTopicKeepsTheLastValueOfEachKey(t *testing.T) {
	r := start(t, "log.cleaner.backoff.ms=20")
	r.compacted("state")
	cl := r.client(kgo.DefaultProduceTopic("state"), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(200_000))
	ctx := within(t, 30*time.Second)
	const keys, rounds = 7, 30
	last := map[string]string{}
	var end int64
	produce := func(round int) {
		for k := range keys {
			key, value := fmt.Sprintf("key-%d", k), fmt.Sprintf("%d %s", round, bytes.Repeat([]byte{byte('a' + k)}, 40_000))
			rec := &kgo.Record{Key: []byte(key), Value: []byte(value)}
			if k == 6 && round == 3 {
				rec.Value = nil // a tombstone, and no record of the key after it
			} else if k == 6 && round > 3 {
				continue
			}
			if err := cl.ProduceSync(ctx, rec).FirstErr(); err != nil {
				t.Fatal(err)
			}
			end = rec.Offset + 1
			last[key] = value
		}
	}
	for round := range rounds {
		produce(round)
	}
	check := func(r *running) int {
		t.Helper()
		got := map[string]string{}
		records := r.readTo("state", end)
		before := int64(-1)
		for _, rec := range records {
			if rec.Offset <= before {
				t.Fatalf("offset %d follows %d", rec.Offset, before)
			}
			before = rec.Offset
			got[string(rec.Key)] = string(rec.Value)
		}
		for k := range keys - 1 {
			key := fmt.Sprintf("key-%d", k)
			if got[key] != last[key] {
				t.Fatalf("%s is %.20q, want %.20q", key, got[key], last[key])
			}
		}
		if v := got["key-6"]; v != "" {
			t.Fatalf("the deleted key has the value %.20q", v)
		}
		return len(records)
	}
	// The active segment has at most 26 records of 40 KB; of the others one of each key.
	eventually(t, "the log is compacted", func() bool { return check(r) <= 26+2*keys })
	if runs, dropped := r.metric("cleaner_runs_total"), r.metric("cleaner_dropped_records_total"); runs == 0 || dropped < 100 || r.metric("cleaner_written_bytes_total") == 0 {
		t.Errorf("%d runs dropped %d records", runs, dropped)
	}
	if bad := r.metric("cleaner_uncleanable_partitions"); bad != 0 {
		t.Errorf("%d logs are not compacted", bad)
	}
	err := cl.ProduceSync(ctx, &kgo.Record{Value: []byte("no key")}).FirstErr()
	if !errors.Is(err, kerr.InvalidRecord) {
		t.Errorf("a record without a key: %v", err)
	}
	deleted, err := r.admin().DeleteRecords(ctx, kadm.Offsets{"state": {0: {Topic: "state", Partition: 0, At: 1}}})
	if err == nil {
		err = deleted.Error()
	}
	if !errors.Is(err, kerr.PolicyViolation) {
		t.Errorf("DeleteRecords of a compacted topic: %v", err)
	}
	cl.Close()
	r.stop()
	r = startIn(t, r.dir, "log.cleaner.backoff.ms=20", "log.cleaner.threads=2", "log.cleaner.dedupe.buffer.size=200")
	check(r)
	cl = r.client(kgo.DefaultProduceTopic("state"), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(200_000))
	for round := range rounds {
		produce(rounds + round)
	}
	eventually(t, "the log is compacted again, some keys at a time", func() bool { return check(r) <= 26+2*keys })
	r.deleteTopic("state")
}

// slowCleanFS holds up whoever writes a cleaned segment, until it is told to go on.
type slowCleanFS struct {
	store.FS
	held chan struct{} // gets one for each that is held up
	on   chan struct{}
}

func (f slowCleanFS) OpenFile(name string, flag int, perm fs.FileMode) (store.File, error) {
	if strings.HasSuffix(name, ".log.cleaned") && flag&os.O_CREATE != 0 {
		f.held <- struct{}{}
		<-f.on
	}
	return f.FS.OpenFile(name, flag, perm)
}

// TestRunsDoNotKeepOthersFromTheirLogs has two runs hang, more than one only because log.cleaner.threads was raised meanwhile; topics are created and deleted
// all the same.
func TestRunsDoNotKeepOthersFromTheirLogs(t *testing.T) {
	slow := slowCleanFS{store.OS(), make(chan struct{}, 100), make(chan struct{})}
	r := startOn(t, slow, t.TempDir(), "log.cleaner.backoff.ms=20")
	topics := []string{"one", "two"}
	policy := func(value string) { // here jobs on a directory are done in place: who appends would wait for the run that is held up
		t.Helper()
		if _, err := r.admin().AlterTopicConfigs(within(t, 10*time.Second), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "cleanup.policy", Value: &value}}, topics...); err != nil {
			t.Fatal(err)
		}
	}
	for _, topic := range topics {
		r.compacted(topic)
	}
	policy("delete")
	for _, topic := range topics {
		cl := r.client(kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()))
		for range 40 {
			if err := cl.ProduceSync(within(t, 10*time.Second), &kgo.Record{Key: []byte("k"), Value: make([]byte, 60_000)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	await := func(what string) {
		t.Helper()
		select {
		case <-slow.held:
		case <-time.After(10 * time.Second):
			t.Fatal(what)
		}
	}
	policy("compact")
	await("no run has begun")
	if _, err := r.admin().AlterBrokerConfigs(within(t, 10*time.Second), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "log.cleaner.threads", Value: new("2")}}); err != nil {
		t.Fatal(err)
	}
	await("no second run has begun though there are two threads now")
	r.createTopic("wide", 40)
	c := r.raw()
	for p := range int32(40) {
		if got := c.produced(produce(9, -1, "wide", p, batch("x"))); got.ErrorCode != 0 {
			t.Fatalf("partition %d: error %d", p, got.ErrorCode)
		}
	}
	r.deleteTopic("wide")
	close(slow.on)
	eventually(t, "both are compacted", func() bool { return r.metric("cleaner_runs_total") >= 2 })
	if n := r.metric("cleaner_uncleanable_partitions"); n != 0 {
		t.Errorf("%d logs are not compacted", n)
	}
}

func TestDamageThatARunMeetsIsNotServedFromThenOn(t *testing.T) {
	r := start(t, "log.cleaner.backoff.ms=20", "log.cleaner.threads=0")
	r.compacted("worn")
	cl := r.client(kgo.DefaultProduceTopic("worn"), kgo.ProducerBatchCompression(kgo.NoCompression()))
	for range 40 {
		if err := cl.ProduceSync(within(t, 10*time.Second), &kgo.Record{Key: []byte("k"), Value: make([]byte, 60_000)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	flip(t, filepath.Join(r.dir, "worn-0", "00000000000000000000.log"), 150_000) // in the batch at offset 2
	if _, err := r.admin().AlterBrokerConfigs(within(t, 10*time.Second), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "log.cleaner.threads", Value: new("1")}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log is not compacted any more", func() bool { return r.metric("cleaner_uncleanable_partitions") == 1 })
	if n := r.metric(`partition_damaged_ranges{partition="0",topic="worn"}`); n != 1 {
		t.Errorf("%d damaged ranges are known", n)
	}
	if p := r.raw().fetched(fetch(11, "worn", 0, 2)); p.ErrorCode != 2 {
		t.Errorf("the damaged batch: error %d, want CORRUPT_MESSAGE", p.ErrorCode)
	}
	if runs := r.metric("cleaner_runs_total"); runs != 0 {
		t.Errorf("%d runs are counted", runs)
	}
}
