package config

// identityKeys say who a broker is and how the metadata quorum works.
var identityKeys = []Key{
	{
		Name: "node.id", Type: Int, Default: "1", Class: Honoured, Check: atLeast(0),
		Doc: "Number of this broker, unique in the cluster. broker.id is the same thing under its old name.",
	},
	{
		Name: "broker.id", Type: Int, Default: "-1", Class: Honoured, Check: atLeast(-1),
		Doc: "Number of this broker; -1 leaves it to node.id. If both are set they must agree.",
	},
	{
		Name: "broker.heartbeat.interval.ms", Type: Int, Default: "500", Unit: Milliseconds, Class: Honoured, Check: atLeast(1),
		Doc: "How often a broker tells the controller that it lives. Kafka's default is 2000.",
	},
	{
		Name: "broker.session.timeout.ms", Type: Int, Default: "6000", Unit: Milliseconds, Class: Honoured, Check: atLeast(1),
		Doc: "Silence after which the controller fences a broker. Kafka's default is 9000.",
	},
	{
		Name: "process.roles", Type: List, Default: "broker,controller", Class: Accepted, Check: roles,
		Reason: allRoles,
		Doc:    "Roles Kafka lets a process play.",
	},
	{
		Name: "controller.listener.names", Type: List, Default: "", Class: Honoured,
		Doc: "Listeners of a Kafka file that belong to its controllers. They are not opened here.",
	},
	{
		Name: "controller.quorum.voters", Type: List, Default: "", Class: Accepted, Check: oneVoter,
		Reason: "the quorum is the voter set in the metadata log",
		Doc:    "Voters of a Kafka quorum as id@host:port.",
	},
	{
		Name: "controller.quorum.bootstrap.servers", Type: List, Default: "", Class: Accepted, Check: oneVoter,
		Reason: "the quorum is the voter set in the metadata log",
		Doc:    "Addresses at which a Kafka quorum is found.",
	},
	{
		Name: "controller.quorum.election.timeout.ms", Type: Int, Default: "1000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: fixedTimers,
		Doc:    "Silence of the leader after which a voter starts an election.",
	},
	{
		Name: "controller.quorum.fetch.timeout.ms", Type: Int, Default: "2000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: fixedTimers,
		Doc:    "Time without a successful fetch after which a Kafka voter gives its leader up.",
	},
	{
		Name: "controller.quorum.election.backoff.max.ms", Type: Int, Default: "1000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: fixedTimers,
		Doc:    "Longest pause between two elections.",
	},
	{
		Name: "controller.quorum.append.linger.ms", Type: Int, Default: "25", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: "entries are written as soon as the disk is free",
		Doc:    "How long a leader gathers records before it writes them.",
	},
	{
		Name: "controller.quorum.request.timeout.ms", Type: Int, Default: "2000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: fixedTimers,
		Doc:    "How long a voter waits for the answer of another.",
	},
	{
		Name: "controller.quorum.retry.backoff.ms", Type: Int, Default: "20", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: fixedTimers,
		Doc:    "Pause before a failed request is sent again.",
	},
	{
		Name: "controller.quorum.auto.join.enable", Type: Bool, Default: "false", Class: Accepted,
		Reason: "voters are changed by operators, never on their own",
		Doc:    "Lets a new controller make itself a voter.",
	},
	{
		Name: "controller.quorum.fetch.snapshot.max.bytes", Type: Int, Default: "1048576", Unit: Bytes, Class: Accepted, Check: atLeast(1),
		Reason: ownRaftLog,
		Doc:    "Largest piece of a snapshot sent at once.",
	},
	{
		Name: "controller.quorum.fetch.max.bytes", Type: Int, Default: "1048576", Unit: Bytes, Class: Accepted, Check: atLeast(1),
		Reason: ownRaftLog,
		Doc:    "Largest piece of the metadata log sent at once.",
	},
	{
		Name: "controller.performance.sample.period.ms", Type: Long, Default: "60000", Unit: Milliseconds, Class: Accepted, Check: atLeast(100), Internal: true,
		Reason: "Troupe has its own metrics",
		Doc:    "How often Kafka's controller logs how long its events took.",
	},
	{
		Name: "controller.performance.always.log.threshold.ms", Type: Long, Default: "2000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0), Internal: true,
		Reason: "Troupe has its own metrics",
		Doc:    "Duration above which Kafka's controller logs an event.",
	},
	{
		Name: "initial.broker.registration.timeout.ms", Type: Int, Default: "60000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: "a broker waits for a controller and says so, it does not give up",
		Doc:    "How long a starting broker tries to register before it exits.",
	},
	{
		Name: "metadata.log.dir", Type: String, Null: true, Class: Accepted,
		Reason: ownRaftLog,
		Doc:    "Directory of the metadata log.",
	},
	{
		Name: "metadata.log.max.record.bytes.between.snapshots", Type: Long, Default: "20971520", Unit: Bytes, Class: Honoured, Check: atLeast(1),
		Doc: "Bytes of metadata records after which a snapshot is made; 1 MiB at most, since the space for the log is reserved ahead.",
	},
	{
		Name: "metadata.log.max.snapshot.interval.ms", Type: Long, Default: "3600000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: "snapshots are made by size alone",
		Doc:    "Time after which a snapshot is made even of few records.",
	},
	{
		Name: "metadata.log.segment.bytes", Type: Int, Default: "1073741824", Unit: Bytes, Class: Accepted, Check: atLeast(12),
		Reason: ownRaftLog,
		Doc:    "Segment size of the metadata log.",
	},
	{
		Name: "metadata.log.segment.ms", Type: Long, Default: "604800000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: ownRaftLog,
		Doc:    "Segment age of the metadata log.",
	},
	{
		Name: "metadata.max.idle.interval.ms", Type: Int, Default: "500", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: "an idle quorum writes nothing",
		Doc:    "How often an idle Kafka controller writes an empty record.",
	},
	{
		Name: "metadata.max.retention.bytes", Type: Long, Default: "104857600", Unit: Bytes, Class: Accepted,
		Reason: "what a snapshot covers is dropped after it",
		Doc:    "Size of old metadata that is kept.",
	},
	{
		Name: "metadata.max.retention.ms", Type: Long, Default: "604800000", Unit: Milliseconds, Class: Accepted,
		Reason: "what a snapshot covers is dropped after it",
		Doc:    "Age of old metadata that is kept.",
	},
	{
		Name: "sasl.mechanism.controller.protocol", Type: String, Default: "GSSAPI", Class: Accepted,
		Reason: noController,
		Doc:    "SASL mechanism between brokers and controllers.",
	},
	{
		Name: "server.max.startup.time.ms", Type: Long, Default: maxLong, Unit: Milliseconds, Class: Accepted, Check: atLeast(0), Internal: true,
		Reason: "a start takes as long as it takes, and says what it waits for",
		Doc:    "How long Kafka's server may take to start.",
	},
}

// Reasons that several keys share.
const (
	fixedTimers  = "the quorum's timers are fixed: a tick of 100 ms, an election after 10 of them"
	ownRaftLog   = "the metadata log is kept by Troupe's own Raft log, inside the data directory"
	allRoles     = "every Troupe process is broker and controller candidate at once"
	noController = "controllers have no listener of their own"
)
