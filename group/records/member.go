package records

// The entries of one member of a consumer group (KIP-848): what it wants, what it shall have, what it has. Values are flexible.

// Tags of Kafka's.
const (
	tagClassicMemberMetadata = 0
	tagAssignmentEpochs      = 0
)

// Type implements [Entry].
func (*ConsumerMember) Type() Type { return TypeConsumerMember }

// GroupID implements [Entry].
func (e *ConsumerMember) GroupID() string { return e.Group }

// Tombstone implements [Entry].
func (e *ConsumerMember) Tombstone() bool { return e.Value == nil }

// AppendKey implements [Entry].
func (e *ConsumerMember) AppendKey(dst []byte) []byte {
	return appendString(appendString(appendInt16(dst, int16(TypeConsumerMember)), e.Group), e.Member)
}

// AppendValue implements [Entry]: ConsumerGroupMemberMetadataValue.
func (e *ConsumerMember) AppendValue(dst []byte) []byte {
	v := e.Value
	dst = appendNullableCompact(appendInt16(dst, 0), v.Instance)
	dst = appendNullableCompact(dst, v.Rack)
	dst = appendCompact(dst, v.ClientID)
	dst = appendCompact(dst, v.ClientHost)
	dst = appendCompactStrings(dst, v.Topics)
	dst = appendNullableCompact(dst, v.Regex)
	dst = appendInt32(dst, v.RebalanceTimeout)
	dst = appendNullableCompact(dst, v.Assignor)
	if v.Classic == nil {
		return append(dst, noTags)
	}
	dst = appendTag(append(dst, 1), tagClassicMemberMetadata, 1+v.Classic.size())
	dst = append(dst, 1) // not null
	return v.Classic.append(dst)
}

func (c *Classic) append(dst []byte) []byte {
	dst = appendInt32(dst, c.SessionTimeout)
	dst = appendLength(dst, len(c.Protocols))
	for i := range c.Protocols {
		dst = appendCompact(dst, c.Protocols[i].Name)
		dst = appendCompact(dst, c.Protocols[i].Metadata)
		dst = append(dst, noTags)
	}
	return append(dst, noTags)
}

// size is how many bytes append writes.
func (c *Classic) size() int {
	n := 4 + lengthSize(len(c.Protocols)) + 1
	for i := range c.Protocols {
		name, metadata := len(c.Protocols[i].Name), len(c.Protocols[i].Metadata)
		n += lengthSize(name) + name + lengthSize(metadata) + metadata + 1
	}
	return n
}

func decodeSubscription(r *reader) *Subscription {
	v := &Subscription{
		Instance: r.nullableString("instanceId"), Rack: r.nullableString("rackId"), ClientID: r.string("clientId"), ClientHost: r.string("clientHost"),
		Topics: r.strings("subscribedTopicNames"), Regex: r.nullableString("subscribedTopicRegex"),
		RebalanceTimeout: r.int32("rebalanceTimeoutMs"), Assignor: r.nullableString("serverAssignor"),
	}
	r.tags(func(tag uint32, r *reader) bool {
		if tag != tagClassicMemberMetadata {
			return false
		}
		if r.int8("classicMemberMetadata") >= 0 { // negative: null
			v.Classic = decodeClassic(r)
		}
		return true
	})
	return v
}

func decodeClassic(r *reader) *Classic {
	const protocols, protocolSizeMin = "classicMemberMetadata.supportedProtocols", 3
	c := &Classic{SessionTimeout: r.int32("classicMemberMetadata.sessionTimeoutMs")}
	if n := r.array(protocols, protocolSizeMin); n > 0 {
		c.Protocols = make([]Protocol, n)
	}
	for i := range c.Protocols {
		c.Protocols[i] = Protocol{Name: r.string(protocols + ".name"), Metadata: r.bytes(protocols + ".metadata")}
		r.tags(nil)
		if r.err != nil {
			return nil
		}
	}
	r.tags(nil)
	return c
}

// Type implements [Entry].
func (*TargetMember) Type() Type { return TypeTargetMember }

// GroupID implements [Entry].
func (e *TargetMember) GroupID() string { return e.Group }

// Tombstone implements [Entry].
func (e *TargetMember) Tombstone() bool { return e.Value == nil }

// AppendKey implements [Entry].
func (e *TargetMember) AppendKey(dst []byte) []byte {
	return appendString(appendString(appendInt16(dst, int16(TypeTargetMember)), e.Group), e.Member)
}

// AppendValue implements [Entry]: ConsumerGroupTargetAssignmentMemberValue, which has no assignment epochs.
func (e *TargetMember) AppendValue(dst []byte) []byte {
	dst = appendLength(appendInt16(dst, 0), len(e.Value.Topics))
	for i := range e.Value.Topics {
		t := &e.Value.Topics[i]
		dst = append(dst, t.Topic[:]...)
		dst = appendCompactInt32s(dst, t.Partitions)
		dst = append(dst, noTags)
	}
	return append(dst, noTags)
}

func decodePartitions(r *reader) *Partitions {
	v := &Partitions{Topics: r.topicPartitions("topicPartitions", false)}
	r.tags(nil)
	return v
}

// Type implements [Entry].
func (*Current) Type() Type { return TypeCurrent }

// GroupID implements [Entry].
func (e *Current) GroupID() string { return e.Group }

// Tombstone implements [Entry].
func (e *Current) Tombstone() bool { return e.Value == nil }

// AppendKey implements [Entry].
func (e *Current) AppendKey(dst []byte) []byte {
	return appendString(appendString(appendInt16(dst, int16(TypeCurrent)), e.Group), e.Member)
}

// AppendValue implements [Entry]: ConsumerGroupCurrentMemberAssignmentValue.
func (e *Current) AppendValue(dst []byte) []byte {
	v := e.Value
	dst = appendInt32(appendInt16(dst, 0), v.MemberEpoch)
	dst = appendInt32(dst, v.PreviousEpoch)
	dst = append(dst, byte(v.State))
	dst = appendEpochPartitions(dst, v.Assigned)
	dst = appendEpochPartitions(dst, v.Revoking)
	return append(dst, noTags)
}

// appendEpochPartitions appends partitions with their assignment epochs, if there are any.
func appendEpochPartitions(dst []byte, topics []TopicPartitions) []byte {
	dst = appendLength(dst, len(topics))
	for i := range topics {
		t := &topics[i]
		dst = append(dst, t.Topic[:]...)
		dst = appendCompactInt32s(dst, t.Partitions)
		if t.Epochs == nil {
			dst = append(dst, noTags)
			continue
		}
		dst = appendTag(append(dst, 1), tagAssignmentEpochs, lengthSize(len(t.Epochs))+4*len(t.Epochs))
		dst = appendCompactInt32s(dst, t.Epochs)
	}
	return dst
}

func decodeCurrentAssignment(r *reader) *CurrentAssignment {
	v := &CurrentAssignment{MemberEpoch: r.int32("memberEpoch"), PreviousEpoch: r.int32("previousMemberEpoch"), State: MemberState(r.int8("state"))}
	v.Assigned = r.topicPartitions("assignedPartitions", true)
	v.Revoking = r.topicPartitions("partitionsPendingRevocation", true)
	r.tags(nil)
	return v
}

// topicPartitions reads an array of partitions by topic; with epochs, their tagged assignment epochs too, of which there must be one for each partition.
func (r *reader) topicPartitions(field string, epochs bool) []TopicPartitions {
	const sizeMin = 16 + 1 + 1
	n := r.array(field, sizeMin)
	if n == 0 {
		return nil
	}
	topics := make([]TopicPartitions, n)
	for i := range topics {
		t := &topics[i]
		t.Topic = r.uuid(field + ".topicId")
		t.Partitions = r.int32s(field + ".partitions")
		r.tags(func(tag uint32, r *reader) bool {
			if tag != tagAssignmentEpochs || !epochs {
				return false
			}
			t.Epochs = r.nullableInt32s(field + ".assignmentEpochs")
			return true
		})
		if t.Epochs != nil && len(t.Epochs) != len(t.Partitions) {
			r.fail(field+".assignmentEpochs", "%d epochs for %d partitions", len(t.Epochs), len(t.Partitions))
		}
		if r.err != nil {
			return nil
		}
	}
	return topics
}
