package records

import "github.com/troupe-broker/troupe/wire/ident"

// Type is the number at the front of a key (Kafka's CoordinatorRecordType).
type Type int16

// The types that a group coordinator writes or reads.
const (
	TypeLegacyOffsetCommit Type = 0 // read as TypeOffsetCommit
	TypeOffsetCommit       Type = 1
	TypeGroupMetadata      Type = 2
	TypeConsumerGroup      Type = 3
	TypePartitionMetadata  Type = 4 // of Kafka before 4.1: read and passed over
	TypeConsumerMember     Type = 5
	TypeTarget             Type = 6
	TypeTargetMember       Type = 7
	TypeCurrent            Type = 8
	TypeRegex              Type = 16
)

// Entry is one record of __consumer_offsets as a value. The set is closed. An entry is not changed after it was made. Every entry has a pointer Value; nil
// is a tombstone: what the key names is gone.
//
//sumtype:decl
type Entry interface {
	// Type is the type of the key.
	Type() Type
	// GroupID is the group that the entry belongs to.
	GroupID() string
	// Tombstone tells whether the value is absent.
	Tombstone() bool
	// AppendKey appends the key as Kafka encodes it, the type first.
	AppendKey(dst []byte) []byte
	// AppendValue appends the value, its version first. It must not be called for a tombstone.
	AppendValue(dst []byte) []byte
	entry()
}

type (
	// OffsetCommit is the committed offset of a group for a partition.
	OffsetCommit struct {
		Group, Topic string
		Partition    int32
		Value        *Offset
	}
	// Offset is a committed offset. It is written as version 1 with an expiry of its own, else as version 4. Version 1 has no room for LeaderEpoch, TopicID
	// and Jump: an entry with ExpireTime leaves them at their defaults (-1, zero, nil), or what is loaded is not what was applied.
	Offset struct {
		Offset      ident.Offset
		LeaderEpoch ident.LeaderEpoch // -1: unknown
		Metadata    string
		CommitTime  ident.Millis
		ExpireTime  ident.Millis  // -1: the broker's retention decides (old clients set it)
		TopicID     ident.TopicID // zero: unknown
		// Jump is what the group skipped before this commit, in a tagged field of our own that Kafka's decoders pass over. nil: nothing known.
		Jump *Jump
	}
	// Jump is what a group skipped by auto.offset.reset: the offsets from From (the log start, or the commit that fell below it) up to To.
	// To -1: nobody told where it went.
	Jump struct {
		Reason   JumpReason
		From, To ident.Offset
		At       ident.Millis
	}
)

type (
	// GroupMetadata is a generation of a classic group.
	GroupMetadata struct {
		Group string
		Value *Generation
	}
	// Generation is what members of a classic group agreed on. It is written as version 3; as version 4 when a string is longer than StringMax.
	Generation struct {
		ProtocolType string
		Generation   int32
		Protocol     *string
		Leader       *string
		StateTime    ident.Millis // when the group reached its state; expiry counts from it. -1: unknown
		Members      []ClassicMember
	}
	// ClassicMember is one member with its assignment.
	ClassicMember struct {
		Member           string
		Instance         *string
		ClientID         string
		ClientHost       string
		RebalanceTimeout int32
		SessionTimeout   int32
		Subscription     []byte
		Assignment       []byte
	}
)

type (
	// ConsumerGroup is the epoch of a consumer group (KIP-848).
	ConsumerGroup struct {
		Group string
		Value *GroupEpoch
	}
	// GroupEpoch is the group's epoch and a hash over what it knows of its topics.
	GroupEpoch struct {
		Epoch        int32
		MetadataHash int64
	}
	// PartitionMetadata is a type of the past: only its tombstones are still written, by Kafka.
	PartitionMetadata struct{ Group string }
	// ConsumerMember is a member of a consumer group.
	ConsumerMember struct {
		Group, Member string
		Value         *Subscription
	}
	// Subscription is what a member wants.
	Subscription struct {
		Instance         *string
		Rack             *string
		ClientID         string
		ClientHost       string
		Topics           []string // sorted
		Regex            *string
		RebalanceTimeout int32
		Assignor         *string
		Classic          *Classic // the member speaks the classic protocol
	}
	// Classic is what is known of a member that speaks the classic protocol.
	Classic struct {
		SessionTimeout int32
		Protocols      []Protocol
	}
	// Protocol is one that a classic member supports.
	Protocol struct {
		Name     string
		Metadata []byte
	}
	// Target is the epoch of the target assignment.
	Target struct {
		Group string
		Value *TargetEpoch
	}
	// TargetEpoch is the epoch for which a target assignment was made, and when.
	TargetEpoch struct {
		Epoch int32
		At    ident.Millis // 0: unknown
	}
	// TargetMember is what a member shall have.
	TargetMember struct {
		Group, Member string
		Value         *Partitions
	}
	// Partitions are a set of partitions by topic, topics in the order of their ids, partitions ascending.
	Partitions struct{ Topics []TopicPartitions }
	// TopicPartitions are partitions of one topic. Epochs, if not nil, says for each partition in which member epoch it was assigned (KIP-1251).
	TopicPartitions struct {
		Topic      ident.TopicID
		Partitions []int32
		Epochs     []int32
	}
	// Current is what a member has.
	Current struct {
		Group, Member string
		Value         *CurrentAssignment
	}
	// CurrentAssignment is what a member has, and what it has yet to give up.
	CurrentAssignment struct {
		MemberEpoch, PreviousEpoch int32
		State                      MemberState
		Assigned                   []TopicPartitions
		Revoking                   []TopicPartitions
	}
	// Regex is what a regular expression of the group matches.
	Regex struct {
		Group, Pattern string
		Value          *Resolved
	}
	// Resolved is the result of a regular expression.
	Resolved struct {
		Topics  []string // sorted
		Version int64    // of the metadata it was resolved against
		At      ident.Millis
	}
)

// MemberState is the state of a member of a consumer group (Kafka's MemberState).
type MemberState int8

// The states.
const (
	MemberStable     MemberState = 0
	MemberUnrevoked  MemberState = 1 // has to give up partitions first
	MemberUnreleased MemberState = 2 // waits for partitions that others have to give up
	MemberUnknown    MemberState = 127
)

// JumpReason says why a consumer left records unread.
type JumpReason int8

// The reasons.
const (
	JumpNoCommit JumpReason = iota + 1 // the group had no committed offset
	JumpExpired                        // its committed offset lay below the log start
)

// String prints the reason for a person.
func (r JumpReason) String() string {
	switch r {
	case JumpNoCommit:
		return "no committed offset"
	case JumpExpired:
		return "committed offset below the log start"
	}
	return "unknown"
}

// Skipped is how many offsets the jump left unread.
func (j *Jump) Skipped() int64 { return max(0, int64(j.To-j.From)) }
