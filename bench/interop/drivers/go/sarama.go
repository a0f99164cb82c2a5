package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// saramaClient is IBM/sarama. The library speaks the protocol of the Kafka version that its configuration names; most
// programs leave that at the default, so the suite has both: "sarama" with the default and "sarama-max" with the
// newest that it knows.
type saramaClient struct {
	name      string
	bootstrap []string
	version   sarama.KafkaVersion
}

func newSarama(name string, bootstrap []string) *saramaClient {
	s := &saramaClient{name: name, bootstrap: bootstrap, version: sarama.DefaultVersion}
	if name == "sarama-max" {
		s.version = sarama.MaxVersion
	}
	return s
}

func (s *saramaClient) hello() hello {
	return hello{
		Client: s.name, Version: moduleVersion("github.com/IBM/sarama"),
		Codecs: []string{"none", "gzip", "snappy", "lz4", "zstd"}, Idempotent: true,
		Groups: []string{"classic/range", "classic/roundrobin", "classic/sticky", "classic/cooperative-sticky"},
	}
}

func (s *saramaClient) config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = s.version
	c.ClientID = "interop-" + s.name
	return c
}

func (s *saramaClient) create(_ context.Context, topic string, partitions int32, config map[string]string) error {
	admin, err := sarama.NewClusterAdmin(s.bootstrap, s.config())
	if err != nil {
		return err
	}
	detail := &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: map[string]*string{}}
	for k, v := range config {
		detail.ConfigEntries[k] = &v
	}
	return errors.Join(admin.CreateTopic(topic, detail, false), admin.Close())
}

func (s *saramaClient) remove(_ context.Context, topic string) error {
	admin, err := sarama.NewClusterAdmin(s.bootstrap, s.config())
	if err != nil {
		return err
	}
	return errors.Join(admin.DeleteTopic(topic), admin.Close())
}

func (s *saramaClient) administer(_ context.Context, name string, partitions int, key, value string, below int64) (t topic, err error) {
	c, err := sarama.NewClient(s.bootstrap, s.config())
	if err != nil {
		return t, err
	}
	admin, err := sarama.NewClusterAdminFromClient(c)
	if err != nil {
		return t, errors.Join(err, c.Close())
	}
	defer func() { err = errors.Join(err, admin.Close()) }() // closes the client too
	have, err := c.Partitions(name)
	if err != nil {
		return t, err
	}
	if len(have) < partitions {
		if err := admin.CreatePartitions(name, int32(partitions), nil, false); err != nil {
			return t, err
		}
	}
	if s.name == "sarama-max" {
		set := map[string]sarama.IncrementalAlterConfigsEntry{key: {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}}
		err = admin.IncrementalAlterConfig(sarama.TopicResource, name, set, false)
	} else { // the older request, which replaces all configs
		err = admin.AlterConfig(sarama.TopicResource, name, map[string]*string{key: &value}, false)
	}
	if err != nil {
		return t, err
	}
	if err := admin.DeleteRecords(name, map[int32]int64{0: below}); err != nil {
		return t, err
	}
	described, err := admin.DescribeTopics([]string{name})
	if err != nil {
		return t, err
	}
	t.Partitions = len(described[0].Partitions)
	resource := &sarama.ConfigResource{Type: sarama.TopicResource, Name: name, ConfigNames: []string{key}}
	configs, err := admin.DescribeConfigs([]*sarama.ConfigResource{resource}, sarama.DescribeConfigsOptions{IncludeSynonyms: true, IncludeDocumentation: true})
	if err != nil {
		return t, err
	}
	if configs[0].ErrorCode != sarama.ErrNoError {
		return t, configs[0].ErrorCode
	}
	for _, e := range configs[0].Configs {
		if e.Name == key {
			t.Value = e.Value
		}
	}
	if t.Earliest, err = c.GetOffset(name, 0, sarama.OffsetOldest); err != nil {
		return t, err
	}
	t.Latest, err = c.GetOffset(name, 0, sarama.OffsetNewest)
	return t, err
}

var saramaCodecs = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
	"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

// bytesEncoder keeps null and empty apart: sarama's own ByteEncoder sends a nil slice as null too, but only when the
// field of the message is nil may the header of the record say so.
func bytesEncoder(b []byte) sarama.Encoder {
	if b == nil {
		return nil
	}
	return sarama.ByteEncoder(b)
}

func (s *saramaClient) produce(_ context.Context, topic string, partition int32, p produce) ([]int64, error) {
	c := s.config()
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.Compression = saramaCodecs[p.Codec]
	c.Producer.RequiredAcks = sarama.RequiredAcks(p.Acks)
	c.Producer.Return.Successes = true
	c.Producer.Return.Errors = true
	c.Producer.Flush.Frequency = 5 * time.Millisecond
	c.Producer.Flush.MaxMessages = p.BatchRecords
	c.Producer.MaxMessageBytes = 16 << 20
	c.Producer.Retry.Max = 3
	if p.Patient {
		c.Producer.Retry.Max = 100
	}
	// The library wants this for idempotence; without sequences, a batch sent again would arrive after its successors.
	c.Net.MaxOpenRequests = 1
	c.Producer.Idempotent = p.Idempotent
	producer, err := sarama.NewSyncProducer(s.bootstrap, c)
	if err != nil {
		return nil, err
	}
	messages := make([]*sarama.ProducerMessage, len(p.Records))
	for i, r := range p.Records {
		messages[i] = &sarama.ProducerMessage{
			Topic: topic, Partition: partition, Key: bytesEncoder(r.Key), Value: bytesEncoder(r.Value), Timestamp: time.UnixMilli(r.Timestamp),
		}
		for _, h := range r.Headers {
			messages[i].Headers = append(messages[i].Headers, sarama.RecordHeader{Key: []byte(h.Name), Value: h.Value})
		}
	}
	err = producer.SendMessages(messages)
	var each sarama.ProducerErrors
	if errors.As(err, &each) && len(each) > 0 {
		err = each[0].Err
	}
	linger(p)
	if err := errors.Join(err, producer.Close()); err != nil {
		return nil, err
	}
	offsets := make([]int64, len(messages))
	for i, m := range messages {
		offsets[i] = m.Offset
		if p.Acks == 0 {
			offsets[i] = -1
		}
	}
	return offsets, nil
}

func (s *saramaClient) read(ctx context.Context, topic string, partition int32, from int64, count int) (out []record, err error) {
	c := s.config()
	c.Consumer.Return.Errors = true
	c.Consumer.MaxWaitTime = 50 * time.Millisecond // closing waits for the fetch that is under way
	consumer, err := sarama.NewConsumer(s.bootstrap, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, consumer.Close()) }()
	messages, err := consumer.ConsumePartition(topic, partition, from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, messages.Close()) }()
	var trouble error // with a connection: the library tells of it and goes on
	for len(out) < count {
		select {
		case m := <-messages.Messages():
			got := record{Key: keep(m.Key), Value: keep(m.Value), Timestamp: m.Timestamp.UnixMilli(), Offset: m.Offset}
			for _, h := range m.Headers {
				got.Headers = append(got.Headers, header{string(h.Key), keep(h.Value)})
			}
			out = append(out, got)
		case e := <-messages.Errors():
			if _, refused := s.code(e.Err); refused {
				return out, e.Err
			}
			trouble = e.Err
		case <-ctx.Done():
			return out, errors.Join(fmt.Errorf("%d of %d records: %w", len(out), count, ctx.Err()), trouble)
		}
	}
	return out, nil
}

func (s *saramaClient) code(err error) (int16, bool) {
	if code, ok := errors.AsType[sarama.KError](err); ok {
		return int16(code), true
	}
	if topic, ok := errors.AsType[*sarama.TopicError](err); ok {
		return int16(topic.Err), true
	}
	return 0, false
}
