package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"slices"
	"strings"
	"time"
)

// topics is the section in which topic configs change what is written: stamps, codecs, limits.
func (s *suite) topics(ctx context.Context) {
	s.logAppendTime(ctx)
	s.conversion(ctx)
	s.limits(ctx)
	s.autoCreation(ctx)
	s.administration(ctx)
	s.bulk(ctx)
}

// some gives the clients of a check whose outcome hardly depends on the client: all of them in the full suite, the
// three families (Java, franz-go, librdkafka) in the smoke part.
func (s *suite) some() []*actor {
	if s.full {
		return s.actors
	}
	return slices.DeleteFunc(slices.Clone(s.actors), func(a *actor) bool {
		return !slices.Contains([]string{"java", "franz-go", "confluent"}, a.hello.Client)
	})
}

// logAppendTime: with message.timestamp.type=LogAppendTime every reader sees the broker's time, whatever the writer
// sent and however it compressed.
func (s *suite) logAppendTime(ctx context.Context) {
	s.report.section("message.timestamp.type=LogAppendTime")
	for _, writer := range s.actors {
		cells := []cell{{Codec: "none", Acks: -1}, {Codec: "zstd", Acks: 1}}
		if s.full {
			cells = append(cells, cell{Codec: "gzip", Acks: -1}, cell{Codec: "snappy", Acks: -1}, cell{Codec: "lz4", Acks: -1})
		}
		topic := "append-time-" + writer.hello.Client
		if !s.createTopic(ctx, writer, topic, len(cells), map[string]string{"message.timestamp.type": "LogAppendTime"}) {
			continue
		}
		for partition, c := range cells {
			var written []record
			var before, after int64
			ok := s.report.check(ctx, writer.who(), "produce "+c.String(), func(ctx context.Context) (err error) {
				before = time.Now().UnixMilli()
				written, err = writeCorpus(ctx, writer, topic, partition, c)
				after = time.Now().UnixMilli()
				return err
			})
			if !ok {
				continue
			}
			stamped := false
			for _, reader := range s.some() {
				s.report.check(ctx, reader.who(), fmt.Sprintf("read %v of %s", c, writer.hello.Client), func(ctx context.Context) error {
					got, err := reader.read(ctx, topic, partition, 0, len(written))
					if err != nil {
						return err
					}
					if reader.hello.lacks(lacksAppendTime) {
						return differences(writer.hello, reader.hello, writtenWithout(written), got)
					}
					if !stamped { // the first reader says what the broker stamped; the others have to agree
						if err := stampAll(written, got, before, after); err != nil {
							return err
						}
						stamped = true
					}
					return differences(writer.hello, reader.hello, written, got)
				})
			}
		}
	}
}

// writtenWithout gives the records with timestamps that are not compared.
func writtenWithout(written []record) []record {
	plain := slices.Clone(written)
	for i := range plain {
		plain[i].Timestamp = 0
	}
	return plain
}

// stampAll takes over the timestamps that were read, after checking that they are times at which the broker can have
// appended, never falling.
func stampAll(written, got []record, before, after int64) error {
	if len(got) < len(written) {
		return fmt.Errorf("%d records, want %d", len(got), len(written))
	}
	last := before
	for i := range written {
		if t := got[i].Timestamp; t < last || t > after {
			return fmt.Errorf("record %d has timestamp %d, want one from %d to %d", i, t, last, after)
		}
		if k := got[i].TimestampType; k != "" && k != "LogAppendTime" {
			return fmt.Errorf("record %d is said to have a timestamp of type %s", i, k)
		}
		last = got[i].Timestamp
		written[i].Timestamp = last
	}
	return nil
}

// conversion: with compression.type set, batches are stored in that codec whatever the writer used, and hold the same
// records.
func (s *suite) conversion(ctx context.Context) {
	s.report.section("compression.type")
	stored := []string{"zstd", "uncompressed"}
	if s.full {
		stored = []string{"uncompressed", "gzip", "snappy", "lz4", "zstd"}
	}
	for _, writer := range s.some() {
		for _, kind := range stored {
			topic := "stored-as-" + kind + "-by-" + writer.hello.Client
			cells := []cell{{Codec: "none", Acks: -1}, {Codec: "lz4", Acks: -1}}
			if s.full {
				cells = append(cells, cell{Codec: "gzip", Acks: -1}, cell{Codec: "snappy", Acks: -1}, cell{Codec: "zstd", Acks: -1})
			}
			if !s.createTopic(ctx, writer, topic, len(cells), map[string]string{"compression.type": kind}) {
				continue
			}
			for partition, c := range cells {
				var written []record
				ok := s.report.check(ctx, writer.who(), "produce "+c.String(), func(ctx context.Context) (err error) {
					written, err = writeCorpus(ctx, writer, topic, partition, c)
					return err
				})
				if !ok {
					continue
				}
				for _, reader := range s.some() {
					s.report.check(ctx, reader.who(), fmt.Sprintf("read %v of %s as %s", c, writer.hello.Client, kind), func(ctx context.Context) error {
						got, err := reader.read(ctx, topic, partition, 0, len(written))
						if err != nil {
							return err
						}
						return differences(writer.hello, reader.hello, written, got)
					})
				}
				s.storedAs(ctx, writer, topic, partition, kind)
			}
		}
	}
}

// storedAs reads the codec out of the first batch's header where it lies on disk. (kafka-dump-log would read on into
// the space that an open segment has reserved.)
func (s *suite) storedAs(ctx context.Context, writer *actor, topic string, partition int, kind string) {
	s.report.check(ctx, writer.who(), "codec on disk is "+kind, func(context.Context) (err error) {
		file, err := os.Open(s.target.segment(topic, partition, 0) + ".log")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		// Of record batch version 2: the version in byte 16, the codec in the lowest bits of the attributes, bytes 21, 22.
		var header [61]byte
		if _, err := io.ReadFull(file, header[:]); err != nil {
			return err
		}
		codecs := []string{"uncompressed", "gzip", "snappy", "lz4", "zstd", "5", "6", "7"}
		if codec := codecs[header[22]&7]; header[16] != 2 || codec != kind {
			return fmt.Errorf("batch of version %d in codec %s", header[16], codec)
		}
		return nil
	})
}

// limits: what a topic does not take is refused with Kafka's code, and leaves no trace.
func (s *suite) limits(ctx context.Context) {
	s.report.section("limits of a topic")
	noise := make([]byte, 50_000)
	random := rand.New(rand.NewSource(5))
	for i := range noise {
		noise[i] = byte(random.Intn(256))
	}
	now := time.Now().UnixMilli()
	limits := []struct {
		name   string
		config map[string]string
		bad    record
		codec  string
		code   int16
		// lacking is what a client cannot say, so that the check is not for it.
		lacking string
	}{
		{"max.message.bytes", map[string]string{"max.message.bytes": "20000"}, record{Key: []byte("k"), Value: noise, Timestamp: now}, "none", messageTooLarge, ""},
		{"max.message.bytes, compressed", map[string]string{"max.message.bytes": "20000"}, record{Key: []byte("k"), Value: noise, Timestamp: now}, "lz4", messageTooLarge, ""},
		{"message.timestamp.after.max.ms", nil, record{Key: []byte("k"), Value: []byte("v"), Timestamp: now + 2*3600_000}, "none", invalidTimestamp, lacksTimestamp},
		{
			"message.timestamp.before.max.ms",
			map[string]string{"message.timestamp.before.max.ms": "3600000"},
			record{Key: []byte("k"), Value: []byte("v"), Timestamp: now - 2*3600_000},
			"zstd", invalidTimestamp, lacksTimestamp,
		},
		{
			"max.decompressed.message.bytes",
			map[string]string{"max.decompressed.message.bytes": "20000"},
			record{Key: []byte("k"), Value: bytes.Repeat([]byte("x"), 30_000), Timestamp: now},
			"gzip", invalidRecord, "",
		},
	}
	for i, l := range limits {
		for _, a := range s.actors {
			if l.lacking != "" && a.hello.lacks(l.lacking) {
				continue
			}
			topic := fmt.Sprintf("limit-%d-%s", i, a.hello.Client)
			if !s.createTopic(ctx, a, topic, 1, l.config) {
				continue
			}
			s.report.check(ctx, a.who(), l.name+" refuses", func(ctx context.Context) error {
				c := cell{Codec: l.codec, Acks: -1}
				_, err := a.produce(ctx, topic, 0, c, []record{l.bad})
				if l.code == invalidRecord && a.hello.lacks(lacksInvalidRecord) {
					if err == nil {
						return errors.New("it was accepted")
					}
				} else if err := wantError(err, l.code); err != nil {
					return err
				}
				good := []record{{Key: []byte("k"), Value: []byte("good"), Timestamp: now}}
				if _, err := a.produce(ctx, topic, 0, c, good); err != nil {
					return fmt.Errorf("a good record after it: %w", err)
				}
				got, err := a.read(ctx, topic, 0, 0, 1)
				if err != nil {
					return err
				}
				return differences(a.hello, a.hello, writable(a.hello, good), got)
			})
		}
	}
}

// autoCreation: a producer that names a topic which is not there gets it, with the broker's defaults.
func (s *suite) autoCreation(ctx context.Context) {
	s.report.section("auto.create.topics.enable")
	for _, a := range s.actors {
		if slices.Contains([]string{"franz-go", "kafka-go", "kafkajs"}, a.hello.Client) {
			continue // by default, or as driven here, they ask the broker not to
		}
		topic := "born-of-" + a.hello.Client
		s.report.check(ctx, a.who(), "produce to a topic that is not there", func(ctx context.Context) error {
			records := []record{{Key: []byte("k"), Value: []byte("first"), Timestamp: time.Now().UnixMilli()}}
			if _, err := a.produce(ctx, topic, 0, cell{Codec: "none", Acks: -1}, records); err != nil {
				return err
			}
			got, err := a.read(ctx, topic, 0, 0, 1)
			if err != nil {
				return err
			}
			return differences(a.hello, a.hello, writable(a.hello, records), got)
		})
	}
	for _, a := range s.actors {
		if a.hello.Client == "kcat" {
			continue // has no request that names a config
		}
		s.report.check(ctx, a.who(), "create with a bad name is refused", func(ctx context.Context) error {
			err := a.create(ctx, "no/slash", 1, nil)
			return wantRefusal(err, invalidTopic, "InvalidTopic")
		})
		s.report.check(ctx, a.who(), "create of a topic that is there is refused", func(ctx context.Context) error {
			err := a.create(ctx, "limit-0-"+a.hello.Client, 1, nil)
			return wantRefusal(err, topicExists, "exist")
		})
		s.report.check(ctx, a.who(), "create with an unknown config is refused", func(ctx context.Context) error {
			err := a.create(ctx, "unknown-config", 1, map[string]string{"no.such": "1"})
			return wantRefusal(err, invalidConfig, "onfig")
		})
	}
}

// administration: each client's own admin requests, at the versions it speaks, change a topic and see the change.
func (s *suite) administration(ctx context.Context) {
	s.report.section("administration by clients")
	for _, a := range s.actors {
		topic := "administered-by-" + a.hello.Client
		if a.hello.Client == "kcat" || !s.createTopic(ctx, a, topic, 1, map[string]string{"retention.ms": "86400000"}) {
			continue
		}
		s.report.check(ctx, a.who(), "partitions, config, records, offsets", func(ctx context.Context) error {
			records, err := writeCorpus(ctx, a, topic, 0, cell{Codec: "none", Acks: -1})
			if err != nil {
				return err
			}
			want := described{Partitions: 4, Value: "123456789", Earliest: 7, Latest: int64(len(records))}
			if a.hello.lacks(lacksDeleteRecords) {
				want.Earliest = 0
			}
			return eventually(ctx, func() error {
				got, err := a.administer(ctx, topic, want.Partitions, "retention.ms", want.Value, 7)
				if err == nil && got != want {
					err = fmt.Errorf("it sees %+v, want %+v", got, want)
				}
				return err
			})
		})
	}
}

// wantRefusal is wantError for clients some of which wrap the code into an error of their own: then the words do.
func wantRefusal(err error, code int16, words string) error {
	var refused *clientError
	if errors.As(err, &refused) && refused.Code == nil && strings.Contains(refused.Message, words) {
		return nil
	}
	return wantError(err, code)
}

// bulk: many batches under way at once arrive once each and in order.
func (s *suite) bulk(ctx context.Context) {
	s.report.section("many batches under way")
	const count = 3000
	for _, writer := range s.actors {
		c := cell{Codec: "none", Acks: -1, Idempotent: writer.hello.Idempotent, BatchRecords: 100}
		topic := "bulk-" + writer.hello.Client
		if !s.createTopic(ctx, writer, topic, 1, nil) {
			continue
		}
		var records []record
		ok := s.report.check(ctx, writer.who(), fmt.Sprintf("produce %d records of 1 KB %v", count, c), func(ctx context.Context) error {
			now := time.Now().UnixMilli()
			records = make([]record, count)
			for i := range records {
				records[i] = record{
					Key: fmt.Appendf(nil, "key-%d", i), Value: bytes.Repeat(fmt.Appendf(nil, "%08d", i), 128), Timestamp: now + int64(i)/10, Offset: int64(i),
				}
			}
			records = writable(writer.hello, records)
			_, err := writer.produce(ctx, topic, 0, c, records)
			return err
		})
		if !ok {
			continue
		}
		readers := []*actor{writer}
		if java := javaOf(s.actors); java != nil && java != writer {
			readers = append(readers, java)
		}
		for _, reader := range readers {
			s.report.check(ctx, reader.who(), "read them of "+writer.hello.Client, func(ctx context.Context) error {
				got, err := reader.read(ctx, topic, 0, 0, count)
				if err != nil {
					return err
				}
				return differences(writer.hello, reader.hello, records, got)
			})
		}
	}
}
