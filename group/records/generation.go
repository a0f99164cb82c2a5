package records

import "github.com/troupe-broker/troupe/wire/ident"

// Type implements [Entry].
func (*GroupMetadata) Type() Type { return TypeGroupMetadata }

// GroupID implements [Entry].
func (e *GroupMetadata) GroupID() string { return e.Group }

// Tombstone implements [Entry].
func (e *GroupMetadata) Tombstone() bool { return e.Value == nil }

// AppendKey implements [Entry].
func (e *GroupMetadata) AppendKey(dst []byte) []byte {
	return appendString(appendInt16(dst, int16(TypeGroupMetadata)), e.Group)
}

// AppendValue implements [Entry]: GroupMetadataValue.
func (e *GroupMetadata) AppendValue(dst []byte) []byte {
	v := e.Value
	if v.long() {
		return v.appendFlexible(dst)
	}
	dst = appendInt16(dst, 3)
	dst = appendString(dst, v.ProtocolType)
	dst = appendInt32(dst, v.Generation)
	dst = appendNullableString(dst, v.Protocol)
	dst = appendNullableString(dst, v.Leader)
	dst = appendInt64(dst, int64(v.StateTime))
	dst = appendInt32(dst, int32(len(v.Members)))
	for i := range v.Members {
		m := &v.Members[i]
		dst = appendString(dst, m.Member)
		dst = appendNullableString(dst, m.Instance)
		dst = appendString(dst, m.ClientID)
		dst = appendString(dst, m.ClientHost)
		dst = appendInt32(dst, m.RebalanceTimeout)
		dst = appendInt32(dst, m.SessionTimeout)
		dst = appendBytes(dst, m.Subscription)
		dst = appendBytes(dst, m.Assignment)
	}
	return dst
}

// long tells whether a string is too long for version 3, such as the id of a member that begins with a long client id. Version 4 keeps the group, though only
// we can read it.
func (v *Generation) long() bool {
	fits := func(s *string) bool { return s == nil || Fits(*s) }
	if !Fits(v.ProtocolType) || !fits(v.Protocol) || !fits(v.Leader) {
		return true
	}
	for i := range v.Members {
		if m := &v.Members[i]; !Fits(m.Member, m.ClientID, m.ClientHost) || !fits(m.Instance) {
			return true
		}
	}
	return false
}

func (v *Generation) appendFlexible(dst []byte) []byte {
	dst = appendInt16(dst, 4)
	dst = appendCompact(dst, v.ProtocolType)
	dst = appendInt32(dst, v.Generation)
	dst = appendNullableCompact(dst, v.Protocol)
	dst = appendNullableCompact(dst, v.Leader)
	dst = appendInt64(dst, int64(v.StateTime))
	dst = appendLength(dst, len(v.Members))
	for i := range v.Members {
		m := &v.Members[i]
		dst = appendCompact(dst, m.Member)
		dst = appendNullableCompact(dst, m.Instance)
		dst = appendCompact(dst, m.ClientID)
		dst = appendCompact(dst, m.ClientHost)
		dst = appendInt32(dst, m.RebalanceTimeout)
		dst = appendInt32(dst, m.SessionTimeout)
		dst = appendCompact(dst, m.Subscription)
		dst = appendCompact(dst, m.Assignment)
		dst = append(dst, noTags)
	}
	return append(dst, noTags)
}

// memberSizeMin is the least that a member takes in any version: four empty strings, two numbers, two empty arrays of bytes and no tags, in version 4.
const memberSizeMin = 4*1 + 2*4 + 2*1 + 1

func decodeGeneration(r *reader, version int16) *Generation {
	v := &Generation{
		ProtocolType: r.string("protocolType"), Generation: r.int32("generation"),
		Protocol: r.nullableString("protocol"), Leader: r.nullableString("leader"),
		StateTime: ident.NoTimestamp,
	}
	if version >= 2 {
		v.StateTime = ident.Millis(r.int64("currentStateTimestamp"))
	}
	if n := r.array("members", memberSizeMin); n > 0 {
		v.Members = make([]ClassicMember, n)
	}
	for i := range v.Members {
		m := &v.Members[i]
		m.Member = r.string("members.memberId")
		if version >= 3 {
			m.Instance = r.nullableString("members.groupInstanceId")
		}
		m.ClientID = r.string("members.clientId")
		m.ClientHost = r.string("members.clientHost")
		if version >= 1 {
			m.RebalanceTimeout = r.int32("members.rebalanceTimeout")
		}
		m.SessionTimeout = r.int32("members.sessionTimeout")
		if version == 0 {
			m.RebalanceTimeout = m.SessionTimeout // as Kafka's loader takes it
		}
		m.Subscription = r.bytes("members.subscription")
		m.Assignment = r.bytes("members.assignment")
		r.tags(nil)
		if r.err != nil {
			return nil
		}
	}
	r.tags(nil)
	return v
}
