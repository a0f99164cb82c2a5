package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/bench/peer"
	"github.com/troupe-broker/troupe/bench/report"
)

// manyLine is how long something took that was done to a cluster of many partitions.
type manyLine struct {
	Row        string        `json:"row"`
	Target     string        `json:"target"`
	What       string        `json:"what"`
	Trial      int           `json:"trial"`
	Partitions int           `json:"partitions"` // each with a replica on each broker
	Concerned  int           `json:"concerned"`  // of them, those that it was about
	Controller bool          `json:"controller"` // the broker that was killed had the office
	Took       time.Duration `json:"took_ns"`
}

// What is done to many partitions.
const (
	manyCreated  = "created, until all serve"
	manyFailover = "one broker killed, until all serve again"
	manyBack     = "the same broker started, until it is in sync with all"
	manyRestart  = "all brokers killed and started, until all serve"
)

// manyTopic is their topic.
const manyTopic = "many"

// manyAtOnce is how many partitions one request makes: Kafka's controller refuses ten thousand.
const manyAtOnce = 5000

// many makes a topic of many partitions, kills a broker again and again, and at last all of them.
func (b *bench) many(ctx context.Context, name string) error {
	t, err := b.startTrio(ctx, name, world{})
	if err != nil {
		return err
	}
	err = func() error {
		client, err := t.connect()
		if err != nil {
			return err
		}
		defer client.Close()
		line := manyLine{Row: rowMany, Target: name, What: manyCreated, Partitions: b.manyPartitions, Concerned: b.manyPartitions}
		begin := time.Now()
		if err := t.createTopic(ctx, manyTopic, min(b.manyPartitions, manyAtOnce), 0, b.failoverClass); err != nil {
			return err
		}
		for have := manyAtOnce; have < b.manyPartitions; have += manyAtOnce {
			if err := t.grow(ctx, client, min(have+manyAtOnce, b.manyPartitions)); err != nil {
				return err
			}
		}
		if _, err := t.awaitWhole(ctx, manyTopic); err != nil {
			return err
		}
		line.Took = time.Since(begin) - 2*wholeFor
		if err := b.addMany(line); err != nil {
			return err
		}
		for n := range b.manyTrials {
			if err := b.loseOne(ctx, t, client, n); err != nil {
				return fmt.Errorf("trial %d: %w", n, err)
			}
		}
		if err := t.Kill(); err != nil {
			return err
		}
		line.What = manyRestart
		begin = time.Now()
		if err := t.Start(ctx); err != nil {
			return err
		}
		if err := t.awaitServing(ctx, client, b.manyPartitions, t.Nodes); err != nil {
			return err
		}
		line.Took = time.Since(begin)
		return b.addMany(line)
	}()
	if err := errors.Join(err, t.stop()); err != nil {
		return fmt.Errorf("%s, %d partitions: %w", name, b.manyPartitions, err)
	}
	return nil
}

func (b *bench) addMany(line manyLine) error {
	fmt.Printf("  %-8s %5d partitions: %-60s %9.1f ms (%d of them, trial %d, controller %v)\n", line.Target, line.Partitions, line.What, ms(line.Took), line.Concerned,
		line.Trial, line.Controller)
	return b.raw.add(line)
}

// loseOne kills the broker that leads most, waits for the others to serve all, and brings it back.
func (b *bench) loseOne(ctx context.Context, t *trio, client *kgo.Client, n int) error {
	if err := t.electPreferred(ctx, client); err != nil {
		return err
	}
	controller, err := t.awaitWhole(ctx, manyTopic)
	if err != nil {
		return err
	}
	led, err := t.leaders(ctx, client)
	if err != nil {
		return err
	}
	victim := t.Nodes[n%len(t.Nodes)]
	line := manyLine{
		Row: rowMany, Target: t.name, What: manyFailover, Trial: n, Partitions: b.manyPartitions, Concerned: led[victim.ID], Controller: victim.ID == controller,
	}
	begin := time.Now()
	if err := victim.Kill(); err != nil {
		return err
	}
	others := slices.DeleteFunc(slices.Clone(t.Nodes), func(o *peer.Node) bool { return o == victim })
	if err := t.awaitServing(ctx, client, b.manyPartitions, others); err != nil {
		return err
	}
	line.Took = time.Since(begin)
	if err := b.addMany(line); err != nil {
		return err
	}
	line.What, line.Concerned = manyBack, b.manyPartitions
	begin = time.Now()
	if err := victim.Start(ctx); err != nil {
		return err
	}
	if _, err := t.awaitWhole(ctx, manyTopic); err != nil {
		return err
	}
	line.Took = time.Since(begin) - wholeFor
	return b.addMany(line)
}

// awaitServing asks the brokers for the end of every partition, until each of these has been answered by one that leads it.
func (t *trio) awaitServing(ctx context.Context, client *kgo.Client, partitions int, brokers []*peer.Node) error {
	ctx, cancel := context.WithTimeout(ctx, wholeMax)
	defer cancel()
	left := make([]int32, partitions)
	for i := range left {
		left[i] = int32(i)
	}
	var last error
	for {
		for _, n := range brokers {
			served, err := t.askEnds(ctx, client, n.ID, left)
			if err != nil {
				last = fmt.Errorf("broker %d: %w", n.ID, err)
				continue
			}
			left = slices.DeleteFunc(left, func(p int32) bool { return served[p] })
			if len(left) == 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %d partitions do not serve after %v: %w", t.name, len(left), wholeMax, errors.Join(last, ctx.Err()))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// askEnds asks one broker for the ends of partitions, and returns those that it leads and serves.
func (t *trio) askEnds(ctx context.Context, client *kgo.Client, broker int32, partitions []int32) (map[int32]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req := kmsg.NewPtrListOffsetsRequest()
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = manyTopic
	for _, number := range partitions {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp, p.CurrentLeaderEpoch = number, -1, -1
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	answer, err := client.Broker(int(broker)).Request(ctx, req)
	if err != nil {
		return nil, err
	}
	served := make(map[int32]bool)
	for _, topic := range answer.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range topic.Partitions {
			if p.ErrorCode == 0 {
				served[p.Partition] = true
			}
		}
	}
	return served, nil
}

// leaders counts what each broker leads.
func (t *trio) leaders(ctx context.Context, client *kgo.Client) (map[int32]int, error) {
	m := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = new(manyTopic)
	m.Topics = append(m.Topics, topic)
	answer, err := m.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	led := make(map[int32]int)
	for _, topic := range answer.Topics {
		if err := kerr.ErrorForCode(topic.ErrorCode); err != nil {
			return nil, err
		}
		for _, p := range topic.Partitions {
			led[p.Leader]++
		}
	}
	return led, nil
}

// grow gives the topic more partitions.
func (t *trio) grow(ctx context.Context, client *kgo.Client, partitions int) error {
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = 60_000
	topic := kmsg.NewCreatePartitionsRequestTopic()
	topic.Topic, topic.Count = manyTopic, int32(partitions)
	req.Topics = append(req.Topics, topic)
	answer, err := req.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(answer.Topics[0].ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("%s: %d partitions: %w", t.name, partitions, err)
	}
	return nil
}

// electPreferred gives each partition back to its first replica, so that each broker leads a third again.
func (t *trio) electPreferred(ctx context.Context, client *kgo.Client) error {
	req := kmsg.NewPtrElectLeadersRequest()
	req.TimeoutMillis = 60_000
	answer, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil && !errors.Is(err, kerr.ElectionNotNeeded) {
		return fmt.Errorf("elect the preferred leaders: %w", err)
	}
	return nil
}

func (r *rawLog) manyTable() [][]string {
	rows := [][]string{{"many partitions, ms", "class", "target", "partitions", "trials", "p50", "max", "wanted", ""}}
	for _, what := range []string{manyCreated, manyFailover, manyBack, manyRestart} {
		for _, target := range []string{nameTroupe, nameKafka} {
			var took []time.Duration
			partitions := 0
			for _, l := range r.manyLines {
				if l.What == what && l.Target == target {
					took, partitions = append(took, l.Took), l.Partitions
				}
			}
			if len(took) == 0 {
				continue
			}
			row := []string{what, string(report.Synced), target, fmt.Sprint(partitions), fmt.Sprint(len(took)), whole(quantile(took, 0.5)), whole(quantile(took, 1)), "", ""}
			if what == manyFailover && target == nameTroupe {
				row[7], row[8] = "≤ "+whole(manyWanted), verdict(quantile(took, 1) <= manyWanted)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// manyWanted is what a third of ten thousand partitions may take to be led by others.
const manyWanted = 2 * time.Second
