package cluster

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Command is one input of the controller machine. The set is closed; each type is described where it is declared.
//
//sumtype:decl
type Command interface{ command() }

// Now is the time at which a step happens, both read from the shell's injected clock.
type Now struct {
	Mono ident.Instant // for deadlines and sessions
	Wall ident.Millis  // for what people read (DescribeQuorum); decides nothing
}

// Ask is what every command that expects an answer carries.
type Ask struct {
	Request  ident.RequestID // names the reply; unique among the shell's open requests
	Deadline ident.Instant   // 0: none. Passed before the commit: REQUEST_TIMED_OUT, though the change may still be committed later
}

// Start gives the machine its first turn: it publishes the image its snapshot holds, and a lone voter campaigns at once instead of waiting for an
// election timeout. Exactly once, before any other command. Published is what the machine before this one published last, after a Reseat; nil: nothing.
type Start struct{ Published *Image }

// publish tells of the image, if it is a newer one than is published.
func (s *Start) publish(m *Image, to *[]Committed) {
	from := s.Published
	if from == nil {
		from = NewImage()
	}
	if m.index > from.index {
		*to = append(*to, Committed{Image: m, Delta: diff(from, m)})
	}
}

// Persisted says that the save with this id, and all before it, are on stable storage (or merely written, where Save.Sync was false).
type Persisted struct{ Save uint64 }

// PersistFailed says that a save could not be written. The machine then answers everybody, proposes and promises nothing any more, and stays silent
// towards the other voters, who elect another controller. Only a new Controller built from what the disk holds goes on.
type PersistFailed struct {
	Save   uint64
	Reason string
}

// Receive is a letter from another voter. The bytes belong to the machine from then on; what cannot be decoded is dropped with a Note.
type Receive struct{ Data []byte }

// Unreachable says that letters to this voter get lost, so that Raft probes instead of streaming.
type Unreachable struct{ Node ident.NodeID }

// SnapshotSent reports the fate of a letter that carried a snapshot (Letter.Snapshot).
type SnapshotSent struct {
	Node   ident.NodeID
	Failed bool
}

// CreateTopics creates topics (API 19); results are per topic. Topics whose checks fail do not stop the others.
type CreateTopics struct {
	Ask
	Topics       []NewTopic
	ValidateOnly bool   // every check, full results, no records
	Entropy      uint64 // random; where placement starts, so that topics of one partition spread
}

// attemptAt is where in a topic's id the number of the attempt is that made it.
const attemptAt = len(ident.TopicID{}) - 2

// Again readies the command to be sent once more, when it is not known what came of it: each attempt has ids of its own. The one before may have made a topic
// that was deleted since, and an id is never used twice. The others see by the rest of the id that it is the same command. The caller owns the command.
func (c *CreateTopics) Again() {
	c.Topics = slices.Clone(c.Topics) // who has the attempt before keeps it as it was
	for i := range c.Topics {
		number := c.Topics[i].ID[attemptAt:]
		binary.BigEndian.PutUint16(number, binary.BigEndian.Uint16(number)+1)
	}
}

// sameCommand tells whether two ids are of attempts of one command to make a topic of one name.
func sameCommand(a, b ident.TopicID) bool {
	return bytes.Equal(a[:attemptAt], b[:attemptAt])
}

// NewTopic is one topic to create.
type NewTopic struct {
	Name              string
	ID                ident.TopicID // random, chosen by the shell; never zero, never used before; see [CreateTopics.Again]
	Partitions        int32         // -1: num.partitions, or what Assignment says
	ReplicationFactor int16         // -1: default.replication.factor, or what Assignment says
	Assignment        []Assignment  // manual placement; then both numbers above must be -1
	Configs           []ConfigValue
	// Internal is for a topic that brokers make for themselves: it takes as many replicas as there are live brokers when there are fewer than
	// ReplicationFactor.
	Internal bool
}

// Assignment places one partition by hand; the first broker is the preferred leader.
type Assignment struct {
	Partition int32
	Brokers   []ident.BrokerID
}

// ConfigValue is a config as a client sends it. A nil Value is a null on the wire.
type ConfigValue struct {
	Name  string
	Value *string
}

// DeleteTopics deletes topics by name or by id (API 20); results are in the order of Topics.
type DeleteTopics struct {
	Ask
	Topics []TopicRef
}

// TopicRef names a topic by Name, or by ID when Name is empty.
type TopicRef struct {
	Name string
	ID   ident.TopicID
}

// CreatePartitions raises the number of partitions of topics (API 37).
type CreatePartitions struct {
	Ask
	Topics       []MorePartitions
	ValidateOnly bool
	Entropy      uint64
}

// MorePartitions is one topic to enlarge.
type MorePartitions struct {
	Name       string
	Count      int32              // the new total
	Assignment [][]ident.BrokerID // nil: placed by the controller; otherwise one list per added partition
}

// AlterConfigs replaces the whole set of configs of each resource (API 33): names left out return to their defaults.
type AlterConfigs struct {
	Ask
	Resources    []ConfigReplacement
	ValidateOnly bool
}

// ConfigReplacement is the new set of one resource.
type ConfigReplacement struct {
	Resource config.Resource
	Configs  []ConfigValue
}

// IncrementalAlterConfigs changes single configs of each resource (API 44).
type IncrementalAlterConfigs struct {
	Ask
	Resources    []ConfigChange
	ValidateOnly bool
}

// ConfigChange is what to change in one resource.
type ConfigChange struct {
	Resource config.Resource
	Ops      []ConfigOp
}

// ConfigOp changes one config.
type ConfigOp struct {
	Name  string
	Op    OpKind
	Value *string
}

// OpKind says how a ConfigOp changes the value. The numbers are the protocol's.
type OpKind int8

const (
	OpSet      OpKind = 0
	OpDelete   OpKind = 1 // back to the default; Value is ignored
	OpAppend   OpKind = 2 // lists only; a word already there is left alone
	OpSubtract OpKind = 3 // lists only; a word not there is left alone
)

// RegisterBroker announces one run of a broker process. The reply carries its broker epoch. A broker id that is registered, unfenced and heard of
// within its session by another incarnation, whose connections are open, is refused with DUPLICATE_BROKER_REGISTRATION.
type RegisterBroker struct {
	Ask
	Broker      ident.BrokerID
	Incarnation Incarnation // random, one per run
	ClusterID   ident.ClusterID
	Endpoints   []Endpoint
	Directories []ident.DirectoryID // of the data directories that are online
	Rack        string              // empty: none
	Features    []FeatureRange      // what this build can serve

	// CleanEpoch is the broker epoch that the clean marker of its last stop names, when that is why replicas count as whole; 0: there is another reason, or
	// none. If it is not the epoch of the broker's last run here, then the marker is of an older one and proves nothing.
	CleanEpoch ident.BrokerEpoch
	// Held says what was found in the data directories at the start. A replica that is assigned to the broker and not named is lost, whatever became of its
	// files: it leaves ISR and ELR at once. So is one that was found and is known to lack records, which is not named either.
	Held []Held
	// Runs are those that had the data directories before this one, as they say themselves. If the broker's last run here is none of them, then it had other
	// directories, or these are of an earlier day, and nothing that was found in them is whole.
	Runs []Incarnation
}

// Held is what a broker found in one of its data directories when it started.
type Held struct {
	Directory ident.DirectoryID
	Topics    []HeldTopic
}

// HeldTopic is what it found of one topic, by partition numbers.
type HeldTopic struct {
	Topic      ident.TopicID
	Whole      []int32 // replicas that have all they had
	Unverified []int32 // replicas that may have: they cannot be elected until Verified says so
}

// ReplicaRef names a replica of the broker that speaks.
type ReplicaRef struct {
	Topic     ident.TopicID
	Partition int32
}

// Verified tells how replicas came out of their recovery: of each that the registration named, once. Repeating it does no harm.
type Verified struct {
	Ask
	Broker   ident.BrokerID
	Epoch    ident.BrokerEpoch
	Replicas []Verdict
}

// Verdict is what recovery found of one replica.
type Verdict struct {
	ReplicaRef
	Whole     bool              // nothing that was reported to a leader is missing
	LastEpoch ident.LeaderEpoch // of its last batch; ident.NoLeaderEpoch: it is empty
	End       ident.Offset      // log end
}

// ChangeISR is what leaders on one broker propose for their partitions, as Kafka's AlterPartition (KIP-497): each is carried out for itself, if its
// partition epoch is the present one.
type ChangeISR struct {
	Ask
	Broker     ident.BrokerID
	Epoch      ident.BrokerEpoch
	Partitions []ISRChange
}

// ISRChange is a proposal for one partition.
type ISRChange struct {
	Topic          ident.TopicID
	Partition      int32
	LeaderEpoch    ident.LeaderEpoch
	PartitionEpoch ident.PartitionEpoch // of the record it is based on
	ISR            []Member             // the whole set wanted, the leader included; empty with Resign
	// Resign asks for another leader instead, and names no set: whoever can takes over in a new leader epoch, and the one that resigns leaves the ISR. If
	// nobody can, the answer is ELIGIBLE_LEADERS_NOT_AVAILABLE, nothing is written, and the leader goes on. Only its leader epoch has to be the present one.
	Resign bool
}

// Member is a replica as its leader knows it: what it reported counts for this registration and this directory alone (KIP-903).
type Member struct {
	Broker    ident.BrokerID
	Epoch     ident.BrokerEpoch
	Directory ident.DirectoryID
}

// MarkReplicas tells what has become of replicas of a broker that goes on living, as Kafka's heartbeats tell of offline log directories (KIP-858). A mark holds
// until another takes its place, or the broker registers anew. Repeating it does no harm and writes nothing.
type MarkReplicas struct {
	Ask
	Broker   ident.BrokerID
	Epoch    ident.BrokerEpoch
	Replicas []ReplicaMark
	// Number counts the commands of this run from 1 on. One that was given up as unanswered may arrive after a newer one: the controller that heard that does
	// not heed it. 0: an older build, which counts none.
	Number uint64
}

// ReplicaMark is the state of one replica.
type ReplicaMark struct {
	ReplicaRef
	Mark Mark
	// Full: it serves, and nothing can be appended to it. It leads only where nobody else of the ISR can, and leaves the ISR where that commits without it.
	// A controller of a cluster whose troupe.peer.version is below 2 does not heed it; a replica that is full when that is raised is not marked before it is told of again.
	Full bool
}

// Mark says what has become of a replica.
type Mark uint8

// The marks.
const (
	MarkSound   Mark = 0 // it serves, and nothing of it is known to be damaged
	MarkDamaged Mark = 1 // it serves, but not all its batches can be read: it leads only where nobody else of ISR and ELR can
	MarkOffline Mark = 2 // it is out of service: it leaves the ISR, and cannot be elected
)

// ElectLeaders asks for elections (API 43).
type ElectLeaders struct {
	Ask
	Unclean    bool           // take anybody where nobody eligible is there; else: the preferred leaders
	All        bool           // all partitions; then those that need no election are left out of the answer
	Partitions []PartitionRef // where All is not set
}

// PartitionRef names a partition.
type PartitionRef struct {
	Topic     string
	Partition int32
}

// GossipHint is what gossip thinks of one run of a broker. It makes the controller less patient and decides nothing. It is never answered.
type GossipHint struct {
	Broker      ident.BrokerID
	Incarnation Incarnation
	Up          bool
}

// Resign asks the controller to hand its office to the voter that has most of the log, because its broker stops. The voters elect that one at once. On
// any other voter it does nothing. It is never answered.
type Resign struct{}

// LinkDown says that all connections of a broker's run are closed or reset; Refused, that a new connect was refused too: then its process is gone. It is
// never answered.
type LinkDown struct {
	Broker  ident.BrokerID
	Epoch   ident.BrokerEpoch // of the run that the connections belonged to
	Refused bool
}

// Incarnation is the random id of one run of a broker process.
type Incarnation [16]byte

// Endpoint is an address a broker can be reached at.
type Endpoint struct {
	Name     string // listener name, e.g. PLAINTEXT
	Host     string
	Port     uint16
	Protocol int16 // Kafka's security protocol: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL
}

// Heartbeat tells the controller that a broker lives and what it wants; it is how a broker is unfenced, and how it leaves.
type Heartbeat struct {
	Ask
	Broker       ident.BrokerID
	Epoch        ident.BrokerEpoch
	Applied      uint64        // index of the broker's published image
	Arrived      ident.Instant // when the bytes arrived, not when the machine got to them: a slow controller fences nobody
	WantFence    bool          // true until the broker's logs are ready to serve
	WantShutdown bool          // controlled shutdown: move leaders away, then fence
	Node         ident.NodeID  // by which an observer would be known as a voter; 0: the broker is a voter, or none yet
}

// AllocateProducerIDs takes the next block of producer ids for a broker.
type AllocateProducerIDs struct {
	Ask
	Broker ident.BrokerID
	Epoch  ident.BrokerEpoch
}

// UpdateFeatures changes finalised feature levels (API 57).
type UpdateFeatures struct {
	Ask
	Updates      []FeatureUpdate
	ValidateOnly bool
}

// FeatureUpdate asks for one level.
type FeatureUpdate struct {
	Name  string
	Level int16 // 0: not finalised any more
	Kind  UpgradeKind
}

// UpgradeKind is the direction a FeatureUpdate allows. The numbers are the protocol's.
type UpgradeKind int8

const (
	Upgrade         UpgradeKind = 1
	SafeDowngrade   UpgradeKind = 2
	UnsafeDowngrade UpgradeKind = 3
)

// AddVoter gives a vote to a broker that follows as an observer (API 80, KIP-853). It is answered when the change is committed.
type AddVoter struct {
	Ask
	Cluster   ident.ClusterID // empty: whichever it is
	Broker    ident.BrokerID
	Directory ident.DirectoryID
}

// RemoveVoter takes a vote away (API 81, KIP-853), that of a dead broker, too. It is answered when the change is committed.
type RemoveVoter struct {
	Ask
	Cluster   ident.ClusterID // empty: whichever it is
	Broker    ident.BrokerID
	Directory ident.DirectoryID // of the voter: another one of the same broker is another voter
}

// DescribeQuorum asks for the state of the quorum (API 55). Only the leader knows it.
type DescribeQuorum struct{ Ask }

func (*Start) command()                   {}
func (*AddVoter) command()                {}
func (*RemoveVoter) command()             {}
func (*Persisted) command()               {}
func (*PersistFailed) command()           {}
func (*Receive) command()                 {}
func (*Unreachable) command()             {}
func (*SnapshotSent) command()            {}
func (*CreateTopics) command()            {}
func (*DeleteTopics) command()            {}
func (*CreatePartitions) command()        {}
func (*AlterConfigs) command()            {}
func (*IncrementalAlterConfigs) command() {}
func (*RegisterBroker) command()          {}
func (*Heartbeat) command()               {}
func (*Verified) command()                {}
func (*ChangeISR) command()               {}
func (*ElectLeaders) command()            {}
func (*MarkReplicas) command()            {}
func (*GossipHint) command()              {}
func (*LinkDown) command()                {}
func (*Resign) command()                  {}
func (*AllocateProducerIDs) command()     {}
func (*UpdateFeatures) command()          {}
func (*DescribeQuorum) command()          {}
