package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/troupe-broker/troupe/wire/checkup"
)

// replicaKey names one replica.
type replicaKey struct {
	partitionKey
	broker int32
}

// checkupAnswer is what a broker says of a replica, or why it says nothing.
type checkupAnswer struct {
	checkup.Report
	silent string
	late   string // why it is not what was waited for
}

// replicasOf finds the replicas of what the command line names, by partition and broker. only: of this broker; -1: of all.
func replicasOf(ctx context.Context, client *kgo.Client, chosen map[string][]int32, only int32) ([]replicaKey, error) {
	m, err := readMetadata(ctx, client)
	if err != nil {
		return nil, err
	}
	var keys []replicaKey
	for topic, partitions := range chosen {
		i := slices.IndexFunc(m.Topics, func(t kmsg.MetadataResponseTopic) bool { return t.Topic != nil && *t.Topic == topic })
		if i < 0 {
			return nil, fail(codeNotFound, "`troupe topic list` shows the topics", "there is no topic %q", topic)
		}
		t := &m.Topics[i]
		for _, n := range partitions {
			if !slices.ContainsFunc(t.Partitions, func(p kmsg.MetadataResponseTopicPartition) bool { return p.Partition == n }) {
				return nil, fail(codeNotFound, "`troupe topic describe "+topic+"` shows the partitions", "topic %q has no partition %d", topic, n)
			}
		}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			if len(partitions) > 0 && !slices.Contains(partitions, p.Partition) {
				continue
			}
			for _, b := range p.Replicas {
				if only < 0 || b == only {
					keys = append(keys, replicaKey{partitionKey{topic, p.Partition}, b})
				}
			}
		}
	}
	if len(keys) == 0 {
		return nil, fail(codeNotFound, "`troupe topic describe TOPIC` shows who has replicas", "broker %d has no replica of these partitions", only)
	}
	slices.SortFunc(keys, replicaKey.compare)
	return keys, nil
}

func (k replicaKey) compare(o replicaKey) int {
	return cmp.Or(strings.Compare(k.topic, o.topic), cmp.Compare(k.partition, o.partition), cmp.Compare(k.broker, o.broker))
}

// askReplicas gives an order to the brokers of replicas, and takes in what they say. A broker that does not answer is one whose replicas are silent.
func askReplicas(ctx context.Context, client *kgo.Client, order checkup.Order, keys []replicaKey, into map[replicaKey]checkupAnswer) {
	byBroker := map[int32][]replicaKey{}
	var brokers []int32
	for _, k := range keys {
		if byBroker[k.broker] == nil {
			brokers = append(brokers, k.broker)
		}
		byBroker[k.broker] = append(byBroker[k.broker], k)
	}
	for _, b := range brokers {
		for some := range slices.Chunk(byBroker[b], checkup.PlacesMax) {
			reports, err := askBroker(ctx, client, order, b, some)
			for _, k := range some {
				a, ok := reports[k]
				switch {
				case err != nil:
					a.silent = err.Error()
				case !ok:
					a.silent = "the replica is not there"
				}
				into[k] = a
			}
		}
	}
}

// askBroker asks one broker about replicas that it keeps: a DescribeLogDirs request with a field that only Troupe's brokers look at.
func askBroker(ctx context.Context, client *kgo.Client, order checkup.Order, broker int32, keys []replicaKey) (map[replicaKey]checkupAnswer, error) {
	req := kmsg.NewPtrDescribeLogDirsRequest()
	req.UnknownTags.Set(checkup.Tag, order.Encode())
	for _, k := range keys {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != k.topic {
			t := kmsg.NewDescribeLogDirsRequestTopic()
			t.Topic = k.topic
			req.Topics = append(req.Topics, t)
		}
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, k.partition)
	}
	ctx, cancel := context.WithTimeout(ctx, movePatience)
	defer cancel()
	resp, err := req.RequestWith(ctx, oneBroker{client.Broker(int(broker))})
	if err != nil {
		return nil, fmt.Errorf("the broker does not answer: %w", err)
	}
	if err := refusalIn(resp); err != nil {
		return nil, err
	}
	out := map[replicaKey]checkupAnswer{}
	for i := range resp.Dirs {
		for j := range resp.Dirs[i].Topics {
			t := &resp.Dirs[i].Topics[j]
			for k := range t.Partitions {
				p := &t.Partitions[k]
				out[replicaKey{partitionKey{t.Topic, p.Partition}, broker}] = answerOf(&p.UnknownTags)
			}
		}
	}
	return out, nil
}

// refusalIn is why a broker does not take an order; nil: it does. The code alone says little, and version 2 of the response has none.
func refusalIn(resp *kmsg.DescribeLogDirsResponse) (refused error) {
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		refused = fmt.Errorf("the broker refuses: %w", err)
	}
	resp.UnknownTags.Each(func(tag uint32, b []byte) {
		if tag != checkup.Tag {
			return
		}
		r, err := checkup.DecodeRefusal(b)
		if refused = fmt.Errorf("the broker refuses: %s", r.Error); err != nil {
			refused = err
		}
	})
	return refused
}

// answerOf finds the report among the tagged fields of a partition.
func answerOf(tags *kmsg.Tags) (a checkupAnswer) {
	a.silent = "the broker is of a build that checks no replicas"
	tags.Each(func(tag uint32, b []byte) {
		if tag != checkup.Tag {
			return
		}
		report, err := checkup.DecodeReport(b)
		if a = (checkupAnswer{Report: report}); err != nil {
			a.silent = err.Error()
		}
	})
	return a
}
