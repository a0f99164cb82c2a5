package config

// tierKeys are about remote storage.
var tierKeys = []Key{
	{
		Name: "remote.log.storage.system.enable", Type: Bool, Default: "false", Class: Refused,
		Reason: noTierRefused,
		Doc:    "Tiered storage at all.",
	},
	{
		Name: "remote.log.metadata.topic.replication.factor", Type: Short, Default: "3", Class: Accepted, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Replicas of the topic that knows what is in remote storage.",
	},
	{
		Name: "remote.log.metadata.topic.num.partitions", Type: Int, Default: "50", Class: Accepted, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Partitions of that topic.",
	},
	{
		Name: "remote.log.metadata.topic.retention.ms", Type: Long, Default: "-1", Unit: Milliseconds, Class: Accepted, Check: atLeast(-1),
		Reason: noTier,
		Doc:    "Retention of that topic.",
	},
	{
		Name: "remote.log.metadata.topic.min.isr", Type: Short, Default: "2", Class: Accepted, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Replicas that must be in sync for a write to that topic.",
	},
	{
		Name: "remote.log.metadata.consume.wait.ms", Type: Long, Default: "120000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noTier,
		Doc:    "How long to wait until a written event is read back.",
	},
	{
		Name: "remote.log.metadata.initialization.retry.max.timeout.ms", Type: Long, Default: "120000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noTier,
		Doc:    "How long setting up that topic is tried.",
	},
	{
		Name: "remote.log.metadata.initialization.retry.interval.ms", Type: Long, Default: "100", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Pause before setting up is tried again.",
	},
	{
		Name: "remote.log.storage.manager.impl.prefix", Type: String, Default: "rsm.config.", Class: Accepted,
		Reason: noTier,
		Doc:    "What names of the storage plugin's keys begin with.",
	},
	{
		Name: "remote.log.metadata.manager.impl.prefix", Type: String, Default: "rlmm.config.", Class: Accepted,
		Reason: noTier,
		Doc:    "What names of the metadata plugin's keys begin with.",
	},
	{
		Name: "remote.log.storage.manager.class.name", Type: String, Null: true, Class: Accepted,
		Reason: noTier,
		Doc:    "Class of the storage plugin.",
	},
	{
		Name: "remote.log.storage.manager.class.path", Type: String, Null: true, Class: Accepted,
		Reason: noTier,
		Doc:    "Where the storage plugin's classes are.",
	},
	{
		Name: "remote.log.metadata.manager.class.name", Type: String, Default: "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager", Class: Accepted,
		Reason: noTier,
		Doc:    "Class of the metadata plugin.",
	},
	{
		Name: "remote.log.metadata.manager.class.path", Type: String, Null: true, Class: Accepted,
		Reason: noTier,
		Doc:    "Where the metadata plugin's classes are.",
	},
	{
		Name: "remote.log.metadata.manager.listener.name", Type: String, Null: true, Class: Accepted,
		Reason: noTier,
		Doc:    "Listener the metadata plugin connects to.",
	},
	{
		Name: "remote.log.metadata.custom.metadata.max.bytes", Type: Int, Default: "128", Unit: Bytes, Class: Accepted, Check: atLeast(0),
		Reason: noTier,
		Doc:    "Bytes a storage plugin may attach to a segment.",
	},
	{
		Name: "remote.log.index.file.cache.total.size.bytes", Type: Long, Default: "1073741824", Unit: Bytes, Class: Accepted, Update: ClusterWide, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Disk space for index files fetched from remote storage.",
	},
	{
		Name: "remote.log.index.file.cache.ttl.ms", Type: Long, Default: "900000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1), Internal: true,
		Reason: noTier,
		Doc:    "How long an unused index file is kept.",
	},
	{
		Name: "remote.log.manager.thread.pool.size", Type: Int, Default: "2", Class: Accepted, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Threads of the follower tasks, under their old name.",
	},
	{
		Name: "remote.log.manager.copier.thread.pool.size", Type: Int, Default: "10", Class: Accepted, Update: ClusterWide, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Threads that copy segments.",
	},
	{
		Name: "remote.log.manager.expiration.thread.pool.size", Type: Int, Default: "10", Class: Accepted, Update: ClusterWide, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Threads that delete expired remote segments.",
	},
	{
		Name: "remote.log.manager.follower.thread.pool.size", Type: Int, Default: "2", Class: Accepted, Update: ClusterWide, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Threads of the follower tasks.",
	},
	{
		Name: "remote.log.manager.task.interval.ms", Type: Long, Default: "30000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noTier,
		Doc:    "How often segments to copy or delete are looked for.",
	},
	{
		Name: "remote.log.manager.task.retry.backoff.ms", Type: Long, Default: "500", Unit: Milliseconds, Class: Accepted, Check: atLeast(1), Internal: true,
		Reason: noTier,
		Doc:    "First pause after a failed copy.",
	},
	{
		Name: "remote.log.manager.task.retry.backoff.max.ms", Type: Long, Default: "30000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1), Internal: true,
		Reason: noTier,
		Doc:    "Longest pause after failed copies.",
	},
	{
		Name: "remote.log.manager.task.retry.jitter", Type: Double, Default: "0.2", Class: Accepted, Check: ratio, Internal: true,
		Reason: noTier,
		Doc:    "Random share of those pauses.",
	},
	{
		Name: "remote.log.reader.threads", Type: Int, Default: "10", Class: Accepted, Update: ClusterWide, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Threads that read remote segments.",
	},
	{
		Name: "remote.log.reader.max.pending.tasks", Type: Int, Default: "100", Class: Accepted, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Remote reads that may wait for a thread.",
	},
	{
		Name: "log.local.retention.ms", Type: Long, Default: "-2", Unit: Milliseconds, Class: Accepted, Update: ClusterWide, Check: atLeast(-2),
		Reason: noTier,
		Doc:    "Default of local.retention.ms.",
	},
	{
		Name: "log.local.retention.bytes", Type: Long, Default: "-2", Unit: Bytes, Class: Accepted, Update: ClusterWide, Check: atLeast(-2),
		Reason: noTier,
		Doc:    "Default of local.retention.bytes.",
	},
	{
		Name: "log.remote.copy.lag.ms", Type: Long, Default: "0", Unit: Milliseconds, Class: Accepted, Update: ClusterWide, Check: atLeast(0),
		Reason: noTier,
		Doc:    "Default of remote.copy.lag.ms.",
	},
	{
		Name: "log.remote.copy.lag.bytes", Type: Long, Default: "-1", Unit: Bytes, Class: Accepted, Update: ClusterWide, Check: atLeast(-1),
		Reason: noTier,
		Doc:    "Default of remote.copy.lag.bytes.",
	},
	{
		Name: "remote.log.manager.copy.max.bytes.per.second", Type: Long, Default: maxLong, Unit: BytesPerSec, Class: Accepted, Update: ClusterWide, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Bytes per second copied to remote storage.",
	},
	{
		Name: "remote.log.manager.copy.quota.window.num", Type: Int, Default: "11", Class: Accepted, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Samples kept for that quota.",
	},
	{
		Name: "remote.log.manager.copy.quota.window.size.seconds", Type: Int, Default: "1", Unit: Seconds, Class: Accepted, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Length of a sample for that quota.",
	},
	{
		Name: "remote.log.manager.fetch.max.bytes.per.second", Type: Long, Default: maxLong, Unit: BytesPerSec, Class: Accepted, Update: ClusterWide, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Bytes per second read from remote storage.",
	},
	{
		Name: "remote.log.manager.fetch.quota.window.num", Type: Int, Default: "11", Class: Accepted, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Samples kept for that quota.",
	},
	{
		Name: "remote.log.manager.fetch.quota.window.size.seconds", Type: Int, Default: "1", Unit: Seconds, Class: Accepted, Check: atLeast(1),
		Reason: noTier,
		Doc:    "Length of a sample for that quota.",
	},
	{
		Name: "remote.fetch.max.wait.ms", Type: Int, Default: "500", Unit: Milliseconds, Class: Accepted, Update: ClusterWide, Check: atLeast(1),
		Reason: noTier,
		Doc:    "How long a fetch may wait for remote storage.",
	},
	{
		Name: "remote.list.offsets.request.timeout.ms", Type: Long, Default: "30000", Unit: Milliseconds, Class: Accepted, Update: ClusterWide, Check: atLeast(1),
		Reason: noTier,
		Doc:    "How long a ListOffsets may wait for remote storage.",
	},
}
