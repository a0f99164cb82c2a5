package coord

import (
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Answer is the body of a reply. The set is closed. Nobody changes an answer: those to heartbeats are shared.
//
//sumtype:decl
type Answer interface{ answer() }

// Answers of the classic protocol.
type (
	// JoinReply answers Join.
	JoinReply struct {
		Code           wire.ErrorCode
		Generation     int32 // -1 with an error
		ProtocolType   string
		Protocol       string
		Leader         string
		Member         string
		SkipAssignment bool
		Members        []JoinedMember // for the leader only
	}
	// JoinedMember is one member, as its leader sees it.
	JoinedMember struct {
		Member, Instance string
		Metadata         []byte
	}
	// SyncReply answers Sync.
	SyncReply struct {
		Code                   wire.ErrorCode
		ProtocolType, Protocol string
		Assignment             []byte
	}
	// HeartbeatReply answers Heartbeat.
	HeartbeatReply struct{ Code wire.ErrorCode }
	// LeaveReply answers Leave, Members in the order of the request.
	LeaveReply struct {
		Code    wire.ErrorCode
		Members []LeftMember
	}
	// LeftMember is what came of one member's leaving.
	LeftMember struct {
		Member, Instance string
		Code             wire.ErrorCode
	}
)

// ConsumerHeartbeatReply answers ConsumerHeartbeat.
type ConsumerHeartbeatReply struct {
	Code              wire.ErrorCode
	Message           string
	Member            string
	MemberEpoch       int32
	HeartbeatInterval int32             // ms
	Assigned          bool              // Assignment is there, though it may be empty
	Assignment        []TopicPartitions // all partitions the member may use now
}

// Answers about offsets, topics and partitions in the order of the request.
type (
	// CommitReply answers Commit.
	CommitReply struct{ Topics []CommitTopicReply }
	// CommitTopicReply is one topic of a CommitReply.
	CommitTopicReply struct {
		Name       string
		ID         ident.TopicID
		Partitions []PartitionCode
	}
	// PartitionCode is what came of one partition.
	PartitionCode struct {
		Partition int32
		Code      wire.ErrorCode
	}
	// FetchOffsetsReply answers FetchOffsets.
	FetchOffsetsReply struct {
		Group  string
		Code   wire.ErrorCode
		Topics []FetchedTopic
	}
	// FetchedTopic is one topic of a FetchOffsetsReply.
	FetchedTopic struct {
		Name       string
		ID         ident.TopicID
		Partitions []FetchedOffset
	}
	// FetchedOffset is a committed offset; Offset and LeaderEpoch -1 and empty Metadata: there is none.
	FetchedOffset struct {
		Partition   int32
		Offset      ident.Offset
		LeaderEpoch ident.LeaderEpoch
		Metadata    string
		Code        wire.ErrorCode
	}
	// DeleteOffsetsReply answers DeleteOffsets.
	DeleteOffsetsReply struct {
		Code   wire.ErrorCode
		Topics []CommitTopicReply
	}
)

// Answers of admin commands.
type (
	// DescribeReply answers Describe. An unknown group, or one of the consumer type, is Dead, with GROUP_ID_NOT_FOUND.
	DescribeReply struct {
		Code         wire.ErrorCode
		Message      string
		Group        string
		State        string // Kafka's word
		ProtocolType string
		Protocol     string // the assignor
		Members      []DescribedMember
	}
	// DescribedMember is a classic member.
	DescribedMember struct {
		Member, Instance     string
		Client               Client
		Metadata, Assignment []byte
	}
	// ConsumerDescribeReply answers ConsumerDescribe.
	ConsumerDescribeReply struct {
		Code                        wire.ErrorCode
		Message                     string
		Group, State                string
		GroupEpoch, AssignmentEpoch int32
		Assignor                    string
		Members                     []ConsumerMember
	}
	// ConsumerMember is a member of a consumer group. Type: 0 classic, 1 consumer, -1 unknown.
	ConsumerMember struct {
		Member, Instance, Rack string
		HasInstance, HasRack   bool
		Epoch                  int32
		Client                 Client
		Topics                 []string
		Regex                  string
		HasRegex               bool
		Assignment, Target     []TopicPartitions
		Type                   int8
	}
	// ListReply answers List.
	ListReply struct{ Groups []ListedGroup }
	// ListedGroup is one group. ProtocolType is "" for one that has only offsets; Type is "Classic" or "Consumer".
	ListedGroup struct{ Group, ProtocolType, State, Type string }
	// CodeReply answers Delete.
	CodeReply struct{ Code wire.ErrorCode }
	// InspectReply answers Inspect.
	InspectReply struct{ Groups []InspectedGroup }
	// InspectedGroup is a group with its offsets.
	InspectedGroup struct {
		Group, State, Type string
		Members            int
		Offsets            []InspectedOffset
	}
	// InspectedOffset is one committed offset, and the last jump of this group on the partition.
	InspectedOffset struct {
		Topic     string
		Partition int32
		Offset    ident.Offset // -1: no commit
		At        ident.Millis // of the commit
		Metadata  string
		Jump      *records.Jump // nil: none known
	}
	// ErrorReply answers any command that a shard cannot take now: the shell's (loading, not the coordinator, stopped).
	ErrorReply struct{ Code wire.ErrorCode }
)

func (*JoinReply) answer()              {}
func (*SyncReply) answer()              {}
func (*HeartbeatReply) answer()         {}
func (*LeaveReply) answer()             {}
func (*ConsumerHeartbeatReply) answer() {}
func (*CommitReply) answer()            {}
func (*FetchOffsetsReply) answer()      {}
func (*DeleteOffsetsReply) answer()     {}
func (*DescribeReply) answer()          {}
func (*ConsumerDescribeReply) answer()  {}
func (*ListReply) answer()              {}
func (*CodeReply) answer()              {}
func (*InspectReply) answer()           {}
func (*ErrorReply) answer()             {}
