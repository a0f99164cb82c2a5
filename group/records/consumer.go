package records

import "github.com/troupe-broker/troupe/wire/ident"

// The entries of a consumer group (KIP-848) as a whole: its epoch, the epoch of its target, what its regular expressions match. Values are flexible.

// Tags of Kafka's.
const (
	tagMetadataHash        = 0
	tagAssignmentTimestamp = 0
)

// Type implements [Entry].
func (*ConsumerGroup) Type() Type { return TypeConsumerGroup }

// GroupID implements [Entry].
func (e *ConsumerGroup) GroupID() string { return e.Group }

// Tombstone implements [Entry].
func (e *ConsumerGroup) Tombstone() bool { return e.Value == nil }

// AppendKey implements [Entry].
func (e *ConsumerGroup) AppendKey(dst []byte) []byte {
	return appendString(appendInt16(dst, int16(TypeConsumerGroup)), e.Group)
}

// AppendValue implements [Entry]: ConsumerGroupMetadataValue.
func (e *ConsumerGroup) AppendValue(dst []byte) []byte {
	dst = appendInt32(appendInt16(dst, 0), e.Value.Epoch)
	return appendTaggedInt64(dst, tagMetadataHash, e.Value.MetadataHash)
}

func decodeGroupEpoch(r *reader) *GroupEpoch {
	v := &GroupEpoch{Epoch: r.int32("epoch")}
	v.MetadataHash = r.taggedInt64(tagMetadataHash, "metadataHash")
	return v
}

// appendTaggedInt64 ends a structure whose only tagged field is an int64 with the default 0, which is not written.
func appendTaggedInt64(dst []byte, tag uint64, v int64) []byte {
	if v == 0 {
		return append(dst, noTags)
	}
	return appendInt64(appendTag(append(dst, 1), tag, 8), v)
}

// taggedInt64 reads what appendTaggedInt64 wrote.
func (r *reader) taggedInt64(known uint32, field string) (v int64) {
	r.tags(func(tag uint32, r *reader) bool {
		if tag == known {
			v = r.int64(field)
		}
		return tag == known
	})
	return v
}

// Type implements [Entry].
func (*PartitionMetadata) Type() Type { return TypePartitionMetadata }

// GroupID implements [Entry].
func (e *PartitionMetadata) GroupID() string { return e.Group }

// Tombstone implements [Entry]. It is always true: what a value of this type said has no meaning any more and is not kept.
func (*PartitionMetadata) Tombstone() bool { return true }

// AppendKey implements [Entry].
func (e *PartitionMetadata) AppendKey(dst []byte) []byte {
	return appendString(appendInt16(dst, int16(TypePartitionMetadata)), e.Group)
}

// AppendValue implements [Entry]. There is never a value to append.
func (*PartitionMetadata) AppendValue([]byte) []byte {
	panic("records: PartitionMetadata is only a tombstone")
}

// Type implements [Entry].
func (*Target) Type() Type { return TypeTarget }

// GroupID implements [Entry].
func (e *Target) GroupID() string { return e.Group }

// Tombstone implements [Entry].
func (e *Target) Tombstone() bool { return e.Value == nil }

// AppendKey implements [Entry].
func (e *Target) AppendKey(dst []byte) []byte {
	return appendString(appendInt16(dst, int16(TypeTarget)), e.Group)
}

// AppendValue implements [Entry]: ConsumerGroupTargetAssignmentMetadataValue.
func (e *Target) AppendValue(dst []byte) []byte {
	dst = appendInt32(appendInt16(dst, 0), e.Value.Epoch)
	return appendTaggedInt64(dst, tagAssignmentTimestamp, int64(e.Value.At))
}

func decodeTargetEpoch(r *reader) *TargetEpoch {
	v := &TargetEpoch{Epoch: r.int32("assignmentEpoch")}
	v.At = ident.Millis(r.taggedInt64(tagAssignmentTimestamp, "assignmentTimestamp"))
	return v
}

// Type implements [Entry].
func (*Regex) Type() Type { return TypeRegex }

// GroupID implements [Entry].
func (e *Regex) GroupID() string { return e.Group }

// Tombstone implements [Entry].
func (e *Regex) Tombstone() bool { return e.Value == nil }

// AppendKey implements [Entry].
func (e *Regex) AppendKey(dst []byte) []byte {
	return appendString(appendString(appendInt16(dst, int16(TypeRegex)), e.Group), e.Pattern)
}

// AppendValue implements [Entry]: ConsumerGroupRegularExpressionValue.
func (e *Regex) AppendValue(dst []byte) []byte {
	dst = appendCompactStrings(appendInt16(dst, 0), e.Value.Topics)
	dst = appendInt64(dst, e.Value.Version)
	dst = appendInt64(dst, int64(e.Value.At))
	return append(dst, noTags)
}

func decodeResolved(r *reader) *Resolved {
	v := &Resolved{Topics: r.strings("topics"), Version: r.int64("version"), At: ident.Millis(r.int64("timestamp"))}
	r.tags(nil)
	return v
}
