package config

import (
	"fmt"
	"strconv"
)

// TopicValues is every honoured topic key as a plain value: what a partition and its log need.
type TopicValues struct {
	Delete               bool // cleanup.policy names delete
	Compact              bool // cleanup.policy names compact
	MinCleanableRatio    float64
	MinCompactionLagMs   int64
	MaxCompactionLagMs   int64
	DeleteRetentionMs    int64
	CompressionType      string
	GzipLevel            int
	LZ4Level             int
	ZstdLevel            int
	FileDeleteDelayMs    int64
	LeaderThrottled      string // partition:broker pairs with commas between, or *
	FollowerThrottled    string // the same
	FlushMessages        int64
	FlushMs              int64
	IndexIntervalBytes   int32
	MaxMessageBytes      int32
	MaxDecompressedBytes int32 // max.decompressed.message.bytes, of one record
	TimestampAfterMaxMs  int64
	TimestampBeforeMaxMs int64
	LogAppendTime        bool // message.timestamp.type
	MinInSyncReplicas    int32
	Preallocate          bool
	RetentionBytes       int64 // -1: no limit
	RetentionMs          int64 // -1: no limit
	SegmentBytes         int32
	SegmentIndexBytes    int32
	SegmentJitterMs      int64
	SegmentMs            int64
	UncleanElection      bool
	WriteCaching         bool // what the configs say; the partition record says what holds in the current leader epoch
}

// TopicOf resolves all honoured topic keys.
func TopicOf(s Stack) TopicValues {
	v := TopicValues{
		CompressionType:      s.TopicText("compression.type"),
		GzipLevel:            int(s.TopicInt("compression.gzip.level")),
		LZ4Level:             int(s.TopicInt("compression.lz4.level")),
		ZstdLevel:            int(s.TopicInt("compression.zstd.level")),
		MinCleanableRatio:    s.value(topicTable, "min.cleanable.dirty.ratio").Float,
		MinCompactionLagMs:   s.TopicInt("min.compaction.lag.ms"),
		MaxCompactionLagMs:   s.TopicInt("max.compaction.lag.ms"),
		DeleteRetentionMs:    s.TopicInt("delete.retention.ms"),
		FileDeleteDelayMs:    s.TopicInt("file.delete.delay.ms"),
		LeaderThrottled:      s.TopicText("leader.replication.throttled.replicas"),
		FollowerThrottled:    s.TopicText("follower.replication.throttled.replicas"),
		FlushMessages:        s.TopicInt("flush.messages"),
		FlushMs:              s.TopicInt("flush.ms"),
		IndexIntervalBytes:   int32(s.TopicInt("index.interval.bytes")),
		MaxMessageBytes:      int32(s.TopicInt("max.message.bytes")),
		MaxDecompressedBytes: int32(s.TopicInt("max.decompressed.message.bytes")),
		TimestampAfterMaxMs:  s.TopicInt("message.timestamp.after.max.ms"),
		TimestampBeforeMaxMs: s.TopicInt("message.timestamp.before.max.ms"),
		LogAppendTime:        s.TopicText("message.timestamp.type") == "LogAppendTime",
		MinInSyncReplicas:    int32(s.TopicInt("min.insync.replicas")),
		Preallocate:          s.TopicBool("preallocate"),
		RetentionBytes:       s.TopicInt("retention.bytes"),
		RetentionMs:          s.TopicInt("retention.ms"),
		SegmentBytes:         int32(s.TopicInt("segment.bytes")),
		SegmentIndexBytes:    int32(s.TopicInt("segment.index.bytes")),
		SegmentJitterMs:      s.TopicInt("segment.jitter.ms"),
		SegmentMs:            s.TopicInt("segment.ms"),
		UncleanElection:      s.TopicBool("unclean.leader.election.enable"),
		WriteCaching:         s.TopicBool("write.caching"),
	}
	for _, w := range s.value(topicTable, "cleanup.policy").Words {
		v.Delete = v.Delete || w == "delete"
		v.Compact = v.Compact || w == "compact"
	}
	return v
}

// CheckTopic tells whether keys of a topic contradict each other as they hold together: *Error, Conflict. Each value by itself has been checked.
// (Kafka: LogConfig.validateValues)
func CheckTopic(s Stack) error {
	if least, most := s.TopicInt("min.compaction.lag.ms"), s.TopicInt("max.compaction.lag.ms"); least > most {
		return &Error{
			Code: Conflict, Key: "min.compaction.lag.ms", Value: strconv.FormatInt(least, 10),
			Problem: fmt.Sprintf("it must not be above max.compaction.lag.ms, which is %d", most),
		}
	}
	return nil
}
