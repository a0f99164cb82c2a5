package cluster

import (
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Record is one fact of the metadata log. Records of one raft entry are one atomic batch.
//
// On disk and between brokers a record is a msgpack array [code, fields…] that only ever grows at its end: a reader skips a tail it does not know and
// takes zero for a tail that is missing. A new meaning is a new code, never a new sense of an old field.
//
//sumtype:decl
type Record interface {
	Code() Code
	encode(w *writer)
}

// Code names the type of a record. THE LEDGER: a code is never reused, a field never moves; each line says since when.
type Code uint16

const (
	CodeNoOp            Code = 0  // 2026-11-30  [0]
	CodeCluster         Code = 1  // 2026-11-30  [1, cluster id]
	CodeVoters          Code = 2  // 2026-11-30  [2, [[node, broker, directory]…]]
	CodeRegisterBroker  Code = 3  // 2026-11-30  [3, broker, epoch, incarnation, [[name, host, port, protocol]…], [directory…], rack, [[feature, min, max]…], fenced, shutting down]
	CodeFenceBroker     Code = 4  // 2026-11-30  [4, broker, epoch, shutting down]
	CodeUnfenceBroker   Code = 5  // 2026-11-30  [5, broker, epoch]
	CodeTopic           Code = 6  // 2026-11-30  [6, name, id]
	CodePartition       Code = 7  // 2026-11-30  [7, topic id, partition, replicas, directories, isr, elr, last known elr, adding, removing, leader, leader epoch, partition epoch, strict, min isr, unverified, [[broker, last epoch, end]…], election, offline, damaged, full (2: where somebody is)]
	CodePartitionChange Code = 8  // 2026-11-30  [8, topic id, partition, isr|nil, elr|nil, last known elr|nil, leader|-2, mode, replicas|nil, directories|nil, adding|nil, removing|nil, min isr|0, unverified|nil, [[broker, last epoch, end]…]|nil, election, offline|nil, damaged|nil, full (2: where it changes)]
	CodeRemoveTopic     Code = 9  // 2026-11-30  [9, topic id]
	CodeConfig          Code = 10 // 2026-11-30  [10, resource type, resource name, key, value|nil]
	CodeFeatureLevel    Code = 11 // 2026-11-30  [11, name, level]
	CodeProducerIDs     Code = 12 // 2026-11-30  [12, broker, epoch, next producer id]
	CodeShutDownBroker  Code = 13 // 2026-11-30  [13, broker, epoch]
	CodeForgetBroker    Code = 14 // 2026-12-01  [14, broker, epoch], from level 2 of troupe.peer.version on
)

// codeEnd is the first code this build does not know.
const codeEnd Code = 15

// NoOpRecord changes nothing.
type NoOpRecord struct{}

// ClusterRecord founds the cluster. It is the first record of all, and the only one of its kind.
type ClusterRecord struct{ ClusterID ident.ClusterID }

// VotersRecord is the whole voter set.
type VotersRecord struct{ Voters []Voter }

// RegisterBrokerRecord registers one run of a broker; Epoch is the index of the entry that first carried it.
type RegisterBrokerRecord struct{ Broker }

// FenceBrokerRecord fences a broker; with ShuttingDown because it asked to leave.
type FenceBrokerRecord struct {
	Broker       ident.BrokerID
	Epoch        ident.BrokerEpoch
	ShuttingDown bool
}

// ShutDownBrokerRecord says that a broker is about to leave: it leads nothing any more, and is fenced once everybody has heard of it.
type ShutDownBrokerRecord struct {
	Broker ident.BrokerID
	Epoch  ident.BrokerEpoch
}

// UnfenceBrokerRecord ends a fence.
type UnfenceBrokerRecord struct {
	Broker ident.BrokerID
	Epoch  ident.BrokerEpoch
}

// TopicRecord creates a topic without partitions; PartitionRecords follow in the same batch.
type TopicRecord struct {
	Name string
	ID   ident.TopicID
}

// PartitionRecord creates the next partition of a topic: Partition equals the number of partitions the topic has.
type PartitionRecord struct {
	Topic     ident.TopicID
	Number    int32
	Partition Partition
}

// PartitionChangeRecord changes a partition and raises its partition epoch by one. Nil lists stay as they are. A Leader other than LeaderUnchanged,
// even the same one, and a Mode other than ModeUnchanged raise the leader epoch by one.
type PartitionChangeRecord struct {
	Topic        ident.TopicID
	Number       int32
	ISR          []ident.BrokerID
	ELR          []ident.BrokerID
	LastKnownELR []ident.BrokerID
	Leader       ident.BrokerID
	Mode         Mode
	Replicas     []ident.BrokerID
	Directories  []ident.DirectoryID
	Adding       []ident.BrokerID
	Removing     []ident.BrokerID
	MinISR       int32 // 0: unchanged
	Unverified   []ident.BrokerID
	Reports      []Report
	Election     Election // how Leader was chosen; without meaning when it is unchanged or nobody
	Offline      []ident.BrokerID
	Damaged      []ident.BrokerID
	Full         []ident.BrokerID // only where troupe.peer.version is 2
}

// LeaderUnchanged leaves leader and leader epoch as they are.
const LeaderUnchanged ident.BrokerID = -2

// Mode is the write mode a PartitionChangeRecord sets.
type Mode uint8

const (
	ModeUnchanged Mode = 0
	ModeCached    Mode = 1 // write.caching=true
	ModeStrict    Mode = 2 // write.caching=false
)

// RemoveTopicRecord deletes a topic, its partitions and its configs.
type RemoveTopicRecord struct{ ID ident.TopicID }

// ConfigRecord sets one override, or removes it when Value is nil.
type ConfigRecord struct {
	Resource config.Resource
	Name     string
	Value    *string
}

// FeatureLevelRecord finalises a feature; level 0 ends it.
type FeatureLevelRecord struct {
	Name  string
	Level int16
}

// ProducerIDsRecord gives producer ids below Next to brokers; the last block went to Broker.
type ProducerIDsRecord struct {
	Broker ident.BrokerID
	Epoch  ident.BrokerEpoch
	Next   ident.ProducerID
}

// Code implements Record.
func (*NoOpRecord) Code() Code { return CodeNoOp }

// Code implements Record.
func (*ClusterRecord) Code() Code { return CodeCluster }

// Code implements Record.
func (*VotersRecord) Code() Code { return CodeVoters }

// Code implements Record.
func (*RegisterBrokerRecord) Code() Code { return CodeRegisterBroker }

// Code implements Record.
func (*FenceBrokerRecord) Code() Code { return CodeFenceBroker }

// Code implements Record.
func (*ShutDownBrokerRecord) Code() Code { return CodeShutDownBroker }

// Code implements Record.
func (*UnfenceBrokerRecord) Code() Code { return CodeUnfenceBroker }

// Code implements Record.
func (*TopicRecord) Code() Code { return CodeTopic }

// Code implements Record.
func (*PartitionRecord) Code() Code { return CodePartition }

// Code implements Record.
func (*PartitionChangeRecord) Code() Code { return CodePartitionChange }

// Code implements Record.
func (*RemoveTopicRecord) Code() Code { return CodeRemoveTopic }

// Code implements Record.
func (*ConfigRecord) Code() Code { return CodeConfig }

// Code implements Record.
func (*FeatureLevelRecord) Code() Code { return CodeFeatureLevel }

// Code implements Record.
func (*ProducerIDsRecord) Code() Code { return CodeProducerIDs }
