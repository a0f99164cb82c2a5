package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/troupe-broker/troupe/bench/peer"
)

// The tools' classes, below org.apache.kafka.tools.
const (
	topicCommand         = "TopicCommand"
	configCommand        = "ConfigCommand"
	consoleProducer      = "ConsoleProducer"
	consoleConsumer      = "consumer.ConsoleConsumer"
	getOffsetShell       = "GetOffsetShell"
	deleteRecordsCommand = "DeleteRecordsCommand"
	logDirsCommand       = "LogDirsCommand"
	apiVersionsCommand   = "BrokerApiVersionsCommand"
	featureCommand       = "FeatureCommand"
	metadataQuorum       = "MetadataQuorumCommand"
	clusterTool          = "ClusterTool"
	dumpLogSegments      = "DumpLogSegments"
	producerPerformance  = "ProducerPerformance"
	transactionsCommand  = "TransactionsCommand"
)

// toolTopic is the topic that most tools work on; rolled has segments small enough to be closed by a few records.
const (
	toolTopic = "tools-a"
	rolled    = "rolled"
)

// topics: kafka-topics creates, lists, describes and alters.
func (t *toolbox) topics(ctx context.Context) {
	topics := func(name, line string, expected ...expect) {
		t.run(ctx, "kafka-topics", topicCommand, name, args(line), expected...)
	}
	topics("--create with configs", "--create --topic tools-a --partitions 3 --replication-factor 1 --config retention.ms=86400000 --config max.message.bytes=65536",
		matches(`^Created topic tools-a\.$`))
	topics("--create of a topic that is there", "--create --topic tools-a", fails(), matches(`already exists`))
	topics("--create --if-not-exists of a topic that is there", "--create --topic tools-a --if-not-exists", prints())
	topics("--create with defaults", "--create --topic tools-defaults", matches(`^Created topic tools-defaults\.$`))
	topics("--create with an assignment", "--create --topic tools-assigned --replica-assignment "+t.broker(ctx)+","+t.broker(ctx),
		matches(`^Created topic tools-assigned\.$`))
	t.run(ctx, "kafka-topics", topicCommand, "--create with a bad name", []string{"--create", "--topic", "bad name"}, fails(), matches(`(?i)topic name`))
	topics("--create with an unknown config", "--create --topic tools-x --config no.such=1", fails(), matches(`no\.such`))
	topics("--create with a bad value", "--create --topic tools-x --config retention.ms=soon", fails(), matches(`retention\.ms`))
	topics("--create with more replicas than brokers", "--create --topic tools-x --replication-factor 3", fails(),
		matches(`(?i)replicat`))
	topics("--list", "--list --topic tools-.*", prints("tools-a", "tools-assigned", "tools-defaults"))
	topics("--describe one topic", "--describe --topic tools-a",
		matches(`^Topic: tools-a\tTopicId: [A-Za-z0-9_-]{22}\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: `,
			`\bmax\.message\.bytes=65536\b`, `\bretention\.ms=86400000\b`),
		partitionLines("tools-a", 3))
	topics("--describe by pattern", "--describe --topic tools-(a|assigned)", partitionLines("tools-assigned", 2), partitionLines("tools-a", 3))
	topics("--describe --topics-with-overrides", "--describe --topics-with-overrides --topic tools-a", matches(`^Topic: tools-a\t`))
	topics("--describe --under-replicated-partitions", "--describe --under-replicated-partitions", prints())
	topics("--describe --unavailable-partitions", "--describe --unavailable-partitions", prints())
	topics("--describe --under-min-isr-partitions", "--describe --under-min-isr-partitions", prints())
	topics("--describe --at-min-isr-partitions", "--describe --at-min-isr-partitions --topic tools-a", partitionLines("tools-a", 3))
	topics("--describe of no topic", "--describe --topic tools-none", fails(), matches(`Topic 'tools-none' does not exist as expected`))
	topics("--alter to more partitions", "--alter --topic tools-a --partitions 5", prints())
	topics("--describe sees them", "--describe --topic tools-a", matches(`PartitionCount: 5\t`), partitionLines("tools-a", 5))
	topics("--alter to fewer partitions", "--alter --topic tools-a --partitions 4", fails(), matches(`(?i)partition`))
	topics("--alter to as many partitions", "--alter --topic tools-a --partitions 5", fails(), matches(`(?i)\b5 partition`))
	topics("--alter of no topic", "--alter --topic tools-none --partitions 4", fails(), matches(`does not exist as expected`))
	topics("--alter --if-exists of no topic", "--alter --topic tools-none --partitions 4 --if-exists", prints())
	topics("--create with small segments",
		"--create --topic rolled --partitions 2 --config segment.bytes=1048576 --config index.interval.bytes=1024 --config segment.index.bytes=8192",
		matches(`^Created topic`))
}

// partitionLines wants n partitions of a topic, each led by its one replica.
func partitionLines(topic string, n int) expect {
	return expect{holds: func(r toolResult) error {
		seen := 0
		for _, line := range linesOf(r.Out) {
			if !strings.HasPrefix(line, "\tTopic: "+topic+"\t") {
				continue
			}
			var partition, leader, replica, isr int
			rest := strings.TrimPrefix(line, "\tTopic: "+topic+"\t")
			if _, err := fmt.Sscanf(rest, "Partition: %d\tLeader: %d\tReplicas: %d\tIsr: %d", &partition, &leader, &replica, &isr); err != nil {
				return fmt.Errorf("partition line %q: %w", line, err)
			}
			if partition != seen || leader != replica || isr != replica {
				return fmt.Errorf("partition line %q: want partition %d with leader, replica and ISR the same", line, seen)
			}
			seen++
		}
		if seen != n {
			return fmt.Errorf("%d partitions of %s, want %d", seen, topic, n)
		}
		return nil
	}}
}

// broker is the id of the one broker, as DescribeCluster gives it. An error shows in the check that uses the answer.
func (t *toolbox) broker(ctx context.Context) string {
	r, err := t.want(ctx, clusterTool, "", []string{"list-endpoints"})
	if err != nil {
		return "?"
	}
	for _, line := range linesOf(r.Out) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] != "ID" {
			return fields[0]
		}
	}
	return "?"
}

// retired: what was created is deleted, and gone.
func (t *toolbox) retired(ctx context.Context) {
	topics := func(name, line string, expected ...expect) {
		t.run(ctx, "kafka-topics", topicCommand, name, args(line), expected...)
	}
	topics("--delete", "--delete --topic tools-a", prints())
	topics("--delete of no topic", "--delete --topic tools-a", fails(), matches(`Topic 'tools-a' does not exist as expected`))
	topics("--delete --if-exists of no topic", "--delete --topic tools-a --if-exists", prints())
	topics("--delete by pattern", "--delete --topic tools-.*", prints())
	// The controller has answered; the broker that lists may learn of it a moment later.
	t.report.check(ctx, who{"kafka-topics", peer.KafkaVersion}, "--list after it", func(ctx context.Context) error {
		return eventually(ctx, func() error {
			_, err := t.want(ctx, topicCommand, "", args("--list --topic tools-.*"), prints())
			return err
		})
	})
}
