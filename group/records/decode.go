package records

import (
	"errors"
	"fmt"
	"strconv"
)

// UnknownTypeError says that a record has a type that this package does not know. Who loads a log passes over it: newer coordinators and those of other
// kinds of groups write into the same partition.
type UnknownTypeError struct{ Type Type }

// Error implements error.
func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("records: a record of the unknown type %d", e.Type)
}

// String prints the name that the type has in Kafka's schemas.
func (t Type) String() string {
	switch t {
	case TypeLegacyOffsetCommit:
		return "LegacyOffsetCommit"
	case TypeOffsetCommit:
		return "OffsetCommit"
	case TypeGroupMetadata:
		return "GroupMetadata"
	case TypeConsumerGroup:
		return "ConsumerGroupMetadata"
	case TypePartitionMetadata:
		return "ConsumerGroupPartitionMetadata"
	case TypeConsumerMember:
		return "ConsumerGroupMemberMetadata"
	case TypeTarget:
		return "ConsumerGroupTargetAssignmentMetadata"
	case TypeTargetMember:
		return "ConsumerGroupTargetAssignmentMember"
	case TypeCurrent:
		return "ConsumerGroupCurrentMemberAssignment"
	case TypeRegex:
		return "ConsumerGroupRegularExpression"
	}
	return strconv.Itoa(int(t))
}

// versionMax is the newest version of the values of a type.
func (t Type) versionMax() int16 {
	switch t {
	case TypeLegacyOffsetCommit, TypeOffsetCommit, TypeGroupMetadata:
		return 4
	default:
		return 0
	}
}

// Decode reads one record. A nil value is a tombstone. The entry has copies of all bytes; what is empty is nil in it. The error of a type that is not known
// is an [*UnknownTypeError]; any other error says that the bytes are not what their type and version promise.
//
// Values of old versions become what Kafka makes of them: a rebalance timeout that version 0 of a group's metadata lacks is the session timeout.
func Decode(key, value []byte) (Entry, error) {
	if len(key) < 2 {
		return nil, fmt.Errorf("records: a key of %d bytes has no type", len(key))
	}
	k := reader{b: key}
	t := Type(k.int16("type"))
	e := decodeKey(t, &k)
	if e == nil {
		return nil, &UnknownTypeError{t}
	}
	if err := k.done(); err != nil {
		return nil, fmt.Errorf("records: key of %v: %w", t, err)
	}
	if value == nil {
		return e, nil
	}
	if _, past := e.(*PartitionMetadata); past {
		return e, nil
	}
	v := reader{b: value}
	version := v.int16("version")
	if v.err != nil {
		return nil, fmt.Errorf("records: value of %v: %w", t, v.err)
	}
	if version < 0 || version > t.versionMax() {
		return nil, fmt.Errorf("records: value of %v: version %d, known are 0 to %d", t, version, t.versionMax())
	}
	v.flexible = version == t.versionMax() // the newest is the first flexible one of each type
	decodeValue(e, &v, version)
	if err := v.done(); err != nil {
		return nil, fmt.Errorf("records: value of %v, version %d: %w", t, version, err)
	}
	return e, nil
}

// done tells what was wrong, trailing bytes included.
func (r *reader) done() error {
	if r.err == nil && len(r.b) > 0 {
		return errors.New(strconv.Itoa(len(r.b)) + " bytes behind the end")
	}
	return r.err
}

// decodeKey reads a key behind its type, nil for a type that is not known.
func decodeKey(t Type, r *reader) Entry {
	switch t {
	case TypeLegacyOffsetCommit, TypeOffsetCommit: // the versions 0 and 1 of one key, when keys still had versions
		return &OffsetCommit{Group: r.string("group"), Topic: r.string("topic"), Partition: r.int32("partition")}
	case TypeGroupMetadata:
		return &GroupMetadata{Group: r.string("group")}
	case TypeConsumerGroup:
		return &ConsumerGroup{Group: r.string("groupId")}
	case TypePartitionMetadata:
		return &PartitionMetadata{Group: r.string("groupId")}
	case TypeConsumerMember:
		return &ConsumerMember{Group: r.string("groupId"), Member: r.string("memberId")}
	case TypeTarget:
		return &Target{Group: r.string("groupId")}
	case TypeTargetMember:
		return &TargetMember{Group: r.string("groupId"), Member: r.string("memberId")}
	case TypeCurrent:
		return &Current{Group: r.string("groupId"), Member: r.string("memberId")}
	case TypeRegex:
		return &Regex{Group: r.string("groupId"), Pattern: r.string("regularExpression")}
	}
	return nil
}

// decodeValue reads a value behind its version into the entry of its key.
func decodeValue(e Entry, r *reader, version int16) {
	switch e := e.(type) {
	case *OffsetCommit:
		e.Value = decodeOffset(r, version)
	case *GroupMetadata:
		e.Value = decodeGeneration(r, version)
	case *ConsumerGroup:
		e.Value = decodeGroupEpoch(r)
	case *PartitionMetadata: // has none
	case *ConsumerMember:
		e.Value = decodeSubscription(r)
	case *Target:
		e.Value = decodeTargetEpoch(r)
	case *TargetMember:
		e.Value = decodePartitions(r)
	case *Current:
		e.Value = decodeCurrentAssignment(r)
	case *Regex:
		e.Value = decodeResolved(r)
	}
}

func (*OffsetCommit) entry()      {}
func (*GroupMetadata) entry()     {}
func (*ConsumerGroup) entry()     {}
func (*PartitionMetadata) entry() {}
func (*ConsumerMember) entry()    {}
func (*Target) entry()            {}
func (*TargetMember) entry()      {}
func (*Current) entry()           {}
func (*Regex) entry()             {}
