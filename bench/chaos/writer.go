package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Place is a partition.
type Place struct {
	Topic     string
	Partition int32
}

// Writer sends numbered records to one partition, idempotently and with acks=all, and remembers the offset of every one
// that was acknowledged.
type Writer struct {
	Name  string
	Place Place
	Pause time.Duration // between two records

	mu     sync.Mutex
	acked  []int64 // offset of record n, or unknown
	failed error
}

const unknown = -1

// Value is the value of record n: its name, its number, and a filling of a size that changes with the number.
func (w *Writer) Value(n int) []byte {
	head := fmt.Sprintf("%s/%d/", w.Name, n)
	return append([]byte(head), bytes.Repeat([]byte{byte('a' + n%26)}, (n*37)%1500)...)
}

// parseValue reads writer and number of a record's value.
func parseValue(value []byte) (name string, n int, err error) {
	parts := bytes.SplitN(value, []byte("/"), 3)
	if len(parts) != 3 {
		return "", 0, fmt.Errorf("no writer wrote %.60q", value)
	}
	n, err = strconv.Atoi(string(parts[1]))
	return string(parts[0]), n, err
}

// Run writes until ctx ends, then waits until all that was sent is acknowledged. A record that cannot be delivered is an
// error: the broker comes back soon, and the client tries for long.
func (w *Writer) Run(ctx context.Context, addr string) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(addr, ",")...),
		kgo.ClientID(w.Name),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(time.Millisecond),
		kgo.ProducerBatchMaxBytes(64<<10),
		kgo.RecordDeliveryTimeout(2*time.Minute),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.MetadataMinAge(50*time.Millisecond),
		kgo.DialTimeout(2*time.Second),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	pace := time.NewTicker(w.Pause)
	defer pace.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		w.mu.Lock()
		w.acked = append(w.acked, unknown)
		w.mu.Unlock()
		record := &kgo.Record{Topic: w.Place.Topic, Partition: w.Place.Partition, Key: []byte(w.Name), Value: w.Value(n)}
		client.Produce(context.WithoutCancel(ctx), record, func(r *kgo.Record, err error) { w.settle(n, r, err) })
		select {
		case <-pace.C:
		case <-ctx.Done():
		}
	}
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	err = client.Flush(flush)
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(err, w.failed)
}

// Acked copies what is acknowledged now: by number, the offset, or unknown.
func (w *Writer) Acked() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]int64(nil), w.acked...)
}

func (w *Writer) settle(n int, r *kgo.Record, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.acked[n] = r.Offset
	case w.failed == nil:
		w.failed = fmt.Errorf("%s: record %d was not delivered: %w", w.Name, n, err)
	}
}
