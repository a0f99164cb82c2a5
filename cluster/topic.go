package cluster

import (
	"errors"
	"fmt"
	"slices"

	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Topic is one topic of an Image. It never changes once its image is published.
type Topic struct {
	Name       string
	ID         ident.TopicID
	Partitions []*Partition // the index is the partition number
	Configs    config.Set   // overrides only

	owner *edit
}

// Internal tells whether this is one of Kafka's three internal topics.
func (t *Topic) Internal() bool { return InternalTopic(t.Name) }

// OffsetsTopic is the topic in which group coordinators keep what they know.
const OffsetsTopic = "__consumer_offsets"

// InternalTopic tells whether a name is that of one of Kafka's three internal topics.
func InternalTopic(name string) bool {
	return name == OffsetsTopic || name == "__transaction_state" || name == "__share_group_state"
}

// ReplicationFactor is the number of replicas of partition 0, which is what Kafka calls the topic's factor.
func (t *Topic) ReplicationFactor() int16 {
	if len(t.Partitions) == 0 {
		return 0
	}
	return int16(len(t.Partitions[0].Replicas))
}

// Partition is the metadata of one partition. It never changes: a change makes another one.
type Partition struct {
	Replicas     []ident.BrokerID     // the first is the preferred leader
	Directories  []ident.DirectoryID  // where each replica is kept, in the order of Replicas; zero: not told yet
	ISR          []ident.BrokerID     // ⊆ Replicas
	ELR          []ident.BrokerID     // ⊆ Replicas \ ISR (KIP-966)
	LastKnownELR []ident.BrokerID     // who was in ISR ∪ ELR when the partition last had a leader that led; empty when the present one has shown that it does, by a proposal (Controller.led: or by a heartbeat), and nobody was put out of both since
	Adding       []ident.BrokerID     // ⊆ Replicas, on their way into the ISR; until then they count for nothing
	Removing     []ident.BrokerID     // ⊆ Replicas, being reassigned away
	Leader       ident.BrokerID       // ∈ ISR, or ident.NoBroker
	LeaderEpoch  ident.LeaderEpoch    // ≥ 0, never falls
	Epoch        ident.PartitionEpoch // ≥ 0, rises with each change of this record
	Strict       bool                 // write mode of this leader epoch: only flushed records count
	MinISR       int32                // min(min.insync.replicas, replicas not being added): the smallest ISR that commits anything; 0: an older record
	Unverified   []ident.BrokerID     // ⊆ Replicas: restarted, and not known yet to have all they had; they cannot be elected
	Reports      []Report             // of LastKnownELR, while there is no leader: how far those that came back reach
	Election     Election             // how the newest leader was chosen
	Offline      []ident.BrokerID     // ⊆ Replicas \ ISR: out of service, as their broker says, which lives; they cannot be elected
	Damaged      []ident.BrokerID     // ⊆ Replicas: not all their batches can be read; they lead where nobody else can
	led          uint64               // index of the record that chose Leader, lowered MinISR or took somebody out of ISR and ELR last, or of a later snapshot; no part of a record
	Full         []ident.BrokerID     // ⊆ Replicas: nothing can be appended to them; they lead where nobody else can, and are in the ISR where it needs them
}

// Report is how far a replica reaches after its recovery.
type Report struct {
	Broker    ident.BrokerID
	LastEpoch ident.LeaderEpoch // of its last batch; ident.NoLeaderEpoch: it is empty
	End       ident.Offset      // log end
}

// Election says how a leader was chosen.
type Election uint8

const (
	ElectionClean        Election = 0 // from ISR or ELR, or one that joined the ISR in the same record: nothing committed is missing
	ElectionUnclean      Election = 1 // by unclean.leader.election.enable or an operator: committed records may be lost
	ElectionPossibleLoss Election = 2 // nobody was whole: the one that reaches farthest of all who were in ISR and ELR leads
)

// assigned is the number of replicas that count for min.insync.replicas.
func (p *Partition) assigned() int { return len(p.Replicas) - len(p.Adding) }

// HasReplica tells whether a broker holds a replica.
func (p *Partition) HasReplica(b ident.BrokerID) bool { return slices.Contains(p.Replicas, b) }

// InSync tells whether a broker is in the ISR.
func (p *Partition) InSync(b ident.BrokerID) bool { return slices.Contains(p.ISR, b) }

// Broker is one registered broker.
type Broker struct {
	ID           ident.BrokerID
	Epoch        ident.BrokerEpoch // index of its registration
	Incarnation  Incarnation
	Endpoints    []Endpoint
	Directories  []ident.DirectoryID
	Rack         string
	Features     []FeatureRange
	Fenced       bool
	ShuttingDown bool // in controlled shutdown: leads nothing any more
}

// Endpoint returns the broker's address on a listener.
func (b *Broker) Endpoint(listener string) (Endpoint, bool) {
	for _, e := range b.Endpoints {
		if e.Name == listener {
			return e, true
		}
	}
	return Endpoint{}, false
}

// active tells whether the broker may lead and take new replicas.
func (b *Broker) active() bool { return !b.Fenced && !b.ShuttingDown }

// Voter is one member of the quorum.
type Voter struct {
	Node      ident.NodeID
	Broker    ident.BrokerID
	Directory ident.DirectoryID
}

// FeatureRange is what a build can serve of a feature; levels 0 and below mean "not at all".
type FeatureRange struct {
	Name     string
	Min, Max int16
}

// FeatureLevel is a finalised feature.
type FeatureLevel struct {
	Name  string
	Level int16
}

// check verifies what the field comments promise.
func (p *Partition) check() error {
	if len(p.Replicas) == 0 {
		return errors.New("no replicas")
	}
	if len(p.Directories) != 0 && len(p.Directories) != len(p.Replicas) {
		return fmt.Errorf("%d directories for %d replicas", len(p.Directories), len(p.Replicas))
	}
	for _, l := range [...]struct {
		name string
		list []ident.BrokerID
	}{{"replicas", p.Replicas}, {"ISR", p.ISR}, {"ELR", p.ELR}, {"last known ELR", p.LastKnownELR}, {"adding", p.Adding}, {"removing", p.Removing}, {"unverified", p.Unverified}, {"offline", p.Offline}, {"damaged", p.Damaged}, {"full", p.Full}} {
		for i, b := range l.list {
			if slices.Contains(l.list[:i], b) {
				return fmt.Errorf("broker %d twice in the %s", b, l.name)
			}
			if !p.HasReplica(b) {
				return fmt.Errorf("broker %d is in the %s and holds no replica", b, l.name)
			}
		}
	}
	for _, r := range p.Reports {
		if !slices.Contains(p.LastKnownELR, r.Broker) {
			return fmt.Errorf("a report of broker %d, which was not in ISR or ELR %v", r.Broker, p.LastKnownELR)
		}
	}
	for _, b := range p.ELR {
		if p.InSync(b) {
			return fmt.Errorf("broker %d in both ISR and ELR", b)
		}
	}
	for _, b := range p.Offline {
		if p.InSync(b) {
			return fmt.Errorf("broker %d is in the ISR, and its replica is offline", b)
		}
	}
	if p.Leader != ident.NoBroker && !p.InSync(p.Leader) {
		return fmt.Errorf("leader %d outside the ISR %v", p.Leader, p.ISR)
	}
	return nil
}
