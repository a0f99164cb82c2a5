package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/troupe-broker/troupe/actors"
	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/wire/ident"
)

// extensionsStartMax is how long the extension actors may take to get ready.
const extensionsStartMax = 30 * time.Second

// facts passes what happened on to whoever observes the broker, off the hot path: what is told here happens a few times per partition and epoch, or per
// connection, not per request. Without observers nothing is made.
type facts struct {
	host *actors.Host
}

// startExtensions starts the extension actors. They are the eldest children of the system, so that they hear of the end.
func (b *Broker) startExtensions(o Options) error {
	ctx, cancel := context.WithTimeout(context.Background(), extensionsStartMax)
	defer cancel()
	host, err := actors.StartHost(ctx, actors.HostOptions{
		System: b.world.System, Log: b.world.Log, Enabled: o.Actors, Settings: o.ActorSettings, Appends: b.shared.appends,
	})
	if err != nil {
		return fmt.Errorf("extension actors: %w", err)
	}
	b.shared.facts.host = host
	return nil
}

// appends visits what was appended to each replica.
func (s *shared) appends(visit func(actors.AppendTotals)) {
	for _, e := range s.topics.Load().all() {
		for _, r := range e.replicas {
			if r == nil {
				continue
			}
			visit(actors.AppendTotals{
				Topic: r.tp.Topic, ID: r.id, Partition: r.tp.Partition, Batches: r.stats.appendedBatches.Load(), Records: r.stats.appendedRecords.Load(),
				AppendedBytes: r.stats.appendedBytes.Load(), End: ident.Offset(r.stats.end.Load()),
			})
		}
	}
}

func (f *facts) partition(t *runtime.Turn, r *replica, n partition.Note) {
	if n.Kind == partition.NoteBecameLeader && f.host.Observed() {
		f.host.Tell(t, &actors.LeaderElected{Topic: r.tp.Topic, Partition: r.tp.Partition, Epoch: n.LeaderEpoch, Start: n.Offset})
	}
}

func (f *facts) cluster(t *runtime.Turn, n cluster.Note) {
	if n.Kind == cluster.NoteElected && f.host.Observed() {
		f.host.Tell(t, &actors.ControllerElected{Epoch: n.Term})
	}
}

func (f *facts) created(t *runtime.Turn, topic *cluster.Topic) {
	if f.host.Observed() {
		f.host.Tell(t, &actors.TopicCreated{Topic: topic.Name, ID: topic.ID, Partitions: int32(len(topic.Partitions))})
	}
}

func (f *facts) deleted(t *runtime.Turn, topic *cluster.Topic) {
	if f.host.Observed() {
		f.host.Tell(t, &actors.TopicDeleted{Topic: topic.Name, ID: topic.ID})
	}
}

func (f *facts) opened(c *handler.Client) {
	if f.host.Observed() {
		f.host.Tell(nil, &actors.ConnectionOpened{Client: c.Address.String(), Listener: c.Listener})
	}
}

func (f *facts) closed(t *runtime.Turn, c *handler.Client) {
	if f.host.Observed() {
		f.host.Tell(t, &actors.ConnectionClosed{Client: c.Address.String(), Listener: c.Listener})
	}
}

func (f *facts) directoryLost(t *runtime.Turn, d *dataDir, reason error) {
	if f.host.Observed() {
		f.host.Tell(t, &actors.DirectoryLost{Path: d.store.Path(), Reason: reason.Error()})
	}
}
