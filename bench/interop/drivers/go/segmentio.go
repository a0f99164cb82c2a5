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
type segmentio struct{ bootstrap string }

func (s *segmentio) hello() hello {
	return hello{
		Client: "kafka-go", Version: moduleVersion("github.com/segmentio/kafka-go"),
		Codecs: []string{"none", "gzip", "snappy", "lz4", "zstd"},
		// Its reader moves to the start of the log by itself when its offset is not there, and knows no LogAppendTime.
		Lacks: []string{"read-null-key", "read-null-value", "read-null-header", "read-out-of-range", "read-append-time"},
	}
}

func (s *segmentio) client() *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(s.bootstrap), Transport: &kafka.Transport{}}
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

var segmentioCodecs = map[string]kafka.Compression{
	"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd,
}

func (s *segmentio) produce(ctx context.Context, topic string, partition int32, p produce) ([]int64, error) {
	var mu sync.Mutex
	var offsets []int64
	w := &kafka.Writer{
		Addr: kafka.TCP(s.bootstrap), Topic: topic, RequiredAcks: kafka.RequiredAcks(p.Acks), Compression: segmentioCodecs[p.Codec],
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
		Brokers: []string{s.bootstrap}, Topic: topic, Partition: int(partition), MinBytes: 1, MaxBytes: 32 << 20,
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
