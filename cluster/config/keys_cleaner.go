package config

// cleanerKeys are about compaction.
var cleanerKeys = []Key{
	{
		Name: "log.cleaner.threads", Type: Int, Default: "1", Class: Accepted, Update: ClusterWide, Check: atLeast(0),
		Reason: notCompacting,
		Doc:    "Threads that compact.",
	},
	{
		Name: "log.cleaner.io.max.bytes.per.second", Type: Double, Default: "1.7976931348623157E308", Unit: BytesPerSec, Class: Accepted, Update: ClusterWide,
		Reason: notCompacting,
		Doc:    "Most bytes compaction reads and writes per second.",
	},
	{
		Name: "log.cleaner.dedupe.buffer.size", Type: Long, Default: "134217728", Unit: Bytes, Class: Accepted, Update: ClusterWide, Check: atLeast(0),
		Reason: notCompacting,
		Doc:    "Memory for the keys of one round.",
	},
	{
		Name: "log.cleaner.io.buffer.size", Type: Int, Default: "524288", Unit: Bytes, Class: Accepted, Update: ClusterWide, Check: atLeast(0),
		Reason: notCompacting,
		Doc:    "Memory for the input and output of compaction.",
	},
	{
		Name: "log.cleaner.io.buffer.load.factor", Type: Double, Default: "0.9", Class: Accepted, Update: ClusterWide,
		Reason: notCompacting,
		Doc:    "How full the key buffer may get.",
	},
	{
		Name: "log.cleaner.backoff.ms", Type: Long, Default: "15000", Unit: Milliseconds, Class: Accepted, Update: ClusterWide, Check: atLeast(0),
		Reason: notCompacting,
		Doc:    "Pause when nothing is dirty.",
	},
	{
		Name: "log.cleaner.min.cleanable.ratio", Type: Double, Default: "0.5", Class: Accepted, Update: ClusterWide, Check: ratio,
		Reason: notCompacting,
		Doc:    "Default of min.cleanable.dirty.ratio.",
	},
	{
		Name: "log.cleaner.enable", Type: Bool, Default: "true", Class: Accepted,
		Reason: notCompacting,
		Doc:    "Compact at all. Deprecated in Kafka.",
	},
	{
		Name: "log.cleaner.delete.retention.ms", Type: Long, Default: "86400000", Unit: Milliseconds, Class: Accepted, Update: ClusterWide, Check: atLeast(0),
		Reason: notCompacting,
		Doc:    "Default of delete.retention.ms.",
	},
	{
		Name: "log.cleaner.min.compaction.lag.ms", Type: Long, Default: "0", Unit: Milliseconds, Class: Accepted, Update: ClusterWide, Check: atLeast(0),
		Reason: notCompacting,
		Doc:    "Default of min.compaction.lag.ms.",
	},
	{
		Name: "log.cleaner.max.compaction.lag.ms", Type: Long, Default: maxLong, Unit: Milliseconds, Class: Accepted, Update: ClusterWide, Check: atLeast(1),
		Reason: notCompacting,
		Doc:    "Default of max.compaction.lag.ms.",
	},
}
