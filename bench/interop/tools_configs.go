package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// configs: kafka-configs describes, alters and takes back, for topics and brokers.
func (t *toolbox) configs(ctx context.Context) {
	configs := func(name, line string, expected ...expect) {
		t.run(ctx, "kafka-configs", configCommand, name, args(line), expected...)
	}
	const topic = "--entity-type topics --entity-name tools-a "
	configs("topic --describe", topic+"--describe", matches(`^Dynamic configs for topic tools-a are:$`),
		entry("retention.ms", "86400000", "DYNAMIC_TOPIC_CONFIG:retention.ms=86400000"),
		entry("max.message.bytes", "65536", "DYNAMIC_TOPIC_CONFIG:max.message.bytes=65536", "DEFAULT_CONFIG:message.max.bytes=1048588"))
	configs("topic --alter --add-config", topic+"--alter --add-config retention.ms=120000,flush.messages=1000", prints("Completed updating config for topic tools-a."))
	configs("topic --describe after it", topic+"--describe",
		entry("retention.ms", "120000"), entry("flush.messages", "1000"), entry("max.message.bytes", "65536"))
	configs("topic --alter --delete-config", topic+"--alter --delete-config retention.ms,max.message.bytes", prints("Completed updating config for topic tools-a."))
	configs("topic --describe after that", topic+"--describe", entry("flush.messages", "1000"), lacking(`retention\.ms`, `max\.message\.bytes`))
	configs("topic --alter add and delete at once", topic+"--alter --add-config segment.ms=3600000 --delete-config flush.messages",
		prints("Completed updating config for topic tools-a."))
	configs("topic --describe --all", topic+"--describe --all", matches(`^All configs for topic tools-a are:$`), allTopicConfigs(),
		entry("segment.ms", "3600000", "DYNAMIC_TOPIC_CONFIG:segment.ms=3600000"), entry("flush.messages", "9223372036854775807"))
	configs("topic --alter with a bad value", topic+"--alter --add-config retention.ms=abc", fails(),
		matches(`InvalidConfigurationException: .*retention\.ms`))
	configs("topic --alter with an unknown key", topic+"--alter --add-config no.such=abc", fails(), matches(`InvalidConfigurationException: .*no\.such`))
	configs("topic --alter out of range", topic+"--alter --add-config segment.bytes=1", fails(), matches(`InvalidConfigurationException: .*segment\.bytes`))
	configs("nothing was changed by them", topic+"--describe", entry("segment.ms", "3600000"), lacking(`retention\.ms`, `no\.such`, `segment\.bytes`))
	configs("topic --describe of no topic", "--entity-type topics --entity-name tools-none --describe", matches(`The topic 'tools-none' doesn't exist`))
	configs("all topics --describe", "--entity-type topics --describe", matches(`^Dynamic configs for topic tools-a are:$`, `^Dynamic configs for topic tools-defaults are:$`))

	id := t.broker(ctx)
	broker := "--entity-type brokers --entity-name " + id + " "
	configs("broker --describe", broker+"--describe", matches(`^Dynamic configs for broker `+id+` are:$`))
	configs("broker --describe --all", broker+"--describe --all", matches(`^All configs for broker `+id+` are:$`),
		entry("log.retention.hours", "168", "DEFAULT_CONFIG:log.retention.hours=168"), entry("message.max.bytes", "1048588"),
		matches(`^  log\.dirs?=.*sensitive=false synonyms=\{.*STATIC_BROKER_CONFIG`))
	configs("broker --alter --add-config", broker+"--alter --add-config log.retention.ms=7200000", prints("Completed updating config for broker "+id+"."))
	configs("broker --describe after it", broker+"--describe", entry("log.retention.ms", "7200000", "DYNAMIC_BROKER_CONFIG:log.retention.ms=7200000"))
	configs("a topic inherits it", topic+"--describe --all", entry("retention.ms", "7200000", "DYNAMIC_BROKER_CONFIG:log.retention.ms=7200000"))
	configs("broker --alter --delete-config", broker+"--alter --delete-config log.retention.ms", prints("Completed updating config for broker "+id+"."))
	configs("all brokers --alter", "--entity-type brokers --entity-default --alter --add-config log.segment.bytes=2097152",
		prints("Completed updating default config for brokers in the cluster."))
	configs("all brokers --describe", "--entity-type brokers --entity-default --describe", entry("log.segment.bytes", "2097152", "DYNAMIC_DEFAULT_BROKER_CONFIG:log.segment.bytes=2097152"))
	configs("a topic inherits that", topic+"--describe --all", entry("segment.bytes", "2097152", "DYNAMIC_DEFAULT_BROKER_CONFIG:log.segment.bytes=2097152"))
	configs("all brokers --alter back", "--entity-type brokers --entity-default --alter --delete-config log.segment.bytes",
		prints("Completed updating default config for brokers in the cluster."))
	configs("broker --alter of a fixed key", broker+"--alter --add-config node.id=77", fails(), matches(`InvalidRequestException: .*node\.id`))
}

// entry wants a config with that value, and the named synonyms among its own.
func entry(key, value string, synonyms ...string) expect {
	line := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(key+"="+value) + ` sensitive=false synonyms=\{(.*)\}$`)
	return expect{holds: func(r toolResult) error {
		found := line.FindStringSubmatch(r.Out)
		if found == nil {
			return fmt.Errorf("no config %s=%s", key, value)
		}
		has := strings.Split(found[1], ", ")
		at := 0
		for _, s := range synonyms {
			for at < len(has) && has[at] != s {
				at++
			}
			if at == len(has) {
				return fmt.Errorf("%s has the synonyms %q, want %q among them in this order", key, has, synonyms)
			}
		}
		return nil
	}}
}

// topicConfigs are the topic configs of Kafka 4.4, all of which a broker describes.
var topicConfigs = strings.Fields(`
	cleanup.policy compression.gzip.level compression.lz4.level compression.type compression.zstd.level delete.retention.ms
	errors.deadletterqueue.group.enable file.delete.delay.ms flush.messages flush.ms follower.replication.throttled.replicas
	index.interval.bytes leader.replication.throttled.replicas local.retention.bytes local.retention.ms max.compaction.lag.ms
	max.decompressed.message.bytes max.message.bytes message.timestamp.after.max.ms message.timestamp.before.max.ms
	message.timestamp.type min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas preallocate remote.copy.lag.bytes
	remote.copy.lag.ms remote.log.copy.disable remote.log.delete.on.disable remote.storage.enable retention.bytes retention.ms
	segment.bytes segment.index.bytes segment.jitter.ms segment.ms unclean.leader.election.enable`)

func allTopicConfigs() expect {
	patterns := make([]string, len(topicConfigs))
	for i, key := range topicConfigs {
		patterns[i] = `^  ` + regexp.QuoteMeta(key) + `=.* sensitive=false synonyms=\{.*\}$`
	}
	return matches(patterns...)
}
