package config

// troupeKeys are our own.
var troupeKeys = []Key{
	{
		Name: "log.write.caching", Type: Bool, Default: "false", Class: Honoured, Update: ClusterOnly,
		Doc: "Default of write.caching.",
	},
	{
		Name: "validation.depth", Type: String, Default: "default", Class: Honoured, Check: oneOf("header", "default", "full"),
		Doc: "How deep a produced batch is checked. header: checksum and header. default: also every record of an uncompressed batch, and of a compressed one whose header looks wrong. full: every record of every batch, as Kafka does.",
	},
	{
		Name: "metrics.listen", Type: String, Default: "127.0.0.1:9644", Class: Honoured, Check: hostPort,
		Doc: "Address of /metrics and /readyz; empty serves neither.",
	},
}
