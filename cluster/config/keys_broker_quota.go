package config

// brokerQuotaKeys are about how quotas are measured.
var brokerQuotaKeys = []Key{
	{
		Name: "quota.window.num", Type: Int, Default: "11", Class: Accepted, Check: atLeast(1),
		Reason: noQuotas,
		Doc:    "Samples kept for client quotas.",
	},
	{
		Name: "quota.window.size.seconds", Type: Int, Default: "1", Unit: Seconds, Class: Accepted, Check: atLeast(1),
		Reason: noQuotas,
		Doc:    "Length of a sample for client quotas.",
	},
	{
		Name: "controller.quota.window.num", Type: Int, Default: "11", Class: Accepted, Check: atLeast(1),
		Reason: noQuotas,
		Doc:    "Samples kept for quotas on metadata changes.",
	},
	{
		Name: "controller.quota.window.size.seconds", Type: Int, Default: "1", Unit: Seconds, Class: Accepted, Check: atLeast(1),
		Reason: noQuotas,
		Doc:    "Length of a sample for quotas on metadata changes.",
	},
	{
		Name: "replication.quota.window.num", Type: Int, Default: "11", Class: Accepted, Check: atLeast(1),
		Reason: noThrottle,
		Doc:    "Samples kept for replication quotas.",
	},
	{
		Name: "replication.quota.window.size.seconds", Type: Int, Default: "1", Unit: Seconds, Class: Accepted, Check: atLeast(1),
		Reason: noThrottle,
		Doc:    "Length of a sample for replication quotas.",
	},
	{
		Name: "alter.log.dirs.replication.quota.window.num", Type: Int, Default: "11", Class: Accepted, Check: atLeast(1),
		Reason: noThrottle,
		Doc:    "Samples kept for quotas on moves between directories.",
	},
	{
		Name: "alter.log.dirs.replication.quota.window.size.seconds", Type: Int, Default: "1", Unit: Seconds, Class: Accepted, Check: atLeast(1),
		Reason: noThrottle,
		Doc:    "Length of a sample for quotas on moves between directories.",
	},
	{
		Name: "client.quota.callback.class", Type: ClassRef, Null: true, Class: Refused,
		Reason: "Java classes cannot be loaded, and a quota must not silently be missing",
		Doc:    "Class that decides client quotas.",
	},
	{
		Name: "leader.replication.throttled.rate", Type: Long, Default: maxLong, Unit: BytesPerSec, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Bytes per second leaders send to throttled replicas.",
	},
	{
		Name: "follower.replication.throttled.rate", Type: Long, Default: maxLong, Unit: BytesPerSec, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Bytes per second followers take for throttled replicas.",
	},
	{
		Name: "replica.alter.log.dirs.io.max.bytes.per.second", Type: Long, Default: maxLong, Unit: BytesPerSec, Class: Accepted, Update: ClusterWide, Check: atLeast(0),
		Reason: noThrottle,
		Doc:    "Bytes per second moved between directories.",
	},
}
