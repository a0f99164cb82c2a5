package config

// metricsKeys are about measuring the broker.
var metricsKeys = []Key{
	{
		Name: "metrics.num.samples", Type: Int, Default: "2", Class: Accepted, Check: atLeast(1),
		Reason: noJVM,
		Doc:    "Samples kept for a metric.",
	},
	{
		Name: "metrics.sample.window.ms", Type: Long, Default: "30000", Unit: Milliseconds, Class: Accepted, Check: atLeast(1),
		Reason: noJVM,
		Doc:    "Length of a sample for a metric.",
	},
	{
		Name: "metric.reporters", Type: List, Default: "org.apache.kafka.common.metrics.JmxReporter", Class: Accepted, Update: ClusterWide,
		Reason: noJVM,
		Doc:    "Classes that report metrics.",
	},
	{
		Name: "metrics.recording.level", Type: String, Default: "INFO", Class: Accepted, Check: oneOf("INFO", "DEBUG", "TRACE"),
		Reason: noJVM,
		Doc:    "Highest level of metrics that are measured.",
	},
	{
		Name: "kafka.metrics.reporters", Type: List, Default: "", Class: Accepted,
		Reason: noJVM,
		Doc:    "Classes that report metrics the older way.",
	},
	{
		Name: "kafka.metrics.polling.interval.secs", Type: Int, Default: "10", Unit: Seconds, Class: Accepted, Check: atLeast(1),
		Reason: noJVM,
		Doc:    "How often those classes are asked.",
	},
	{
		Name: "telemetry.max.bytes", Type: Int, Default: "1048576", Unit: Bytes, Class: Accepted, Check: atLeast(1),
		Reason: "clients are not asked for their metrics",
		Doc:    "Largest report of metrics a client may send.",
	},
}

// Reasons that several keys share.
const (
	noJVM = "there is no JVM; metrics are served for Prometheus at metrics.listen"
)
