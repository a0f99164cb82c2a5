package store

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Suffixes of the files of a segment, as Kafka names them (LogFileUtils.java).
const (
	suffixLog       = ".log"
	suffixIndex     = ".index"
	suffixTimeIndex = ".timeindex"
	suffixTxnIndex  = ".txnindex"
	suffixSnapshot  = ".snapshot"
	suffixDeleted   = ".deleted"
	suffixCleaned   = ".cleaned"
	suffixSwap      = ".swap"
	suffixTemporary = ".tmp"
	// suffixCopy is ours: a segment that recovery is rewriting. It is dropped
	// when it is found, because the original is still there.
	suffixCopy = ".copy"
)

// offsetDigits is the length of the number in a segment's name.
const offsetDigits = 20

// segmentName is the name of a file of the segment that begins at base.
func segmentName(dir string, base ident.Offset, suffix string) string {
	return filepath.Join(dir, fmt.Sprintf("%0*d", offsetDigits, int64(base))+suffix)
}

// parseSegmentName splits a file name such as 00000000000000000042.index. ok is
// false for other names.
func parseSegmentName(name string) (base ident.Offset, suffix string, ok bool) {
	if len(name) <= offsetDigits {
		return 0, "", false
	}
	digits := name[:offsetDigits]
	for i := range offsetDigits {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, "", false
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, "", false
	}
	return ident.Offset(n), name[offsetDigits:], true
}

// Suffixes of partition directories.
const (
	suffixDeleteDir = "-delete"
	suffixFutureDir = "-future"
	suffixStrayDir  = "-stray"
)

// partitionDirName is the name of a partition's directory.
func partitionDirName(tp ident.TopicPartition) string {
	return tp.Topic + "-" + strconv.Itoa(int(tp.Partition))
}

// parsePartitionDirName is the inverse. Topic names may contain dashes.
func parsePartitionDirName(name string) (tp ident.TopicPartition, ok bool) {
	dash := strings.LastIndexByte(name, '-')
	if dash <= 0 {
		return tp, false
	}
	digits := name[dash+1:]
	n, err := strconv.ParseInt(digits, 10, 32)
	// Only the text that partitionDirName writes: no sign, no leading zeros.
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != digits {
		return tp, false
	}
	return ident.TopicPartition{Topic: name[:dash], Partition: int32(n)}, true
}

// nameBytesMax is the longest name of a directory entry on Linux.
const nameBytesMax = 255

// movedDirName is the name under which a partition's directory waits for its end:
// <topic>-<partition>.<32 hex digits>-delete, the topic shortened where the name
// would be too long (UnifiedLog.java).
func movedDirName(tp ident.TopicPartition, unique [16]byte, suffix string) string {
	tail := fmt.Sprintf("-%d.%x%s", tp.Partition, unique, suffix)
	topic := tp.Topic
	if over := len(topic) + len(tail) - nameBytesMax; over > 0 {
		topic = topic[:len(topic)-over]
	}
	return topic + tail
}
