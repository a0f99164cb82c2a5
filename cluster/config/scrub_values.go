package config

// scrubKeys are about looking for damage. They are Troupe's own.
var scrubKeys = []Key{
	{
		Name: "log.scrub.interval.ms", Type: Long, Default: "3600000", Unit: Milliseconds, Class: Honoured, Update: ClusterWide, Check: atLeast(1),
		Doc: "Pause between two rounds in which the broker reads all records that it keeps, looks at their checksums, and compares those of a follower with what its leader has.",
	},
	{
		Name: "log.scrub.max.bytes.per.second", Type: Long, Default: "4194304", Unit: BytesPerSec, Class: Honoured, Update: ClusterWide, Check: atLeast(0),
		Doc: "Most bytes that such a round reads per second, with what leaders read for its comparisons; 0: there are none. What an operator has checked is read then at 4 MiB per second.",
	},
}

// ScrubValues is what the keys log.scrub.* say.
type ScrubValues struct {
	IntervalMs  int64
	BytesPerSec int64 // 0: no records are looked at unless they are read
}

func scrubOf(s Stack) ScrubValues {
	return ScrubValues{IntervalMs: s.BrokerInt("log.scrub.interval.ms"), BytesPerSec: s.BrokerInt("log.scrub.max.bytes.per.second")}
}
