package broker_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (r *running) admin() *kadm.Client { return kadm.NewClient(r.client()) }

func (r *running) deleteTopic(name string) {
	r.t.Helper()
	if _, err := r.admin().DeleteTopic(within(r.t, 10*time.Second), name); err != nil {
		r.t.Fatalf("delete %s: %v", name, err)
	}
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 10 s still not: %s", what)
		}
	}
}

func (r *running) directories(prefix string) (names []string) {
	r.t.Helper()
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), prefix) {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestADeletedTopicIsGoneAndANewOneOfItsNameIsEmpty(t *testing.T) {
	r := start(t)
	for round := range 3 {
		r.createTopic("again", 2)
		c := r.raw()
		if end := c.end("again", 0); end != 0 {
			t.Fatalf("round %d: the new topic has %d records", round, end)
		}
		c.fill("again", 0, 3, 100)
		id := func() [16]byte {
			m := kmsg.NewPtrMetadataRequest()
			m.SetVersion(12)
			return c.ask(m).(*kmsg.MetadataResponse).Topics[0].TopicID
		}()
		r.deleteTopic("again")
		if p := c.produced(produce(9, 1, "again", 0, batch("x"))); p.ErrorCode != 3 {
			t.Errorf("round %d: produce to the deleted topic: error %d, want UNKNOWN_TOPIC_OR_PARTITION", round, p.ErrorCode)
		}
		f := fetch(13, "", 0, 0)
		f.Topics[0].TopicID = id
		if p := c.fetched(f); p.ErrorCode != 100 {
			t.Errorf("round %d: fetch by the old id: error %d, want UNKNOWN_TOPIC_ID", round, p.ErrorCode)
		}
	}
	eventually(t, "the directories of the deleted topic are gone", func() bool { return len(r.directories("again")) == 0 })
}

func TestAWaitingReaderHearsOfTheDeletion(t *testing.T) {
	r := start(t)
	r.createTopic("deleted", 1)
	c := r.raw()
	req := fetch(11, "deleted", 0, 0)
	req.MaxWaitMillis = 10_000
	id := c.send(req)
	time.Sleep(100 * time.Millisecond)
	r.deleteTopic("deleted")
	if p := c.receive(id, req).(*kmsg.FetchResponse).Topics[0].Partitions[0]; p.ErrorCode != 3 {
		t.Errorf("error %d, want UNKNOWN_TOPIC_OR_PARTITION", p.ErrorCode)
	}
}

func TestPartitionsAreAdded(t *testing.T) {
	r := start(t)
	r.createTopic("grows", 1)
	if _, err := r.admin().CreatePartitions(within(t, 10*time.Second), 2, "grows"); err != nil {
		t.Fatal(err)
	}
	c := r.raw()
	for p := range int32(3) {
		if got := c.produced(produce(9, -1, "grows", p, batch("x"))); got.ErrorCode != 0 {
			t.Errorf("partition %d: error %d", p, got.ErrorCode)
		}
	}
}

func TestChangedConfigsReachLivePartitions(t *testing.T) {
	r := start(t)
	r.createTopic("tuned", 1)
	c := r.raw()
	big := batch(strings.Repeat("x", 5000))
	if got := c.produced(produce(9, -1, "tuned", 0, big)); got.ErrorCode != 0 {
		t.Fatalf("before: error %d", got.ErrorCode)
	}
	alter := func(name, value string) {
		t.Helper()
		resps, err := r.admin().AlterTopicConfigs(within(t, 10*time.Second), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, "tuned")
		if err != nil || resps[0].Err != nil {
			t.Fatalf("alter %s: %v %v", name, err, resps)
		}
	}
	alter("max.message.bytes", "1000")
	if got := c.produced(produce(9, -1, "tuned", 0, big)); got.ErrorCode != 10 {
		t.Errorf("after max.message.bytes=1000: error %d, want MESSAGE_TOO_LARGE", got.ErrorCode)
	}
	alter("message.timestamp.type", "LogAppendTime")
	if got := c.produced(produce(9, -1, "tuned", 0, batch("x"))); got.LogAppendTime == -1 {
		t.Error("after message.timestamp.type=LogAppendTime: no log append time")
	}
	// The default of the whole cluster, too.
	set := "900"
	resps, err := r.admin().AlterBrokerConfigs(within(t, 10*time.Second), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "message.max.bytes", Value: &set}})
	if err != nil || resps[0].Err != nil {
		t.Fatalf("alter message.max.bytes: %v %v", err, resps)
	}
	r.createTopic("untuned", 1)
	if got := c.produced(produce(9, -1, "untuned", 0, batch(strings.Repeat("x", 950)))); got.ErrorCode != 10 {
		t.Errorf("after message.max.bytes=900: error %d, want MESSAGE_TOO_LARGE", got.ErrorCode)
	}
}

func TestDeletedRecordsAreNotReadAgain(t *testing.T) {
	r := start(t)
	r.createTopic("trimmed", 1)
	c := r.raw()
	c.fill("trimmed", 0, 10, 10)
	trim := func(before int64) kadm.DeleteRecordsResponse {
		t.Helper()
		var to kadm.Offsets
		to.Add(kadm.Offset{Topic: "trimmed", Partition: 0, At: before})
		resp, err := r.admin().DeleteRecords(within(t, 10*time.Second), to)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := resp.Lookup("trimmed", 0)
		return got
	}
	if got := trim(4); got.Err != nil || got.LowWatermark != 4 {
		t.Fatalf("delete before 4: %+v", got)
	}
	if got := trim(99); got.Err == nil {
		t.Error("delete beyond the high watermark succeeds")
	}
	check := func(r *running) {
		t.Helper()
		c := r.raw()
		if p := c.fetched(fetch(11, "trimmed", 0, 3)); p.ErrorCode != 1 {
			t.Errorf("fetch of a deleted record: error %d, want OFFSET_OUT_OF_RANGE", p.ErrorCode)
		}
		if recs := r.consume("trimmed", 0, 6); recs[0].Offset != 4 {
			t.Errorf("the first record is %d, want 4", recs[0].Offset)
		}
	}
	check(r)
	r.stop()
	check(startIn(t, r.dir))
}

func TestRetentionDeletesWholeSegments(t *testing.T) {
	r := start(t, "log.retention.check.interval.ms=100")
	r.createTopic("short", 1, "segment.bytes", "1048576", "retention.bytes", "2500000", "file.delete.delay.ms", "0")
	c := r.raw()
	c.fill("short", 0, 60, 100_000)
	eventually(t, "retention moved the log start", func() bool {
		p := c.fetched(fetch(11, "short", 0, 60))
		return p.LogStartOffset > 20
	})
	p := c.fetched(fetch(11, "short", 0, 60))
	first := r.consume("short", 0, 1)[0]
	if first.Offset != p.LogStartOffset {
		t.Errorf("the first record is %d, the log start %d", first.Offset, p.LogStartOffset)
	}
	eventually(t, "the files are gone", func() bool {
		files, err := filepath.Glob(filepath.Join(r.dir, "short-0", "*"))
		if err != nil {
			t.Fatal(err)
		}
		logs := 0
		for _, f := range files {
			if strings.HasSuffix(f, ".log") || strings.HasSuffix(f, ".deleted") {
				logs++
			}
		}
		return logs <= 4
	})
}

func TestALookupByTimeFindsTheRecord(t *testing.T) {
	r := start(t)
	r.createTopic("times", 1, "segment.bytes", "1048576")
	cl := r.client(kgo.DefaultProduceTopic("times"), kgo.ProducerBatchCompression(kgo.GzipCompression()))
	base := time.Now().Add(-time.Hour).Truncate(time.Second)
	var recs []*kgo.Record
	for i := range 300 {
		value := make([]byte, 8000)
		if _, err := rand.Read(value); err != nil { // so that compression does not fit all into one segment
			t.Fatal(err)
		}
		recs = append(recs, &kgo.Record{Value: value, Timestamp: base.Add(time.Duration(i) * time.Second)})
	}
	for i := 0; i < len(recs); i += 10 {
		if err := cl.ProduceSync(within(t, 10*time.Second), recs[i:i+10]...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range []int{0, 1, 9, 10, 155, 299} {
		offsets, err := r.admin().ListOffsetsAfterMilli(within(t, 10*time.Second), base.Add(time.Duration(i)*time.Second).UnixMilli(), "times")
		if err != nil {
			t.Fatal(err)
		}
		o, _ := offsets.Lookup("times", 0)
		if o.Offset != int64(i) || o.Timestamp != base.Add(time.Duration(i)*time.Second).UnixMilli() {
			t.Errorf("at second %d: offset %d, timestamp %d", i, o.Offset, o.Timestamp)
		}
	}
	top, err := r.admin().ListMaxTimestampOffsets(within(t, 10*time.Second), "times")
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := top.Lookup("times", 0); o.Offset != 299 {
		t.Errorf("the greatest timestamp is at %d, want 299", o.Offset)
	}
}

func TestATopicIsCreatedByAskingForIt(t *testing.T) {
	r := start(t)
	cl := r.client(kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("automatic"))
	if err := cl.ProduceSync(within(t, 10*time.Second), kgo.StringRecord("x")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	off := start(t, "auto.create.topics.enable=false")
	cl = off.client(kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("automatic"), kgo.UnknownTopicRetries(1))
	if err := cl.ProduceSync(within(t, 10*time.Second), kgo.StringRecord("x")).FirstErr(); err == nil {
		t.Error("a topic was created though auto.create.topics.enable is false")
	}
}

func TestNewTopicsDoNotDisturbThoseThatServe(t *testing.T) {
	r := start(t)
	r.createTopic("serving", 1, "write.caching", "true")
	r.stop()
	r = startIn(t, r.dir)
	c := r.raw()
	created := make(chan error, 1)
	go func() {
		adm := kadm.NewClient(r.client())
		for i := range 20 {
			if _, err := adm.CreateTopic(within(t, 20*time.Second), 3, 1, nil, fmt.Sprintf("new-%d", i)); err != nil {
				created <- err
				return
			}
		}
		created <- nil
	}()
	for n := 0; ; n++ {
		if p := c.produced(produce(9, -1, "serving", 0, batch("x"))); p.ErrorCode != 0 {
			t.Fatalf("write %d while topics are created: error %d", n, p.ErrorCode)
		}
		select {
		case err := <-created:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

func TestClientsDoNotWriteToInternalTopics(t *testing.T) {
	r := start(t)
	r.createTopic("__consumer_offsets", 1)
	c := r.raw()
	if p := c.produced(produce(9, 1, "__consumer_offsets", 0, batch("x"))); p.ErrorCode != 17 {
		t.Errorf("error %d, want INVALID_TOPIC_EXCEPTION", p.ErrorCode)
	}
}

func TestATopicThatReplacedOneOfItsNameKeepsItsRecordsAcrossRestarts(t *testing.T) {
	r := start(t)
	for range 3 {
		r.createTopic("phoenix", 2)
		r.raw().fill("phoenix", 0, 3, 10)
		r.deleteTopic("phoenix")
	}
	r.createTopic("phoenix", 2)
	r.raw().fill("phoenix", 0, 7, 10)
	for restart := range 3 {
		r.stop()
		r = startIn(t, r.dir)
		c := r.raw()
		for p, want := range map[int32]int64{0: 7, 1: 0} {
			if end := c.end("phoenix", p); end != want {
				t.Fatalf("after restart %d partition %d ends at %d, want %d", restart, p, end, want)
			}
		}
		if got := r.directories("phoenix"); len(got) != 2 {
			t.Errorf("after restart %d there are %v", restart, got)
		}
	}
}
