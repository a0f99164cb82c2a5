package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// segmentio is segmentio/kafka-go, by its Writer and Reader, which is how programs use it.
type segmentio struct{ bootstrap []string }

func (s *segmentio) hello() hello {
	return hello{
		Client: "kafka-go", Version: moduleVersion("github.com/segmentio/kafka-go"),
		Codecs: []string{"none", "gzip", "snappy", "lz4", "zstd"},
		// Its reader moves to the start of the log by itself when its offset is not there, knows no LogAppendTime, and in a
		// group cannot seek and commits what it read of a partition that is no longer its own.
		Lacks:  []string{"read-null-key", "read-null-value", "read-null-header", "read-out-of-range", "read-append-time", "delete-records", "group-seek", "group-fencing"},
		Groups: []string{"classic/range", "classic/roundrobin"},
	}
}

func (s *segmentio) client() *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(s.bootstrap...), Transport: &kafka.Transport{}}
}

func (s *segmentio) create(ctx context.Context, topic string, partitions int32, config map[string]string) error {
	t := kafka.TopicConfig{Topic: topic, NumPartitions: int(partitions), ReplicationFactor: 1}
	for k, v := range config {
		t.ConfigEntries = append(t.ConfigEntries, kafka.ConfigEntry{ConfigName: k, ConfigValue: v})
	}
	answer, err := s.client().CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{t}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (s *segmentio) remove(ctx context.Context, topic string) error {
	answer, err := s.client().DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (s *segmentio) administer(ctx context.Context, name string, partitions int, key, value string, _ int64) (t topic, err error) {
	c := s.client()
	count := func() (int, error) {
		answer, err := c.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{name}})
		if err != nil {
			return 0, err
		}
		return len(answer.Topics[0].Partitions), answer.Topics[0].Error
	}
	have, err := count()
	if err != nil {
		return t, err
	}
	if have < partitions {
		answer, err := c.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: name, Count: int32(partitions)}}})
		if err != nil || answer.Errors[name] != nil {
			return t, errors.Join(err, answer.Errors[name])
		}
	}
	altered, err := c.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{Resources: []kafka.IncrementalAlterConfigsRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: name,
		Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: key, Value: value, ConfigOperation: kafka.ConfigOperationSet}},
	}}})
	if err != nil {
		return t, err
	}
	if err := altered.Resources[0].Error; err != nil {
		return t, err
	}
	if t.Partitions, err = count(); err != nil {
		return t, err
	}
	configs, err := c.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
		{ResourceType: kafka.ResourceTypeTopic, ResourceName: name, ConfigNames: []string{key}},
	}})
	if err != nil {
		return t, err
	}
	for _, e := range configs.Resources[0].ConfigEntries {
		if e.ConfigName == key {
			t.Value = e.ConfigValue
		}
	}
	offsets, err := c.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{name: {kafka.FirstOffsetOf(0), kafka.LastOffsetOf(0)}}})
	if err != nil {
		return t, err
	}
	p := offsets.Topics[name][0]
	t.Earliest, t.Latest = p.FirstOffset, p.LastOffset
	return t, p.Error
}

var segmentioCodecs = map[string]kafka.Compression{
	"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

func (s *segmentio) produce(ctx context.Context, topic string, partition int32, p produce) ([]int64, error) {
	var mu sync.Mutex
	var offsets []int64
	w := &kafka.Writer{
		Addr: kafka.TCP(s.bootstrap...), Topic: topic, RequiredAcks: kafka.RequiredAcks(p.Acks), Compression: segmentioCodecs[p.Codec],
		BatchTimeout: 5 * time.Millisecond, BatchBytes: 16 << 20, MaxAttempts: 3, Transport: &kafka.Transport{},
		Balancer: kafka.BalancerFunc(func(kafka.Message, ...int) int { return int(partition) }),
		Completion: func(done []kafka.Message, err error) {
			mu.Lock()
			defer mu.Unlock()
			for _, m := range done {
				if p.Acks == 0 {
					m.Offset = -1
				}
				offsets = append(offsets, m.Offset)
			}
		},
	}
	if p.BatchRecords > 0 {
		w.BatchSize = p.BatchRecords
	}
	messages := make([]kafka.Message, len(p.Records))
	for i, r := range p.Records {
		messages[i] = kafka.Message{Key: r.Key, Value: r.Value, Time: time.UnixMilli(r.Timestamp)}
		for _, h := range r.Headers {
			messages[i].Headers = append(messages[i].Headers, kafka.Header{Key: h.Name, Value: h.Value})
		}
	}
	err := w.WriteMessages(ctx, messages...)
	if each, ok := errors.AsType[kafka.WriteErrors](err); ok {
		for _, e := range each {
			if e != nil {
				err = e
				break
			}
		}
	}
	linger(p)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	if len(offsets) != len(messages) {
		return nil, fmt.Errorf("the writer completed %d of %d messages", len(offsets), len(messages))
	}
	return offsets, nil
}

func (s *segmentio) read(ctx context.Context, topic string, partition int32, from int64, count int) (out []record, err error) {
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: s.bootstrap, Topic: topic, Partition: int(partition), MinBytes: 1, MaxBytes: 32 << 20,
		// Closing a reader waits for the fetch that is under way.
		MaxWait: 50 * time.Millisecond, ReadBackoffMin: 5 * time.Millisecond, OffsetOutOfRangeError: true,
	})
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.SetOffset(from); err != nil {
		return nil, err
	}
	for len(out) < count {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			return out, fmt.Errorf("%d of %d records: %w", len(out), count, err)
		}
		got := record{Key: keep(m.Key), Value: keep(m.Value), Timestamp: m.Time.UnixMilli(), Offset: m.Offset}
		for _, h := range m.Headers {
			got.Headers = append(got.Headers, header{h.Key, keep(h.Value)})
		}
		out = append(out, got)
	}
	return out, nil
}

func (s *segmentio) code(err error) (int16, bool) {
	if code, ok := errors.AsType[kafka.Error](err); ok {
		return int16(code), true
	}
	if _, ok := errors.AsType[kafka.MessageTooLargeError](err); ok {
		return int16(kafka.MessageSizeTooLarge), true
	}
	return 0, false
}
