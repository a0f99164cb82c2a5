package config

// topicKeys are Kafka's topic configs (TopicConfig.java, LogConfig.java of 4.4) and our own.
var topicKeys = []Key{
	{
		Name: "cleanup.policy", Type: List, Default: "delete", Class: Honoured, Check: cleanupPolicy,
		Synonyms: syn("log.cleanup.policy"),
		Doc:      "What happens to old closed segments: delete removes them by age and size, compact keeps the last record of each key, delete,compact does both. An empty list keeps everything.",
	},
	{
		Name: "compression.gzip.level", Type: Int, Default: "-1", Class: Honoured, Check: gzipLevel, Synonyms: syn("compression.gzip.level"),
		Doc: "Effort of gzip when the broker recompresses: 1 (fast) to 9 (small), -1 for the codec's own default.",
	},
	{
		Name: "compression.lz4.level", Type: Int, Default: "9", Class: Honoured, Check: between(1, 17), Synonyms: syn("compression.lz4.level"),
		Doc: "Effort of lz4 when the broker recompresses: 1 (fast) to 17 (small).",
	},
	{
		Name: "compression.type", Type: String, Default: "producer", Class: Honoured, Check: oneOf(codecs...), Synonyms: syn("compression.type"),
		Doc: "Codec of stored batches. producer keeps what the producer chose; any other value makes the broker recompress what arrives in another codec.",
	},
	{
		Name: "compression.zstd.level", Type: Int, Default: "3", Class: Honoured, Check: between(-131072, 22), Synonyms: syn("compression.zstd.level"),
		Doc: "Effort of zstd when the broker recompresses: -131072 (fast) to 22 (small).",
	},
	{
		Name: "delete.retention.ms", Type: Long, Default: "86400000", Unit: Milliseconds, Class: Honoured, Check: atLeast(0),
		Synonyms: syn("log.cleaner.delete.retention.ms"),
		Doc:      "How long a tombstone stays readable after compaction removed what it deletes.",
	},
	{
		Name: "errors.deadletterqueue.group.enable", Type: Bool, Default: "false", Class: Refused, Reason: noShareGroups,
		Doc: "Lets share groups use the topic as their dead-letter queue.",
	},
	{
		Name: "file.delete.delay.ms", Type: Long, Default: "60000", Unit: Milliseconds, Class: Honoured, Check: atLeast(0),
		Synonyms: syn("log.segment.delete.delay.ms"),
		Doc:      "How long a removed segment stays on disk under a .deleted name, for readers that still send from it.",
	},
	{
		Name: "flush.messages", Type: Long, Default: maxLong, Class: Honoured, Check: atLeast(1), Synonyms: syn("log.flush.interval.messages"),
		Doc: "Sync the log after this many records. With write.caching=false every record acknowledged to acks=all is synced whatever this says.",
	},
	{
		Name: "flush.ms", Type: Long, Default: maxLong, Unit: Milliseconds, Class: Honoured, Check: atLeast(0),
		Synonyms: syn("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
		Doc:      "Sync the log when its oldest unsynced record is this old. With write.caching=false every record acknowledged to acks=all is synced whatever this says.",
	},
	{
		Name: "follower.replication.throttled.replicas", Type: List, Default: "", Class: Honoured, Check: throttled,
		Doc: "Replicas (partition:broker pairs, or *) whose catching up counts against follower.replication.throttled.rate. One that is in sync never does.",
	},
	{
		Name: "index.interval.bytes", Type: Int, Default: "4096", Unit: Bytes, Class: Honoured, Check: atLeast(0), Synonyms: syn("log.index.interval.bytes"),
		Doc: "How many bytes of log lie between two entries of the offset index.",
	},
	{
		Name: "internal.segment.bytes", Type: Int, Null: true, Unit: Bytes, Class: Accepted, Internal: true, Check: atLeast(1),
		Reason: "it is a hook for Kafka's own tests",
		Doc:    "Segment size below the public minimum, for tests.",
	},
	{
		Name: "leader.replication.throttled.replicas", Type: List, Default: "", Class: Honoured, Check: throttled,
		Doc: "Replicas (partition:broker pairs, or *) whose catching up counts against leader.replication.throttled.rate. One that is in sync never does.",
	},
	{
		Name: "local.retention.bytes", Type: Long, Default: "-2", Unit: Bytes, Class: Accepted, Check: atLeast(-2), Reason: noTier,
		Synonyms: syn("log.local.retention.bytes"),
		Doc:      "With tiered storage: bytes of a partition kept on local disks; -2 means retention.bytes.",
	},
	{
		Name: "local.retention.ms", Type: Long, Default: "-2", Unit: Milliseconds, Class: Accepted, Check: atLeast(-2), Reason: noTier,
		Synonyms: syn("log.local.retention.ms"),
		Doc:      "With tiered storage: age up to which segments stay on local disks; -2 means retention.ms.",
	},
	{
		Name: "max.compaction.lag.ms", Type: Long, Default: maxLong, Unit: Milliseconds, Class: Honoured, Check: atLeast(1),
		Synonyms: syn("log.cleaner.max.compaction.lag.ms"),
		Doc:      "Age at which a record must have become eligible for compaction.",
	},
	{
		Name: "max.decompressed.message.bytes", Type: Int, Default: "2147483639", Unit: Bytes, Class: Honoured, Check: between(1, 2147483639),
		Synonyms: syn("max.decompressed.message.bytes"),
		Doc: "Largest record that is taken in a compressed batch, by its decompressed size; a larger one is refused with INVALID_RECORD. " +
			"Below its default every compressed batch is decompressed when it is produced, unless validation.depth is header.",
	},
	{
		Name: "max.message.bytes", Type: Int, Default: "1048588", Unit: Bytes, Class: Honoured, Check: atLeast(0), Synonyms: syn("message.max.bytes"),
		Doc: "Largest batch that is taken, compressed and with its header.",
	},
	{
		Name: "message.downconversion.enable", Type: Bool, Default: "true", Class: Accepted,
		Reason: "formats before version 2 are served to nobody, here and in Kafka 4",
		Doc:    "Once let brokers convert batches down for old consumers.",
	},
	{
		Name: "message.timestamp.after.max.ms", Type: Long, Default: "3600000", Unit: Milliseconds, Class: Honoured, Check: atLeast(0),
		Synonyms: syn("log.message.timestamp.after.max.ms"),
		Doc:      "How far a record's timestamp may lie after the broker's clock; beyond it the batch is refused with INVALID_TIMESTAMP. CreateTime only.",
	},
	{
		Name: "message.timestamp.before.max.ms", Type: Long, Default: maxLong, Unit: Milliseconds, Class: Honoured, Check: atLeast(0),
		Synonyms: syn("log.message.timestamp.before.max.ms"),
		Doc:      "How far a record's timestamp may lie before the broker's clock; beyond it the batch is refused with INVALID_TIMESTAMP. CreateTime only.",
	},
	{
		Name: "message.timestamp.type", Type: String, Default: "CreateTime", Class: Honoured, Check: oneOf("CreateTime", "LogAppendTime"),
		Synonyms: syn("log.message.timestamp.type"),
		Doc:      "Whose clock a record's timestamp shows: the producer's (CreateTime) or the broker's at the append (LogAppendTime).",
	},
	{
		Name: "min.cleanable.dirty.ratio", Type: Double, Default: "0.5", Class: Honoured, Check: ratio,
		Synonyms: syn("log.cleaner.min.cleanable.ratio"),
		Doc:      "Share of uncompacted bytes above which a log is compacted.",
	},
	{
		Name: "min.compaction.lag.ms", Type: Long, Default: "0", Unit: Milliseconds, Class: Honoured, Check: atLeast(0),
		Synonyms: syn("log.cleaner.min.compaction.lag.ms"),
		Doc:      "Age below which a record is never compacted away.",
	},
	{
		Name: "min.insync.replicas", Type: Int, Default: "1", Class: Honoured, Check: atLeast(1), Synonyms: syn("min.insync.replicas"),
		Doc: "How many replicas must be in sync for acks=all to be taken. More than the partition has counts as all of them.",
	},
	{
		Name: "preallocate", Type: Bool, Default: "false", Class: Honoured, Synonyms: syn("log.preallocate"),
		Doc: "Reserve a new segment's whole size on disk at once instead of in growing steps.",
	},
	{
		Name: "remote.copy.lag.bytes", Type: Long, Default: "-1", Unit: Bytes, Class: Accepted, Check: atLeast(-1), Reason: noTier,
		Synonyms: syn("log.remote.copy.lag.bytes"),
		Doc:      "With tiered storage: bytes of closed segments that may wait before they are copied.",
	},
	{
		Name: "remote.copy.lag.ms", Type: Long, Default: "0", Unit: Milliseconds, Class: Accepted, Check: atLeast(0), Reason: noTier,
		Synonyms: syn("log.remote.copy.lag.ms"),
		Doc:      "With tiered storage: how long a closed segment may wait before it is copied.",
	},
	{
		Name: "remote.log.copy.disable", Type: Bool, Default: "false", Class: Accepted, Reason: noTier,
		Doc: "With tiered storage: stop copying and keep reading what was copied.",
	},
	{
		Name: "remote.log.delete.on.disable", Type: Bool, Default: "false", Class: Accepted, Reason: noTier,
		Doc: "With tiered storage: delete the remote copy when tiering is switched off.",
	},
	{
		Name: "remote.storage.enable", Type: Bool, Default: "false", Class: Refused, Reason: noTierRefused,
		Doc: "Moves closed segments of the topic to remote storage.",
	},
	{
		Name: "retention.bytes", Type: Long, Default: "-1", Unit: Bytes, Class: Honoured, Check: atLeast(-1), Synonyms: syn("log.retention.bytes"),
		Doc: "Size above which a partition's oldest closed segments are deleted; -1 for no limit.",
	},
	{
		Name: "retention.ms", Type: Long, Default: "604800000", Unit: Milliseconds, Class: Honoured, Check: atLeast(-1),
		Synonyms: []Synonym{{Name: "log.retention.ms"}, {Name: "log.retention.minutes", Factor: 60_000}, {Name: "log.retention.hours", Factor: 3_600_000}},
		Doc:      "Age, by its newest timestamp, at which a closed segment is deleted; -1 for no limit.",
	},
	{
		Name: "segment.bytes", Type: Int, Default: "1073741824", Unit: Bytes, Class: Honoured, Check: atLeast(1 << 20), Synonyms: syn("log.segment.bytes"),
		Doc: "Size at which the log continues in a new segment.",
	},
	{
		Name: "segment.index.bytes", Type: Int, Default: "10485760", Unit: Bytes, Class: Honoured, Check: atLeast(4), Synonyms: syn("log.index.size.max.bytes"),
		Doc: "Size of a segment's offset index; a full index makes the log roll.",
	},
	{
		Name: "segment.jitter.ms", Type: Long, Default: "0", Unit: Milliseconds, Class: Honoured, Check: atLeast(0),
		Synonyms: []Synonym{{Name: "log.roll.jitter.ms"}, {Name: "log.roll.jitter.hours", Factor: 3_600_000}},
		Doc:      "At most this much is subtracted at random from segment.ms, so that not all partitions roll at once.",
	},
	{
		Name: "segment.ms", Type: Long, Default: "604800000", Unit: Milliseconds, Class: Honoured, Check: atLeast(1),
		Synonyms: []Synonym{{Name: "log.roll.ms"}, {Name: "log.roll.hours", Factor: 3_600_000}},
		Doc:      "Age at which the log continues in a new segment even when the old one is not full.",
	},
	{
		Name: "unclean.leader.election.enable", Type: Bool, Default: "false", Class: Honoured, Synonyms: syn("unclean.leader.election.enable"),
		Doc: "Lets a replica that may miss acknowledged records lead when no other can. It trades records for availability.",
	},
	{
		Name: "write.caching", Type: Bool, Default: "false", Class: Honoured, Synonyms: syn("log.write.caching"),
		Doc: "false: a record is acknowledged once it is on stable storage of min.insync.replicas brokers. true: once it is in their page caches, as Kafka does. Changing it starts a new leader epoch.",
	},
}

// Reasons that several keys share.
const (
	noThrottle    = "replication throttles keep no samples, and replicas are not moved between directories"
	noTier        = "tiered storage does not exist yet; everything stays on local disks"
	noTierRefused = "tiered storage does not exist yet: leave it false"
	noShareGroups = "share groups do not exist yet: leave it false"
)

const (
	maxLong = "9223372036854775807"
	maxInt  = "2147483647"
)

// syn lists broker keys in the same unit.
func syn(names ...string) []Synonym {
	out := make([]Synonym, len(names))
	for i, n := range names {
		out[i].Name = n
	}
	return out
}
