package broker_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// end reads the log end of a partition.
func (c *raw) end(topic string, partition int32) int64 {
	c.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.SetVersion(7)
	req.ReplicaID = -1
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.CurrentLeaderEpoch = partition, -1, -1
	rt.Partitions = append(rt.Partitions, p)
	req.Topics = append(req.Topics, rt)
	got := c.ask(req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
	if got.ErrorCode != 0 {
		c.t.Fatalf("list offsets of %s-%d: error %d", topic, partition, got.ErrorCode)
	}
	return got.Offset
}

func (c *raw) produced(req *kmsg.ProduceRequest) kmsg.ProduceResponseTopicPartition {
	c.t.Helper()
	return c.ask(req).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
}

// patched changes a batch and gives it the right checksum.
func patched(b []byte, patch func(b []byte)) []byte {
	b = bytes.Clone(b)
	patch(b)
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

func TestAcksZeroIsNotAnswered(t *testing.T) {
	r := start(t)
	r.createTopic("silent", 1)
	c := r.raw()
	for range 5 {
		c.send(produce(9, 0, "silent", 0, batch("x")))
	}
	// The next answer on the connection is that of the next request.
	c.ask(apiVersions(3))
	deadline := time.Now().Add(10 * time.Second)
	for c.end("silent", 0) != 5 {
		if time.Now().After(deadline) {
			t.Fatalf("log end %d, want 5", c.end("silent", 0))
		}
	}
	c.send(produce(9, 0, "no-such-topic", 0, batch("x")))
	c.closed("a refused write with acks=0")
}

func TestWritesWithAcksZeroAreDoneThoughTheClientHangsUp(t *testing.T) {
	r := start(t)
	r.createTopic("bye", 1, "write.caching", "true")
	c := r.raw()
	var stream []byte
	for i := range int32(200) {
		stream = append(stream, frame(i, produce(9, 0, "bye", 0, batch("x")))...)
	}
	if _, err := c.Write(stream); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	other := r.raw()
	deadline := time.Now().Add(10 * time.Second)
	for other.end("bye", 0) != 200 {
		if time.Now().After(deadline) {
			t.Fatalf("log end %d, want 200", other.end("bye", 0))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestWhatAProducerMayNotSendIsRefusedAsKafkaDoes(t *testing.T) {
	r := start(t)
	r.createTopic("strict", 1, "max.message.bytes", "2000")
	good := batch("a", "b", "c")
	two := append(bytes.Clone(good), good...)
	c := r.raw()
	for _, tc := range []struct {
		name    string
		version int16
		acks    int16
		records []byte
		code    int16
	}{
		{"acks 2", 9, 2, good, 21},
		{"no records", 9, 1, nil, 87},
		{"empty records", 9, 1, []byte{}, 87},
		{"two batches", 9, 1, two, 87},
		{"half a batch", 9, 1, good[:70], 87},
		{"a flipped bit", 9, 1, func() []byte { b := bytes.Clone(good); b[len(b)-1] ^= 1; return b }(), 2},
		{"magic 1", 9, 1, func() []byte { b := bytes.Clone(good); b[16] = 1; return b }(), 87},
		{"a base offset", 9, 1, func() []byte { b := bytes.Clone(good); b[7] = 1; return b }(), 87},
		{"a wrong count", 9, 1, patched(good, func(b []byte) { binary.BigEndian.PutUint32(b[57:], 2) }), 87},
		{"a control batch", 9, 1, patched(good, func(b []byte) { b[22] |= 1 << 5 }), 87},
		{"too large", 9, 1, batch(string(bytes.Repeat([]byte("x"), 3000))), 10},
		{"far in the future", 9, 1, patched(good, func(b []byte) {
			for _, at := range []int{27, 35} {
				binary.BigEndian.PutUint64(b[at:], uint64(time.Now().Add(48*time.Hour).UnixMilli()))
			}
		}), 32},
	} {
		if got := c.produced(produce(tc.version, tc.acks, "strict", 0, tc.records)); got.ErrorCode != tc.code || got.BaseOffset != -1 {
			t.Errorf("%s: error %d, base offset %d, want error %d (%v)", tc.name, got.ErrorCode, got.BaseOffset, tc.code, got.ErrorMessage)
		}
	}
	if end := c.end("strict", 0); end != 0 {
		t.Errorf("log end %d: something was written", end)
	}
}

func TestZstdNeedsVersionSeven(t *testing.T) {
	r := start(t)
	r.createTopic("zstd", 1)
	b := record.NewBuilder()
	b.Codec = record.CodecZstd
	b.Append(ident.Millis(time.Now().UnixMilli()), nil, []byte("value"))
	zstd, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := r.raw()
	if got := c.produced(produce(6, 1, "zstd", 0, zstd)); got.ErrorCode != 76 {
		t.Errorf("version 6: error %d, want UNSUPPORTED_COMPRESSION_TYPE", got.ErrorCode)
	}
	if got := c.produced(produce(7, 1, "zstd", 0, zstd)); got.ErrorCode != 0 {
		t.Errorf("version 7: error %d", got.ErrorCode)
	}
}

func TestOnePartitionThatFailsDoesNotFailTheOthers(t *testing.T) {
	r := start(t)
	r.createTopic("mixed", 2)
	req := produce(9, -1, "mixed", 0, batch("a"))
	for _, p := range []struct {
		partition int32
		records   []byte
	}{{1, batch("b")}, {7, batch("c")}, {0, batch("d", "e")[:40]}} {
		rp := kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = p.partition, p.records
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, rp)
	}
	unknown := kmsg.NewProduceRequestTopic()
	unknown.Topic = "nobody"
	unknown.Partitions = req.Topics[0].Partitions[:1]
	req.Topics = append(req.Topics, unknown)
	c := r.raw()
	resp := c.ask(req).(*kmsg.ProduceResponse)
	var got []string
	for _, rt := range resp.Topics {
		for _, p := range rt.Partitions {
			got = append(got, fmt.Sprintf("%s-%d:%d@%d", rt.Topic, p.Partition, p.ErrorCode, p.BaseOffset))
		}
	}
	want := "[mixed-0:0@0 mixed-1:0@0 mixed-7:3@-1 mixed-0:87@-1 nobody-0:3@-1]"
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestTopicIdsNameTopicsFromVersionThirteen(t *testing.T) {
	r := start(t)
	r.createTopic("named", 1)
	c := r.raw()
	m := kmsg.NewPtrMetadataRequest()
	m.SetVersion(12)
	topics := c.ask(m).(*kmsg.MetadataResponse).Topics
	if len(topics) != 1 || topics[0].TopicID == [16]byte{} {
		t.Fatalf("metadata %+v", topics)
	}
	req := produce(13, -1, "", 0, batch("x"))
	req.Topics[0].TopicID = topics[0].TopicID
	resp := c.ask(req).(*kmsg.ProduceResponse)
	if resp.Topics[0].TopicID != topics[0].TopicID || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Errorf("answer %+v", resp.Topics[0])
	}
	req.Topics[0].TopicID = [16]byte{1, 2, 3}
	if got := c.produced(req); got.ErrorCode != 100 {
		t.Errorf("unknown id: error %d, want UNKNOWN_TOPIC_ID", got.ErrorCode)
	}
	f := fetch(13, "", 0, 0)
	f.Topics[0].TopicID = topics[0].TopicID
	if p := c.ask(f).(*kmsg.FetchResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 || len(p.RecordBatches) == 0 {
		t.Errorf("fetch by id: error %d, %d bytes", p.ErrorCode, len(p.RecordBatches))
	}
	f.Topics[0].TopicID = [16]byte{1, 2, 3}
	if p := c.ask(f).(*kmsg.FetchResponse).Topics[0].Partitions[0]; p.ErrorCode != 100 {
		t.Errorf("fetch by unknown id: error %d, want UNKNOWN_TOPIC_ID", p.ErrorCode)
	}
}

func TestLogAppendTimeIsTheBrokers(t *testing.T) {
	r := start(t)
	r.createTopic("stamped", 1, "message.timestamp.type", "LogAppendTime")
	c := r.raw()
	before := time.Now().UnixMilli()
	got := c.produced(produce(9, 1, "stamped", 0, patched(batch("x"), func(b []byte) {
		binary.BigEndian.PutUint64(b[27:], 1)
		binary.BigEndian.PutUint64(b[35:], 1)
	})))
	if got.ErrorCode != 0 || got.LogAppendTime < before || got.LogAppendTime > time.Now().UnixMilli() {
		t.Fatalf("error %d, log append time %d, now %d", got.ErrorCode, got.LogAppendTime, before)
	}
	rec := r.consume("stamped", 0, 1)[0]
	if rec.Timestamp.UnixMilli() != got.LogAppendTime {
		t.Errorf("read timestamp %d, want %d", rec.Timestamp.UnixMilli(), got.LogAppendTime)
	}
	r.createTopic("created", 1)
	if got := c.produced(produce(9, 1, "created", 0, batch("x"))); got.LogAppendTime != -1 {
		t.Errorf("CreateTime: log append time %d, want -1", got.LogAppendTime)
	}
}

// idempotent is a batch of a producer.
func idempotent(id int64, epoch int16, sequence int32, values ...string) []byte {
	return patched(batch(values...), func(b []byte) {
		binary.BigEndian.PutUint64(b[43:], uint64(id))
		binary.BigEndian.PutUint16(b[51:], uint16(epoch))
		binary.BigEndian.PutUint32(b[53:], uint32(sequence))
	})
}

func TestARepeatedBatchIsAnsweredAsTheFirstTimeAlsoAfterARestart(t *testing.T) {
	r := start(t)
	r.createTopic("once", 1)
	c := r.raw()
	init := kmsg.NewPtrInitProducerIDRequest()
	init.SetVersion(4)
	init.TransactionTimeoutMillis = 60_000
	first, second := c.ask(init).(*kmsg.InitProducerIDResponse), c.ask(init).(*kmsg.InitProducerIDResponse)
	if first.ErrorCode != 0 || second.ErrorCode != 0 || first.ProducerID == second.ProducerID {
		t.Fatalf("producer ids %+v and %+v", first, second)
	}
	id := first.ProducerID
	send := func(c *raw, sequence int32, values ...string) (int16, int64) {
		p := c.produced(produce(9, -1, "once", 0, idempotent(id, 0, sequence, values...)))
		return p.ErrorCode, p.BaseOffset
	}
	expect := func(what string, code int16, base int64, wantCode int16, wantBase int64) {
		t.Helper()
		if code != wantCode || base != wantBase {
			t.Errorf("%s: error %d, base offset %d, want %d, %d", what, code, base, wantCode, wantBase)
		}
	}
	code, base := send(c, 0, "a", "b")
	expect("first batch", code, base, 0, 0)
	code, base = send(c, 2, "c")
	expect("second batch", code, base, 0, 2)
	code, base = send(c, 0, "a", "b")
	expect("first batch again", code, base, 0, 0)
	code, base = send(c, 5, "z")
	expect("a gap", code, base, 45, -1)
	r.stop()
	r = startIn(t, r.dir)
	c = r.raw()
	code, base = send(c, 2, "c")
	expect("second batch again, after a restart", code, base, 0, 2)
	code, base = send(c, 3, "d")
	expect("third batch", code, base, 0, 3)
	third := c.ask(init).(*kmsg.InitProducerIDResponse)
	if third.ProducerID <= second.ProducerID {
		t.Errorf("producer id %d was given before", third.ProducerID)
	}
	init.TransactionalID = new("tx")
	if got := c.ask(init).(*kmsg.InitProducerIDResponse); got.ErrorCode == 0 {
		t.Error("a transactional id is accepted, though there are no transactions")
	}
}

func TestEveryCodecComesBackAsItWasSent(t *testing.T) {
	r := start(t)
	for i, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		for _, kind := range []string{"producer", "gzip", "zstd"} {
			topic := fmt.Sprintf("codec-%d-%s", i, kind)
			r.createTopic(topic, 1, "compression.type", kind)
			cl := r.client(kgo.ProducerBatchCompression(codec), kgo.DefaultProduceTopic(topic))
			var recs []*kgo.Record
			for n := range 50 {
				recs = append(recs, &kgo.Record{
					Key: fmt.Appendf(nil, "key-%d", n), Value: bytes.Repeat([]byte{byte(n)}, 100), Timestamp: time.UnixMilli(time.Now().UnixMilli() - int64(n)),
					Headers: []kgo.RecordHeader{{Key: "h", Value: []byte{1, 2, byte(n)}}},
				})
			}
			if err := cl.ProduceSync(within(t, 10*time.Second), recs...).FirstErr(); err != nil {
				t.Fatalf("%s: %v", topic, err)
			}
			cl.Close()
			for n, rec := range r.consume(topic, 0, 50) {
				want := recs[n]
				if !bytes.Equal(rec.Key, want.Key) || !bytes.Equal(rec.Value, want.Value) || !rec.Timestamp.Equal(want.Timestamp) ||
					len(rec.Headers) != 1 || !bytes.Equal(rec.Headers[0].Value, want.Headers[0].Value) {
					t.Fatalf("%s: record %d is %+v, want %+v", topic, n, rec, want)
				}
			}
		}
	}
}
