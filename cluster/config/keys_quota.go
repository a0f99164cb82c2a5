package config

// quotaKeys are what AlterClientQuotas sets (QuotaConfig.java of 4.4).
var quotaKeys = []Key{
	{
		Name: "producer_byte_rate", Type: Double, Default: "1.7976931348623157E308", Unit: BytesPerSec, Class: Refused, Update: ClusterWide,
		Reason: quotasRefused,
		Doc:    "Bytes per second a client may produce.",
	},
	{
		Name: "consumer_byte_rate", Type: Double, Default: "1.7976931348623157E308", Unit: BytesPerSec, Class: Refused, Update: ClusterWide,
		Reason: quotasRefused,
		Doc:    "Bytes per second a client may fetch.",
	},
	{
		Name: "request_percentage", Type: Double, Default: "1.7976931348623157E308", Unit: Percent, Class: Refused, Update: ClusterWide,
		Reason: quotasRefused,
		Doc:    "Share of the threads' time a client may use.",
	},
	{
		Name: "controller_mutation_rate", Type: Double, Default: "1.7976931348623157E308", Unit: PerSecond, Class: Refused, Update: ClusterWide,
		Reason: quotasRefused,
		Doc:    "Metadata changes per second a client may ask for.",
	},
	{
		Name: "connection_creation_rate", Type: Double, Default: "1.7976931348623157E308", Unit: PerSecond, Class: Refused, Update: ClusterWide,
		Reason: quotasRefused,
		Doc:    "New connections per second from one address.",
	},
}

// Reasons that several keys share.
const (
	quotasRefused = "client quotas do not exist yet"
)
