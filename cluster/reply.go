package cluster

import (
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Reply answers one command. Err is set when the command as a whole was refused (then Body is nil); otherwise Body is the reply type of the command.
type Reply struct {
	Request ident.RequestID
	Err     *Error
	Body    ReplyBody
}

// ReplyBody is one of the reply types below.
//
//sumtype:decl
type ReplyBody interface {
	replyBody()
	encode(w *writer)
}

// CreateTopicsReply answers CreateTopics, one result per topic name in the order of first mention.
type CreateTopicsReply struct{ Topics []CreatedTopic }

// CreatedTopic is the fate of one topic of CreateTopics.
type CreatedTopic struct {
	Name              string
	Err               *Error
	ID                ident.TopicID // zero when Err is set or the request only validated
	Partitions        int32
	ReplicationFactor int16
	Configs           []config.Effective // the topic's effective configs, sorted by name
}

// DeleteTopicsReply answers DeleteTopics, one result per topic in the request's order.
type DeleteTopicsReply struct{ Topics []DeletedTopic }

// DeletedTopic is the fate of one topic of DeleteTopics. Name and ID are both known when Err is nil.
type DeletedTopic struct {
	Name string
	ID   ident.TopicID
	Err  *Error
}

// CreatePartitionsReply answers CreatePartitions, one result per topic name in the order of first mention.
type CreatePartitionsReply struct{ Topics []TopicResult }

// TopicResult is the fate of one topic.
type TopicResult struct {
	Name string
	Err  *Error
}

// AlterConfigsReply answers AlterConfigs and IncrementalAlterConfigs, one result per resource in the request's order.
type AlterConfigsReply struct{ Resources []ResourceResult }

// ResourceResult is the fate of one resource.
type ResourceResult struct {
	Resource config.Resource
	Err      *Error
	Warnings []string // configs accepted without effect, one sentence each
}

// RegisterBrokerReply answers RegisterBroker.
type RegisterBrokerReply struct{ Epoch ident.BrokerEpoch }

// HeartbeatReply answers Heartbeat, after whatever it caused is committed.
type HeartbeatReply struct {
	CaughtUp       bool // Applied had reached the broker's registration
	Fenced         bool
	ShouldShutDown bool // no leadership is left that could still be moved
}

// VerifiedReply answers Verified.
type VerifiedReply struct{}

// MarkReplicasReply answers MarkReplicas.
type MarkReplicasReply struct{}

// ChangeISRReply answers ChangeISR, one result per partition in the request's order.
type ChangeISRReply struct{ Partitions []ISRResult }

// ISRResult is the fate of one proposal, and what holds from then on. The leader goes by the record it replays, not by this.
type ISRResult struct {
	Topic       ident.TopicID
	Partition   int32
	Err         *Error
	Leader      ident.BrokerID
	LeaderEpoch ident.LeaderEpoch
	Epoch       ident.PartitionEpoch
	ISR         []ident.BrokerID
}

// ElectLeadersReply answers ElectLeaders, one result per partition in the request's order.
type ElectLeadersReply struct{ Partitions []ElectionResult }

// ElectionResult is the fate of one election.
type ElectionResult struct {
	PartitionRef
	Err *Error
}

// AllocateProducerIDsReply answers AllocateProducerIDs: ids First … First+Count-1 are the broker's.
type AllocateProducerIDsReply struct {
	First ident.ProducerID
	Count int32
}

// UpdateFeaturesReply answers UpdateFeatures, one result per feature in the request's order. If any failed, none was applied.
type UpdateFeaturesReply struct{ Features []FeatureResult }

// FeatureResult is the fate of one feature.
type FeatureResult struct {
	Name string
	Err  *Error
}

// DescribeQuorumReply answers DescribeQuorum.
type DescribeQuorumReply struct {
	Leader     ident.BrokerID
	Term       uint64
	Committed  uint64 // index; shown as the high watermark of the metadata partition
	Voters     []VoterState
	LeaderNode ident.NodeID
	Observers  []VoterState // registered brokers that are no voters, or no more: a voter is a directory; their node id is 0
}

// VoterState is what the leader knows of one voter.
type VoterState struct {
	Voter
	LogEnd       uint64       // index of the last entry known to be stored there
	LastFetch    ident.Millis // when it last answered; -1: never in this term
	LastCaughtUp ident.Millis // when it last held everything the leader had; -1: never in this term
}

// AddVoterReply answers AddVoter.
type AddVoterReply struct{}

// RemoveVoterReply answers RemoveVoter.
type RemoveVoterReply struct{}

func (*AddVoterReply) replyBody()            {}
func (*RemoveVoterReply) replyBody()         {}
func (*CreateTopicsReply) replyBody()        {}
func (*DeleteTopicsReply) replyBody()        {}
func (*CreatePartitionsReply) replyBody()    {}
func (*AlterConfigsReply) replyBody()        {}
func (*RegisterBrokerReply) replyBody()      {}
func (*HeartbeatReply) replyBody()           {}
func (*VerifiedReply) replyBody()            {}
func (*MarkReplicasReply) replyBody()        {}
func (*ChangeISRReply) replyBody()           {}
func (*ElectLeadersReply) replyBody()        {}
func (*AllocateProducerIDsReply) replyBody() {}
func (*UpdateFeaturesReply) replyBody()      {}
func (*DescribeQuorumReply) replyBody()      {}
