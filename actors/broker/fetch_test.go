package broker_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func (c *raw) fetched(req *kmsg.FetchRequest) kmsg.FetchResponseTopicPartition {
	c.t.Helper()
	resp := c.ask(req).(*kmsg.FetchResponse)
	if resp.ErrorCode != 0 || len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		c.t.Fatalf("fetch answered error %d, %d topics", resp.ErrorCode, len(resp.Topics))
	}
	return resp.Topics[0].Partitions[0]
}

// fill appends n batches of one record of about size bytes, acknowledged as durable.
func (c *raw) fill(topic string, partition int32, n, size int) {
	c.t.Helper()
	for i := range n {
		if p := c.produced(produce(9, -1, topic, partition, batch(string(bytes.Repeat([]byte{byte('a' + i%26)}, size))))); p.ErrorCode != 0 {
			c.t.Fatalf("fill %s-%d: error %d", topic, partition, p.ErrorCode)
		}
	}
}

func TestALongPollEndsWithTheFirstBytes(t *testing.T) {
	r := start(t)
	r.createTopic("poll", 1)
	reader, writer := r.raw(), r.raw()
	req := fetch(11, "poll", 0, 0)
	req.MaxWaitMillis = 10_000
	began := time.Now()
	id := reader.send(req)
	time.Sleep(200 * time.Millisecond)
	writer.fill("poll", 0, 1, 10)
	resp := reader.receive(id, req).(*kmsg.FetchResponse)
	p := resp.Topics[0].Partitions[0]
	if d := time.Since(began); len(p.RecordBatches) == 0 || d < 200*time.Millisecond || d > 5*time.Second {
		t.Errorf("%d bytes after %v", len(p.RecordBatches), d)
	}
	if p.HighWatermark != 1 || p.LogStartOffset != 0 || p.LastStableOffset != 1 {
		t.Errorf("high watermark %d, last stable %d, log start %d", p.HighWatermark, p.LastStableOffset, p.LogStartOffset)
	}
}

func TestALongPollWithoutBytesEndsInTime(t *testing.T) {
	r := start(t)
	r.createTopic("empty", 3)
	c := r.raw()
	for _, wait := range []int32{0, 300, 150} {
		req := fetch(11, "empty", 0, 0)
		req.MaxWaitMillis = wait
		began := time.Now()
		if p := c.fetched(req); p.ErrorCode != 0 || len(p.RecordBatches) != 0 || p.HighWatermark != 0 {
			t.Errorf("wait %d: %+v", wait, p)
		}
		if d := time.Since(began); d < time.Duration(wait)*time.Millisecond || d > time.Duration(wait)*time.Millisecond+2*time.Second {
			t.Errorf("wait %d ms took %v", wait, d)
		}
	}
}

func TestALongPollWaitsForTheMinimumOverAllPartitions(t *testing.T) {
	r := start(t)
	r.createTopic("sum", 3)
	reader, writer := r.raw(), r.raw()
	req := fetch(11, "sum", 0, 0)
	for p := range int32(2) {
		rp := kmsg.NewFetchRequestTopicPartition()
		rp.Partition, rp.PartitionMaxBytes = p+1, 1<<20
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, rp)
	}
	req.MinBytes, req.MaxWaitMillis = 3000, 10_000
	id := reader.send(req)
	answered := make(chan *kmsg.FetchResponse, 1)
	go func() { answered <- reader.receive(id, req).(*kmsg.FetchResponse) }()
	for i := range int32(6) { // about 600 bytes each: the minimum is reached with the sixth at the latest, and not before the fifth
		select {
		case resp := <-answered:
			t.Fatalf("answered after %d batches: %+v", i, sizes(resp))
		case <-time.After(50 * time.Millisecond):
		}
		writer.fill("sum", i%3, 1, 500)
		if i == 4 {
			break
		}
	}
	writer.fill("sum", 1, 1, 500)
	select {
	case resp := <-answered:
		total := 0
		for _, n := range sizes(resp) {
			total += n
		}
		if total < 3000 {
			t.Errorf("answered with %d bytes", total)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the minimum is reached, but the answer does not come")
	}
}

func sizes(resp *kmsg.FetchResponse) map[string]int {
	out := map[string]int{}
	for _, rt := range resp.Topics {
		for _, p := range rt.Partitions {
			out[fmt.Sprintf("%s-%d", rt.Topic, p.Partition)] = len(p.RecordBatches)
		}
	}
	return out
}

func TestAtLeastOneBatchComesWhateverTheLimits(t *testing.T) {
	r := start(t)
	r.createTopic("limits", 2)
	c := r.raw()
	c.fill("limits", 0, 3, 5000)
	c.fill("limits", 1, 3, 5000)
	req := fetch(11, "limits", 0, 0)
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.PartitionMaxBytes = 1, 1<<20
	req.Topics[0].Partitions = append(req.Topics[0].Partitions, rp)

	req.MaxBytes = 10
	got := sizes(c.ask(req).(*kmsg.FetchResponse))
	if got["limits-0"] < 5000 || got["limits-0"] > 6000 || got["limits-1"] != 0 {
		t.Errorf("max bytes 10: %v, want one batch of the first partition", got)
	}
	req.MaxBytes = 50 << 20
	req.Topics[0].Partitions[0].PartitionMaxBytes, req.Topics[0].Partitions[1].PartitionMaxBytes = 10, 10
	got = sizes(c.ask(req).(*kmsg.FetchResponse))
	if got["limits-0"] < 5000 || got["limits-1"] != 0 {
		t.Errorf("partition max bytes 10: %v, want one batch of the first partition", got)
	}
	req.Topics[0].Partitions[0].PartitionMaxBytes, req.Topics[0].Partitions[1].PartitionMaxBytes = 1<<20, 1<<20
	req.MaxBytes = 22_000
	got = sizes(c.ask(req).(*kmsg.FetchResponse))
	if got["limits-0"] < 15_000 || got["limits-1"] < 5000 || got["limits-0"]+got["limits-1"] > 22_000 {
		t.Errorf("max bytes 22000: %v", got)
	}
	// The order of the request decides who goes first.
	req.MaxBytes = 10
	req.Topics[0].Partitions[0], req.Topics[0].Partitions[1] = req.Topics[0].Partitions[1], req.Topics[0].Partitions[0]
	got = sizes(c.ask(req).(*kmsg.FetchResponse))
	if got["limits-1"] < 5000 || got["limits-0"] != 0 {
		t.Errorf("the other order: %v", got)
	}
}

func TestOffsetsAndEpochsOutOfRangeAreTold(t *testing.T) {
	r := start(t)
	r.createTopic("range", 1)
	c := r.raw()
	c.fill("range", 0, 3, 10)
	for _, tc := range []struct {
		name   string
		offset int64
		epoch  int32
		code   int16
		bytes  bool
	}{
		{"from the start", 0, -1, 0, true},
		{"at the end", 3, -1, 0, false},
		{"beyond the end", 4, -1, 1, false},
		{"negative", -1, -1, 1, false},
		{"the right epoch", 0, 0, 0, true},
		{"a newer epoch", 0, 5, 75, false},
	} {
		req := fetch(11, "range", 0, tc.offset)
		req.Topics[0].Partitions[0].CurrentLeaderEpoch = tc.epoch
		p := c.fetched(req)
		if p.ErrorCode != tc.code || (len(p.RecordBatches) > 0) != tc.bytes {
			t.Errorf("%s: error %d, %d bytes", tc.name, p.ErrorCode, len(p.RecordBatches))
		}
		if tc.code != 0 && p.HighWatermark != -1 {
			t.Errorf("%s: high watermark %d with an error", tc.name, p.HighWatermark)
		}
	}
	if p := c.fetched(fetch(11, "range", 9, 0)); p.ErrorCode != 3 {
		t.Errorf("no such partition: error %d", p.ErrorCode)
	}
	if p := c.fetched(fetch(11, "nowhere", 0, 0)); p.ErrorCode != 3 {
		t.Errorf("no such topic: error %d", p.ErrorCode)
	}
	committed := fetch(11, "range", 0, 0)
	committed.IsolationLevel = 1
	if p := c.fetched(committed); p.AbortedTransactions == nil || len(p.AbortedTransactions) != 0 {
		t.Errorf("read committed: aborted transactions %v, want an empty list", p.AbortedTransactions)
	}
	if p := c.fetched(fetch(11, "range", 0, 0)); p.AbortedTransactions != nil {
		t.Errorf("read uncommitted: aborted transactions %v, want null", p.AbortedTransactions)
	}
}

func TestABatchThatHoldsTheOffsetIsReturnedWhole(t *testing.T) {
	r := start(t)
	r.createTopic("whole", 1)
	c := r.raw()
	if p := c.produced(produce(9, -1, "whole", 0, batch("a", "b", "c", "d"))); p.ErrorCode != 0 {
		t.Fatal(p.ErrorCode)
	}
	all := c.fetched(fetch(11, "whole", 0, 0)).RecordBatches
	middle := c.fetched(fetch(11, "whole", 0, 2)).RecordBatches
	if !bytes.Equal(all, middle) || len(all) == 0 {
		t.Errorf("from 2: %d bytes, want the whole batch of %d", len(middle), len(all))
	}
}

func TestARequestBehindALongPollWaitsForIt(t *testing.T) {
	r := start(t)
	r.createTopic("behind", 1)
	c := r.raw()
	req := fetch(11, "behind", 0, 0)
	req.MaxWaitMillis = 500
	poll := c.send(req)
	next := c.send(apiVersions(3))
	began := time.Now()
	c.receive(poll, req)
	c.receive(next, apiVersions(3))
	if d := time.Since(began); d < 400*time.Millisecond {
		t.Errorf("both answered after %v", d)
	}
}

func TestALargeAnswerReachesASlowReaderUnharmed(t *testing.T) {
	r := start(t)
	r.createTopic("large", 1, "write.caching", "true")
	c := r.raw()
	var want []byte
	for i := range 40 {
		b := batch(string(bytes.Repeat([]byte{byte('a' + i%26)}, 500_000)))
		if p := c.produced(produce(9, 1, "large", 0, b)); p.ErrorCode != 0 {
			t.Fatal(p.ErrorCode)
		}
		want = append(want, b[61:]...)
	}
	slow := r.raw()
	req := fetch(11, "large", 0, 0)
	req.Topics[0].Partitions[0].PartitionMaxBytes = 50 << 20
	id := slow.send(req)
	time.Sleep(300 * time.Millisecond) // the socket's buffers are full by now
	other := r.raw()
	began := time.Now()
	other.ask(apiVersions(3))
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("a slow reader keeps another connection waiting for %v", d)
	}
	p := slow.receive(id, req).(*kmsg.FetchResponse).Topics[0].Partitions[0]
	var got []byte
	for rest := p.RecordBatches; len(rest) > 0; {
		n := 12 + int(uint32(rest[8])<<24|uint32(rest[9])<<16|uint32(rest[10])<<8|uint32(rest[11]))
		got = append(got, rest[61:n]...)
		rest = rest[n:]
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes of records came, want %d, or they differ", len(got), len(want))
	}
	// What follows on the connection is in step.
	slow.ask(apiVersions(3))
}
