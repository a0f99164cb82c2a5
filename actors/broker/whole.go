package broker

import (
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Whether the replicas here are whole, which means that they have all that they have told their leaders, is said twice. The registration names those that were
// found and may be, apart from those of which only their recovery can tell; whatever it does not name is lost. Then each that the partition's record calls
// unverified says what its recovery has found, and so does each that was named as whole and is not: before the broker is unfenced.
//
// A stop in order proves it, by the clean marker, and so does a page cache that has outlived the process. After a loss of power it is proved by the mark
// "strict, confirmed": nothing was told that was not on stable storage, so that whatever reaches up to the durable mark is whole. The page cache proves nothing
// as long as the controller has not heard of a loss of power before it: the run that found it may have died without being registered.

// judge says of the replicas that were found at the start what can be said before they are opened. clean is the epoch in the clean marker, if that is why they
// are whole.
func (d *dataDir) judge() (clean ident.BrokerEpoch, held cluster.Held) {
	o := &d.opened
	whole := d.wholeByItself()
	if whole && o.Mode == store.RecoverClean {
		clean = o.CleanEpoch
	}
	held.Directory = d.store.Meta().Directory
	at := make(map[ident.TopicID]int) // read by key only
	for _, l := range o.Logs {
		if !whole && (!o.Marked || !d.store.Strict(l.Partition)) {
			continue
		}
		i, known := at[l.Topic]
		if !known {
			i = len(held.Topics)
			at[l.Topic] = i
			held.Topics = append(held.Topics, cluster.HeldTopic{Topic: l.Topic})
		}
		t := &held.Topics[i]
		if whole {
			t.Whole = append(t.Whole, l.Partition.Partition)
		} else {
			t.Unverified = append(t.Unverified, l.Partition.Partition)
		}
	}
	return clean, held
}

// wholeByItself tells whether what is in the directory is whole without the mark of a log: by the clean marker of a run that was registered, or by the page cache.
func (d *dataDir) wholeByItself() bool {
	o := &d.opened
	return (o.Mode == store.RecoverSameBoot || o.Mode == store.RecoverClean) && !o.Untold
}

// whole tells whether a replica has all it has told, by its recovery. strict tells that it had the mark when the broker started. One whose directory had to be
// made may have had another.
func (d *dataDir) whole(r *store.Recovery, strict bool) bool {
	return !r.Created && r.Whole && (d.opened.Mode == store.RecoverSameBoot && !d.opened.Untold || strict && d.opened.Marked)
}

// misnamed tells whether a replica that the registration named as whole is not, by its recovery.
func (d *dataDir) misnamed(r *store.Recovery) bool {
	return !r.Created && !r.Whole && d.wholeByItself()
}

// verdict is what the recovery of a replica has found, for the controller.
type verdict struct {
	replica *replica
	cluster.Verdict
	confess bool // the controller took it for whole; the replica waits until it is heard
}

// confessed tells that the controller has heard that a replica is not whole which it took for whole.
type confessed struct{}

// Bytes implements runtime.Message.
func (*verdict) Bytes() int   { return 0 }
func (*confessed) Bytes() int { return 0 }

// Owed implements runtime.Owed.
func (*confessed) Owed() {}

func (v *verdict) of() *replica { return v.replica }

// verify tells the controller what recovery has found, if it waits for that and the log is as durable as it was found.
func (p *partitionActor) verify(t *runtime.Turn) {
	if !p.unverified || p.unready || p.machine == nil || p.file == nil || p.lent {
		return
	}
	p.unverified = false
	p.tellVerdict(t, false)
}

// confess takes back at once what the registration said of a replica. This broker is not unfenced, or the replica is marked as out of service, until the
// controller has heard it: so it is not elected meanwhile.
func (p *partitionActor) confess(t *runtime.Turn) {
	p.confessing, p.unready = true, true
	p.tellVerdict(t, true)
}

func (p *partitionActor) tellVerdict(t *runtime.Turn, confess bool) {
	v := &verdict{replica: p.replica, confess: confess, Verdict: cluster.Verdict{
		ReplicaRef: cluster.ReplicaRef{Topic: p.replica.id, Partition: p.replica.tp.Partition}, Whole: p.whole, LastEpoch: ident.NoLeaderEpoch, End: p.file.End(),
	}}
	if p.file.End() > p.file.Start() {
		v.LastEpoch = p.file.EpochOf(p.file.End() - 1)
	}
	p.log.Info().Bool("whole", v.Whole).Int64("offset", int64(v.End)).Msg("telling the controller how this replica came out of its recovery")
	_ = t.Send(p.shared.isr, v) // gone only when the broker stops
}

// wasConfessed goes on.
func (p *partitionActor) wasConfessed(t *runtime.Turn) {
	p.confessing = false
	if p.file != nil && !p.lent {
		p.file.Confessed() // else it is said once more at the next start, which does no harm
	}
	if p.file == nil || p.file.Flushed() >= p.file.End() {
		p.settled(t)
	}
}
