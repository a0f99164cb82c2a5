package config

// logKeys are the broker's defaults for its logs.
var logKeys = []Key{
	{
		Name: "num.partitions", Type: Int, Default: "1", Class: Honoured, Check: atLeast(1),
		Doc: "Partitions of a topic created without a number.",
	},
	{
		Name: "log.dir", Type: String, Default: "./troupe-data", Class: Honoured, Check: notEmpty,
		Doc: "The data directory. Kafka's default lies below /tmp.",
	},
	{
		Name: "log.dirs", Type: List, Null: true, Class: Honoured, Check: oneDirectory,
		Doc: "The data directory under its plural name; it must be one directory.",
	},
	{
		Name: "cordoned.log.dirs", Type: List, Default: "", Class: Refused, Update: PerBroker,
		Reason: "there is one data directory; leave it empty",
		Doc:    "Data directories that take no new partitions.",
	},
	{
		Name: "log.segment.bytes", Type: Int, Default: "1073741824", Unit: Bytes, Class: Honoured, Update: ClusterWide, Check: atLeast(1 << 20),
		Doc: "Default of segment.bytes.",
	},
	{
		Name: "log.roll.ms", Type: Long, Null: true, Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: atLeast(1), Synonyms: []Synonym{{Name: "log.roll.hours", Factor: 3_600_000}},
		Doc: "Default of segment.ms.",
	},
	{
		Name: "log.roll.hours", Type: Int, Default: "168", Unit: Hours, Class: Honoured, Check: atLeast(1),
		Doc: "Default of segment.ms in hours; log.roll.ms is stronger.",
	},
	{
		Name: "log.roll.jitter.ms", Type: Long, Null: true, Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: atLeast(0), Synonyms: []Synonym{{Name: "log.roll.jitter.hours", Factor: 3_600_000}},
		Doc: "Default of segment.jitter.ms.",
	},
	{
		Name: "log.roll.jitter.hours", Type: Int, Default: "0", Unit: Hours, Class: Honoured, Check: atLeast(0),
		Doc: "Default of segment.jitter.ms in hours; log.roll.jitter.ms is stronger.",
	},
	{
		Name: "log.retention.ms", Type: Long, Null: true, Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: retention, Synonyms: []Synonym{{Name: "log.retention.minutes", Factor: 60_000}, {Name: "log.retention.hours", Factor: 3_600_000}},
		Doc: "Default of retention.ms.",
	},
	{
		Name: "log.retention.minutes", Type: Int, Null: true, Unit: Minutes, Class: Honoured, Check: retention, Synonyms: []Synonym{{Name: "log.retention.hours", Factor: 60}},
		Doc: "Default of retention.ms in minutes; log.retention.ms is stronger.",
	},
	{
		Name: "log.retention.hours", Type: Int, Default: "168", Unit: Hours, Class: Honoured, Check: retention,
		Doc: "Default of retention.ms in hours; log.retention.ms and .minutes are stronger.",
	},
	{
		Name: "log.retention.bytes", Type: Long, Default: "-1", Unit: Bytes, Class: Honoured, Update: ClusterWide, Check: atLeast(-1),
		Doc: "Default of retention.bytes.",
	},
	{
		Name: "log.retention.check.interval.ms", Type: Long, Default: "300000", Unit: Milliseconds, Class: Honoured, Check: atLeast(1),
		Doc: "How often old segments are looked for.",
	},
	{
		Name: "log.cleanup.policy", Type: List, Default: "delete", Class: Honoured, Update: ClusterWide, Check: cleanupPolicy,
		Doc: "Default of cleanup.policy.",
	},
	{
		Name: "log.index.size.max.bytes", Type: Int, Default: "10485760", Unit: Bytes, Class: Honoured, Update: ClusterWide, Check: atLeast(4),
		Doc: "Default of segment.index.bytes.",
	},
	{
		Name: "log.index.interval.bytes", Type: Int, Default: "4096", Unit: Bytes, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Default of index.interval.bytes.",
	},
	{
		Name: "log.flush.interval.messages", Type: Long, Default: maxLong, Class: Honoured, Update: ClusterWide, Check: atLeast(1),
		Doc: "Default of flush.messages.",
	},
	{
		Name: "log.flush.interval.ms", Type: Long, Null: true, Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: atLeast(0), Synonyms: syn("log.flush.scheduler.interval.ms"),
		Doc: "Default of flush.ms.",
	},
	{
		Name: "log.flush.scheduler.interval.ms", Type: Long, Default: maxLong, Unit: Milliseconds, Class: Honoured, Check: atLeast(0),
		Doc: "Default of flush.ms where log.flush.interval.ms is not set.",
	},
	{
		Name: "log.flush.offset.checkpoint.interval.ms", Type: Int, Default: "60000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: ownMarks,
		Doc:    "How often Kafka writes its recovery points.",
	},
	{
		Name: "log.flush.start.offset.checkpoint.interval.ms", Type: Int, Default: "60000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: ownMarks,
		Doc:    "How often Kafka writes where its logs start.",
	},
	{
		Name: "log.segment.delete.delay.ms", Type: Long, Default: "60000", Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Default of file.delete.delay.ms.",
	},
	{
		Name: "log.preallocate", Type: Bool, Default: "false", Class: Honoured, Update: ClusterWide,
		Doc: "Default of preallocate.",
	},
	{
		Name: "log.message.timestamp.type", Type: String, Default: "CreateTime", Class: Honoured, Update: ClusterWide, Check: oneOf("CreateTime", "LogAppendTime"),
		Doc: "Default of message.timestamp.type.",
	},
	{
		Name: "log.message.timestamp.before.max.ms", Type: Long, Default: maxLong, Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Default of message.timestamp.before.max.ms.",
	},
	{
		Name: "log.message.timestamp.after.max.ms", Type: Long, Default: "3600000", Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Default of message.timestamp.after.max.ms.",
	},
	{
		Name: "num.recovery.threads.per.data.dir", Type: Int, Default: "2", Class: Accepted, Update: ClusterWide, Check: atLeast(1),
		Reason: "logs are recovered one partition at a time, each serving when it is done",
		Doc:    "Threads that recover logs at the start in Kafka.",
	},
	{
		Name: "auto.create.topics.enable", Type: Bool, Default: "true", Class: Honoured,
		Doc: "Create a topic when a client asks for metadata of one that does not exist and allows it.",
	},
	{
		Name: "min.insync.replicas", Type: Int, Default: "1", Class: Honoured, Update: ClusterOnly, Check: atLeast(1),
		Doc: "Default of the topic key of this name.",
	},
	{
		Name: "create.topic.policy.class.name", Type: ClassRef, Null: true, Class: Refused,
		Reason: "Java classes cannot be loaded, and a policy must not silently be missing",
		Doc:    "Class that judges topics to be created.",
	},
	{
		Name: "alter.config.policy.class.name", Type: ClassRef, Null: true, Class: Refused,
		Reason: "Java classes cannot be loaded, and a policy must not silently be missing",
		Doc:    "Class that judges configs to be altered.",
	},
	{
		Name: "log.dir.failure.timeout.ms", Type: Long, Default: "30000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: "with one data directory its failure stops the broker",
		Doc:    "How long a failed directory may stay unknown to the controller.",
	},
	{
		Name: "log.initial.task.delay.ms", Type: Long, Default: "30000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0), Internal: true,
		Reason: "housekeeping starts with the broker",
		Doc:    "Pause before housekeeping starts.",
	},
}

// Reasons that several keys share.
const (
	ownMarks = "log ends and recovery points are kept by Troupe's own marks, written as they move"
)
