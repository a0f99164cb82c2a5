package coord

// Config is how a coordinator is configured: the broker's keys, and what single groups override (config resource GROUP). Times are in ms.
type Config struct {
	// Classic groups.
	SessionTimeoutMin     int32 // group.min.session.timeout.ms
	SessionTimeoutMax     int32 // group.max.session.timeout.ms
	InitialRebalanceDelay int32 // group.initial.rebalance.delay.ms
	ClassicSizeMax        int32 // group.max.size

	// Consumer groups (KIP-848).
	ConsumerProtocol     bool // group.version is finalised at 1 and group.coordinator.rebalance.protocols has consumer
	ConsumerSizeMax      int32
	Assignors            []string // group.consumer.assignors; the first is the default
	MigrationUp          bool     // group.consumer.migration.policy: classic to consumer
	MigrationDown        bool     // and back
	RegexRefreshInterval int32    // group.consumer.regex.refresh.interval.ms

	// Consumer holds the defaults, Groups what single groups override. Each value is within the broker's bounds already.
	Consumer ConsumerConfig
	Groups   map[string]ConsumerConfig

	// Offsets.
	OffsetsRetention      int64 // offsets.retention.minutes, in ms
	OffsetsCheckInterval  int64 // offsets.retention.check.interval.ms
	OffsetMetadataMax     int32 // offset.metadata.max.bytes
	ReconcilingHeartbeat  int32 // the longest heartbeat interval told to members while their group reconciles; the stable one is Consumer.HeartbeatInterval
	JumpsRememberedMillis int64 // how long a jump is shown

	// MembersBytesMax bounds what the members of all groups of a shard may make it keep, in bytes and about: who they are, what they subscribe to, what that
	// matches, what they say to their assignors, and what those decide. What one more would need beyond it is refused with GROUP_MAX_SIZE_REACHED. Kafka has
	// no such bound, and no key for it; the shell leaves it at its default, so that a broker keeps at most this for each partition of the offsets topic.
	MembersBytesMax int64

	// RecordBytesMax is max.message.bytes of the offsets topic: a request that would make a larger record is refused.
	RecordBytesMax int32
}

// ConsumerConfig is what a consumer group may have of its own.
type ConsumerConfig struct {
	SessionTimeout     int32 // consumer.session.timeout.ms
	HeartbeatInterval  int32 // consumer.heartbeat.interval.ms
	AssignmentInterval int32 // consumer.assignment.interval.ms: between two target assignments
}

// Of returns the settings of one consumer group.
func (c *Config) Of(group string) ConsumerConfig {
	if own, ok := c.Groups[group]; ok {
		return own
	}
	return c.Consumer
}

// DefaultConfig is Kafka 4.4's.
func DefaultConfig() Config {
	const minute = 60_000
	return Config{
		SessionTimeoutMin: 6_000, SessionTimeoutMax: 30 * minute, InitialRebalanceDelay: 3_000, ClassicSizeMax: 1<<31 - 1,
		ConsumerProtocol: true, ConsumerSizeMax: 1<<31 - 1, Assignors: []string{"uniform", "range"}, MigrationUp: true, MigrationDown: true,
		RegexRefreshInterval: 10 * minute,
		Consumer:             ConsumerConfig{SessionTimeout: 45_000, HeartbeatInterval: 5_000, AssignmentInterval: 1_000},
		OffsetsRetention:     10_080 * minute, OffsetsCheckInterval: 10 * minute, OffsetMetadataMax: 4_096,
		ReconcilingHeartbeat: 250, JumpsRememberedMillis: 7 * 24 * 60 * minute,
		MembersBytesMax: 32 << 20, RecordBytesMax: 1<<20 + 12,
	}
}
