package config

// groupKeys are the configs of group resources (GroupConfig.java of 4.4).
var groupKeys = []Key{
	{
		Name: "consumer.session.timeout.ms", Type: Int, Default: "45000", Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: atLeast(1), Synonyms: syn("group.consumer.session.timeout.ms"),
		Doc: "Session timeout of the group's members.",
	},
	{
		Name: "consumer.heartbeat.interval.ms", Type: Int, Default: "5000", Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: atLeast(1), Synonyms: syn("group.consumer.heartbeat.interval.ms"),
		Doc: "Heartbeat interval told to the group's members.",
	},
	{
		Name: "consumer.assignment.interval.ms", Type: Int, Default: "1000", Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: atLeast(0), Synonyms: syn("group.consumer.assignment.interval.ms"),
		Doc: "Least time between two target assignments.",
	},
	{
		Name: "consumer.assignor.offload.enable", Type: Bool, Default: "true", Class: Accepted, Update: ClusterWide, Internal: true, Synonyms: syn("group.consumer.assignor.offload.enable"),
		Reason: "an assignment is made in the coordinator's turn",
		Doc:    "Compute assignments in the background.",
	},
	{
		Name: "share.session.timeout.ms", Type: Int, Default: "45000", Unit: Milliseconds, Class: Refused, Update: ClusterWide, Check: atLeast(1), Synonyms: syn("group.share.session.timeout.ms"),
		Reason: sharesRefused,
		Doc:    "Session timeout of the group's members.",
	},
	{
		Name: "share.heartbeat.interval.ms", Type: Int, Default: "5000", Unit: Milliseconds, Class: Refused, Update: ClusterWide, Check: atLeast(1), Synonyms: syn("group.share.heartbeat.interval.ms"),
		Reason: sharesRefused,
		Doc:    "Heartbeat interval told to the group's members.",
	},
	{
		Name: "share.record.lock.duration.ms", Type: Int, Default: "30000", Unit: Milliseconds, Class: Refused, Update: ClusterWide, Check: atLeast(1000), Synonyms: syn("group.share.record.lock.duration.ms"),
		Reason: sharesRefused,
		Doc:    "How long a consumer holds a record.",
	},
	{
		Name: "share.auto.offset.reset", Type: String, Default: "latest", Class: Refused, Update: ClusterWide, Check: offsetReset,
		Reason: sharesRefused,
		Doc:    "Where the group begins to read a partition: earliest, latest or by_duration: with an ISO 8601 duration.",
	},
	{
		Name: "share.isolation.level", Type: String, Default: "read_uncommitted", Class: Refused, Update: ClusterWide, Check: oneOf("read_uncommitted", "read_committed"),
		Reason: sharesRefused,
		Doc:    "Whether records of aborted transactions are hidden.",
	},
	{
		Name: "share.delivery.count.limit", Type: Int, Default: "5", Class: Refused, Update: ClusterWide, Check: atLeast(2), Synonyms: syn("group.share.delivery.count.limit"),
		Reason: sharesRefused,
		Doc:    "Attempts to deliver a record.",
	},
	{
		Name: "share.partition.max.record.locks", Type: Int, Default: "2000", Class: Refused, Update: ClusterWide, Check: atLeast(100), Synonyms: syn("group.share.partition.max.record.locks"),
		Reason: sharesRefused,
		Doc:    "Records of one partition that may be held at once.",
	},
	{
		Name: "share.renew.acknowledge.enable", Type: Bool, Default: "true", Class: Refused, Update: ClusterWide,
		Reason: sharesRefused,
		Doc:    "Lets a consumer hold a record longer.",
	},
	{
		Name: "share.assignment.interval.ms", Type: Int, Default: "1000", Unit: Milliseconds, Class: Refused, Update: ClusterWide, Check: atLeast(0), Synonyms: syn("group.share.assignment.interval.ms"),
		Reason: sharesRefused,
		Doc:    "Least time between two target assignments.",
	},
	{
		Name: "share.assignor.offload.enable", Type: Bool, Default: "true", Class: Refused, Update: ClusterWide, Internal: true, Synonyms: syn("group.share.assignor.offload.enable"),
		Reason: sharesRefused,
		Doc:    "Compute assignments in the background.",
	},
	{
		Name: "streams.session.timeout.ms", Type: Int, Default: "45000", Unit: Milliseconds, Class: Refused, Update: ClusterWide, Check: atLeast(1), Synonyms: syn("group.streams.session.timeout.ms"),
		Reason: streamsRefused,
		Doc:    "Session timeout of the group's members.",
	},
	{
		Name: "streams.heartbeat.interval.ms", Type: Int, Default: "5000", Unit: Milliseconds, Class: Refused, Update: ClusterWide, Check: atLeast(1), Synonyms: syn("group.streams.heartbeat.interval.ms"),
		Reason: streamsRefused,
		Doc:    "Heartbeat interval told to the group's members.",
	},
	{
		Name: "streams.num.standby.replicas", Type: Int, Default: "0", Class: Refused, Update: ClusterWide, Check: atLeast(0), Synonyms: syn("group.streams.num.standby.replicas"),
		Reason: streamsRefused,
		Doc:    "Standby copies of each task.",
	},
	{
		Name: "streams.initial.rebalance.delay.ms", Type: Int, Default: "3000", Unit: Milliseconds, Class: Refused, Update: ClusterWide, Check: atLeast(0), Synonyms: syn("group.streams.initial.rebalance.delay.ms"),
		Reason: streamsRefused,
		Doc:    "How long a new group waits for more members.",
	},
	{
		Name: "streams.assignment.interval.ms", Type: Int, Default: "1000", Unit: Milliseconds, Class: Refused, Update: ClusterWide, Check: atLeast(0), Synonyms: syn("group.streams.assignment.interval.ms"),
		Reason: streamsRefused,
		Doc:    "Least time between two target assignments.",
	},
	{
		Name: "streams.assignor.name", Type: String, Null: true, Class: Refused, Update: ClusterWide,
		Reason: streamsRefused,
		Doc:    "Task assignor of the group.",
	},
	{
		Name: "streams.rack.aware.assignment.tags", Type: List, Default: "", Class: Refused, Update: ClusterWide, Synonyms: syn("group.streams.rack.aware.assignment.tags"),
		Reason: streamsRefused,
		Doc:    "Client tags by which standby copies are spread.",
	},
	{
		Name: "streams.assignor.offload.enable", Type: Bool, Default: "true", Class: Refused, Update: ClusterWide, Internal: true, Synonyms: syn("group.streams.assignor.offload.enable"),
		Reason: streamsRefused,
		Doc:    "Compute assignments in the background.",
	},
	{
		Name: "streams.task.offset.interval.ms", Type: Int, Default: "60000", Unit: Milliseconds, Class: Refused, Update: ClusterWide, Check: atLeast(1), Internal: true, Synonyms: syn("group.streams.task.offset.interval.ms"),
		Reason: streamsRefused,
		Doc:    "How often clients report how far a warming task is.",
	},
	{
		Name: "streams.num.warmup.replicas", Type: Int, Default: "2", Class: Refused, Update: ClusterWide, Check: atLeast(0), Internal: true, Synonyms: syn("group.streams.num.warmup.replicas"),
		Reason: streamsRefused,
		Doc:    "Tasks that may warm up at once.",
	},
	{
		Name: "streams.acceptable.recovery.lag", Type: Long, Default: "10000", Class: Refused, Update: ClusterWide, Check: atLeast(0), Internal: true, Synonyms: syn("group.streams.acceptable.recovery.lag"),
		Reason: streamsRefused,
		Doc:    "Lag up to which a client counts as caught up.",
	},
	{
		Name: "errors.deadletterqueue.topic.name", Type: String, Default: "", Class: Refused, Update: ClusterWide,
		Reason: sharesRefused,
		Doc:    "Topic that takes records which could not be delivered.",
	},
	{
		Name: "errors.deadletterqueue.copy.record.enable", Type: Bool, Default: "false", Class: Refused, Update: ClusterWide,
		Reason: sharesRefused,
		Doc:    "Copy key and value of such records too.",
	},
}

// Reasons that several keys share.
const (
	sharesRefused  = "share groups do not exist yet, so their configs cannot be kept"
	streamsRefused = "streams groups do not exist yet, so their configs cannot be kept"
)
