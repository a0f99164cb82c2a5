package store

import (
	"math"

	"github.com/troupe-broker/troupe/wire/ident"
)

// LogConfig holds the settings of one log. The names are Kafka's topic configs,
// the unit is in the name. Use [DefaultLogConfig] and change what differs.
type LogConfig struct {
	SegmentBytes       int32 // segment.bytes: a segment is closed before it grows beyond
	SegmentMs          int64 // segment.ms: a segment is closed when its records span more
	SegmentJitterMs    int64 // segment.jitter.ms: upper bound of what is subtracted from SegmentMs
	SegmentIndexBytes  int32 // segment.index.bytes: a full index closes the segment
	IndexIntervalBytes int32 // index.interval.bytes: log bytes between two index entries
	RetentionMs        int64 // retention.ms, -1: no limit
	RetentionBytes     int64 // retention.bytes, -1: no limit
	FileDeleteDelayMs  int64 // file.delete.delay.ms: from .deleted to unlinked
	Preallocate        bool  // preallocate: reserve the whole segment at once
	// DeleteRetained switches retention by time and size on: cleanup.policy
	// contains delete. The log start (DeleteRecords) deletes in any case.
	DeleteRetained bool

	// Compact switches compaction on: cleanup.policy contains compact.
	Compact            bool
	MinCleanableRatio  float64 // min.cleanable.dirty.ratio: the dirty share above which the log is cleaned
	MinCompactionLagMs int64   // min.compaction.lag.ms: a record stays at least so long
	MaxCompactionLagMs int64   // max.compaction.lag.ms: a record is cleaned after so long, whatever the ratio; 0: no limit
	DeleteRetentionMs  int64   // delete.retention.ms: from what a tombstone deletes to the tombstone

	// Append chooses how bytes get into the file.
	Append AppendMode
	// AppendWriteMin is the size in bytes of a batch from which AppendMapped
	// uses pwrite, which is cheaper there. 0: the measured default.
	AppendWriteMin int32
	// AllocateMin and AllocateMax bound the steps in which the active segment is
	// reserved; each step doubles. 0: 64 KiB and 64 MiB.
	AllocateMin, AllocateMax int64
}

// AppendMode is how appended bytes get into the page cache. Both give the same
// file; they differ in cost.
type AppendMode uint8

const (
	// AppendMapped copies small batches into the mapped tail and writes large
	// ones with pwrite.
	AppendMapped AppendMode = iota
	// AppendWritten uses pwrite for every batch and maps nothing.
	AppendWritten
)

// DefaultLogConfig is Kafka's default of each setting.
func DefaultLogConfig() LogConfig {
	return LogConfig{
		SegmentBytes:       1 << 30,
		SegmentMs:          7 * 24 * 60 * 60 * 1000,
		SegmentIndexBytes:  10 << 20,
		IndexIntervalBytes: 4096,
		RetentionMs:        7 * 24 * 60 * 60 * 1000,
		RetentionBytes:     -1,
		FileDeleteDelayMs:  60_000,
		DeleteRetained:     true,
		MinCleanableRatio:  0.5,
		MaxCompactionLagMs: math.MaxInt64,
		DeleteRetentionMs:  24 * 60 * 60 * 1000,
	}
}

// Epoch is one line of the leader epoch file: the first offset of an epoch.
type Epoch struct {
	Epoch ident.LeaderEpoch
	Start ident.Offset
}
