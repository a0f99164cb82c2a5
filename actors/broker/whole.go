package broker

import (
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Whether the replicas here are whole, which means that they have all that they have told their leaders, is said twice. The registration names those that are
// not, and those of which only their recovery can tell; then each that the partition's record calls unverified says what its recovery has found.
//
// A stop in order proves it, by the clean marker, and so does a page cache that has outlived the process. After a loss of power it is proved by the mark
// "strict, confirmed": nothing was told that was not on stable storage, so that whatever reaches up to the durable mark is whole.

// judge says of the replicas that were found at the start what can be said before they are opened.
func (d *dataDir) judge() (clean ident.BrokerEpoch, notWhole, unverified []cluster.ReplicaRef) {
	o := &d.opened
	switch {
	case o.Mode == store.RecoverSameBoot:
		return 0, nil, nil
	case o.Mode == store.RecoverClean && o.CleanEpoch > 0:
		return o.CleanEpoch, nil, nil
	}
	for _, l := range o.Logs {
		ref := cluster.ReplicaRef{Topic: l.Topic, Partition: l.Partition.Partition}
		if o.Marked && d.store.Strict(l.Partition) {
			unverified = append(unverified, ref)
		} else {
			notWhole = append(notWhole, ref)
		}
	}
	return 0, notWhole, unverified
}

// whole tells whether a replica has all it has told, by its recovery. strict tells that it had the mark when the broker started.
func (d *dataDir) whole(r *store.Recovery, strict bool) bool {
	return d.opened.Mode == store.RecoverSameBoot || strict && d.opened.Marked && r.Whole
}

// verdict is what the recovery of a replica has found, for the controller.
type verdict struct {
	replica *replica
	cluster.Verdict
}

// Bytes implements runtime.Message.
func (*verdict) Bytes() int { return 0 }

// verify tells the controller what recovery has found, if it waits for that and the log is as durable as it was found.
func (p *partitionActor) verify(t *runtime.Turn) {
	if !p.unverified || p.unready || p.machine == nil || p.file == nil || p.lent {
		return
	}
	p.unverified = false
	v := &verdict{replica: p.replica, Verdict: cluster.Verdict{
		ReplicaRef: cluster.ReplicaRef{Topic: p.replica.id, Partition: p.replica.tp.Partition}, Whole: p.whole, LastEpoch: ident.NoLeaderEpoch, End: p.file.End(),
	}}
	if p.file.End() > p.file.Start() {
		v.LastEpoch = p.file.EpochOf(p.file.End() - 1)
	}
	p.log.Info().Bool("whole", v.Whole).Int64("offset", int64(v.End)).Msg("telling the controller how this replica came out of its recovery")
	_ = t.Send(p.shared.isr, v) // gone only when the broker stops
}
