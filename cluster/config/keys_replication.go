package config

// RackAwareSelector is the value of replica.selector.class with which leaders send consumers to a replica in their rack.
const RackAwareSelector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

// replicationKeys are about replicas and their leaders.
var replicationKeys = []Key{
	{
		Name: "default.replication.factor", Type: Int, Default: "1", Class: Honoured, Check: atLeast(1),
		Doc: "Replicas of a topic created without a number.",
	},
	{
		Name: "unclean.leader.election.enable", Type: Bool, Default: "false", Class: Honoured, Update: ClusterOnly,
		Doc: "Default of the topic key of this name.",
	},
	{
		Name: "replica.lag.time.max.ms", Type: Long, Default: "30000", Unit: Milliseconds, Class: Honoured, Check: atLeast(0),
		Doc: "How long a follower may lag before it leaves the ISR, and a sync of a leader may hang before another replica is asked to lead.",
	},
	{
		Name: "replica.socket.timeout.ms", Type: Int, Default: "30000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: ownLinks,
		Doc:    "How long a follower waits for its leader's answer.",
	},
	{
		Name: "replica.socket.receive.buffer.bytes", Type: Int, Default: "65536", Unit: Bytes, Class: Accepted, Check: atLeast(-1),
		Reason: ownLinks,
		Doc:    "Receive buffer of a follower's socket.",
	},
	{
		Name: "replica.fetch.max.bytes", Type: Int, Default: "1048576", Unit: Bytes, Class: Honoured, Check: atLeast(0),
		Doc: "Bytes a follower asks for of one partition; a larger first batch is given whole.",
	},
	{
		Name: "replica.fetch.wait.max.ms", Type: Int, Default: "500", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: ownLinks,
		Doc:    "How long a follower's fetch may wait for bytes.",
	},
	{
		Name: "replica.fetch.backoff.ms", Type: Int, Default: "1000", Unit: Milliseconds, Class: Honoured, Check: atLeast(0),
		Doc: "Longest pause after a refused ask; the first is a thirty-second part of it.",
	},
	{
		Name: "replica.fetch.min.bytes", Type: Int, Default: "1", Unit: Bytes, Class: Accepted, Check: atLeast(0),
		Reason: ownLinks,
		Doc:    "Bytes a follower's fetch waits for.",
	},
	{
		Name: "replica.fetch.response.max.bytes", Type: Int, Default: "10485760", Unit: Bytes, Class: Accepted, Check: atLeast(0),
		Reason: ownLinks,
		Doc:    "Bytes one answer to a follower may have.",
	},
	{
		Name: "num.replica.fetchers", Type: Int, Default: "1", Class: Accepted, Update: ClusterWide, Check: atLeast(1),
		Reason: ownLinks,
		Doc:    "Threads that fetch from one leader broker.",
	},
	{
		Name: "replica.high.watermark.checkpoint.interval.ms", Type: Long, Default: "5000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: ownLinks,
		Doc:    "How often high watermarks are written down.",
	},
	{
		Name: "replica.selector.class", Type: String, Null: true, Class: Honoured, Check: oneOf("", RackAwareSelector, "org.apache.kafka.common.replica.LeaderSelector"),
		Doc: "Which replica a consumer reads from that names its rack with client.rack: the leader, or with RackAwareReplicaSelector one in its rack (KIP-392).",
	},
	{
		Name: "controller.socket.timeout.ms", Type: Int, Default: "30000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: ownLinks,
		Doc:    "How long a controller waits for a broker's answer.",
	},
	{
		Name: "fetch.purgatory.purge.interval.requests", Type: Int, Default: "1000", Class: Accepted,
		Reason: noPurgatory,
		Doc:    "How often finished fetches are removed from Kafka's waiting room.",
	},
	{
		Name: "producer.purgatory.purge.interval.requests", Type: Int, Default: "1000", Class: Accepted,
		Reason: noPurgatory,
		Doc:    "How often finished produces are removed from Kafka's waiting room.",
	},
	{
		Name: "delete.records.purgatory.purge.interval.requests", Type: Int, Default: "1", Class: Accepted,
		Reason: noPurgatory,
		Doc:    "How often finished deletions are removed from Kafka's waiting room.",
	},
	{
		Name: "auto.leader.rebalance.enable", Type: Bool, Default: "true", Class: Honoured,
		Doc: "Move leaderships back to preferred replicas.",
	},
	{
		Name: "leader.imbalance.check.interval.seconds", Type: Long, Default: "300", Unit: Seconds, Class: Honoured, Check: atLeast(1),
		Doc: "How often leaderships are compared with the preferred ones.",
	},
	{
		Name: "unclean.leader.election.interval.ms", Type: Long, Default: "300000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1), Internal: true,
		Reason: ownLinks,
		Doc:    "How often leaderless partitions are looked at.",
	},
	{
		Name: "security.inter.broker.protocol", Type: String, Default: "PLAINTEXT", Class: Refused,
		Reason: "brokers cannot talk through TLS or SASL yet: leave it PLAINTEXT",
		Doc:    "Security protocol between brokers.",
	},
	{
		Name: "inter.broker.listener.name", Type: String, Null: true, Class: Accepted,
		Reason: ownLinks,
		Doc:    "Listener brokers use among each other.",
	},
	{
		Name: "follower.fetch.last.tiered.offset.enable", Type: Bool, Default: "false", Class: Accepted, Update: ClusterWide,
		Reason: noTier,
		Doc:    "Lets an empty follower begin behind what is in remote storage.",
	},
}

// Reasons that several keys share.
const (
	ownLinks    = "brokers reach each other by links of their own, which have no such setting"
	noPurgatory = "waiting requests are kept where they wait and purged at once"
)
