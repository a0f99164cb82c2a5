package broker

import (
	"math"
	"time"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// Units of ident.Instant.
const (
	millisecond = ident.Instant(time.Millisecond)
	maxInt32    = math.MaxInt32
)

// duration converts a span of the monotonic clock.
func duration(d ident.Instant) time.Duration { return time.Duration(d) }

// millis makes a duration of a number of milliseconds, without overflow.
func millis(n int64) time.Duration {
	if n > int64(math.MaxInt64/time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(n) * time.Millisecond
}

// nanos makes nanoseconds of milliseconds, without overflow.
func nanos(n int64) int64 { return int64(millis(n)) }

// topicSettings are the effective configs of one topic on this broker, as its partitions want them.
type topicSettings struct {
	log     store.LogConfig
	machine partition.Config
	rules   *record.Rules

	slowLeader, slowFollower throttledReplicas
}

// resolveTopic resolves the configs of a topic. b are the broker's, which supply what belongs to no topic.
func resolveTopic(stack config.Stack, b *config.BrokerValues) topicSettings {
	v := config.TopicOf(stack)
	return topicSettings{
		log: store.LogConfig{
			SegmentBytes:       v.SegmentBytes,
			SegmentMs:          v.SegmentMs,
			SegmentJitterMs:    v.SegmentJitterMs,
			SegmentIndexBytes:  v.SegmentIndexBytes,
			IndexIntervalBytes: v.IndexIntervalBytes,
			RetentionMs:        v.RetentionMs,
			RetentionBytes:     v.RetentionBytes,
			FileDeleteDelayMs:  v.FileDeleteDelayMs,
			Preallocate:        v.Preallocate,
			DeleteRetained:     v.Delete,
			Compact:            v.Compact,
			MinCleanableRatio:  v.MinCleanableRatio,
			MinCompactionLagMs: v.MinCompactionLagMs,
			MaxCompactionLagMs: v.MaxCompactionLagMs,
			DeleteRetentionMs:  v.DeleteRetentionMs,
		},
		machine: partition.Config{
			MinISR:               v.MinInSyncReplicas,
			DeleteRecords:        v.Delete || !v.Compact, // only a topic that is compacted and nothing else forbids it
			FlushMessages:        v.FlushMessages,
			FlushNanos:           flushNanos(v.FlushMs),
			ProducerExpirationMs: b.ProducerIDExpiryMs,
			ProducerCheckNanos:   nanos(b.ProducerIDCheckMs),
			ProducersMax:         producersMax,
			ProduceWaitersMax:    waitersMax,
			FetchWaitersMax:      waitersMax,
			LagNanos:             nanos(b.ReplicaLagMs),
			FullNanos:            fullNanos,
			AskBytesMax:          b.ReplicaFetchBytesMax,
			AskBackoffNanos:      nanos(b.ReplicaBackoffMs),
			ProposeRetryNanos:    proposeRetryNanos,
		},
		rules:      rulesOf(&v, b.ValidationDepth),
		slowLeader: throttledOf(v.LeaderThrottled), slowFollower: throttledOf(v.FollowerThrottled),
	}
}

const (
	// producersMax bounds the idempotent producers that one partition remembers: about 300 bytes each.
	producersMax = 100_000
	// fullNanos is how long a leader has no room for anything before another one should lead: retention has time to make some.
	fullNanos = 3e9
	// waitersMax bounds the parked produces and the parked fetches of one partition.
	waitersMax = 16_384

	// proposeRetryNanos is the pause before a proposal to the controller is sent again.
	proposeRetryNanos = int64(time.Second)
)

// flushNanos converts flush.ms: the greatest value, Kafka's default, means never.
func flushNanos(ms int64) int64 {
	if ms == math.MaxInt64 {
		return 0
	}
	return max(nanos(ms), 1)
}

// unlimitedRecord is the default of max.decompressed.message.bytes, which is no limit: no record can be larger.
const unlimitedRecord = math.MaxInt32 - 8

func rulesOf(v *config.TopicValues, depth string) *record.Rules {
	r := record.DefaultRules()
	r.Depth, r.Compacted = depthOf(depth), v.Compact
	r.MaxMessageBytes, r.SegmentBytes = v.MaxMessageBytes, v.SegmentBytes
	if v.MaxDecompressedBytes < unlimitedRecord {
		r.RecordBytesMax = int64(v.MaxDecompressedBytes)
	}
	if v.LogAppendTime {
		r.TimestampType = record.LogAppendTime
	}
	r.TimestampBeforeMax, r.TimestampAfterMax = v.TimestampBeforeMaxMs, v.TimestampAfterMaxMs
	codec, err := record.ParseCompression(v.CompressionType)
	if err != nil {
		codec = record.CompressionProducer // checked when it was set: a newer version may know more codecs
	}
	r.Compression = codec
	switch codec {
	case record.CompressionGzip:
		r.CompressionLevel = levelOf(v.GzipLevel)
	case record.CompressionLz4:
		r.CompressionLevel = v.LZ4Level
	case record.CompressionZstd:
		r.CompressionLevel = v.ZstdLevel
	default: // the others have no level
	}
	return &r
}

// levelOf converts a level of gzip: Kafka's word for the codec's own default is -1.
func levelOf(n int) int {
	if n == -1 {
		return 0
	}
	return n
}

func depthOf(word string) record.Depth {
	for _, d := range []record.Depth{record.DepthHeader, record.DepthFull} {
		if d.String() == word {
			return d
		}
	}
	return record.DepthDefault
}
