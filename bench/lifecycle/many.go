package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/troupe-broker/troupe/bench/peer"
)

const (
	manyTopic = "many"
	// manyStarts is how often a broker with many partitions is started after kill -9.
	manyStarts = 5
	// manyRest is how long it rests before its memory is read: it gives memory back at the second of two looks at which it was quiet.
	manyRest = 45 * time.Second
)

// manyPartitions: a broker with thousands of partitions that hold a record each, from exec until all of them answer, and at rest.
func (o options) manyPartitions(ctx context.Context, t trials) error {
	if o.many == 0 {
		return nil
	}
	dir := filepath.Join(o.work, "many")
	b, err := o.start(dir)
	if err != nil {
		return err
	}
	if err := peer.AwaitReady(ctx, b.Process, b.addr, 10*time.Second); err != nil {
		return errors.Join(err, b.Kill())
	}
	empty, err := b.Usage()
	if err != nil {
		return errors.Join(err, b.Kill())
	}
	start := time.Now()
	if err := b.createTopic(ctx, manyTopic, o.many, nil); err != nil {
		return errors.Join(err, b.Kill())
	}
	if err := b.awaitEnds(ctx, o.many); err != nil {
		return errors.Join(err, b.Kill())
	}
	if err := t.add(fmt.Sprintf("%d partitions: created, all answer, ms", o.many), ms(time.Since(start))); err != nil {
		return errors.Join(err, b.Kill())
	}
	if err := b.writeToEach(ctx, o.many); err != nil {
		return errors.Join(err, b.Kill())
	}
	var took []float64
	for range manyStarts {
		if err := b.Kill(); err != nil {
			return err
		}
		if b, err = o.start(dir); err != nil {
			return err
		}
		if err := b.awaitEnds(ctx, o.many); err != nil {
			return errors.Join(err, b.Kill())
		}
		took = append(took, ms(time.Since(b.started)))
	}
	time.Sleep(manyRest)
	full, err := b.Usage()
	if err != nil {
		return errors.Join(err, b.Kill())
	}
	start = time.Now()
	if err := b.stop(); err != nil {
		return err
	}
	stopped := ms(time.Since(start))
	if b, err = o.start(dir); err != nil {
		return err
	}
	if err := b.awaitEnds(ctx, o.many); err != nil {
		return errors.Join(err, b.Kill())
	}
	clean := ms(time.Since(b.started))
	what := func(s string) string { return fmt.Sprintf("%d partitions: %s", o.many, s) }
	return errors.Join(
		t.add(what("kill -9, exec until all answer, each ms"), took),
		t.add(what("kill -9, exec until all answer, median ms"), median(took)),
		t.add(what("idle, RssAnon KiB a partition"), float64(full.RssAnonBytes-empty.RssAnonBytes)/1024/float64(o.many)),
		t.add(what("clean stop, ms"), stopped),
		t.add(what("after it, exec until all answer, ms"), clean),
		b.Kill(),
	)
}

// writeToEach appends a record to every partition.
func (b broker) writeToEach(ctx context.Context, partitions int) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer c.Close()
	records := make([]*kgo.Record, partitions)
	for p := range records {
		records[p] = &kgo.Record{Topic: manyTopic, Partition: int32(p), Value: []byte("one")}
	}
	return c.ProduceSync(ctx, records...).FirstErr()
}

// awaitEnds waits until every partition has told its end.
func (b broker) awaitEnds(ctx context.Context, partitions int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		told, err := b.ends(ctx)
		if err == nil && told == partitions {
			return nil
		}
		select {
		case <-b.Exited():
			return b.Err()
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%d of %d partitions answer", told, partitions), err, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// ends counts the partitions that tell their end.
func (b broker) ends(ctx context.Context) (told int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := peer.AwaitReady(ctx, b.Process, b.addr, 5*time.Second); err != nil {
		return 0, err
	}
	c, admin, err := b.admin()
	if err != nil {
		return 0, err
	}
	defer c.Close()
	ends, err := admin.ListEndOffsets(ctx, manyTopic)
	for _, end := range ends[manyTopic] {
		if end.Err == nil {
			told++
		}
	}
	return told, err
}
