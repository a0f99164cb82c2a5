package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/bench/chaos/check"
)

// newReader makes a client that reads all places from their start; it begins nowhere else, whatever happens.
func newReader(addrs []string, name string, places []place) (*kgo.Client, error) {
	from := map[string]map[int32]kgo.Offset{}
	for _, p := range places {
		if from[p.topic] == nil {
			from[p.topic] = map[int32]kgo.Offset{}
		}
		from[p.topic][p.partition] = kgo.NewOffset().At(0)
	}
	return kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ClientID(name), kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.ConsumePartitions(from),
		kgo.FetchMaxWait(100*time.Millisecond), kgo.RequestTimeoutOverhead(2*time.Second), kgo.DialTimeout(2*time.Second), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }))
}

// read follows all places until ctx ends, as a reader that belongs to no group.
func read(ctx context.Context, rec *recorder, addrs []string, name string, places []place) error {
	client, err := newReader(addrs, name, places)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, p := range places {
		now := rec.now()
		rec.write(check.Event{Kind: check.Assign, Worker: name, TP: p.String(), T0: now, T1: now})
	}
	stuck := map[place]bool{}
	for ctx.Err() == nil {
		t0 := rec.now()
		fetches := client.PollFetches(ctx)
		writePolls(rec, fetches, t0, name, "")
		failed := fetches.Errors()
		for _, e := range failed {
			if p := (place{e.Topic, e.Partition}); final(e.Err) && !stuck[p] { // once is enough to be told
				stuck[p] = true
				rec.fatal(name, p.String(), "the reader cannot go on: "+e.Err.Error())
			}
		}
		if len(failed) > 0 {
			wait(ctx, 100*time.Millisecond)
		}
	}
	return nil
}

// final tells whether an error says that a reader has come to its end: a broker's word that is no passing state, or a log that became shorter. What concerns a
// connection passes; franz-go takes one that a kill closed at once for a want of SASL.
func final(err error) bool {
	code, loss := (*kerr.Error)(nil), (*kgo.ErrDataLoss)(nil)
	return errors.As(err, &loss) || errors.As(err, &code) && !code.Retriable
}

// writePolls writes what a client was given, one event per partition.
func writePolls(rec *recorder, fetches kgo.Fetches, t0 int64, name, group string) {
	t1 := rec.now()
	fetches.EachPartition(func(f kgo.FetchTopicPartition) {
		if len(f.Records) == 0 {
			return
		}
		tp := place{f.Topic, f.Partition}.String()
		e := check.Event{Kind: check.Poll, Worker: name, Group: group, TP: tp, T0: t0, T1: t1, Records: make([]check.Record, len(f.Records))}
		for i, r := range f.Records {
			e.Records[i] = recognise(r.Value, tp, r.Offset)
		}
		rec.write(e)
	})
}

// readAll reads every place from its start to the end that it has when this begins, and writes what the log is. Where bits were turned (rotten), somebody may be
// given damage before it is found; it asks again, and how often is told.
func readAll(ctx context.Context, rec *recorder, addrs []string, places []place, rotten bool) (damaged int, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := newReader(addrs, "final", places)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	topics := map[string]bool{}
	for _, p := range places {
		topics[p.topic] = true
	}
	open := map[place]int64{}
	for topic := range topics {
		ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
		if err = errors.Join(err, ends.Error()); err != nil {
			return 0, fmt.Errorf("list the ends of the logs: %w", err)
		}
		ends.Each(func(o kadm.ListedOffset) { open[place{o.Topic, o.Partition}] = o.Offset })
	}
	for _, p := range places {
		if end, known := open[p]; !known {
			return 0, fmt.Errorf("nobody says where %v ends", p)
		} else if end == 0 {
			delete(open, p)
		}
		rec.write(check.Event{Kind: check.Final, Worker: "final", TP: p.String(), T0: rec.now(), T1: rec.now()})
	}
	for len(open) > 0 {
		t0 := rec.now()
		fetches := client.PollFetches(ctx)
		for _, e := range fetches.Errors() {
			if rotten && ctx.Err() == nil {
				damaged++
				wait(ctx, 50*time.Millisecond)
				continue
			}
			return damaged, fmt.Errorf("read %s-%d, %d partitions are left: %w", e.Topic, e.Partition, len(open), e.Err)
		}
		fetches.EachPartition(func(f kgo.FetchTopicPartition) {
			p := place{f.Topic, f.Partition}
			e := check.Event{Kind: check.Final, Worker: "final", TP: p.String(), T0: t0, T1: rec.now()}
			for _, r := range f.Records {
				if end, reading := open[p]; reading && r.Offset < end {
					e.Records = append(e.Records, recognise(r.Value, e.TP, r.Offset))
					if r.Offset+1 == end {
						delete(open, p)
					}
				}
			}
			rec.write(e)
		})
	}
	return damaged, nil
}
