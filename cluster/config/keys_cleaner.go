package config

// cleanerKeys are about compaction.
var cleanerKeys = []Key{
	{
		Name: "log.cleaner.threads", Type: Int, Default: "1", Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "How many logs are compacted at a time; 0 stops compaction.",
	},
	{
		Name: "log.cleaner.io.max.bytes.per.second", Type: Double, Default: "1.7976931348623157E308", Unit: BytesPerSec, Class: Honoured, Update: ClusterWide, Check: aboveZero,
		Doc: "Most bytes that compaction reads and writes per second, all threads together.",
	},
	{
		Name: "log.cleaner.dedupe.buffer.size", Type: Long, Default: "134217728", Unit: Bytes, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Memory for the keys of what is compacted at a time, all threads together, at 24 bytes a key. What does not fit is left to the next round.",
	},
	{
		Name: "log.cleaner.io.buffer.size", Type: Int, Default: "524288", Unit: Bytes, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Memory for the input and output of compaction, all threads together. A thread has at least 64 KiB, and one batch always fits.",
	},
	{
		Name: "log.cleaner.io.buffer.load.factor", Type: Double, Default: "0.9", Class: Honoured, Update: ClusterWide, Check: ratio,
		Doc: "How full the buffer of keys may get.",
	},
	{
		Name: "log.cleaner.backoff.ms", Type: Long, Default: "15000", Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Pause when nothing is dirty enough.",
	},
	{
		Name: "log.cleaner.min.cleanable.ratio", Type: Double, Default: "0.5", Class: Honoured, Update: ClusterWide, Check: ratio,
		Doc: "Default of min.cleanable.dirty.ratio.",
	},
	{
		Name: "log.cleaner.enable", Type: Bool, Default: "true", Class: Honoured,
		Doc: "Compact at all. Deprecated in Kafka; without it, compacted topics grow for ever.",
	},
	{
		Name: "log.cleaner.delete.retention.ms", Type: Long, Default: "86400000", Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Default of delete.retention.ms.",
	},
	{
		Name: "log.cleaner.min.compaction.lag.ms", Type: Long, Default: "0", Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Default of min.compaction.lag.ms.",
	},
	{
		Name: "log.cleaner.max.compaction.lag.ms", Type: Long, Default: maxLong, Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: atLeast(1),
		Doc: "Default of max.compaction.lag.ms.",
	},
}
