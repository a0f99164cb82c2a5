package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// observer is the suite's own client: it makes the stories' topics, writes their records, and sees what groups commit.
type observer struct {
	client *kgo.Client
	admin  *kadm.Client
}

// newObserver makes one. addrs are the brokers by which it finds the cluster, separated by commas.
func newObserver(addrs string) (*observer, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(addrs, ",")...), kgo.ClientID("interop-suite"), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.MetadataMinAge(50*time.Millisecond),
	)
	if err != nil {
		return nil, err
	}
	return &observer{client: client, admin: kadm.NewClient(client)}, nil
}

func (o *observer) close() { o.client.Close() }

// create makes a topic and waits until the broker knows it.
func (o *observer) create(ctx context.Context, topic string, partitions int) error {
	if _, err := o.admin.CreateTopic(ctx, int32(partitions), 1, nil, topic); err != nil {
		return err
	}
	return eventually(ctx, func() error {
		ends, err := o.admin.ListEndOffsets(ctx, topic)
		return errors.Join(err, ends.Error())
	})
}

// produce writes count records to each partition.
func (o *observer) produce(ctx context.Context, partitions []topicPartition, count int) error {
	var records []*kgo.Record
	for _, tp := range partitions {
		for i := range count {
			records = append(records, &kgo.Record{Topic: tp.topic, Partition: tp.partition, Value: fmt.Appendf(nil, "%v %d", tp, i)})
		}
	}
	return o.client.ProduceSync(ctx, records...).FirstErr()
}

// ends lists where the partitions of topics end.
func (o *observer) ends(ctx context.Context, topics []string) (map[topicPartition]int64, error) {
	listed, err := o.admin.ListEndOffsets(ctx, topics...)
	if err := errors.Join(err, listed.Error()); err != nil {
		return nil, err
	}
	ends := map[topicPartition]int64{}
	listed.Each(func(l kadm.ListedOffset) { ends[topicPartition{l.Topic, l.Partition}] = l.Offset })
	return ends, nil
}

// describe tells the state of a group, for an error.
func (o *observer) describe(ctx context.Context, group string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	listed, err := o.admin.ListGroups(ctx)
	if err != nil {
		return err.Error()
	}
	g, ok := listed[group]
	if !ok {
		return "not listed"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s, of type %s", g.State, g.GroupType)
	if described, err := o.admin.DescribeGroups(ctx, group); err == nil {
		for _, m := range described[group].Members {
			assigned, _ := m.Assigned.AsConsumer()
			fmt.Fprintf(&text, "\n  %s has %v", m.MemberID, assigned)
		}
	}
	if described, err := o.admin.DescribeConsumerGroups(ctx, group); err == nil && described[group].Err == nil {
		for _, m := range described[group].Members {
			fmt.Fprintf(&text, "\n  %s epoch %d has %v, shall have %v", m.MemberID, m.MemberEpoch, m.Assignment, m.TargetAssignment)
		}
	}
	return text.String()
}

// flow writes a record to each partition of a story every few milliseconds until it is stopped.
type flow struct {
	mu      sync.Mutex
	written map[topicPartition]int64 // the ends
	err     error

	cancel context.CancelFunc
	done   chan struct{}
}

const flowInterval = 40 * time.Millisecond

func (o *observer) flow(ctx context.Context, partitions []topicPartition) *flow {
	ctx, cancel := context.WithCancel(ctx)
	f := &flow{written: map[topicPartition]int64{}, cancel: cancel, done: make(chan struct{})}
	round := func() error {
		records := make([]*kgo.Record, len(partitions))
		for i, tp := range partitions {
			records[i] = &kgo.Record{Topic: tp.topic, Partition: tp.partition, Value: []byte(tp.String())}
		}
		// What is under way when the story stops it is finished, so that the ends are known.
		err := o.client.ProduceSync(context.WithoutCancel(ctx), records...).FirstErr()
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, r := range records {
			f.written[topicPartition{r.Topic, r.Partition}] = r.Offset + 1
		}
		f.err = err
		return err
	}
	err := round() // every partition has an end from the beginning
	go func() {
		defer close(f.done)
		beat := time.NewTicker(flowInterval)
		defer beat.Stop()
		for ; err == nil; err = round() {
			select {
			case <-beat.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return f
}

// ends is how far the partitions are written now.
func (f *flow) ends() map[topicPartition]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.written)
}

// end ends the flow.
func (f *flow) end() {
	f.cancel()
	<-f.done
}

// stop ends the flow and gives the ends of all partitions.
func (f *flow) stop() (map[topicPartition]int64, error) {
	f.end()
	return f.ends(), f.err
}

// watch asks again and again what a group has committed, and notes where that falls.
type watch struct {
	mu   sync.Mutex
	last map[topicPartition]int64
	seen map[topicPartition][]event // each rise; read after stop
	err  error

	cancel context.CancelFunc
	done   chan struct{}
}

const watchInterval = 100 * time.Millisecond

func (o *observer) watch(ctx context.Context, group string, mayFall bool) *watch {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{last: map[topicPartition]int64{}, seen: map[topicPartition][]event{}, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		beat := time.NewTicker(watchInterval)
		defer beat.Stop()
		for {
			offsets, err := o.admin.FetchOffsets(ctx, group)
			if ctx.Err() != nil {
				return
			}
			w.mu.Lock()
			if err != nil {
				w.err = errors.Join(w.err, fmt.Errorf("fetching what %s has committed: %w", group, err))
			}
			at := time.Now().UnixMilli()
			offsets.Each(func(r kadm.OffsetResponse) {
				tp := topicPartition{r.Topic, r.Partition}
				before, ok := w.last[tp]
				if ok && r.At < before && !mayFall {
					w.err = errors.Join(w.err, fmt.Errorf("what %s has committed of %v fell from %d to %d", group, tp, before, r.At))
				}
				if !ok || r.At != before {
					w.last[tp] = r.At
					w.seen[tp] = append(w.seen[tp], event{kind: "committed", at: at, tp: tp, offset: r.At})
				}
			})
			failed := w.err != nil
			w.mu.Unlock()
			if failed {
				return
			}
			select {
			case <-beat.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return w
}

// committed is what was last seen committed of a partition, -1 without a commit.
func (w *watch) committed(tp topicPartition) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, ok := w.last[tp]; ok {
		return c
	}
	return -1
}

// end ends the watch.
func (w *watch) end() {
	w.cancel()
	<-w.done
}

// stop ends the watch; its error is what must not have been.
func (w *watch) stop() error {
	w.end()
	return w.err
}
