package records

import "github.com/troupe-broker/troupe/wire/ident"

// tagJump is our own tagged field of OffsetCommitValue. Kafka counts its tags from 0, so it will not meet this one.
const (
	tagTopicID = 0
	tagJump    = 10_000

	jumpSize = 1 + 8 + 8 + 8
)

// Type implements [Entry].
func (*OffsetCommit) Type() Type { return TypeOffsetCommit }

// GroupID implements [Entry].
func (e *OffsetCommit) GroupID() string { return e.Group }

// Tombstone implements [Entry].
func (e *OffsetCommit) Tombstone() bool { return e.Value == nil }

// AppendKey implements [Entry].
func (e *OffsetCommit) AppendKey(dst []byte) []byte {
	dst = appendInt16(dst, int16(TypeOffsetCommit))
	dst = appendString(dst, e.Group)
	dst = appendString(dst, e.Topic)
	return appendInt32(dst, e.Partition)
}

// AppendValue implements [Entry]: OffsetCommitValue.
func (e *OffsetCommit) AppendValue(dst []byte) []byte {
	v := e.Value
	if v.ExpireTime != ident.NoTimestamp {
		dst = appendInt16(dst, 1)
		dst = appendInt64(dst, int64(v.Offset))
		dst = appendString(dst, v.Metadata)
		dst = appendInt64(dst, int64(v.CommitTime))
		return appendInt64(dst, int64(v.ExpireTime))
	}
	dst = appendInt16(dst, 4)
	dst = appendInt64(dst, int64(v.Offset))
	dst = appendInt32(dst, int32(v.LeaderEpoch))
	dst = appendCompact(dst, v.Metadata)
	dst = appendInt64(dst, int64(v.CommitTime))
	var tags byte
	if !v.TopicID.IsZero() {
		tags++
	}
	if v.Jump != nil {
		tags++
	}
	dst = append(dst, tags)
	if !v.TopicID.IsZero() {
		dst = append(appendTag(dst, tagTopicID, len(v.TopicID)), v.TopicID[:]...)
	}
	if j := v.Jump; j != nil {
		dst = append(appendTag(dst, tagJump, jumpSize), byte(j.Reason))
		dst = appendInt64(dst, int64(j.From))
		dst = appendInt64(dst, int64(j.To))
		dst = appendInt64(dst, int64(j.At))
	}
	return dst
}

func decodeOffset(r *reader, version int16) *Offset {
	v := &Offset{Offset: ident.Offset(r.int64("offset")), LeaderEpoch: ident.NoLeaderEpoch, ExpireTime: ident.NoTimestamp}
	if version >= 3 {
		v.LeaderEpoch = ident.LeaderEpoch(r.int32("leaderEpoch"))
	}
	v.Metadata = r.string("metadata")
	v.CommitTime = ident.Millis(r.int64("commitTimestamp"))
	if version == 1 {
		v.ExpireTime = ident.Millis(r.int64("expireTimestamp"))
	}
	r.tags(func(tag uint32, r *reader) bool {
		switch tag {
		case tagTopicID:
			v.TopicID = r.uuid("topicId")
		case tagJump:
			v.Jump = &Jump{
				Reason: JumpReason(r.int8("jump.reason")), From: ident.Offset(r.int64("jump.from")), To: ident.Offset(r.int64("jump.to")),
				At: ident.Millis(r.int64("jump.at")),
			}
			r.b = nil // a later Troupe may say more behind it
		default:
			return false
		}
		return true
	})
	return v
}
