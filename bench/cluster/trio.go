package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/bench/peer"
	"github.com/troupe-broker/troupe/bench/report"
)

// The targets.
const (
	nameTroupe = "troupe"
	nameKafka  = "kafka"
)

// trio is one cluster of a target.
type trio struct {
	name string
	*peer.Cluster
	network *peer.Network // nil: all live on the loopback interface
}

// topicConfigs are what makes a topic belong to a class.
var topicConfigs = map[string]map[report.Class][2]string{
	nameTroupe: {report.Cached: {"write.caching", "true"}, report.Synced: {"write.caching", "false"}},
	nameKafka:  {report.Cached: {"flush.messages", "9223372036854775807"}, report.Synced: {"flush.messages", "1"}},
}

// gossipAlone takes heartbeats out of the detection of a death.
var gossipAlone = map[string]string{"broker.heartbeat.interval.ms": "10000", "broker.session.timeout.ms": "60000"}

// startTrio starts a new cluster, on new directories, for a world.
func (b *bench) startTrio(ctx context.Context, name string, w world) (t *trio, err error) {
	b.trios++
	t = &trio{name: name}
	o := peer.ClusterOptions{Dir: filepath.Join(b.dir, fmt.Sprintf("%s-%d", name, b.trios))}
	if w.cut {
		if t.network, err = peer.NewNetwork(ctx); err != nil {
			return nil, fmt.Errorf("hosts that can be cut off (this takes root): %w", err)
		}
		o.Hosts = t.network.Hosts
	}
	if w.gossip {
		o.Settings = gossipAlone
	}
	switch name {
	case nameTroupe:
		t.Cluster, err = peer.NewTroupeCluster(b.binary, o)
	default:
		t.Cluster, err = peer.NewKafkaCluster(ctx, o)
	}
	if err != nil {
		return nil, errors.Join(err, t.stop())
	}
	if err := t.Start(ctx); err != nil {
		return nil, errors.Join(err, t.stop())
	}
	if _, err := t.awaitWhole(ctx); err != nil {
		return nil, errors.Join(err, t.stop())
	}
	return t, nil
}

// stop ends the brokers as a crash would: their data is not needed any more.
func (t *trio) stop() error {
	var errs []error
	if t.Cluster != nil {
		errs = append(errs, t.Kill())
	}
	if t.network != nil {
		errs = append(errs, t.network.Close())
	}
	return errors.Join(errs...)
}

// connect gives a client that knows all brokers.
func (t *trio) connect(opts ...kgo.Opt) (*kgo.Client, error) {
	var seeds []string
	for _, addr := range t.Addrs() {
		seeds = append(seeds, addr)
	}
	slices.Sort(seeds)
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(seeds...)}, opts...)...)
}

// createTopic makes a topic whose partitions have three replicas each, led by leader (0: by whom the cluster likes), and waits until all are in sync.
func (t *trio) createTopic(ctx context.Context, topic string, partitions int, leader int32, class report.Class) (err error) {
	client, err := t.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	r := kmsg.NewCreateTopicsRequestTopic()
	r.Topic, r.NumPartitions, r.ReplicationFactor = topic, int32(partitions), int16(len(t.Nodes))
	if leader != 0 {
		r.NumPartitions, r.ReplicationFactor = -1, -1
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Replicas = []int32{leader}
		for _, n := range t.Nodes {
			if n.ID != leader {
				a.Replicas = append(a.Replicas, n.ID)
			}
		}
		r.ReplicaAssignment = append(r.ReplicaAssignment, a)
	}
	for _, kv := range [][2]string{topicConfigs[t.name][class], {"min.insync.replicas", "2"}} {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = kv[0], &kv[1]
		r.Configs = append(r.Configs, c)
	}
	create := kmsg.NewPtrCreateTopicsRequest()
	create.TimeoutMillis = 60_000
	create.Topics = append(create.Topics, r)
	answer, err := create.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(answer.Topics[0].ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("%s: create topic %s: %w", t.name, topic, err)
	}
	_, err = t.awaitWhole(ctx, topic)
	return err
}

func (t *trio) deleteTopic(ctx context.Context, topic string) error {
	client, err := t.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	r := kmsg.NewDeleteTopicsRequestTopic()
	r.Topic = &topic
	del := kmsg.NewPtrDeleteTopicsRequest()
	del.TimeoutMillis = 60_000
	del.Topics, del.TopicNames = append(del.Topics, r), []string{topic}
	answer, err := del.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(answer.Topics[0].ErrorCode)
	}
	if err != nil {
		return fmt.Errorf("%s: delete topic %s: %w", t.name, topic, err)
	}
	return nil
}

const (
	// wholeMax bounds the wait for a cluster that is whole again, wholeFor is how long it has to look so.
	wholeMax = 3 * time.Minute
	wholeFor = time.Second
)

// awaitWhole waits until every broker says, for a while, that all brokers are there, all replicas of the topics in sync, and who the controller is; all the same.
func (t *trio) awaitWhole(ctx context.Context, topics ...string) (controller int32, err error) {
	client, err := t.connect()
	if err != nil {
		return -1, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, wholeMax)
	defer cancel()
	controller = -1
	var since time.Time
	for {
		now, err := t.look(ctx, client, topics)
		switch {
		case err != nil || now != controller:
			controller, since = now, time.Now()
		case time.Since(since) > wholeFor:
			return controller, nil
		}
		select {
		case <-ctx.Done():
			return -1, fmt.Errorf("%s is not whole after %v: %w", t.name, wholeMax, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// look asks each broker itself.
func (t *trio) look(ctx context.Context, client *kgo.Client, topics []string) (controller int32, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	controller = -1
	for _, n := range t.Nodes {
		says, err := t.askController(ctx, client, n.ID)
		switch {
		case err != nil:
			return -1, fmt.Errorf("broker %d: %w", n.ID, err)
		case says < 0 || controller >= 0 && says != controller:
			return -1, fmt.Errorf("broker %d says that broker %d is the controller, another that it is %d", n.ID, says, controller)
		}
		controller = says
		if err := t.askReplicas(ctx, client, n.ID, topics); err != nil {
			return -1, fmt.Errorf("broker %d: %w", n.ID, err)
		}
	}
	return controller, nil
}

// askController asks for the leader of the metadata quorum. (The controller in Kafka's metadata is any broker.)
func (t *trio) askController(ctx context.Context, client *kgo.Client, broker int32) (int32, error) {
	q := kmsg.NewPtrDescribeQuorumRequest()
	topic := kmsg.NewDescribeQuorumRequestTopic()
	topic.Topic = "__cluster_metadata"
	topic.Partitions = append(topic.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
	q.Topics = append(q.Topics, topic)
	answer, err := client.Broker(int(broker)).Request(ctx, q)
	if err != nil {
		return -1, err
	}
	quorum := answer.(*kmsg.DescribeQuorumResponse)
	if err := kerr.ErrorForCode(quorum.ErrorCode); err != nil {
		return -1, err
	}
	p := quorum.Topics[0].Partitions[0]
	return p.LeaderID, kerr.ErrorForCode(p.ErrorCode)
}

func (t *trio) askReplicas(ctx context.Context, client *kgo.Client, broker int32, topics []string) error {
	m := kmsg.NewPtrMetadataRequest()
	m.Topics = []kmsg.MetadataRequestTopic{}
	for _, name := range topics {
		one := kmsg.NewMetadataRequestTopic()
		one.Topic = &name
		m.Topics = append(m.Topics, one)
	}
	answer, err := client.Broker(int(broker)).Request(ctx, m)
	if err != nil {
		return err
	}
	metadata := answer.(*kmsg.MetadataResponse)
	if len(metadata.Brokers) != len(t.Nodes) {
		return fmt.Errorf("%d brokers", len(metadata.Brokers))
	}
	for _, topic := range metadata.Topics {
		if err := kerr.ErrorForCode(topic.ErrorCode); err != nil {
			return err
		}
		for _, p := range topic.Partitions {
			if p.Leader < 0 || len(p.ISR) != len(t.Nodes) {
				return fmt.Errorf("%s-%d: leader %d, ISR %v", *topic.Topic, p.Partition, p.Leader, p.ISR)
			}
		}
	}
	return nil
}
