package config

// transactionKeys are about transactions and producer ids.
var transactionKeys = []Key{
	{
		Name: "producer.id.expiration.ms", Type: Int, Default: "86400000", Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: atLeast(1),
		Doc: "How long a partition remembers a producer that sends nothing.",
	},
	{
		Name: "producer.id.expiration.check.interval.ms", Type: Int, Default: "600000", Unit: Milliseconds, Class: Honoured, Check: atLeast(1), Internal: true,
		Doc: "How often forgotten producers are looked for.",
	},
	{
		Name: "transactional.id.expiration.ms", Type: Int, Default: "604800000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noTransactions,
		Doc:    "How long an unused transactional id is kept.",
	},
	{
		Name: "transaction.max.timeout.ms", Type: Int, Default: "900000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noTransactions,
		Doc:    "Longest timeout a transaction may have.",
	},
	{
		Name: "transaction.abort.timed.out.transaction.cleanup.interval.ms", Type: Int, Default: "10000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noTransactions,
		Doc:    "How often transactions that timed out are aborted.",
	},
	{
		Name: "transaction.remove.expired.transaction.cleanup.interval.ms", Type: Int, Default: "3600000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noTransactions,
		Doc:    "How often expired transactional ids are removed.",
	},
	{
		Name: "transaction.two.phase.commit.enable", Type: Bool, Default: "false", Class: Refused,
		Reason: "transactions do not exist yet: leave it false",
		Doc:    "Lets an outside coordinator decide transactions.",
	},
	{
		Name: "add.partitions.to.txn.retry.backoff.max.ms", Type: Int, Default: "100", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: noTransactions,
		Doc:    "Longest retry of adding a partition to a transaction.",
	},
	{
		Name: "add.partitions.to.txn.retry.backoff.ms", Type: Int, Default: "20", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noTransactions,
		Doc:    "Pause before adding a partition to a transaction is tried again.",
	},
	{
		Name: "transaction.state.log.min.isr", Type: Int, Default: "2", Class: Accepted, Check: atLeast(1),
		Reason: noTransactions,
		Doc:    "Replicas that must be in sync for a write of transaction state.",
	},
	{
		Name: "transaction.state.log.load.buffer.size", Type: Int, Default: "5242880", Unit: Bytes, Class: Accepted, Check: atLeast(1),
		Reason: noTransactions,
		Doc:    "Bytes read at once when transaction state loads.",
	},
	{
		Name: "transaction.state.log.replication.factor", Type: Short, Default: "3", Class: Accepted, Check: atLeast(1),
		Reason: noTransactions,
		Doc:    "Replicas of the topic that keeps transaction state.",
	},
	{
		Name: "transaction.state.log.num.partitions", Type: Int, Default: "50", Class: Accepted, Check: atLeast(1),
		Reason: noTransactions,
		Doc:    "Partitions of the topic that keeps transaction state.",
	},
	{
		Name: "transaction.state.log.segment.bytes", Type: Int, Default: "104857600", Unit: Bytes, Class: Accepted, Check: atLeast(1),
		Reason: noTransactions,
		Doc:    "Segment size of the topic that keeps transaction state.",
	},
	{
		Name: "transaction.partition.verification.enable", Type: Bool, Default: "true", Class: Accepted, Update: ClusterWide,
		Reason: noTransactions,
		Doc:    "Check that a partition belongs to the transaction before writing to it.",
	},
}

// Reasons that several keys share.
const (
	noTransactions = "transactions do not exist yet; transactional ids are refused"
	noQuotas       = "client quotas do not exist yet"
)
