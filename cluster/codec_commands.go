package cluster

import (
	"math"

	"github.com/troupe-broker/troupe/wire/ident"
)

func (cmd *RegisterBroker) encode(w *writer) {
	w.command(CodeRegister, 10)
	w.int(int64(cmd.Broker))
	w.bytes(cmd.Incarnation[:])
	w.string(string(cmd.ClusterID))
	w.endpoints(cmd.Endpoints)
	w.directories(cmd.Directories)
	w.string(cmd.Rack)
	w.featureRanges(cmd.Features)
	w.int(int64(cmd.CleanEpoch))
	w.held(cmd.Held)
	w.runs(cmd.Runs)
}

func (r *reader) registerCommand(f *fields) Command {
	cmd := &RegisterBroker{}
	f.broker(&cmd.Broker)
	f.id((*[16]byte)(&cmd.Incarnation))
	f.string((*string)(&cmd.ClusterID))
	if f.next() {
		cmd.Endpoints = r.endpoints(detailsMax)
	}
	if f.next() {
		cmd.Directories = r.directories()
	}
	f.string(&cmd.Rack)
	if f.next() {
		cmd.Features = r.featureRanges(detailsMax)
	}
	f.brokerEpoch(&cmd.CleanEpoch)
	if f.next() {
		cmd.Held = r.held()
	}
	if f.next() {
		cmd.Runs = r.runs()
	}
	return cmd
}

func (cmd *Heartbeat) encode(w *writer) {
	w.command(CodeHeartbeat, 6)
	w.int(int64(cmd.Broker))
	w.int(int64(cmd.Epoch))
	w.uint(cmd.Applied)
	w.bool(cmd.WantFence)
	w.bool(cmd.WantShutdown)
	w.uint(uint64(cmd.Node))
}

func (*reader) heartbeatCommand(f *fields) Command {
	cmd := &Heartbeat{}
	f.broker(&cmd.Broker)
	f.brokerEpoch(&cmd.Epoch)
	f.uint(&cmd.Applied)
	f.bool(&cmd.WantFence)
	f.bool(&cmd.WantShutdown)
	f.uint((*uint64)(&cmd.Node))
	return cmd
}

func (cmd *Verified) encode(w *writer) {
	w.command(CodeVerified, 3)
	w.int(int64(cmd.Broker))
	w.int(int64(cmd.Epoch))
	each(w, cmd.Replicas, func(v *Verdict) {
		w.array(5)
		w.bytes(v.Topic[:])
		w.int(int64(v.Partition))
		w.bool(v.Whole)
		w.int(int64(v.LastEpoch))
		w.int(int64(v.End))
	})
}

func (r *reader) verifiedCommand(f *fields) Command {
	cmd := &Verified{}
	f.broker(&cmd.Broker)
	f.brokerEpoch(&cmd.Epoch)
	if f.next() {
		cmd.Replicas = list(r, replicasMax, func(f *fields, v *Verdict) {
			f.ref(&v.ReplicaRef)
			f.bool(&v.Whole)
			number(f, &v.LastEpoch, -1, math.MaxInt32)
			number(f, &v.End, 0, math.MaxInt64)
		})
	}
	return cmd
}

func (cmd *ChangeISR) encode(w *writer) {
	w.command(CodeChangeISR, 3)
	w.int(int64(cmd.Broker))
	w.int(int64(cmd.Epoch))
	each(w, cmd.Partitions, func(c *ISRChange) {
		w.array(6)
		w.bytes(c.Topic[:])
		w.int(int64(c.Partition))
		w.int(int64(c.LeaderEpoch))
		w.int(int64(c.PartitionEpoch))
		each(w, c.ISR, func(m *Member) {
			w.array(3)
			w.int(int64(m.Broker))
			w.int(int64(m.Epoch))
			w.bytes(m.Directory[:])
		})
		w.bool(c.Resign)
	})
}

func (r *reader) changeISRCommand(f *fields) Command {
	cmd := &ChangeISR{}
	f.broker(&cmd.Broker)
	f.brokerEpoch(&cmd.Epoch)
	if f.next() {
		cmd.Partitions = list(r, itemsMax, func(f *fields, c *ISRChange) {
			f.id((*[16]byte)(&c.Topic))
			number(f, &c.Partition, 0, math.MaxInt32)
			number(f, &c.LeaderEpoch, -1, math.MaxInt32)
			number(f, &c.PartitionEpoch, -1, math.MaxInt32)
			if f.next() {
				c.ISR = list(r, detailsMax, func(f *fields, m *Member) {
					f.broker(&m.Broker)
					f.brokerEpoch(&m.Epoch)
					f.id((*[16]byte)(&m.Directory))
				})
			}
			f.bool(&c.Resign)
		})
	}
	return cmd
}

func (cmd *MarkReplicas) encode(w *writer) {
	w.command(CodeMarkReplicas, 4)
	w.int(int64(cmd.Broker))
	w.int(int64(cmd.Epoch))
	each(w, cmd.Replicas, func(m *ReplicaMark) {
		w.array(4)
		w.bytes(m.Topic[:])
		w.int(int64(m.Partition))
		w.uint(uint64(m.Mark))
		w.bool(m.Full)
	})
	w.uint(cmd.Number)
}

func (r *reader) markReplicasCommand(f *fields) Command {
	cmd := &MarkReplicas{}
	f.broker(&cmd.Broker)
	f.brokerEpoch(&cmd.Epoch)
	if f.next() {
		cmd.Replicas = list(r, replicasMax, func(f *fields, m *ReplicaMark) {
			f.ref(&m.ReplicaRef)
			number(f, &m.Mark, 0, int64(MarkOffline))
			f.bool(&m.Full)
		})
	}
	f.uint(&cmd.Number)
	return cmd
}

func (cmd *ElectLeaders) encode(w *writer) {
	w.command(CodeElectLeaders, 3)
	w.bool(cmd.Unclean)
	w.bool(cmd.All)
	each(w, cmd.Partitions, func(p *PartitionRef) {
		w.array(2)
		w.string(p.Topic)
		w.int(int64(p.Partition))
	})
}

func (r *reader) electLeadersCommand(f *fields) Command {
	cmd := &ElectLeaders{}
	f.bool(&cmd.Unclean)
	f.bool(&cmd.All)
	if f.next() {
		cmd.Partitions = list(r, replicasMax, func(f *fields, p *PartitionRef) {
			f.string(&p.Topic)
			number(f, &p.Partition, math.MinInt32, math.MaxInt32)
		})
	}
	return cmd
}

func (cmd *AllocateProducerIDs) encode(w *writer) {
	w.command(CodeAllocateProducerIDs, 2)
	w.int(int64(cmd.Broker))
	w.int(int64(cmd.Epoch))
}

func (*reader) allocateCommand(f *fields) Command {
	cmd := &AllocateProducerIDs{}
	f.broker(&cmd.Broker)
	f.brokerEpoch(&cmd.Epoch)
	return cmd
}

func (cmd *CreateTopics) encode(w *writer) {
	w.command(CodeCreateTopics, 3)
	each(w, cmd.Topics, func(t *NewTopic) {
		w.array(7)
		w.string(t.Name)
		w.bytes(t.ID[:])
		w.int(int64(t.Partitions))
		w.int(int64(t.ReplicationFactor))
		each(w, t.Assignment, func(a *Assignment) {
			w.array(2)
			w.int(int64(a.Partition))
			w.brokers(a.Brokers)
		})
		w.configValues(t.Configs)
		w.bool(t.Internal)
	})
	w.bool(cmd.ValidateOnly)
	w.uint(cmd.Entropy)
}

func (r *reader) createTopicsCommand(f *fields) Command {
	cmd := &CreateTopics{}
	if f.next() {
		cmd.Topics = list(r, itemsMax, func(f *fields, t *NewTopic) {
			f.string(&t.Name)
			f.id((*[16]byte)(&t.ID))
			number(f, &t.Partitions, math.MinInt32, math.MaxInt32)
			number(f, &t.ReplicationFactor, math.MinInt16, math.MaxInt16)
			if f.next() {
				t.Assignment = list(r, itemsMax, func(f *fields, a *Assignment) {
					number(f, &a.Partition, math.MinInt32, math.MaxInt32)
					if f.next() {
						a.Brokers = r.brokers()
					}
				})
			}
			if f.next() {
				t.Configs = r.configValues()
			}
			f.bool(&t.Internal)
		})
	}
	f.bool(&cmd.ValidateOnly)
	f.uint(&cmd.Entropy)
	return cmd
}

func (w *writer) configValues(values []ConfigValue) {
	each(w, values, func(v *ConfigValue) {
		w.array(2)
		w.string(v.Name)
		w.stringOrNil(v.Value)
	})
}

func (r *reader) configValues() []ConfigValue {
	return list(r, detailsMax, func(f *fields, v *ConfigValue) {
		f.string(&v.Name)
		if f.next() {
			v.Value = r.stringOrNil()
		}
	})
}

func (cmd *DeleteTopics) encode(w *writer) {
	w.command(CodeDeleteTopics, 1)
	each(w, cmd.Topics, func(t *TopicRef) {
		w.array(2)
		w.string(t.Name)
		w.bytes(t.ID[:])
	})
}

func (r *reader) deleteTopicsCommand(f *fields) Command {
	cmd := &DeleteTopics{}
	if f.next() {
		cmd.Topics = list(r, itemsMax, func(f *fields, t *TopicRef) {
			f.string(&t.Name)
			f.id((*[16]byte)(&t.ID))
		})
	}
	return cmd
}

func (cmd *CreatePartitions) encode(w *writer) {
	w.command(CodeCreatePartitions, 3)
	each(w, cmd.Topics, func(t *MorePartitions) {
		w.array(3)
		w.string(t.Name)
		w.int(int64(t.Count))
		if t.Assignment == nil {
			w.nil()
			return
		}
		each(w, t.Assignment, func(b *[]ident.BrokerID) { w.brokers(*b) })
	})
	w.bool(cmd.ValidateOnly)
	w.uint(cmd.Entropy)
}

func (r *reader) createPartitionsCommand(f *fields) Command {
	cmd := &CreatePartitions{}
	if f.next() {
		cmd.Topics = list(r, itemsMax, func(f *fields, t *MorePartitions) {
			f.string(&t.Name)
			number(f, &t.Count, math.MinInt32, math.MaxInt32)
			if f.next() && !r.null() {
				t.Assignment = r.assignments()
			}
		})
	}
	f.bool(&cmd.ValidateOnly)
	f.uint(&cmd.Entropy)
	return cmd
}

// assignments reads lists of brokers; the result is not nil, which would mean something else.
func (r *reader) assignments() [][]ident.BrokerID {
	out := [][]ident.BrokerID{}
	for n := min(r.array(), itemsMax+1); n > 0 && r.err == nil; n-- {
		out = append(out, r.brokers())
	}
	return out
}

func (cmd *AlterConfigs) encode(w *writer) {
	w.command(CodeAlterConfigs, 2)
	each(w, cmd.Resources, func(c *ConfigReplacement) {
		w.array(3)
		w.resource(c.Resource)
		w.configValues(c.Configs)
	})
	w.bool(cmd.ValidateOnly)
}

func (r *reader) alterConfigsCommand(f *fields) Command {
	cmd := &AlterConfigs{}
	if f.next() {
		cmd.Resources = list(r, itemsMax, func(f *fields, c *ConfigReplacement) {
			f.resource(&c.Resource)
			if f.next() {
				c.Configs = r.configValues()
			}
		})
	}
	f.bool(&cmd.ValidateOnly)
	return cmd
}

func (cmd *IncrementalAlterConfigs) encode(w *writer) {
	w.command(CodeIncrementalAlterConfigs, 2)
	each(w, cmd.Resources, func(c *ConfigChange) {
		w.array(3)
		w.resource(c.Resource)
		each(w, c.Ops, func(op *ConfigOp) {
			w.array(3)
			w.string(op.Name)
			w.int(int64(op.Op))
			w.stringOrNil(op.Value)
		})
	})
	w.bool(cmd.ValidateOnly)
}

func (r *reader) incrementalCommand(f *fields) Command {
	cmd := &IncrementalAlterConfigs{}
	if f.next() {
		cmd.Resources = list(r, itemsMax, func(f *fields, c *ConfigChange) {
			f.resource(&c.Resource)
			if f.next() {
				c.Ops = list(r, detailsMax, func(f *fields, op *ConfigOp) {
					f.string(&op.Name)
					number(f, &op.Op, math.MinInt8, math.MaxInt8)
					if f.next() {
						op.Value = r.stringOrNil()
					}
				})
			}
		})
	}
	f.bool(&cmd.ValidateOnly)
	return cmd
}

func (cmd *UpdateFeatures) encode(w *writer) {
	w.command(CodeUpdateFeatures, 2)
	each(w, cmd.Updates, func(u *FeatureUpdate) {
		w.array(3)
		w.string(u.Name)
		w.int(int64(u.Level))
		w.int(int64(u.Kind))
	})
	w.bool(cmd.ValidateOnly)
}

func (r *reader) updateFeaturesCommand(f *fields) Command {
	cmd := &UpdateFeatures{}
	if f.next() {
		cmd.Updates = list(r, detailsMax, func(f *fields, u *FeatureUpdate) {
			f.string(&u.Name)
			number(f, &u.Level, math.MinInt16, math.MaxInt16)
			number(f, &u.Kind, math.MinInt8, math.MaxInt8)
		})
	}
	f.bool(&cmd.ValidateOnly)
	return cmd
}

func (*DescribeQuorum) encode(w *writer) { w.command(CodeDescribeQuorum, 0) }

func (cmd *AddVoter) encode(w *writer) {
	w.voterKey(CodeAddVoter, cmd.Cluster, cmd.Broker, cmd.Directory)
}

func (cmd *RemoveVoter) encode(w *writer) {
	w.voterKey(CodeRemoveVoter, cmd.Cluster, cmd.Broker, cmd.Directory)
}

func (w *writer) voterKey(code CommandCode, cluster ident.ClusterID, broker ident.BrokerID, directory ident.DirectoryID) {
	w.command(code, 3)
	w.string(string(cluster))
	w.int(int64(broker))
	w.bytes(directory[:])
}

func (f *fields) voterKey(cluster *ident.ClusterID, broker *ident.BrokerID, directory *ident.DirectoryID) {
	f.string((*string)(cluster))
	f.broker(broker)
	f.id((*[16]byte)(directory))
}

func (cmd *Pull) encode(w *writer) {
	w.command(CodePull, 7)
	w.int(int64(cmd.Broker))
	w.string(string(cmd.Cluster))
	w.uint(cmd.From)
	w.uint(cmd.Term)
	w.uint(cmd.SnapshotIndex)
	w.int(cmd.Offset)
	w.int(int64(cmd.BytesMax))
}

func (*reader) pullCommand(f *fields) Command {
	cmd := &Pull{}
	f.broker(&cmd.Broker)
	f.string((*string)(&cmd.Cluster))
	f.uint(&cmd.From)
	f.uint(&cmd.Term)
	f.uint(&cmd.SnapshotIndex)
	number(f, &cmd.Offset, 0, math.MaxInt64)
	number(f, &cmd.BytesMax, math.MinInt32, math.MaxInt32)
	return cmd
}
