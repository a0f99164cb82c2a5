package broker

import (
	"errors"
	"slices"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// rootActor is the trunk of the spawn tree. It turns changes of the metadata into partitions: which are here, who leads them, how they are configured;
// and it knows which directories are lost and how many replicas are not ready.
//
// While a start replays the metadata log, nothing is spawned: the log tells of topics that were deleted later, and a topic of the past must not find, and
// set aside, the records of one that has its name now. When this run is registered, the image is as new as the directory, and everything is made from it.
type rootActor struct {
	shared    *shared
	log       zerolog.Logger
	lifecycle *runtime.Ref
	fatal     func(error) // ends the broker
	broker    config.BrokerValues
	blamed    map[ident.TopicPartition]bool // crashed the broker too often: they stay offline

	unready  map[*replica]struct{}
	removing map[ident.TopicPartition]*replica // deleted, and still at it
	leftover map[ident.TopicPartition]bool     // found at the start, of no topic, and being deleted
	held     map[ident.TopicPartition]*replica // wait for the one before to be gone
	lost     []*dataDir
	table    *topicTable    // being edited; nil between changes
	current  bool           // caught up: what changes now is news
	image    *cluster.Image // newest, while not current
	world    *groupsWorld   // what coordinators know; nil: there were none yet
}

// Messages of Root.
type (
	// replicaReady tells that a replica serves what it had, durably, or never will.
	replicaReady struct{ replica *replica }
	// directoryLost tells that a directory is out of service.
	directoryLost struct {
		dir    *dataDir
		reason error
	}
	// metadataLost tells that the metadata log cannot be written.
	metadataLost struct{ reason error }
	// caughtUp tells that the image holds all that was committed before this start.
	caughtUp struct{}
)

// Bytes implements runtime.Message.
func (*replicaReady) Bytes() int  { return 0 }
func (*directoryLost) Bytes() int { return 0 }
func (*metadataLost) Bytes() int  { return 0 }
func (*caughtUp) Bytes() int      { return 0 }

// Started implements runtime.Starter.
func (r *rootActor) Started(*runtime.Turn) {
	r.unready = make(map[*replica]struct{})
	r.removing = make(map[ident.TopicPartition]*replica)
	r.leftover = make(map[ident.TopicPartition]bool)
	r.held = make(map[ident.TopicPartition]*replica)
}

// Turn implements runtime.Behaviour.
func (r *rootActor) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case *committed:
			r.apply(t, m)
		case *replicaReady:
			delete(r.unready, m.replica)
			r.tellReadiness(t)
		case *caughtUp:
			r.catchUp(t)
		case *leftoverGone:
			delete(r.leftover, m.tp)
			r.vacated(t, m.tp)
		case *directoryLost:
			r.loseDirectory(t, m)
		case *metadataLost:
			r.log.Error().Err(m.reason).Msg(codeMetadataLost + ": the metadata log cannot be written; the broker stops")
			r.fatal(m.reason)
		default:
			panic("broker: Root got a message that it does not know")
		}
	}
}

// apply makes the partitions here what a change of the metadata says, and then lets the image be published.
func (r *rootActor) apply(t *runtime.Turn, c *committed) {
	if !r.current {
		r.image = c.image
		r.tellApplied(t)
		return
	}
	d := c.delta
	if slices.ContainsFunc(d.Configs, func(res config.Resource) bool { return res.Type == config.BrokerResource }) {
		r.reconfigure(t, c.image)
	}
	for _, td := range d.Topics {
		gone := td.From != nil && (td.To == nil || td.To.ID != td.From.ID)
		if gone {
			r.removeTopic(t, td.From)
		}
		if td.To != nil {
			r.putTopic(t, c.image, td.To, td.From)
		}
		if gone {
			r.shared.facts.deleted(t, td.From)
		}
		if td.To != nil && (gone || td.From == nil) {
			r.shared.facts.created(t, td.To)
		}
	}
	for _, pd := range d.Partitions {
		if pd.To != nil && pd.From != nil {
			r.changePartition(t, c.image, pd)
		}
	}
	if r.world != nil {
		r.tellCoordinators(t, c.image, d)
	}
	r.publish()
	r.tellApplied(t)
}

// tellApplied lets the image be published.
func (r *rootActor) tellApplied(t *runtime.Turn) {
	_ = t.Send(r.shared.metadata, &applied{}) // the metadata actor is gone only when the broker stops
}

// publish makes the edited table the one that sessions use.
func (r *rootActor) publish() {
	if r.table != nil {
		r.shared.topics.Store(r.table)
		r.table = nil
	}
}

// catchUp begins service: the newest image, and it alone, says which partitions are here. A broker that registers again has caught up before.
func (r *rootActor) catchUp(t *runtime.Turn) {
	if r.current {
		return
	}
	image := r.image
	r.current, r.image = true, nil
	r.removeLeftovers(t, image)
	r.reconfigure(t, image)
	for topic := range image.Topics() {
		r.putTopic(t, image, topic, nil)
	}
	r.publish()
	r.tellReadiness(t)
}

// edit returns the table that is being changed.
func (r *rootActor) edit() *topicTable {
	if r.table == nil {
		r.table = r.shared.topics.Load().edit()
	}
	return r.table
}

// settingsOf resolves the configs of a topic.
func (r *rootActor) settingsOf(image *cluster.Image, topic string) topicSettings {
	return resolveTopic(image.Stack(topic, r.shared.identity.Broker, r.shared.static), &r.broker)
}

// putTopic creates, enlarges or reconfigures a topic.
func (r *rootActor) putTopic(t *runtime.Turn, image *cluster.Image, to, from *cluster.Topic) {
	table := r.edit()
	settings := r.settingsOf(image, to.Name)
	e := &topicEntry{name: to.Name, id: to.ID, rules: settings.rules, image: to, internal: to.Internal(), replicas: make([]*replica, len(to.Partitions))}
	if old := table.byID[to.ID]; old != nil {
		copy(e.replicas, old.replicas)
		if from == nil || !slices.Equal(from.Configs, to.Configs) {
			r.configure(t, old, settings)
		}
	}
	for i, p := range to.Partitions {
		if e.replicas[i] == nil && p.HasReplica(r.shared.identity.Broker) {
			e.replicas[i] = r.spawn(t, image, to, int32(i), settings)
		}
	}
	table.put(e)
}

// configure tells the replicas of a topic that its settings changed.
func (r *rootActor) configure(t *runtime.Turn, e *topicEntry, s topicSettings) {
	for _, rep := range e.replicas {
		if rep != nil {
			_ = t.Send(rep.ref, &configurePartition{settings: s}) // one that has stopped needs none
		}
	}
}

// reconfigure applies changed configs of the broker.
func (r *rootActor) reconfigure(t *runtime.Turn, image *cluster.Image) {
	v, err := config.BrokerOf(image.Stack("", r.shared.identity.Broker, r.shared.static))
	if err != nil {
		r.log.Error().Err(err).Msg("the broker's changed configs contradict each other; the old ones stay")
		return
	}
	r.broker = v
	r.shared.settings.Store(&v)
	r.shared.fetches.resize(int(v.FetchSessionsMax))
	r.shared.places.wake() // max.connections may have grown
	table := r.edit()
	for _, old := range table.all() {
		s := r.settingsOf(image, old.name)
		e := *old
		e.rules = s.rules
		table.put(&e)
		r.configure(t, &e, s)
	}
}

// changePartition tells a replica of its partition's new record.
func (r *rootActor) changePartition(t *runtime.Turn, image *cluster.Image, d cluster.PartitionDelta) {
	table := r.edit()
	old := table.byID[d.Topic.ID]
	if old == nil {
		return
	}
	e := *old
	e.image = d.Topic
	table.put(&e)
	rep := e.replicas[d.Partition]
	if rep == nil {
		return
	}
	_ = t.Send(rep.ref, &becomePartition{command: r.becomeOf(image, d.To)}) // one that has stopped leads nothing
	if rep.coordinator != nil && (d.From.Leader != d.To.Leader || d.From.LeaderEpoch != d.To.LeaderEpoch) {
		_ = t.Send(rep.coordinator, &leadPartition{leading: d.To.Leader == r.shared.identity.Broker}) // the same
	}
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
		if rep == nil {
			continue
		}
		delete(r.unready, rep)
		if rep.coordinator != nil {
			rep.coordinator.Stop()
		}
		if r.held[rep.tp] == rep {
			delete(r.held, rep.tp)
			rep.ref.Stop() // it never opened its log
			continue
		}
		r.removing[rep.tp] = rep
		_ = t.Send(rep.ref, &removePartition{}) // one that has stopped is removed at the next start
	}
	r.tellReadiness(t)
}

// spawn starts the replica of a partition.
func (r *rootActor) spawn(t *runtime.Turn, image *cluster.Image, topic *cluster.Topic, number int32, s topicSettings) *replica {
	rep := &replica{tp: ident.TopicPartition{Topic: topic.Name, Partition: number}, id: topic.ID, dir: r.shared.directories[0]}
	b := &partitionActor{
		replica: rep, shared: r.shared, root: t.Self(), settings: s, become: r.becomeOf(image, topic.Partitions[number]),
		log: r.log.With().Str("topic", topic.Name).Int32("partition", number).Logger(),
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
		name += ":" + topic.ID.String()
	}
	spec := cast("partition", name, b)
	spec.PanicOnFault = true
	// The credit pool bounds the requests; the mailbox only has to hold what it lets through.
	spec.CountMax, spec.BytesMax = 1<<16, int(2*r.shared.credit.size)
	ref, err := t.Spawn(spec)
	if err != nil {
		panic("broker: a partition could not be spawned: " + err.Error())
	}
	rep.ref = ref
	r.unready[rep] = struct{}{}
	if topic.Name == cluster.OffsetsTopic {
		r.spawnCoordinator(t, image, topic, rep)
	}
	return rep
}

// errBlamed is why a replica that crashed the broker again and again is left alone.
var errBlamed = errors.New(codeBlamed + ": the broker crashed three times within ten minutes in this replica; it starts offline, the others serve")

// becomeOf makes the command for a partition's record.
func (r *rootActor) becomeOf(image *cluster.Image, p *cluster.Partition) *partition.Become {
	c := &partition.Become{Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, PartitionEpoch: p.Epoch, ISR: p.ISR, Strict: p.Strict}
	for i, id := range p.Replicas {
		rep := partition.Replica{Broker: id, BrokerEpoch: ident.NoBrokerEpoch}
		if b, ok := image.Broker(id); ok {
			rep.BrokerEpoch = b.Epoch
		}
		if i < len(p.Directories) {
			rep.Directory = p.Directories[i]
		}
		c.Replicas = append(c.Replicas, rep)
	}
	return c
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

// loseDirectory takes all replicas of a directory offline. Without a directory there is no broker.
func (r *rootActor) loseDirectory(t *runtime.Turn, m *directoryLost) {
	if slices.Contains(r.lost, m.dir) {
		return
	}
	r.lost = append(r.lost, m.dir)
	r.shared.facts.directoryLost(t, m.dir, m.reason)
	r.log.Error().Str("directory", m.dir.store.Path()).Err(m.reason).
		Msg(codeDirectoryLost + ": the data directory is out of service after an I/O error; look at the disk, then restart the broker")
	for _, e := range r.shared.topics.Load().all() {
		for _, rep := range e.replicas {
			if rep != nil && rep.dir == m.dir {
				_ = t.Send(rep.ref, &takeOffline{reason: m.reason}) // one that has stopped serves nothing
			}
		}
	}
	if len(r.lost) == len(r.shared.directories) {
		r.fatal(errors.Join(errors.New("all data directories are lost"), m.reason))
	}
}

// tellReadiness tells the lifecycle actor whether the replicas serve.
func (r *rootActor) tellReadiness(t *runtime.Turn) {
	n := 0
	for rep := range r.unready {
		// After a loss of power each log is verified by itself, and serves when it is done; nobody waits for all of them.
		if rep.dir.opened.Mode == store.RecoverClean || rep.dir.opened.Mode == store.RecoverSameBoot {
			n++
		}
	}
	_ = t.Send(r.lifecycle, &readiness{unready: n}) // gone only when the broker stops
}

// removeLeftovers deletes what is kept of topics that were deleted while the broker was down. A topic that has the name now waits for that.
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
	_, wall := t.System().Now()
	file, _, err := j.dir.store.OpenLog(j.log.Partition, j.log.Topic, store.DefaultLogConfig(), store.LogHooks{}, wall)
	if err == nil {
		err = j.dir.store.DeleteLog(file)
	}
	if err != nil {
		j.logger.Warn().Err(err).Str("topic", j.log.Partition.Topic).Int32("partition", j.log.Partition.Partition).Msg("what is left of a deleted topic could not be removed")
	}
	_ = t.Send(j.root, &leftoverGone{tp: j.log.Partition}) // Root is gone only when the broker stops
}
