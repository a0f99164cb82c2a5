package config

// CleanerValues is what the keys log.cleaner.* say, as far as they are no topic's default.
type CleanerValues struct {
	Threads     int     // logs that are compacted at a time; 0: none
	MapBytes    int64   // log.cleaner.dedupe.buffer.size, of all threads
	LoadFactor  float64 // log.cleaner.io.buffer.load.factor
	BufferBytes int     // log.cleaner.io.buffer.size, of all threads
	BackoffMs   int64
	BytesPerSec float64 // log.cleaner.io.max.bytes.per.second, of all threads
}

func cleanerOf(s Stack) CleanerValues {
	v := CleanerValues{
		Threads:     int(s.BrokerInt("log.cleaner.threads")),
		MapBytes:    s.BrokerInt("log.cleaner.dedupe.buffer.size"),
		LoadFactor:  s.value(brokerTable, "log.cleaner.io.buffer.load.factor").Float,
		BufferBytes: int(s.BrokerInt("log.cleaner.io.buffer.size")),
		BackoffMs:   s.BrokerInt("log.cleaner.backoff.ms"),
		BytesPerSec: s.value(brokerTable, "log.cleaner.io.max.bytes.per.second").Float,
	}
	if !s.BrokerBool("log.cleaner.enable") {
		v.Threads = 0
	}
	return v
}
