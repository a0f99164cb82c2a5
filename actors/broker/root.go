package broker

import (
	"errors"
	"slices"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
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
	awaited  int                               // of unready: the start is not done without them
	ready    bool                              // the start is done
	removing map[ident.TopicPartition]*replica // deleted, and still at it
	leftover map[ident.TopicPartition]bool     // found at the start, of no topic, and being deleted
	held     map[ident.TopicPartition]*replica // wait for the one before to be gone
	lost     []*dataDir
	table    *topicTable              // being edited; nil between changes
	edited   map[*topicEntry]struct{} // of table: nobody else has seen them
	current  bool                     // caught up: what changes now is news
	image    *cluster.Image           // newest, while not current
	world    *groupsWorld             // what coordinators know; nil: there were none yet

	followed map[ident.BrokerID]int      // replicas here by their leader elsewhere
	moved    map[ident.BrokerID]struct{} // leaders whose number has changed
	lives    uint64                      // replicas that had to wait for one of their name, so far
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
	// supplanted tells that another process has registered under this broker's id.
	supplanted struct{ reason error }
	// caughtUp tells that this run is registered.
	caughtUp struct{}
)

// Bytes implements runtime.Message.
func (*replicaReady) Bytes() int  { return 0 }
func (*directoryLost) Bytes() int { return 0 }
func (*metadataLost) Bytes() int  { return 0 }
func (*supplanted) Bytes() int    { return 0 }
func (*caughtUp) Bytes() int      { return 0 }

// Started implements runtime.Starter.
func (r *rootActor) Started(t *runtime.Turn) {
	r.unready = make(map[*replica]struct{})
	r.edited = make(map[*topicEntry]struct{})
	r.removing = make(map[ident.TopicPartition]*replica)
	r.leftover = make(map[ident.TopicPartition]bool)
	r.held = make(map[ident.TopicPartition]*replica)
	r.followed = make(map[ident.BrokerID]int)
	r.moved = make(map[ident.BrokerID]struct{})
	ref, err := t.Spawn(cast("isr", "isr", &isrActor{shared: r.shared, log: r.log}))
	if err != nil {
		panic("broker: the actor of the ISRs could not be spawned: " + err.Error())
	}
	r.shared.isr = ref
}

// Turn implements runtime.Behaviour.
func (r *rootActor) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case *committed:
			r.apply(t, m)
		case *replicaReady:
			r.settled(t, m.replica)
		case *caughtUp:
			r.catchUp(t)
		case *linkChanged:
			r.linked(t, m)
		case *leftoverGone:
			delete(r.leftover, m.tp)
			r.vacated(t, m.tp)
		case *directoryLost:
			r.loseDirectory(t, m)
		case *metadataLost:
			r.log.Error().Err(m.reason).Msg(codeMetadataLost + ": the metadata log cannot be written; the broker stops")
			r.fatal(m.reason)
		case *supplanted:
			r.log.Error().Err(m.reason).Msg("the broker stops")
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
		r.catchUp(t)
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
	r.registered(t, c.image, d.Brokers)
	if r.world != nil {
		r.tellCoordinators(t, c.image, d)
	}
	r.publish()
	r.connect()
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
		clear(r.edited)
	}
}

// catchUp begins service when the image has this run's registration: then it is as new as whatever was committed before, and it alone says which partitions
// are here. A broker that registers again has caught up before.
func (r *rootActor) catchUp(t *runtime.Turn) {
	if r.current || r.image == nil {
		return
	}
	image := r.image
	if b, ok := image.Broker(r.shared.identity.Broker); !ok || b.Incarnation != r.shared.identity.Incarnation {
		return
	}
	r.current, r.image = true, nil
	r.removeLeftovers(t, image)
	r.reconfigure(t, image)
	for topic := range image.Topics() {
		r.putTopic(t, image, topic, nil)
	}
	r.publish()
	r.connect()
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

// errBlamed is why a replica that crashed the broker again and again is left alone.
var errBlamed = errors.New(codeBlamed + ": the broker crashed three times within ten minutes in this replica; it starts offline, the others serve")

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

// await notes a replica that does not serve yet.
func (r *rootActor) await(rep *replica) {
	r.unready[rep] = struct{}{}
	if rep.dir.holdsUpTheStart() {
		r.awaited++
	}
}

// settled notes that a replica serves, never will, or is gone.
func (r *rootActor) settled(t *runtime.Turn, rep *replica) {
	if _, was := r.unready[rep]; was && rep.dir.holdsUpTheStart() {
		r.awaited--
	}
	delete(r.unready, rep)
	r.tellReadiness(t)
}

// holdsUpTheStart tells whether a start waits for the logs of a directory. After a loss of power each is verified by itself, and serves when it is done; nobody
// waits for all of them.
func (d *dataDir) holdsUpTheStart() bool {
	return d.opened.Mode == store.RecoverClean || d.opened.Mode == store.RecoverSameBoot
}

// tellReadiness tells the lifecycle actor, once, that the replicas of the start serve. Of each that comes it need not hear: ten thousand come within a second.
func (r *rootActor) tellReadiness(t *runtime.Turn) {
	if r.ready || r.awaited > 0 {
		return
	}
	r.ready = true
	_ = t.Send(r.lifecycle, &readiness{}) // gone only when the broker stops
}
