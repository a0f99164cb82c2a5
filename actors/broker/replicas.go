package broker

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/peer"
)

// What Root does about the replicas here: they come, go, and learn who leads and who is registered.

// spawn starts the replica of a partition.
func (r *rootActor) spawn(t *runtime.Turn, image *cluster.Image, topic *cluster.Topic, number int32, s topicSettings) *replica {
	rep := &replica{
		tp: ident.TopicPartition{Topic: topic.Name, Partition: number}, id: topic.ID, dir: r.shared.directories[0], following: ident.NoBroker,
	}
	rep.lane = rep.dir.flusher
	if topic.Internal() {
		rep.lane = rep.dir.internal
	}
	b := &partitionActor{
		replica: rep, shared: r.shared, root: t.Self(), settings: s, become: r.becomeOf(image, topic.Partitions[number]),
		unverified: slices.Contains(topic.Partitions[number].Unverified, r.shared.identity.Broker),
		log:        r.log.With().Str("topic", topic.Name).Int32("partition", number).Logger(),
	}
	switch {
	case r.blamed[rep.tp]:
		b.refuseAll = errBlamed
	case rep.dir.store.Offline() != nil:
		b.refuseAll = rep.dir.store.Offline()
	}
	name := rep.tp.String()
	if r.removing[rep.tp] != nil || r.leftover[rep.tp] {
		b.held = true
		r.held[rep.tp] = rep
		r.lives++
		name += ":" + topic.ID.String() + ":" + strconv.FormatUint(r.lives, 10)
	}
	spec := cast("partition", name, b)
	spec.PanicOnFault = true
	// The credit pool bounds the requests; the mailbox only has to hold what it lets through.
	spec.CountMax, spec.BytesMax = 1<<16, int(2*r.shared.credit.size)
	ref, err := t.Spawn(spec)
	switch {
	case errors.Is(err, runtime.ErrStopped): // the system is being shut down, Root with it
		delete(r.held, rep.tp)
		return nil
	case err != nil:
		panic("broker: a partition could not be spawned: " + err.Error())
	}
	rep.ref = ref
	r.await(rep)
	r.follow(rep, topic.Partitions[number].Leader)
	if topic.Name == cluster.OffsetsTopic {
		r.spawnCoordinator(t, image, topic, rep)
	}
	return rep
}

// recordOf makes the message with a partition's record.
func (r *rootActor) recordOf(image *cluster.Image, p *cluster.Partition) *becomePartition {
	return &becomePartition{command: r.becomeOf(image, p), unverified: slices.Contains(p.Unverified, r.shared.identity.Broker)}
}

// becomeOf makes the command for a partition's record.
func (r *rootActor) becomeOf(image *cluster.Image, p *cluster.Partition) *partition.Become {
	c := &partition.Become{Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.Epoch, ISR: p.ISR, Strict: p.Strict, MinISR: p.MinISR, Full: p.Full, Damaged: p.Damaged}
	for i, id := range p.Replicas {
		rep := partition.Replica{Broker: id, BrokerEpoch: ident.NoBrokerEpoch}
		b, ok := image.Broker(id)
		if ok {
			rep.BrokerEpoch = b.Epoch
		}
		if !ok || b.Fenced || b.ShuttingDown || slices.Contains(p.Offline, id) {
			c.Barred = append(c.Barred, id)
		}
		if i < len(p.Directories) {
			rep.Directory = p.Directories[i]
		}
		c.Replicas = append(c.Replicas, rep)
	}
	return c
}

// own returns an entry of the table that is being edited which may be changed: a broker that comes back changes thousands of partitions of a topic at once.
func (r *rootActor) own(old *topicEntry) *topicEntry {
	if _, mine := r.edited[old]; mine {
		return old
	}
	e := *old
	e.replicas = slices.Clone(old.replicas)
	r.edited[&e] = struct{}{}
	r.edit().put(&e)
	return &e
}

// changePartition makes of a partition here what its new record says: it may come, go, lead or follow.
func (r *rootActor) changePartition(t *runtime.Turn, image *cluster.Image, d cluster.PartitionDelta) {
	table := r.edit()
	old := table.byID[d.Topic.ID]
	if old == nil {
		return
	}
	e := r.own(old)
	e.image = d.Topic
	rep, here := e.replicas[d.Partition], d.To.HasReplica(r.shared.identity.Broker)
	switch {
	case rep == nil && here:
		e.replicas[d.Partition] = r.spawn(t, image, d.Topic, d.Partition, r.settingsOf(image, d.Topic.Name))
		return
	case rep == nil:
		return
	case !here:
		e.replicas[d.Partition] = nil
		r.remove(t, rep, wire.NotLeaderOrFollower)
		return
	}
	r.follow(rep, d.To.Leader)
	_ = t.Send(rep.ref, r.recordOf(image, d.To)) // one that has stopped leads nothing
	if rep.coordinator != nil && (d.From.Leader != d.To.Leader || d.From.LeaderEpoch != d.To.LeaderEpoch) {
		_ = t.Send(rep.coordinator, &leadPartition{leading: d.To.Leader == r.shared.identity.Broker}) // the same
	}
}

// remove deletes a replica with all that is kept of it.
func (r *rootActor) remove(t *runtime.Turn, rep *replica, code wire.ErrorCode) {
	r.settled(t, rep)
	r.follow(rep, ident.NoBroker)
	if rep.coordinator != nil {
		rep.coordinator.Stop()
	}
	if r.held[rep.tp] == rep {
		delete(r.held, rep.tp)
		rep.ref.Stop() // it never opened its log
		return
	}
	r.removing[rep.tp] = rep
	_ = t.Send(rep.ref, &removePartition{code: code}) // one that has stopped is removed at the next start
}

// removeTopic deletes a topic with all that is kept of it here.
func (r *rootActor) removeTopic(t *runtime.Turn, topic *cluster.Topic) {
	table := r.edit()
	e := table.byID[topic.ID]
	if e == nil {
		return
	}
	table.remove(e)
	for _, rep := range e.replicas {
		if rep != nil {
			r.remove(t, rep, wire.UnknownTopicOrPartition)
		}
	}
}

// follow notes whom a replica follows, so that there is a data connection to whoever leads something here, and to nobody else.
func (r *rootActor) follow(rep *replica, leader ident.BrokerID) {
	if leader == r.shared.identity.Broker {
		leader = ident.NoBroker
	}
	if rep.following == leader {
		return
	}
	r.followed[rep.following]--
	r.followed[leader]++
	r.moved[rep.following], r.moved[leader] = struct{}{}, struct{}{}
	rep.following = leader
}

// connect has the data connections opened and closed that a change asks for.
func (r *rootActor) connect() {
	delete(r.moved, ident.NoBroker)
	if r.shared.links != nil {
		for _, b := range slices.Sorted(maps.Keys(r.moved)) {
			r.shared.links.follow(b, r.followed[b] > 0)
		}
	}
	clear(r.moved)
}

// registered tells the replicas here of brokers that have registered anew: what they said under their former epochs does not count any more. Those that lead hear
// of brokers, too, that may join an ISR now, or may not any more.
func (r *rootActor) registered(t *runtime.Turn, image *cluster.Image, brokers []cluster.BrokerDelta) {
	var anew, barred []ident.BrokerID
	for _, d := range brokers {
		switch {
		case d.To == nil || d.From == nil:
		case d.From.Epoch != d.To.Epoch:
			anew = append(anew, d.ID)
		case d.From.Fenced != d.To.Fenced || d.From.ShuttingDown != d.To.ShuttingDown:
			barred = append(barred, d.ID)
		}
	}
	if len(anew)+len(barred) == 0 {
		return
	}
	self := r.shared.identity.Broker
	r.eachReplica(func(rep *replica, p *cluster.Partition) {
		if slices.ContainsFunc(anew, p.HasReplica) || p.Leader == self && slices.ContainsFunc(barred, p.HasReplica) {
			_ = t.Send(rep.ref, r.recordOf(image, p)) // one that has stopped leads nothing
		}
	})
}

// linked passes on that a link has opened or ended to the replicas that have to do with its broker. An own data connection that another has replaced is
// forgotten: what was said on that one counts.
func (r *rootActor) linked(t *runtime.Turn, m *linkChanged) {
	l := m.link
	if !m.open && l.dialled && r.shared.links.table.find(l.peer.Broker, peer.Data, true) != nil {
		return
	}
	r.eachReplica(func(rep *replica, p *cluster.Partition) {
		if p.HasReplica(l.peer.Broker) {
			_ = t.Send(rep.ref, m) // one that has stopped says nothing
		}
	})
}

// eachReplica visits the replicas here, in an order that a simulation can repeat.
func (r *rootActor) eachReplica(visit func(*replica, *cluster.Partition)) {
	table := r.table
	if table == nil {
		table = r.shared.topics.Load()
	}
	for _, e := range table.all() {
		for i, rep := range e.replicas {
			if rep != nil {
				visit(rep, e.image.Partitions[i])
			}
		}
	}
}

// Terminated implements runtime.Watcher: a deleted replica is gone, so that another of its name may open its log.
func (r *rootActor) Terminated(t *runtime.Turn, who *runtime.Ref) {
	for tp, rep := range r.removing {
		if rep.ref != who {
			continue
		}
		delete(r.removing, tp)
		r.vacated(t, tp)
		return
	}
}

// removeLeftovers deletes what is kept of topics that were deleted, or of partitions that were moved, while the broker was down. A topic that has the name
// now waits for that.
func (r *rootActor) removeLeftovers(t *runtime.Turn, image *cluster.Image) {
	self := r.shared.identity.Broker
	for _, d := range r.shared.directories {
		for _, l := range d.opened.Logs {
			topic, ok := image.TopicByID(l.Topic)
			if ok && topic.Name == l.Partition.Topic && int(l.Partition.Partition) < len(topic.Partitions) && topic.Partitions[l.Partition.Partition].HasReplica(self) {
				continue
			}
			r.log.Info().Str("topic", l.Partition.Topic).Int32("partition", l.Partition.Partition).Msg("deleting what is left of a deleted topic")
			r.leftover[l.Partition] = true
			_ = d.recovery.give(t, &deleteLeftover{dir: d, log: l, logger: r.log, root: t.Self()}) // Reject says so
		}
	}
}

// vacated lets the next replica of a name open its log: what was in its place is gone.
func (r *rootActor) vacated(t *runtime.Turn, tp ident.TopicPartition) {
	if next := r.held[tp]; next != nil {
		delete(r.held, tp)
		_ = t.Send(next.ref, signalOpen) // it was removed meanwhile
	}
}

// deleteLeftover removes the log of a topic that does not exist, on the recovery pool.
type deleteLeftover struct {
	dir    *dataDir
	log    store.LogDir
	logger zerolog.Logger
	root   *runtime.Ref
}

// leftoverGone tells that it is done, or was tried.
type leftoverGone struct{ tp ident.TopicPartition }

// Bytes implements runtime.Message.
func (*deleteLeftover) Bytes() int { return 0 }
func (*leftoverGone) Bytes() int   { return 0 }

// Reject implements runtime.Rejecter: the next start finds it again.
func (j *deleteLeftover) Reject(error) { _ = j.root.Post(&leftoverGone{tp: j.log.Partition}) } // Root is gone only when the broker stops

// do implements job.
func (j *deleteLeftover) do(t *runtime.Turn) {
	if err := j.dir.store.DeleteUnopened(j.log.Partition, j.log.Topic); err != nil {
		j.logger.Warn().Err(err).Str("topic", j.log.Partition.Topic).Int32("partition", j.log.Partition.Partition).Msg("what is left of a deleted topic could not be removed")
	}
	_ = t.Send(j.root, &leftoverGone{tp: j.log.Partition}) // Root is gone only when the broker stops
}
