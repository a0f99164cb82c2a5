package broker_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/peer"
)

// move asks this broker to move a partition; nil takes a move back.
func (r *running) move(topic string, partition int32, to []int32) wire.ErrorCode {
	r.t.Helper()
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.TimeoutMillis = 20_000
	req.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{
		Topic: topic, Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Partition: partition, Replicas: to}},
	}}
	resp := ask[*kmsg.AlterPartitionAssignmentsResponse](r, req)
	if resp.ErrorCode != 0 {
		return wire.ErrorCode(resp.ErrorCode)
	}
	return wire.ErrorCode(resp.Topics[0].Partitions[0].ErrorCode)
}

// moving is what this broker tells of a partition that is being moved; nil: it is not.
func (r *running) moving(topic string, partition int32) *kmsg.ListPartitionReassignmentsResponseTopicPartition {
	r.t.Helper()
	req := kmsg.NewPtrListPartitionReassignmentsRequest()
	req.Topics = []kmsg.ListPartitionReassignmentsRequestTopic{{Topic: topic, Partitions: []int32{partition}}}
	resp := ask[*kmsg.ListPartitionReassignmentsResponse](r, req)
	if len(resp.Topics) == 0 {
		return nil
	}
	return &resp.Topics[0].Partitions[0]
}

// placed makes a topic of one partition with these replicas.
func (c *replicas) placed(topic string, on ...int32) {
	c.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 20_000
	nt := kmsg.NewCreateTopicsRequestTopic()
	nt.Topic, nt.NumPartitions, nt.ReplicationFactor = topic, -1, -1
	nt.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Replicas: on}}
	req.Topics = append(req.Topics, nt)
	if resp := ask[*kmsg.CreateTopicsResponse](c.running[0], req); resp.Topics[0].ErrorCode != 0 {
		c.t.Fatalf("%+v", resp.Topics[0])
	}
}

// files tells whether a broker keeps anything of a replica.
func (c *replicas) files(i int, replica string) bool {
	c.t.Helper()
	found, err := filepath.Glob(filepath.Join(c.dirs[i], replica+"*"))
	if err != nil {
		c.t.Fatal(err)
	}
	return len(found) > 0
}

// load writes numbered records with acks=all until it is told to end, and then tells how many were acknowledged; none may fail.
func (c *replicas) load(topic string) (end func() int) {
	c.t.Helper()
	cl := c.client(kgo.DefaultProduceTopic(topic))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			if err := cl.ProduceSync(within(c.t, 30*time.Second), kgo.StringRecord(fmt.Sprint(n))).FirstErr(); err != nil {
				c.t.Errorf("record %d: %v", n, err)
				break
			}
		}
		done <- n
	}()
	return func() int {
		cancel()
		return <-done
	}
}

// reads wants exactly the numbered records of a load, in order.
func (c *replicas) reads(topic string, count int) {
	c.t.Helper()
	cl := c.client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, next := within(c.t, 30*time.Second), 0
	for next < count {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			c.t.Fatalf("after %d of %d records: %v", next, count, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if string(r.Value) != fmt.Sprint(next) {
				c.t.Fatalf("record %s where %d belongs", r.Value, next)
			}
			next++
		})
	}
}

func TestAPartitionMovesUnderLoad(t *testing.T) {
	t.Parallel()
	c := startReplicas(t, "min.insync.replicas=2")
	c.placed("t", 1, 2)
	end := c.load("t")
	// There and back: each time the leader is the one that goes, and another broker is asked.
	for i, to := range [][]int32{{3, 2}, {1, 3}, {2, 1}} {
		asked := c.running[i]
		if code := asked.move("t", 0, to); code != 0 {
			t.Fatalf("the move to %v: %v", to, code)
		}
		awaitFact(t, fmt.Sprintf("the partition to be on %v", to), func() bool {
			p := asked.metadata("t").Topics[0].Partitions[0]
			return asked.moving("t", 0) == nil && slices.Equal(p.Replicas, to) && len(p.ISR) == 2 && slices.Contains(to, p.Leader)
		})
		gone := int(6 - to[0] - to[1])
		awaitFact(t, "the files of the old replica to be deleted", func() bool { return !c.files(gone-1, "t-0") })
	}
	count := end()
	c.reads("t", count)
	// What is on the disks of those who hold it now survives both.
	c.stop(1)
	c.again(1)
	c.reads("t", count)
}

func TestAMoveToABrokerThatIsDownWaitsAndCanBeTakenBack(t *testing.T) {
	t.Parallel()
	c := startReplicas(t)
	c.placed("t", 1, 2)
	end := c.load("t")
	first := c.running[0]
	if code := first.move("t", 0, nil); code != wire.NoReassignmentInProgress {
		t.Errorf("taking back what was not begun: %v", code)
	}
	c.stop(2)
	for _, bad := range [][]int32{{}, {1, 1}, {9}} {
		if code := first.move("t", 0, bad); code != wire.InvalidReplicaAssignment {
			t.Errorf("a move to %v: %v", bad, code)
		}
	}
	if code := first.move("none", 0, []int32{1}); code != wire.UnknownTopicOrPartition {
		t.Errorf("a move of nothing: %v", code)
	}
	if code := first.move("t", 0, []int32{3, 2}); code != 0 {
		t.Fatalf("the move: %v", code)
	}
	m := first.moving("t", 0)
	if m == nil || !slices.Equal(m.Replicas, []int32{3, 2, 1}) || !slices.Equal(m.AddingReplicas, []int32{3}) || !slices.Equal(m.RemovingReplicas, []int32{1}) {
		t.Fatalf("the move is listed as %+v", m)
	}
	if p := first.metadata("t").Topics[0].Partitions[0]; !slices.Equal(p.Replicas, []int32{3, 2, 1}) || p.Leader != 1 {
		t.Errorf("metadata tell of %+v", p)
	}
	c.counts("reassigningpartitions", 1)
	if code := first.move("t", 0, nil); code != 0 {
		t.Fatalf("taking it back: %v", code)
	}
	if p := first.metadata("t").Topics[0].Partitions[0]; first.moving("t", 0) != nil || !slices.Equal(p.Replicas, []int32{2, 1}) {
		t.Errorf("after it was taken back metadata tell of %+v", p)
	}
	c.counts("reassigningpartitions", 0)
	// Begun again it waits for the broker, and ends when that is back.
	if code := first.move("t", 0, []int32{3, 2}); code != 0 {
		t.Fatalf("the second move: %v", code)
	}
	c.again(2)
	awaitFact(t, "the move to end", func() bool { return first.moving("t", 0) == nil })
	awaitFact(t, "the files of the old replica to be deleted", func() bool { return !c.files(0, "t-0") })
	c.reads("t", end())
}

func TestABrokerThatIsGoneIsForgotten(t *testing.T) {
	t.Parallel()
	all := trio(t)
	unregister := func(on *running, id int32) wire.ErrorCode {
		req := kmsg.NewPtrUnregisterBrokerRequest()
		req.BrokerID = id
		return wire.ErrorCode(ask[*kmsg.UnregisterBrokerResponse](on, req).ErrorCode)
	}
	if code := unregister(all[0], 9); code != wire.BrokerIDNotRegistered {
		t.Errorf("a broker that never was: %v", code)
	}
	dir := t.TempDir()
	fourth := clustered(t, 4, dir, "bootstrap.expect=-1", "join="+all[0].PeerAddress())
	fourth.serves()
	raise := kmsg.NewPtrUpdateFeaturesRequest()
	update := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
	update.Feature, update.MaxVersionLevel, update.UpgradeType = "troupe.peer.version", peer.VersionMax, 1
	raise.FeatureUpdates = append(raise.FeatureUpdates, update)
	if resp := ask[*kmsg.UpdateFeaturesResponse](all[0], raise); resp.ErrorCode != 0 {
		t.Fatalf("%+v", resp)
	}
	if code := unregister(all[1], 4); code != wire.InvalidRequest {
		t.Errorf("a broker that lives: %v", code)
	}
	fourth.stop()
	awaitFact(t, "the broker to be forgotten", func() bool {
		code := unregister(all[1], 4)
		if code != 0 && code != wire.InvalidRequest {
			t.Fatalf("a broker that has stopped: %v", code)
		}
		return code == 0
	})
	if code := unregister(all[2], 4); code != wire.BrokerIDNotRegistered {
		t.Errorf("a broker that is forgotten: %v", code)
	}
	// It may come back, as one that nobody knows.
	again := clustered(t, 4, dir, "bootstrap.expect=-1", "join="+all[0].PeerAddress())
	again.serves()
	if err := again.create("mine", 1, 1); err != nil {
		t.Error(err)
	}
}

func TestMoreMovesThanMayBeAskedForAreRefusedByEveryBroker(t *testing.T) {
	t.Parallel()
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.TimeoutMillis = 20_000
	topic := kmsg.AlterPartitionAssignmentsRequestTopic{Topic: "t"}
	for n := range int32(10_001) {
		topic.Partitions = append(topic.Partitions, kmsg.AlterPartitionAssignmentsRequestTopicPartition{Partition: n, Replicas: []int32{1}})
	}
	req.Topics = append(req.Topics, topic)
	for i, r := range trio(t) {
		if resp := ask[*kmsg.AlterPartitionAssignmentsResponse](r, req); wire.ErrorCode(resp.ErrorCode) != wire.InvalidRequest || len(resp.Topics) != 0 {
			t.Errorf("broker %d: %v for %d topics", i+1, wire.ErrorCode(resp.ErrorCode), len(resp.Topics))
		}
	}
}
