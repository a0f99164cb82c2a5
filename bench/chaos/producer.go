package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/bench/chaos/check"
)

// load is what producers write: who, where to, how fast.
type load struct {
	addrs  []string
	places []place
	size   int // of a filling, bytes
	rate   float64
}

// place is a partition.
type place struct {
	topic     string
	partition int32
}

func (p place) String() string { return fmt.Sprintf("%s-%d", p.topic, p.partition) }

// produce writes with franz-go, idempotently and with acks=all, until ctx ends; then it waits until all is settled. The partitions take turns: a short
// burst goes to one, so that batches have several records.
func (l load) produce(ctx context.Context, rec *recorder, home, name string) (err error) {
	const deliver = 2 * time.Minute
	log, err := os.Create(filepath.Join(home, name+".log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(l.addrs...), kgo.ClientID(name), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(5*time.Millisecond), kgo.RecordDeliveryTimeout(deliver), kgo.MaxBufferedRecords(1_000_000),
		kgo.ProduceRequestTimeout(5*time.Second), kgo.RequestTimeoutOverhead(time.Second), kgo.DialTimeout(2*time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.WithLogger(kgo.BasicLogger(log, kgo.LogLevelInfo, func() string { return fmt.Sprintf("%9.3f ", float64(rec.now())/1e6) })),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	numbers := make([]int64, len(l.places))
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	began, sent := time.Now(), 0
	for turn := 0; ctx.Err() == nil; turn++ {
		at := turn % len(l.places)
		for owed := min(int(time.Since(began).Seconds()*l.rate)-sent, 500); owed > 0; owed-- {
			l.send(ctx, client, rec, name, l.places[at], numbers[at])
			numbers[at]++
			sent++
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
		}
	}
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliver+10*time.Second)
	defer cancel()
	if err := client.Flush(flush); err != nil {
		rec.fatal(name, "", "records were never settled: "+err.Error())
	}
	return nil
}

func (l load) send(ctx context.Context, client *kgo.Client, rec *recorder, name string, p place, n int64) {
	v := value(name, p.String(), n, l.size)
	e := check.Event{Kind: check.Send, Worker: name, TP: p.String(), Number: n, CRC: crc32.ChecksumIEEE(v), T0: rec.now()}
	record := &kgo.Record{Topic: p.topic, Partition: p.partition, Key: []byte(name), Value: v}
	client.Produce(context.WithoutCancel(ctx), record, func(r *kgo.Record, err error) {
		e.T1, e.Outcome, e.Offset = rec.now(), check.OK, r.Offset
		if err != nil { // an earlier attempt may have been taken: nobody knows
			e.Outcome, e.Offset, e.Text = check.Info, -1, err.Error()
		}
		if loss := (*kgo.ErrDataLoss)(nil); errors.As(err, &loss) {
			rec.fatal(name, e.TP, "the client speaks of lost data: "+err.Error())
		}
		rec.write(e)
	})
}
