package config

// clientMetricsKeys are the configs of client-metrics resources (ClientMetricsConfigs.java of 4.4).
var clientMetricsKeys = []Key{
	{
		Name: "metrics", Type: List, Default: "", Class: Refused, Update: ClusterWide,
		Reason: metricsRefused,
		Doc:    "Prefixes of the metrics clients shall send; * for all.",
	},
	{
		Name: "interval.ms", Type: Int, Default: "300000", Unit: Milliseconds, Class: Refused, Update: ClusterWide, Check: between(100, 3600000),
		Reason: metricsRefused,
		Doc:    "How often clients shall send.",
	},
	{
		Name: "match", Type: List, Default: "", Class: Refused, Update: ClusterWide,
		Reason: metricsRefused,
		Doc:    "Which clients the subscription is for.",
	},
}

// Reasons that several keys share.
const (
	metricsRefused = "clients are not asked for their metrics yet, so a subscription cannot be kept"
)
