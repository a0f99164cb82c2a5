package broker

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/troupe-broker/troupe/actors"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// Broker is a running broker.
type Broker struct {
	shared    *shared
	world     World
	root      *runtime.Ref
	lifecycle *runtime.Ref
	writer    *runtime.Ref
	peering   *peering // nil: this broker has no peer port
	cleaner   *runtime.Ref
	listeners []*runtime.Ref
	sockets   []*net.TCPListener
	places    *places
	doors     []*listenerActor

	accepting chan struct{} // closed when the broker serves
	acceptOne sync.Once
	serving   atomic.Bool
	stopping  atomic.Bool

	failOnce sync.Once
	failed   chan struct{}
	failure  error
}

// Start opens the data directory, founds, finds or rejoins a cluster, opens its listeners and begins to register. It returns before the
// broker serves; see Ready. On an error nothing is left open. The errors have codes and words for the user.
func Start(o Options, w World) (*Broker, error) {
	values, err := config.BrokerOf(config.Stack{Static: o.Static})
	if err != nil {
		return nil, err
	}
	b := &Broker{world: w, accepting: make(chan struct{}), failed: make(chan struct{}), places: newPlaces()}
	b.shared = &shared{static: o.Static, system: w.System, log: w.Log, metrics: &metrics{}, facts: &facts{}, places: b.places, random: &entropy{src: w.Rand}, inspection: w.Inspection}
	b.shared.checkpointMs = w.CheckpointMs
	b.shared.settings.Store(&values)
	b.shared.topics.Store(emptyTable)
	b.shared.image.Store(cluster.NewImage())
	b.shared.sampled = newSampledLog(w.Log, w.System.Clock())
	b.shared.buffers = newBuffers(creditSize(&values) / buffersKept)
	b.shared.fetches = newFetchSessions(int(values.FetchSessionsMax), b.shared.random.uint32)

	if err := b.startExtensions(o); err != nil {
		return nil, err
	}
	dir, opened, err := store.OpenDirectory(store.DirectoryOptions{
		FS: w.FS, Path: values.DataDir, Broker: ident.BrokerID(values.BrokerID), Rand: w.Rand, Generations: &store.Generations{}, Background: w.Background, Parallel: w.Parallel,
		OpenLogsMax: openLogsMax(descriptorLimit(), mappingLimit()), BallastBytes: w.BallastBytes, RaftReserveBytes: w.RaftReserveBytes,
		ControlSlots: w.ControlSlots,
	})
	if err != nil {
		b.shared.facts.host.Stop()
		return nil, err
	}
	undo := func(err error) (*Broker, error) {
		b.shared.facts.host.Stop()
		for _, s := range b.sockets {
			err = errors.Join(err, s.Close())
		}
		// No log was opened yet: a directory that was clean is so again.
		return nil, errors.Join(err, dir.Close(opened.Mode == store.RecoverClean, opened.CleanEpoch))
	}
	m, err := b.openMetadata(dir, &values)
	if err != nil {
		return undo(err)
	}
	endpoints, err := b.listen(&values)
	if err != nil {
		return undo(errors.Join(err, m.log.Close()))
	}
	syncers, err := newSyncers(dir)
	if err != nil {
		return undo(errors.Join(err, m.log.Close()))
	}
	if b.peering, err = b.openPeers(&values.Peer, b.member(&values, &m.seat, endpoints)); err != nil {
		return undo(errors.Join(err, m.log.Close(), syncers.Close()))
	}
	if b.peering != nil {
		endpoints = append(endpoints, b.peering.endpoint())
	}
	runs, err := dir.NoteRun(b.shared.identity.Incarnation)
	if err != nil {
		return undo(errors.Join(err, m.log.Close(), syncers.Close(), b.peering.close()))
	}
	d := &dataDir{store: dir, opened: opened, runs: runs}
	b.shared.directories = []*dataDir{d}
	b.tellOpened(d)
	if err := b.spawn(&values, d, syncers, m, endpoints); err != nil {
		// The system does not take actors any more: it is being shut down.
		return undo(errors.Join(err, m.log.Close(), syncers.Close(), b.peering.close()))
	}
	return b, nil
}

// metadata is the metadata log, and this broker's seat at it.
type metadata struct {
	seat
	log     *store.RaftLog
	held    cluster.Durable
	options cluster.Options // of a voter, without what the log held
}

// openMetadata opens the metadata log and the machine on it. A broker that is to found a cluster alone does so here; all others wait for others.
func (b *Broker) openMetadata(dir *store.Directory, v *config.BrokerValues) (*metadata, error) {
	meta := dir.Meta()
	b.shared.identity = identity{Broker: meta.Broker, Directory: meta.Directory, Node: meta.Node}
	b.shared.random.fill(b.shared.identity.Incarnation[:])
	b.shared.epoch.Store(int64(ident.NoBrokerEpoch))
	log, state, err := dir.OpenRaftLog()
	if err != nil {
		return nil, err
	}
	m := &metadata{log: log, held: durable(&state), options: cluster.Options{
		Node: meta.Node, Broker: meta.Broker, Static: b.shared.static, Features: features, SessionMs: v.SessionMs,
		// On a full disk the reserve is all there is, and a broker that cannot write its metadata stops.
		SnapshotBytes: min(v.SnapshotBytes, log.Reserve()/raftShare), KeepBytes: log.Reserve() / raftShare,
	}}
	if err := b.takeSeat(m, dir, v, state.Created || len(state.Entries) == 0 && state.Snapshot.Index == 0); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return m, nil
}

// takeSeat makes the machine. fresh tells that the log was never written to.
func (b *Broker) takeSeat(m *metadata, dir *store.Directory, v *config.BrokerValues, fresh bool) error {
	meta := dir.Meta()
	var id [16]byte
	b.shared.random.fill(id[:])
	f := cluster.FoundingOptions{
		Self:      cluster.Announcement{Broker: meta.Broker, Node: meta.Node, Directory: meta.Directory, Expect: v.Peer.Expect, Cluster: meta.Cluster},
		ClusterID: ident.ClusterID(base64.RawURLEncoding.EncodeToString(id[:])), Features: founded, Serves: features, Join: len(v.Peer.Join) > 0, Numbered: v.Peer.Numbered,
	}
	if fresh && meta.Cluster == "" && v.Peer.Expect == 1 {
		p := cluster.Promise{ClusterID: f.ClusterID, Voters: []cluster.Voter{{Node: meta.Node, Broker: meta.Broker, Directory: meta.Directory}}, Features: founded}
		var err error
		if m.held, err = foundAlone(m.log, p); err != nil {
			return err
		}
		fresh = false
	}
	o := m.options
	o.Durable = m.held
	var err error
	if m.seat, err = sit(o, f, fresh, v.Peer.Listen != "" && (b.world.ListenPeers != nil || b.world.Neighbours != nil)); err != nil {
		return fmt.Errorf("metadata log of %s: %w", dir.Path(), err)
	}
	switch id := m.image().ClusterID(); {
	case m.founding != nil:
		return nil
	case id == "":
		id = meta.Cluster // an observer that has heard nothing yet
		fallthrough
	default:
		b.shared.cluster.Store(&id)
		return dir.JoinCluster(id)
	}
}

// listen opens the listeners and says how they are told to clients.
func (b *Broker) listen(v *config.BrokerValues) ([]cluster.Endpoint, error) {
	var endpoints []cluster.Endpoint
	for i, l := range v.Listeners {
		told := v.Advertised[i]
		if b.world.Listen != nil {
			s, err := b.world.Listen(l)
			if err != nil {
				return nil, err
			}
			b.sockets = append(b.sockets, s)
			if told.Port == 0 {
				told.Port = uint16(s.Addr().(*net.TCPAddr).Port)
			}
		}
		endpoints = append(endpoints, cluster.Endpoint{Name: l.Name, Host: told.Host, Port: told.Port})
	}
	return endpoints, nil
}

func (b *Broker) tellOpened(d *dataDir) {
	log := b.shared.log
	switch {
	case d.opened.Created:
		log.Info().Str("directory", d.store.Path()).Str("cluster", string(b.shared.clusterID())).Msg("new data directory")
	default:
		log.Info().Str("directory", d.store.Path()).Str("cluster", string(b.shared.clusterID())).Int("logs", len(d.opened.Logs)).
			Stringer("recovery", d.opened.Mode).Msg("data directory")
	}
	if d.opened.ErrorMarked {
		log.Warn().Str("directory", d.store.Path()).Msg("an I/O error is on record for this directory; what is above the durable marks is verified and copied")
	}
	for _, s := range d.opened.Strays {
		log.Warn().Str("directory", s).Msg("a partition directory whose identity is lost was set aside; it is not served")
	}
}

// spawn starts the actors, each after those whose messages it may get at once.
func (b *Broker) spawn(v *config.BrokerValues, d *dataDir, syncers *syncers, m *metadata, endpoints []cluster.Endpoint) error {
	s, sys := b.shared, b.world.System
	var err error
	child := func(parent *runtime.Ref, spec runtime.Spec) *runtime.Ref {
		if err != nil {
			return nil
		}
		var ref *runtime.Ref
		ref, err = sys.Spawn(parent, spec)
		return ref
	}
	root := &rootActor{shared: s, log: s.log, fatal: b.fail, broker: *v}
	if root.blamed, err = b.blamed(); err != nil {
		return err
	}
	b.root = child(nil, cast("root", "root", root))
	if err != nil {
		return err
	}
	s.root = b.root
	if s.pool, err = spawnPool(sys, b.root, "io", ioWorkers); err != nil {
		return err
	}
	if d.recovery, err = spawnPool(sys, b.root, "recovery", recoveryWorkers); err != nil {
		return err
	}
	d.flusher = child(b.root, blocking(cast("flusher", "flusher", &flusher{dir: d, shared: s, log: s.log, syncer: syncers.topics})))
	d.internal = child(b.root, blocking(cast("flusher", "flusher-internal", &flusher{dir: d, shared: s, log: s.log, syncer: syncers.internal, internal: true})))
	s.metadata = child(b.root, cast("metadata", "metadata", &metadataActor{image: &s.image, root: b.root}))
	s.credit = newCreditPool(creditSize(v), b.memoryShort)
	s.producerIDs = child(b.root, cast("producerids", "producer-ids", &producerIDsActor{shared: s}))
	b.lifecycle = child(b.root, cast("lifecycle", "lifecycle", &lifecycleActor{
		shared: s, log: s.log, serving: b.serve, register: b.registration(v, d, endpoints),
	}))
	root.lifecycle = b.lifecycle
	b.writer = child(b.root, blocking(cast("raftlogwriter", "raftlog", newRaftLogWriter(d.store, m.log, &m.held, s.log))))
	if err != nil {
		return err
	}
	controller := &controllerActor{
		seat: m.seat, shared: s, log: s.log, writer: b.writer, options: m.options, tickMs: controllerTickMs, address: b.PeerAddress(), durable: m.held,
		inspection: s.inspection,
	}
	if s.inspection != nil {
		s.inspection.shared, s.inspection.controller = s, controller
	}
	s.controller = child(b.root, cast("controller", "controller", controller))
	s.scrubber = child(b.root, cast("scrubber", "scrubber", &scrubberActor{shared: s}))
	for i, l := range v.Listeners {
		door := &listenerActor{shared: s, log: s.log, name: l.Name, places: b.places, opened: b.accepting}
		if i < len(b.sockets) {
			door.listener = b.sockets[i]
		}
		b.doors = append(b.doors, door)
		b.listeners = append(b.listeners, child(b.root, blocking(cast("listener", "listener-"+l.Name, door))))
	}
	b.cleaner = child(b.root, cast("cleaner", "cleaner", &cleanerActor{shared: s, log: s.log, pace: b.newPacer()}))
	if err != nil {
		return err
	}
	if b.peering != nil {
		if err := b.startLinks(v, b.peering); err != nil {
			return err
		}
	}
	if err := s.controller.Post(signalOpen); err != nil {
		return err
	}
	return b.lifecycle.Post(signalTick)
}

// newPacer makes the pace of compaction; nil where nothing can wait.
func (b *Broker) newPacer() *pacer {
	if b.world.Pause == nil {
		return nil
	}
	return &pacer{
		clock: b.world.System.Clock(), pause: b.world.Pause,
		rate: func() float64 { return b.shared.settings.Load().Cleaner.BytesPerSec },
	}
}

// controllerTickMs is the tick of the controller machine.
const controllerTickMs = 100

// registration is what the broker says of this run to the controller.
func (b *Broker) registration(v *config.BrokerValues, d *dataDir, endpoints []cluster.Endpoint) cluster.RegisterBroker {
	clean, held := d.judge()
	runs := make([]cluster.Incarnation, len(d.runs))
	for i, r := range d.runs {
		runs[i] = r
	}
	return cluster.RegisterBroker{
		CleanEpoch: clean, Held: []cluster.Held{held}, Runs: runs,
		Broker: b.shared.identity.Broker, Incarnation: b.shared.identity.Incarnation, Endpoints: endpoints,
		Directories: []ident.DirectoryID{d.store.Meta().Directory}, Rack: v.Rack, Features: features,
	}
}

// memoryShort has the first listener look after stalled reservations.
func (b *Broker) memoryShort() {
	if len(b.listeners) > 0 {
		_ = b.listeners[0].Post(signalShort) // one that has stopped has no connections
	}
}

// serve is called once, when the broker is unfenced.
func (b *Broker) serve() {
	b.serving.Store(true)
	if host := b.shared.facts.host; host.Observed() {
		host.Tell(nil, &actors.Started{Broker: b.shared.identity.Broker, Cluster: b.shared.clusterID(), Version: b.world.BuildVersion})
	}
	b.acceptOne.Do(func() { close(b.accepting) })
}

// Ready tells whether the broker serves.
func (b *Broker) Ready() bool {
	select {
	case <-b.failed:
		return false
	default:
		return b.serving.Load() && !b.stopping.Load()
	}
}

// Serving is closed when the broker begins to serve.
func (b *Broker) Serving() <-chan struct{} { return b.accepting }

// fail ends the broker: it cannot go on. Whoever runs it hears of it by Failed and exits.
func (b *Broker) fail(err error) {
	b.failOnce.Do(func() {
		b.failure = err
		close(b.failed)
	})
}

// Failed is closed when the broker cannot go on: its data directories or its metadata log are lost.
func (b *Broker) Failed() <-chan struct{} { return b.failed }

// Failure is why, once Failed is closed.
func (b *Broker) Failure() error { return b.failure }

// Addresses are those of the open listeners, in the order of the configuration.
func (b *Broker) Addresses() []net.Addr {
	var out []net.Addr
	for _, s := range b.sockets {
		out = append(out, s.Addr())
	}
	return out
}

// ClusterID names the cluster; empty while the broker has not found or founded one.
func (b *Broker) ClusterID() ident.ClusterID { return b.shared.clusterID() }
