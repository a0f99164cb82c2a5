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

// Start opens the data directory, forms or rejoins the cluster of this broker alone, opens its listeners and begins to register. It returns before the
// broker serves; see Ready. On an error nothing is left open. The errors have codes and words for the user.
func Start(o Options, w World) (*Broker, error) {
	values, err := config.BrokerOf(config.Stack{Static: o.Static})
	if err != nil {
		return nil, err
	}
	b := &Broker{world: w, accepting: make(chan struct{}), failed: make(chan struct{}), places: newPlaces()}
	b.shared = &shared{static: o.Static, system: w.System, log: w.Log, metrics: &metrics{}, facts: &facts{}, places: b.places, random: &entropy{src: w.Rand}, inspection: w.Inspection}
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
		OpenLogsMax: max(descriptorLimit()*logShare/100, logsMin), BallastBytes: w.BallastBytes, RaftReserveBytes: w.RaftReserveBytes,
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
	raft, machine, err := b.openMetadata(dir, &values)
	if err != nil {
		return undo(err)
	}
	endpoints, err := b.listen(&values)
	if err != nil {
		return undo(errors.Join(err, raft.Close()))
	}
	syncer, err := dir.NewSyncer()
	if err != nil {
		return undo(errors.Join(err, raft.Close()))
	}
	d := &dataDir{store: dir, opened: opened}
	b.shared.directories = []*dataDir{d}
	b.tellOpened(d)
	if err := b.spawn(&values, d, syncer, raft, machine, endpoints); err != nil {
		// The system does not take actors any more: it is being shut down.
		return undo(errors.Join(err, raft.Close(), syncer.Close()))
	}
	return b, nil
}

// openMetadata opens the metadata log and the controller machine on it.
func (b *Broker) openMetadata(dir *store.Directory, v *config.BrokerValues) (*store.RaftLog, *cluster.Controller, error) {
	meta := dir.Meta()
	raft, held, err := openRaftLog(dir, meta.Cluster != "", func() (cluster.Promise, error) {
		var id [16]byte
		b.shared.random.fill(id[:])
		return cluster.Promise{
			ClusterID: ident.ClusterID(base64.RawURLEncoding.EncodeToString(id[:])),
			Voters:    []cluster.Voter{{Node: meta.Node, Broker: meta.Broker, Directory: meta.Directory}},
			Features:  founded,
		}, nil
	})
	if err != nil {
		return nil, nil, err
	}
	machine, err := cluster.New(cluster.Options{
		Node: meta.Node, Broker: meta.Broker, Durable: held, Static: b.shared.static, Features: features,
		SessionMs: v.SessionMs, SnapshotBytes: v.SnapshotBytes,
	})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("metadata log of %s: %w", dir.Path(), err), raft.Close())
	}
	id := machine.Image().ClusterID()
	if err := dir.JoinCluster(id); err != nil {
		return nil, nil, errors.Join(err, raft.Close())
	}
	b.shared.identity = identity{Broker: meta.Broker, Cluster: id, Node: meta.Node}
	b.shared.random.fill(b.shared.identity.Incarnation[:])
	return raft, machine, nil
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
		log.Info().Str("directory", d.store.Path()).Str("cluster", string(b.shared.identity.Cluster)).Msg("new data directory")
	default:
		log.Info().Str("directory", d.store.Path()).Str("cluster", string(b.shared.identity.Cluster)).Int("logs", len(d.opened.Logs)).
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
func (b *Broker) spawn(v *config.BrokerValues, d *dataDir, syncer *store.Syncer, raft *store.RaftLog, machine *cluster.Controller, endpoints []cluster.Endpoint) error {
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
	d.flusher = child(b.root, blocking(cast("flusher", "flusher", &flusher{dir: d, shared: s, log: s.log, syncer: syncer})))
	s.metadata = child(b.root, cast("metadata", "metadata", &metadataActor{image: &s.image, root: b.root}))
	s.credit = newCreditPool(creditSize(v), b.memoryShort)
	s.producerIDs = child(b.root, cast("producerids", "producer-ids", &producerIDsActor{shared: s}))
	b.lifecycle = child(b.root, cast("lifecycle", "lifecycle", &lifecycleActor{
		shared: s, log: s.log, serving: b.serve, register: b.registration(v, d, endpoints),
	}))
	root.lifecycle = b.lifecycle
	b.writer = child(b.root, blocking(cast("raftlogwriter", "raftlog", &raftLogWriter{log: raft, logger: s.log})))
	if err != nil {
		return err
	}
	controller := &controllerActor{
		machine: machine, log: s.log, writer: b.writer, metadata: s.metadata, root: b.root, facts: s.facts, tickMs: controllerTickMs,
		inspection: s.inspection,
	}
	if s.inspection != nil {
		s.inspection.shared, s.inspection.controller = s, controller
	}
	s.controller = child(b.root, cast("controller", "controller", controller))
	for i, l := range v.Listeners {
		door := &listenerActor{shared: s, log: s.log, name: l.Name, places: b.places, opened: b.accepting}
		if i < len(b.sockets) {
			door.listener = b.sockets[i]
		}
		b.doors = append(b.doors, door)
		b.listeners = append(b.listeners, child(b.root, cast("listener", "listener-"+l.Name, door)))
	}
	b.cleaner = child(b.root, cast("cleaner", "cleaner", &cleanerActor{shared: s, log: s.log, pace: b.newPacer()}))
	if err != nil {
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
	return cluster.RegisterBroker{
		Broker: b.shared.identity.Broker, Incarnation: b.shared.identity.Incarnation, ClusterID: b.shared.identity.Cluster, Endpoints: endpoints,
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
		host.Tell(nil, &actors.Started{Broker: b.shared.identity.Broker, Cluster: b.shared.identity.Cluster, Version: b.world.BuildVersion})
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

// ClusterID names the cluster.
func (b *Broker) ClusterID() ident.ClusterID { return b.shared.identity.Cluster }
