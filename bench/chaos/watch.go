package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/bench/chaos/check"
)

type partitionState struct {
	topic         [16]byte // its id
	leader, epoch int32
	replicas, isr []int32
}

func (s partitionState) String() string {
	return fmt.Sprintf("leader %d, epoch %d, ISR %v", s.leader, s.epoch, s.isr)
}

// askMetadata asks any broker, and not the client's cache.
func askMetadata(ctx context.Context, client *kgo.Client, topics []string) (map[place]partitionState, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, t := range topics {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &t
		req.Topics = append(req.Topics, topic)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	m := map[place]partitionState{}
	for _, t := range resp.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return nil, err
		}
		for _, p := range t.Partitions {
			m[place{*t.Topic, p.Partition}] = partitionState{t.TopicID, p.Leader, p.LeaderEpoch, p.Replicas, p.ISR}
		}
	}
	return m, nil
}

// askController asks who has the controller; metadata names any broker, as Kafka's does.
func askController(ctx context.Context, client *kgo.Client) (int32, error) {
	req := kmsg.NewPtrDescribeQuorumRequest()
	topic := kmsg.NewDescribeQuorumRequestTopic()
	topic.Topic = "__cluster_metadata"
	topic.Partitions = append(topic.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return -1, err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return -1, err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			return p.LeaderID, kerr.ErrorForCode(p.ErrorCode)
		}
	}
	return -1, errors.New("nobody knows of a metadata log")
}

// watcher follows metadata, and what groups have committed, as a client sees them.
type watcher struct {
	client *kgo.Client
	rec    *recorder
	topics []string
	groups []string

	mu         sync.Mutex
	last       map[place]partitionState
	controller int32 // 0: nobody has said yet
	committed  map[string]map[place]int64
}

// run asks several times a second until ctx ends. A question that nobody answers soon is given up.
func (w *watcher) run(ctx context.Context) error {
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	for turn := 0; ; turn++ {
		select {
		case <-ctx.Done():
			return nil
		case <-pace.C:
		}
		w.look(ctx)
		if turn%5 == 0 {
			w.lookForController(ctx)
			w.lookForEnds(ctx)
			for _, g := range w.groups {
				w.fetch(ctx, g)
			}
		}
	}
}

func (w *watcher) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	t0 := w.rec.now()
	m, err := askMetadata(ctx, w.client, w.topics)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for p, now := range m {
		before, known := w.last[p]
		if known && now.epoch < before.epoch { // of a broker that has not heard of it yet
			m[p] = before
			continue
		}
		if text := now.String(); text != before.String() {
			w.rec.write(check.Event{Kind: check.Leader, TP: p.String(), T0: t0, T1: w.rec.now(), Broker: now.leader, Epoch: now.epoch, Text: text})
		}
	}
	w.last = m
}

func (w *watcher) lookForController(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	t0 := w.rec.now()
	id, err := askController(ctx, w.client)
	if err != nil || id < 1 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if id != w.controller {
		w.rec.write(check.Event{Kind: check.Leader, T0: t0, T1: w.rec.now(), Broker: id, Text: fmt.Sprintf("controller %d", id)})
	}
	w.controller = id
}

// lookForEnds asks the leaders where their partitions end. Those that do not answer are left out.
func (w *watcher) lookForEnds(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	t0 := w.rec.now()
	ends, err := kadm.NewClient(w.client).ListEndOffsets(ctx, w.topics...)
	if err != nil && !errors.As(err, new(*kadm.ShardErrors)) {
		return
	}
	t1 := w.rec.now()
	ends.Each(func(o kadm.ListedOffset) {
		if o.Err == nil && o.Offset >= 0 {
			w.rec.write(check.Event{Kind: check.Ends, Worker: "watcher", TP: place{o.Topic, o.Partition}.String(), T0: t0, T1: t1, Offset: o.Offset, Outcome: check.OK})
		}
	})
}

// state is what was heard last: of each partition, and who has the controller.
func (w *watcher) state() (map[place]partitionState, int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.last), w.controller
}

func (w *watcher) fetch(ctx context.Context, group string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	t0 := w.rec.now()
	offsets, err := kadm.NewClient(w.client).FetchOffsets(ctx, group)
	if err = errors.Join(err, offsets.Error()); err != nil {
		return
	}
	t1 := w.rec.now()
	told := map[place]int64{}
	offsets.Each(func(o kadm.OffsetResponse) {
		p := place{o.Topic, o.Partition}
		told[p] = o.At
		w.rec.write(check.Event{Kind: check.Fetched, Worker: "watcher", Group: group, TP: p.String(), T0: t0, T1: t1, Offset: o.At, Outcome: check.OK})
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.committed == nil {
		w.committed = map[string]map[place]int64{}
	}
	w.committed[group] = told
}

// behind tells of a group that has not committed up to the ends; "": all have.
func (w *watcher) behind(ends map[place]int64) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.groups {
		for p, end := range ends {
			if at := w.committed[g][p]; at < end {
				return fmt.Sprintf("group %s has committed %d of %v, which ends at %d", g, at, p, end)
			}
		}
	}
	return ""
}
