package config

// networkKeys are about sockets, requests and threads.
var networkKeys = []Key{
	{
		Name: "listeners", Type: List, Default: "PLAINTEXT://127.0.0.1:9092", Class: Honoured, Check: listenerList,
		Doc: "Addresses to serve, as NAME://host:port. Kafka's default serves every interface. Listeners that need TLS or SASL are refused until those exist.",
	},
	{
		Name: "advertised.listeners", Type: List, Null: true, Class: Honoured, Check: listenerList,
		Doc: "Addresses clients are told to connect to, by listener name. Unset means those of listeners.",
	},
	{
		Name: "listener.security.protocol.map", Type: List, Default: "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL", Class: Honoured, Check: protocolMap,
		Doc: "Which security protocol each listener name stands for.",
	},
	{
		Name: "early.start.listeners", Type: List, Null: true, Class: Accepted,
		Reason: "there is no authorizer to wait for",
		Doc:    "Listeners that are opened before the authorizer is ready.",
	},
	{
		Name: "socket.send.buffer.bytes", Type: Int, Default: "-1", Unit: Bytes, Class: Honoured, Check: atLeast(-1),
		Doc: "Send buffer of client sockets; -1 lets the kernel tune it. Kafka's default is 102400.",
	},
	{
		Name: "socket.receive.buffer.bytes", Type: Int, Default: "-1", Unit: Bytes, Class: Honoured, Check: atLeast(-1),
		Doc: "Receive buffer of client sockets; -1 lets the kernel tune it. Kafka's default is 102400.",
	},
	{
		Name: "socket.request.max.bytes", Type: Int, Default: "104857600", Unit: Bytes, Class: Honoured, Check: atLeast(1),
		Doc: "Largest request that is read; a larger one closes its connection.",
	},
	{
		Name: "socket.listen.backlog.size", Type: Int, Default: "50", Class: Accepted, Check: atLeast(1),
		Reason: "the kernel's somaxconn is used",
		Doc:    "Connections the kernel may hold before they are accepted.",
	},
	{
		Name: "socket.connection.setup.timeout.ms", Type: Long, Default: "10000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: linkTimes,
		Doc:    "How long to wait for a connection to another broker.",
	},
	{
		Name: "socket.connection.setup.timeout.max.ms", Type: Long, Default: "30000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: linkTimes,
		Doc:    "Longest wait for a connection to another broker after failures.",
	},
	{
		Name: "max.connections", Type: Int, Default: maxInt, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Connections the broker keeps; one more is closed at once.",
	},
	{
		Name: "max.connections.per.ip", Type: Int, Default: maxInt, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Connections the broker keeps from one address; one more is closed at once.",
	},
	{
		Name: "max.connections.per.ip.overrides", Type: List, Default: "", Class: Refused, Update: ClusterWide,
		Reason: "limits for single addresses do not exist yet: use max.connections.per.ip",
		Doc:    "Limits for single addresses, as address:count.",
	},
	{
		Name: "max.connection.creation.rate", Type: Int, Default: maxInt, Unit: PerSecond, Class: Accepted, Update: ClusterWide, Check: atLeast(1),
		Reason: "the rate of new connections is not limited",
		Doc:    "New connections taken per second.",
	},
	{
		Name: "connections.max.idle.ms", Type: Long, Default: "600000", Unit: Milliseconds, Class: Honoured, Check: atLeast(-1),
		Doc: "A connection without a request for this long is closed.",
	},
	{
		Name: "connection.failed.authentication.delay.ms", Type: Int, Default: "100", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: "nobody authenticates yet",
		Doc:    "Pause before a connection that failed to authenticate is closed.",
	},
	{
		Name: "queued.max.requests", Type: Int, Default: "500", Class: Accepted, Check: atLeast(1),
		Reason: "requests are bounded by their bytes, see queued.max.request.bytes",
		Doc:    "Requests that may wait for a thread.",
	},
	{
		Name: "queued.max.request.bytes", Type: Long, Default: "-1", Unit: Bytes, Class: Honoured, Check: atLeast(-1),
		Doc: "Memory for the bodies of requests in progress; no more is read while it is used up. One large request at a time comes on top of it. -1 is 64 MiB, and less than 1 MiB counts as 1 MiB.",
	},
	{
		Name: "num.network.threads", Type: Int, Default: "3", Class: Accepted, Update: ClusterWide, Check: atLeast(1),
		Reason: noThreads,
		Doc:    "Threads that read and write sockets in Kafka.",
	},
	{
		Name: "num.io.threads", Type: Int, Default: "8", Class: Accepted, Update: ClusterWide, Check: atLeast(1),
		Reason: noThreads,
		Doc:    "Threads that serve requests in Kafka.",
	},
	{
		Name: "background.threads", Type: Int, Default: "10", Class: Accepted, Update: ClusterWide, Check: atLeast(1),
		Reason: noThreads,
		Doc:    "Threads for housekeeping in Kafka.",
	},
	{
		Name: "num.replica.alter.log.dirs.threads", Type: Int, Null: true, Class: Accepted, Check: atLeast(1),
		Reason: "there is one data directory, replicas do not move",
		Doc:    "Threads that move replicas between data directories.",
	},
	{
		Name: "request.timeout.ms", Type: Int, Default: "30000", Unit: Milliseconds, Class: Accepted, Check: atLeast(0),
		Reason: linkTimes,
		Doc:    "How long a broker waits for another's answer.",
	},
	{
		Name: "message.max.bytes", Type: Int, Default: "1048588", Unit: Bytes, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Default of max.message.bytes: the largest batch that is taken.",
	},
	{
		Name: "max.decompressed.message.bytes", Type: Int, Default: "2147483639", Unit: Bytes, Class: Honoured, Update: ClusterWide, Check: between(1, 2147483639),
		Doc: "Default of the topic config of the same name: the largest record that is taken in a compressed batch, by its decompressed size.",
	},
	{
		Name: "fetch.max.bytes", Type: Int, Default: "57671680", Unit: Bytes, Class: Honoured, Check: atLeast(1024),
		Doc: "Most bytes one fetch returns, whatever the client asks for.",
	},
	{
		Name: "max.incremental.fetch.session.cache.slots", Type: Int, Default: "1000", Class: Honoured, Check: atLeast(0),
		Doc: "Incremental fetch sessions kept; beyond it clients fetch without a session.",
	},
	{
		Name: "max.request.partition.size.limit", Type: Int, Default: "2000", Class: Honoured, Check: atLeast(1),
		Doc: "Partitions in one answer of DescribeTopicPartitions.",
	},
	{
		Name: "broker.rack", Type: String, Null: true, Class: Honoured,
		Doc: "Rack of this broker. Replicas of a partition are spread over racks.",
	},
	{
		Name: "compression.type", Type: String, Default: "producer", Class: Honoured, Update: ClusterWide, Check: oneOf(codecs...),
		Doc: "Default of the topic key of this name.",
	},
	{
		Name: "compression.gzip.level", Type: Int, Default: "-1", Class: Honoured, Update: ClusterWide, Check: gzipLevel,
		Doc: "Default of the topic key of this name.",
	},
	{
		Name: "compression.lz4.level", Type: Int, Default: "9", Class: Honoured, Update: ClusterWide, Check: between(1, 17),
		Doc: "Default of the topic key of this name.",
	},
	{
		Name: "compression.zstd.level", Type: Int, Default: "3", Class: Honoured, Update: ClusterWide, Check: between(-131072, 22),
		Doc: "Default of the topic key of this name.",
	},
	{
		Name: "config.providers", Type: List, Default: "", Class: Refused, Update: ClusterWide,
		Reason: "values are taken as they are written; use a TROUPE_ environment variable for a secret",
		Doc:    "Classes that fetch values from elsewhere.",
	},
	{
		Name: "controlled.shutdown.enable", Type: Bool, Default: "true", Class: Accepted,
		Reason: "a broker that is asked to stop always hands over first",
		Doc:    "Hand leaderships over before stopping.",
	},
	{
		Name: "delete.topic.enable", Type: Bool, Default: "true", Class: Honoured,
		Doc: "Lets clients delete topics.",
	},
	{
		Name: "authorizer.class.name", Type: String, Default: "", Class: Refused,
		Reason: "there is no authorizer yet, and an open broker must not look closed: leave it empty",
		Doc:    "Class that decides who may do what.",
	},
	{
		Name: "super.users", Type: String, Default: "", Class: Accepted,
		Reason: "there is no authorizer yet",
		Doc:    "Principals that may do everything.",
	},
	{
		Name: "allow.everyone.if.no.acl.found", Type: Bool, Default: "false", Class: Accepted,
		Reason: "there is no authorizer yet",
		Doc:    "What the authorizer says about resources without rules.",
	},
	{
		Name: "unstable.api.versions.enable", Type: Bool, Default: "false", Class: Accepted, Internal: true,
		Reason: "only finished versions are built in",
		Doc:    "Serve API versions that are still in the making.",
	},
	{
		Name: "unstable.feature.versions.enable", Type: Bool, Default: "false", Class: Accepted, Internal: true,
		Reason: "only finished levels are built in",
		Doc:    "Allow feature levels that are still in the making.",
	},
}

// Reasons that several keys share.
const (
	noThreads = "Go schedules its own threads; the cores in use are set by GOMAXPROCS"
)
