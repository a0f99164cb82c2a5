package coord

import "github.com/troupe-broker/troupe/wire/ident"

// Command is what a shard can be asked or told. The set is closed. Commands are pointers; the machines keep no reference to one after the step, but they
// do keep its strings and byte slices: these must not alias memory that changes.
//
//sumtype:decl
type Command interface{ command() }

// Now is the time of a step.
type Now struct {
	Mono ident.Instant // for deadlines
	Wall ident.Millis  // for what is stored
}

// Client is who asks.
type Client struct {
	ID   string // client.id of the request header
	Host string // "/127.0.0.1", as Kafka prints it
}

// Commands of the classic protocol.
type (
	// Join is JoinGroup (API 11). Answered by JoinReply, when the rebalance it starts or joins is over.
	Join struct {
		Group, Member      string
		Instance           string // group.instance.id, empty: a dynamic member
		NewMember          string // the id that this member gets if it needs one; unique
		Client             Client
		ProtocolType       string
		Protocols          []Protocol // in order of preference
		SessionTimeout     int32      // ms
		RebalanceTimeout   int32      // ms; v0 has none: the handler puts the session timeout
		Reason             string     // for the log
		RequireKnownMember bool       // v4+: a dynamic member without id gets one and MEMBER_ID_REQUIRED
		SkipAssignment     bool       // v9+: the leader understands JoinReply.SkipAssignment
	}
	// Protocol is one that a member supports, with what it wants the assignor to know.
	Protocol struct {
		Name     string
		Metadata []byte
	}
	// Sync is SyncGroup (API 14). Answered by SyncReply, a follower's when the leader's has come and is committed.
	Sync struct {
		Group, Member, Instance string
		Generation              int32
		ProtocolType            string // empty before v5: not checked
		Protocol                string // the same
		Assignments             []MemberAssignment
	}
	// MemberAssignment is what the leader decided for one member.
	MemberAssignment struct {
		Member     string
		Assignment []byte
	}
	// Heartbeat is Heartbeat (API 12). Answered by HeartbeatReply.
	Heartbeat struct {
		Group, Member, Instance string
		Generation              int32
	}
	// Leave is LeaveGroup (API 13). Answered by LeaveReply.
	Leave struct {
		Group   string
		Members []LeavingMember
	}
	// LeavingMember names a member by its id, or a static one by its instance with an empty id (v3+, the admin's way).
	LeavingMember struct{ Member, Instance, Reason string }
)

// ConsumerHeartbeat is ConsumerGroupHeartbeat (API 68, KIP-848). Answered by ConsumerHeartbeatReply. nil means: as before.
type ConsumerHeartbeat struct {
	Group, Member    string
	NewMember        string // v0: the id for a member that has none
	Client           Client
	MemberEpoch      int32 // 0: join; -1: leave; -2: a static member leaves for a while
	Instance         *string
	Rack             *string
	RebalanceTimeout int32 // ms; -1: as before
	IntervalMin      int32 // the shortest heartbeat interval, in ms, that this client can be told
	Topics           []string
	Regex            *string
	Assignor         *string
	Owned            []TopicPartitions
}

// TopicPartitions are partitions of one topic.
type TopicPartitions struct {
	Topic      ident.TopicID
	Name       string  // filled in in replies of ConsumerDescribe; else empty
	Partitions []int32 // ascending
}

// Commands about offsets.
type (
	// Commit is OffsetCommit (API 8). Answered by CommitReply.
	Commit struct {
		Version                 int16
		Group, Member, Instance string
		Generation              int32 // or member epoch; negative: a simple consumer
		Retention               int64 // ms, v2 to v4; -1: the broker's
		Client                  Client
		Topics                  []CommitTopic
	}
	// CommitTopic is one topic of a Commit. The handler has resolved the topic: both Name and ID are set, or the Code of each of its partitions says why not.
	CommitTopic struct {
		Name       string
		ID         ident.TopicID
		Partitions []CommitPartition
	}
	// CommitPartition is one offset to store. With Code it is refused with that, whatever becomes of the others.
	CommitPartition struct {
		Partition   int32
		Offset      ident.Offset
		LeaderEpoch ident.LeaderEpoch
		Metadata    string
		Code        int16
	}
	// FetchOffsets is OffsetFetch (API 9) for one group. Answered by FetchOffsetsReply.
	FetchOffsets struct {
		Version       int16
		Group, Member string
		MemberEpoch   int32 // v9+; -1 without a member
		Client        Client
		All           bool // every topic the group has committed
		Topics        []FetchTopic
		RequireStable bool
	}
	// FetchTopic is one topic of FetchOffsets; the handler has resolved ID to Name (v10+) or left ID zero.
	FetchTopic struct {
		Name       string
		ID         ident.TopicID
		Partitions []FetchPartition
	}
	// FetchPartition is one partition of FetchOffsets. LogStart and HighWatermark are those of the partition when this broker leads it, else -1: what
	// a group without a usable commit jumps over is counted from them.
	FetchPartition struct {
		Partition               int32
		LogStart, HighWatermark ident.Offset
	}
	// DeleteOffsets is OffsetDelete (API 47). Answered by DeleteOffsetsReply.
	DeleteOffsets struct {
		Group  string
		Topics []DeleteTopic
	}
	// DeleteTopic is one topic of DeleteOffsets.
	DeleteTopic struct {
		Name       string
		Partitions []int32
	}
)

// Admin commands.
type (
	// Describe is DescribeGroups (API 15) for one group. Answered by DescribeReply.
	Describe struct{ Group string }
	// ConsumerDescribe is ConsumerGroupDescribe (API 69) for one group. Answered by ConsumerDescribeReply.
	ConsumerDescribe struct{ Group string }
	// List is ListGroups (API 16) for this shard. Answered by ListReply. Empty lists allow everything; words are compared without case.
	List struct{ States, Types []string }
	// Delete is DeleteGroups (API 42) for one group. Answered by CodeReply.
	Delete struct{ Group string }
	// Inspect asks for a group's committed offsets with the jumps of its consumers, for the metrics and for `troupe group describe`. Answered by
	// InspectReply.
	Inspect struct{ Group string } // empty: all groups of the shard
)

// Facts.
type (
	// TopicsChanged brings another view of the topics: partitions were added, topics were created.
	TopicsChanged struct{ Topics Topics }
	// TopicsDeleted tells of deleted topics: their committed offsets go with them.
	TopicsDeleted struct{ Topics []DeletedTopic }
	// DeletedTopic is one that is gone.
	DeletedTopic struct {
		Name string
		ID   ident.TopicID
	}
	// Jumped tells where a consumer went that had no usable commit: the shell saw the client ask for Target of the partition by a special timestamp.
	Jumped struct {
		Client    Client
		Topic     string
		Partition int32
		Timestamp int64 // -1 latest, -2 earliest, else a time
		Target    ident.Offset
		At        ident.Millis
	}
	// Configure replaces the configuration, and the configs of single groups with it.
	Configure struct{ Config Config }
)

func (*Join) command()              {}
func (*Sync) command()              {}
func (*Heartbeat) command()         {}
func (*Leave) command()             {}
func (*ConsumerHeartbeat) command() {}
func (*Commit) command()            {}
func (*FetchOffsets) command()      {}
func (*DeleteOffsets) command()     {}
func (*Describe) command()          {}
func (*ConsumerDescribe) command()  {}
func (*List) command()              {}
func (*Delete) command()            {}
func (*Inspect) command()           {}
func (*TopicsChanged) command()     {}
func (*TopicsDeleted) command()     {}
func (*Jumped) command()            {}
func (*Configure) command()         {}
