package config

// shareKeys are about share groups and their coordinator.
var shareKeys = []Key{
	{
		Name: "group.share.delivery.count.limit", Type: Int, Default: "5", Class: Accepted, Check: between(2, 10),
		Reason: noShares,
		Doc:    "Attempts to deliver a record.",
	},
	{
		Name: "group.share.max.delivery.count.limit", Type: Int, Default: "10", Class: Accepted, Check: between(2, 25),
		Reason: noShares,
		Doc:    "Greatest number of attempts a group may set.",
	},
	{
		Name: "group.share.min.delivery.count.limit", Type: Int, Default: "2", Class: Accepted, Check: between(2, 5),
		Reason: noShares,
		Doc:    "Least number of attempts a group may set.",
	},
	{
		Name: "group.share.record.lock.duration.ms", Type: Int, Default: "30000", Unit: Milliseconds, Class: Accepted, Check: between(1000, 3600000),
		Reason: noShares,
		Doc:    "How long a consumer holds a record.",
	},
	{
		Name: "group.share.min.record.lock.duration.ms", Type: Int, Default: "15000", Unit: Milliseconds, Class: Accepted, Check: between(1000, 30000),
		Reason: noShares,
		Doc:    "Least value a group may set for that time.",
	},
	{
		Name: "group.share.max.record.lock.duration.ms", Type: Int, Default: "60000", Unit: Milliseconds, Class: Accepted, Check: between(30000, 3600000),
		Reason: noShares,
		Doc:    "Greatest value a group may set for that time.",
	},
	{
		Name: "group.share.partition.max.record.locks", Type: Int, Default: "2000", Class: Accepted, Check: between(100, 10000),
		Reason: noShares,
		Doc:    "Records of one partition that may be held at once.",
	},
	{
		Name: "group.share.max.partition.max.record.locks", Type: Int, Default: "4000", Class: Accepted, Check: between(2000, 20000),
		Reason: noShares,
		Doc:    "Greatest number of held records a group may set.",
	},
	{
		Name: "group.share.min.partition.max.record.locks", Type: Int, Default: "100", Class: Accepted, Check: between(100, 2000),
		Reason: noShares,
		Doc:    "Least number of held records a group may set.",
	},
	{
		Name: "share.fetch.purgatory.purge.interval.requests", Type: Int, Default: "1000", Class: Accepted,
		Reason: noShares,
		Doc:    "How often finished share fetches are removed from Kafka's waiting room.",
	},
	{
		Name: "group.share.max.share.sessions", Type: Int, Default: "2000", Class: Accepted, Check: atLeast(1),
		Reason: noShares,
		Doc:    "Share sessions one broker keeps.",
	},
	{
		Name: "group.share.persister.class.name", Type: String, Default: "org.apache.kafka.server.share.persister.DefaultStatePersister", Class: Accepted, Internal: true,
		Reason: noShares,
		Doc:    "Class that keeps the state of share groups.",
	},
	{
		Name: "group.share.dlq.manager.class.name", Type: String, Default: "org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager", Class: Accepted, Internal: true,
		Reason: noShares,
		Doc:    "Class that writes dead letters.",
	},
	{
		Name: "share.coordinator.state.topic.num.partitions", Type: Int, Default: "50", Class: Accepted, Check: atLeast(1),
		Reason: noShares,
		Doc:    "Partitions of the topic that keeps share state.",
	},
	{
		Name: "share.coordinator.state.topic.replication.factor", Type: Short, Default: "3", Class: Accepted, Check: atLeast(1),
		Reason: noShares,
		Doc:    "Replicas of the topic that keeps share state.",
	},
	{
		Name: "share.coordinator.state.topic.min.isr", Type: Short, Default: "2", Class: Accepted, Check: atLeast(1),
		Reason: noShares,
		Doc:    "Replicas that must be in sync for a write of share state.",
	},
	{
		Name: "share.coordinator.state.topic.segment.bytes", Type: Int, Default: "104857600", Unit: Bytes, Class: Accepted, Check: atLeast(1),
		Reason: noShares,
		Doc:    "Segment size of the topic that keeps share state.",
	},
	{
		Name: "share.coordinator.threads", Type: Int, Default: "1", Class: Accepted, Check: atLeast(1),
		Reason: noShares,
		Doc:    "Threads of the share coordinator.",
	},
	{
		Name: "share.coordinator.snapshot.update.records.per.snapshot", Type: Int, Default: "500", Class: Accepted, Check: between(0, 500),
		Reason: noShares,
		Doc:    "Updates between two snapshots of share state.",
	},
	{
		Name: "share.coordinator.load.buffer.size", Type: Int, Default: "5242880", Unit: Bytes, Class: Accepted, Check: atLeast(1),
		Reason: noShares,
		Doc:    "Bytes read at once when share state loads.",
	},
	{
		Name: "share.coordinator.state.topic.compression.codec", Type: Int, Default: "0", Class: Accepted, Check: between(0, 4),
		Reason: noShares,
		Doc:    "Codec of the topic that keeps share state, by its number.",
	},
	{
		Name: "share.coordinator.append.linger.ms", Type: Int, Default: "-1", Unit: Milliseconds, Class: Accepted, Check: atLeast(-1),
		Reason: noShares,
		Doc:    "How long share records are gathered before they are appended.",
	},
	{
		Name: "share.coordinator.write.timeout.ms", Type: Int, Default: "5000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noShares,
		Doc:    "How long a write of share state may wait for replicas.",
	},
	{
		Name: "share.coordinator.state.topic.prune.interval.ms", Type: Int, Default: "300000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1), Internal: true,
		Reason: noShares,
		Doc:    "How often old share state is deleted.",
	},
	{
		Name: "share.coordinator.cold.partition.snapshot.interval.ms", Type: Int, Default: "300000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1), Internal: true,
		Reason: noShares,
		Doc:    "How often share state that rests is written down whole.",
	},
	{
		Name: "share.coordinator.cached.buffer.max.bytes", Type: Int, Default: "1048588", Unit: Bytes, Class: Accepted, Update: ClusterWide, Check: atLeast(0),
		Reason: noShares,
		Doc:    "Largest buffer kept for reuse.",
	},
}
