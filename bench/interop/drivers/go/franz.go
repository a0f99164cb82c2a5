package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// franz is twmb/franz-go: kgo to write and read, kadm for topics.
type franz struct{ bootstrap []string }

func (f *franz) hello() hello {
	return hello{
		Client: "franz-go", Version: moduleVersion("github.com/twmb/franz-go"),
		Codecs: []string{"none", "gzip", "snappy", "lz4", "zstd"}, Idempotent: true,
		Groups: []string{"classic/range", "classic/roundrobin", "classic/sticky", "classic/cooperative-sticky", "classic/regex", "consumer/uniform", "consumer/range", "consumer/regex"},
	}
}

func (f *franz) create(ctx context.Context, topic string, partitions int32, config map[string]string) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(f.bootstrap...))
	if err != nil {
		return err
	}
	defer c.Close()
	values := make(map[string]*string, len(config))
	for k, v := range config {
		values[k] = &v
	}
	_, err = kadm.NewClient(c).CreateTopic(ctx, partitions, 1, values, topic)
	return err
}

func (f *franz) remove(ctx context.Context, topic string) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(f.bootstrap...))
	if err != nil {
		return err
	}
	defer c.Close()
	answer, err := kadm.NewClient(c).DeleteTopic(ctx, topic)
	if err != nil {
		return err
	}
	return answer.Err
}

func (f *franz) administer(ctx context.Context, name string, partitions int, key, value string, below int64) (t topic, err error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(f.bootstrap...))
	if err != nil {
		return t, err
	}
	defer c.Close()
	admin := kadm.NewClient(c)
	details, err := admin.ListTopics(ctx, name)
	if err != nil {
		return t, err
	}
	if len(details[name].Partitions) < partitions {
		if created, err := admin.UpdatePartitions(ctx, partitions, name); err != nil || created.Error() != nil {
			return t, errors.Join(err, created.Error())
		}
	}
	altered, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: key, Value: &value}}, name)
	if err != nil {
		return t, err
	}
	if _, err := altered.On(name, func(r *kadm.AlterConfigsResponse) error { return r.Err }); err != nil {
		return t, err
	}
	offsets := make(kadm.Offsets)
	offsets.AddOffset(name, 0, below, -1)
	deleted, err := admin.DeleteRecords(ctx, offsets)
	if err != nil || deleted.Error() != nil {
		return t, errors.Join(err, deleted.Error())
	}
	if details, err = admin.ListTopics(ctx, name); err != nil {
		return t, err
	}
	t.Partitions = len(details[name].Partitions)
	configs, err := admin.DescribeTopicConfigs(ctx, name)
	if err != nil {
		return t, err
	}
	config, err := configs.On(name, nil)
	if err != nil {
		return t, err
	}
	for _, entry := range config.Configs {
		if entry.Key == key {
			t.Value = entry.MaybeValue()
		}
	}
	starts, err := admin.ListStartOffsets(ctx, name)
	if err != nil {
		return t, err
	}
	ends, err := admin.ListEndOffsets(ctx, name)
	if err != nil {
		return t, err
	}
	start, _ := starts.Lookup(name, 0)
	end, _ := ends.Lookup(name, 0)
	t.Earliest, t.Latest = start.Offset, end.Offset
	return t, errors.Join(start.Err, end.Err)
}

var franzCodecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func (f *franz) produce(ctx context.Context, topic string, partition int32, p produce) ([]int64, error) {
	acks := map[int]kgo.Acks{0: kgo.NoAck(), 1: kgo.LeaderAck(), -1: kgo.AllISRAcks()}[p.Acks]
	opts := []kgo.Opt{
		kgo.SeedBrokers(f.bootstrap...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(franzCodecs[p.Codec]), kgo.RequiredAcks(acks), kgo.ProducerLinger(5 * time.Millisecond),
		// The suite's records are as large as a topic allows and beyond: the broker shall say so, not the client.
		kgo.ProducerBatchMaxBytes(16 << 20), kgo.BrokerMaxWriteBytes(32 << 20), kgo.RecordRetries(20), kgo.UnknownTopicRetries(20),
	}
	if p.BatchRecords > 0 {
		opts = append(opts, kgo.ProducerBatchMaxBytes(int32(p.BatchRecords)<<10))
	}
	if !p.Idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	c, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	records := make([]*kgo.Record, len(p.Records))
	for i, r := range p.Records {
		records[i] = &kgo.Record{Topic: topic, Partition: partition, Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Timestamp)}
		for _, h := range r.Headers {
			records[i].Headers = append(records[i].Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
	}
	results := c.ProduceSync(ctx, records...)
	if err := results.FirstErr(); err != nil {
		return nil, err
	}
	linger(p)
	offsets := make([]int64, len(records))
	for i, r := range records {
		offsets[i] = r.Offset
		if p.Acks == 0 {
			offsets[i] = -1
		}
	}
	return offsets, nil
}

func (f *franz) read(ctx context.Context, topic string, partition int32, from int64, count int) ([]record, error) {
	c, err := kgo.NewClient(
		kgo.SeedBrokers(f.bootstrap...), kgo.FetchMaxWait(500*time.Millisecond), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().At(from)}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var out []record
	for len(out) < count {
		fetches := c.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			return out, errs[0].Err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			got := record{Key: keep(r.Key), Value: keep(r.Value), Timestamp: r.Timestamp.UnixMilli(), Offset: r.Offset}
			for _, h := range r.Headers {
				got.Headers = append(got.Headers, header{h.Key, keep(h.Value)})
			}
			out = append(out, got)
		})
	}
	return out, nil
}

func (f *franz) code(err error) (int16, bool) {
	if refused, ok := errors.AsType[*kerr.Error](err); ok {
		return refused.Code, true
	}
	return 0, false
}
