package config

// coordinatorKeys are about consumer, streams and share groups.
var coordinatorKeys = []Key{
	{
		Name: "group.coordinator.rebalance.protocols", Type: List, Default: "classic,consumer,streams", Class: Honoured, Check: rebalanceProtocols,
		Doc: "Group protocols that are offered; without consumer, the newer protocol (KIP-848) is not. Streams groups do not exist yet. Deprecated in Kafka.",
	},
	{
		Name: "group.coordinator.threads", Type: Int, Default: "4", Class: Accepted, Check: atLeast(1),
		Reason: "whoever sends to a coordinator runs its turn; there are no threads of its own",
		Doc:    "Threads that serve group requests.",
	},
	{
		Name: "group.coordinator.background.threads", Type: Int, Default: "2", Class: Accepted, Check: atLeast(1),
		Reason: "whoever sends to a coordinator runs its turn; there are no threads of its own",
		Doc:    "Threads for the background work of groups.",
	},
	{
		Name: "group.coordinator.append.linger.ms", Type: Int, Default: "-1", Unit: Milliseconds, Class: Honoured, Check: atLeast(-1),
		Doc: "How long group records are gathered before they are appended. 0 and -1: not at all when nothing is being written, else as long as that takes.",
	},
	{
		Name: "group.coordinator.cached.buffer.max.bytes", Type: Int, Default: "1048588", Unit: Bytes, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Largest buffer kept for reuse.",
	},
	{
		Name: "offsets.commit.timeout.ms", Type: Int, Default: "5000", Unit: Milliseconds, Class: Honoured, Check: atLeast(1),
		Doc: "How long an answer may wait until what it says is committed. Then the client is told to ask again.",
	},
	{
		Name: "offsets.load.buffer.size", Type: Int, Default: "5242880", Unit: Bytes, Class: Honoured, Check: atLeast(1),
		Doc: "Bytes read at once when a coordinator loads.",
	},
	{
		Name: "offsets.topic.replication.factor", Type: Short, Default: "3", Class: Honoured, Check: atLeast(1),
		Doc: "Replicas of the offsets topic; it is created with fewer while there are fewer brokers.",
	},
	{
		Name: "offsets.topic.num.partitions", Type: Int, Default: "50", Class: Honoured, Check: atLeast(1),
		Doc: "Partitions of the offsets topic.",
	},
	{
		Name: "offsets.topic.segment.bytes", Type: Int, Default: "104857600", Unit: Bytes, Class: Honoured, Check: atLeast(1),
		Doc: "Segment size of the offsets topic; less than 1 MiB counts as 1 MiB.",
	},
	{
		Name: "offsets.topic.compression.codec", Type: Int, Default: "0", Class: Honoured, Check: between(0, 4),
		Doc: "Codec of the offsets topic by its number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
	},
	{
		Name: "offset.metadata.max.bytes", Type: Int, Default: "4096", Unit: Bytes, Class: Honoured, Check: atLeast(0),
		Doc: "Longest text a client may attach to a committed offset.",
	},
	{
		Name: "offsets.retention.minutes", Type: Int, Default: "10080", Unit: Minutes, Class: Honoured, Check: atLeast(1),
		Doc: "How long committed offsets of an empty group are kept.",
	},
	{
		Name: "offsets.retention.check.interval.ms", Type: Long, Default: "600000", Unit: Milliseconds, Class: Honoured, Check: atLeast(1),
		Doc: "How often old offsets are looked for.",
	},
	{
		Name: "group.min.session.timeout.ms", Type: Int, Default: "6000", Unit: Milliseconds, Class: Honoured, Check: atLeast(1),
		Doc: "Shortest session timeout of a classic member.",
	},
	{
		Name: "group.max.session.timeout.ms", Type: Int, Default: "1800000", Unit: Milliseconds, Class: Honoured, Check: atLeast(1),
		Doc: "Longest session timeout of a classic member.",
	},
	{
		Name: "group.initial.rebalance.delay.ms", Type: Int, Default: "3000", Unit: Milliseconds, Class: Honoured, Check: atLeast(0),
		Doc: "How long a new classic group waits for more members.",
	},
	{
		Name: "group.max.size", Type: Int, Default: maxInt, Class: Honoured, Check: atLeast(1),
		Doc: "Members a classic group may have.",
	},
	{
		Name: "group.consumer.session.timeout.ms", Type: Int, Default: "45000", Unit: Milliseconds, Class: Honoured, Check: atLeast(1),
		Doc: "Session timeout of members of the newer protocol.",
	},
	{
		Name: "group.consumer.min.session.timeout.ms", Type: Int, Default: "45000", Unit: Milliseconds, Class: Honoured, Check: atLeast(1),
		Doc: "Least value a group may set for its session timeout.",
	},
	{
		Name: "group.consumer.max.session.timeout.ms", Type: Int, Default: "60000", Unit: Milliseconds, Class: Honoured, Check: atLeast(1),
		Doc: "Greatest value a group may set for its session timeout.",
	},
	{
		Name: "group.consumer.heartbeat.interval.ms", Type: Int, Default: "5000", Unit: Milliseconds, Class: Honoured, Check: atLeast(1),
		Doc: "Heartbeat interval told to members.",
	},
	{
		Name: "group.consumer.min.heartbeat.interval.ms", Type: Int, Default: "5000", Unit: Milliseconds, Class: Honoured, Check: atLeast(1),
		Doc: "Least value a group may set for its heartbeat interval.",
	},
	{
		Name: "group.consumer.max.heartbeat.interval.ms", Type: Int, Default: "15000", Unit: Milliseconds, Class: Honoured, Check: atLeast(1),
		Doc: "Greatest value a group may set for its heartbeat interval.",
	},
	{
		Name: "group.consumer.max.size", Type: Int, Default: maxInt, Class: Honoured, Check: atLeast(1),
		Doc: "Members a group of the newer protocol may have.",
	},
	{
		Name: "group.consumer.assignors", Type: List, Default: "uniform,range", Class: Honoured, Check: assignors,
		Doc: "Assignors the broker offers to groups of the newer protocol; the first is the default.",
	},
	{
		Name: "group.consumer.migration.policy", Type: String, Default: "bidirectional", Class: Honoured, Check: oneOf("disabled", "upgrade", "downgrade", "bidirectional"),
		Doc: "Which way a group with members may change its protocol.",
	},
	{
		Name: "group.consumer.assignment.interval.ms", Type: Int, Default: "1000", Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Least time between two target assignments of a group.",
	},
	{
		Name: "group.consumer.min.assignment.interval.ms", Type: Int, Default: "0", Unit: Milliseconds, Class: Honoured, Check: atLeast(0),
		Doc: "Least value a group may set for that interval.",
	},
	{
		Name: "group.consumer.max.assignment.interval.ms", Type: Int, Default: "15000", Unit: Milliseconds, Class: Honoured, Check: atLeast(0),
		Doc: "Greatest value a group may set for that interval.",
	},
	{
		Name: "group.consumer.assignor.offload.enable", Type: Bool, Default: "true", Class: Accepted, Update: ClusterWide, Internal: true,
		Reason: "an assignment is made in the coordinator's turn",
		Doc:    "Compute assignments in the background.",
	},
	{
		Name: "group.consumer.regex.refresh.interval.ms", Type: Int, Default: "600000", Unit: Milliseconds, Class: Honoured, Check: atLeast(1), Internal: true,
		Doc: "How often subscribed patterns are matched anew.",
	},
	{
		Name: "group.share.session.timeout.ms", Type: Int, Default: "45000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noShares,
		Doc:    "Session timeout of members of share groups.",
	},
	{
		Name: "group.share.min.session.timeout.ms", Type: Int, Default: "45000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noShares,
		Doc:    "Least value a group may set for its session timeout.",
	},
	{
		Name: "group.share.max.session.timeout.ms", Type: Int, Default: "60000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noShares,
		Doc:    "Greatest value a group may set for its session timeout.",
	},
	{
		Name: "group.share.heartbeat.interval.ms", Type: Int, Default: "5000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noShares,
		Doc:    "Heartbeat interval told to members.",
	},
	{
		Name: "group.share.min.heartbeat.interval.ms", Type: Int, Default: "5000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noShares,
		Doc:    "Least value a group may set for its heartbeat interval.",
	},
	{
		Name: "group.share.max.heartbeat.interval.ms", Type: Int, Default: "15000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noShares,
		Doc:    "Greatest value a group may set for its heartbeat interval.",
	},
	{
		Name: "group.share.max.size", Type: Int, Default: "200", Class: Accepted, Check: atLeast(1),
		Reason: noShares,
		Doc:    "Members a share group may have.",
	},
	{
		Name: "group.share.assignors", Type: List, Default: "simple", Class: Accepted,
		Reason: noShares,
		Doc:    "Assignors the broker offers.",
	},
	{
		Name: "group.share.assignment.interval.ms", Type: Int, Default: "1000", Unit: Milliseconds, Class: Accepted, Update: ClusterWide, Check: atLeast(0),
		Reason: noShares,
		Doc:    "Least time between two target assignments of a group.",
	},
	{
		Name: "group.share.min.assignment.interval.ms", Type: Int, Default: "0", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: noShares,
		Doc:    "Least value a group may set for that interval.",
	},
	{
		Name: "group.share.max.assignment.interval.ms", Type: Int, Default: "15000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: noShares,
		Doc:    "Greatest value a group may set for that interval.",
	},
	{
		Name: "group.share.assignor.offload.enable", Type: Bool, Default: "true", Class: Accepted, Update: ClusterWide, Internal: true,
		Reason: noShares,
		Doc:    "Compute assignments in the background.",
	},
	{
		Name: "group.share.initialize.retry.interval.ms", Type: Int, Default: "30000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1), Internal: true,
		Reason: noShares,
		Doc:    "Pause before the state of a share group is set up again.",
	},
	{
		Name: "errors.deadletterqueue.auto.create.topics.enable", Type: Bool, Default: "false", Class: Accepted, Update: ClusterWide,
		Reason: noShares,
		Doc:    "Create dead-letter topics when they are needed.",
	},
	{
		Name: "errors.deadletterqueue.topic.name.prefix", Type: String, Default: "dlq.", Class: Accepted, Update: ClusterWide,
		Reason: noShares,
		Doc:    "What names of dead-letter topics begin with.",
	},
	{
		Name: "group.streams.session.timeout.ms", Type: Int, Default: "45000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noStreams,
		Doc:    "Session timeout of members of streams groups.",
	},
	{
		Name: "group.streams.min.session.timeout.ms", Type: Int, Default: "45000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noStreams,
		Doc:    "Least value a group may set for its session timeout.",
	},
	{
		Name: "group.streams.max.session.timeout.ms", Type: Int, Default: "60000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noStreams,
		Doc:    "Greatest value a group may set for its session timeout.",
	},
	{
		Name: "group.streams.heartbeat.interval.ms", Type: Int, Default: "5000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noStreams,
		Doc:    "Heartbeat interval told to members.",
	},
	{
		Name: "group.streams.min.heartbeat.interval.ms", Type: Int, Default: "5000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noStreams,
		Doc:    "Least value a group may set for its heartbeat interval.",
	},
	{
		Name: "group.streams.max.heartbeat.interval.ms", Type: Int, Default: "15000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noStreams,
		Doc:    "Greatest value a group may set for its heartbeat interval.",
	},
	{
		Name: "group.streams.max.size", Type: Int, Default: maxInt, Class: Accepted, Check: atLeast(1),
		Reason: noStreams,
		Doc:    "Members a streams group may have.",
	},
	{
		Name: "group.streams.num.standby.replicas", Type: Int, Default: "0", Class: Accepted, Check: atLeast(0),
		Reason: noStreams,
		Doc:    "Standby copies of each task.",
	},
	{
		Name: "group.streams.max.standby.replicas", Type: Int, Default: "2", Class: Accepted, Check: atLeast(0),
		Reason: noStreams,
		Doc:    "Greatest number of standby copies a group may set.",
	},
	{
		Name: "group.streams.initial.rebalance.delay.ms", Type: Int, Default: "3000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: noStreams,
		Doc:    "How long a new streams group waits for more members.",
	},
	{
		Name: "group.streams.assignment.interval.ms", Type: Int, Default: "1000", Unit: Milliseconds, Class: Accepted, Update: ClusterWide, Check: atLeast(0),
		Reason: noStreams,
		Doc:    "Least time between two target assignments of a group.",
	},
	{
		Name: "group.streams.min.assignment.interval.ms", Type: Int, Default: "0", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: noStreams,
		Doc:    "Least value a group may set for that interval.",
	},
	{
		Name: "group.streams.max.assignment.interval.ms", Type: Int, Default: "15000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: noStreams,
		Doc:    "Greatest value a group may set for that interval.",
	},
	{
		Name: "group.streams.assignors", Type: List, Default: "sticky", Class: Accepted,
		Reason: noStreams,
		Doc:    "Task assignors the broker offers.",
	},
	{
		Name: "group.streams.assignor.offload.enable", Type: Bool, Default: "true", Class: Accepted, Update: ClusterWide, Internal: true,
		Reason: noStreams,
		Doc:    "Compute assignments in the background.",
	},
	{
		Name: "group.streams.task.offset.interval.ms", Type: Int, Default: "60000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1), Internal: true,
		Reason: noStreams,
		Doc:    "How often clients report how far a warming task is.",
	},
	{
		Name: "group.streams.min.task.offset.interval.ms", Type: Int, Default: "15000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1), Internal: true,
		Reason: noStreams,
		Doc:    "Least value a group may set for that interval.",
	},
	{
		Name: "group.streams.num.warmup.replicas", Type: Int, Default: "2", Class: Accepted, Check: atLeast(0), Internal: true,
		Reason: noStreams,
		Doc:    "Tasks that may warm up at once.",
	},
	{
		Name: "group.streams.max.warmup.replicas", Type: Int, Default: "20", Class: Accepted, Check: atLeast(0), Internal: true,
		Reason: noStreams,
		Doc:    "Greatest number of warming tasks a group may set.",
	},
	{
		Name: "group.streams.rack.aware.assignment.tags", Type: List, Default: "", Class: Accepted,
		Reason: noStreams,
		Doc:    "Client tags by which standby copies are spread.",
	},
	{
		Name: "group.streams.topology.description.plugin.class", Type: ClassRef, Null: true, Class: Accepted,
		Reason: noStreams,
		Doc:    "Class that describes topologies.",
	},
	{
		Name: "group.streams.acceptable.recovery.lag", Type: Long, Default: "10000", Class: Accepted, Check: atLeast(0), Internal: true,
		Reason: noStreams,
		Doc:    "Lag up to which a client counts as caught up.",
	},
}

// Reasons that several keys share.
const (
	noShares  = "share groups do not exist yet"
	noStreams = "streams groups do not exist yet"
)
