package broker

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/broker/handler"
	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// shared is what the actors of one broker read without asking: identity, published state, limits, counters, and the addresses of those that are asked.
// The pointers are set before the first actor that uses them is spawned and never change; what they point to is immutable, atomic, or locks itself.
type shared struct {
	identity identity
	static   config.Set
	system   *runtime.System
	log      zerolog.Logger

	settings atomic.Pointer[config.BrokerValues] // effective now
	image    atomic.Pointer[cluster.Image]       // published by the metadata actor
	topics   atomic.Pointer[topicTable]          // published by Root, ahead of the image
	cluster  atomic.Pointer[ident.ClusterID]     // nil: this broker belongs to none yet
	epoch    atomic.Int64                        // of this run's registration, an ident.BrokerEpoch

	lease atomic.Int64 // until when, an ident.Instant; see leased
	heard atomic.Int64 // when the last heartbeat was sent that was answered well, an ident.Instant; see certain

	root        *runtime.Ref
	metadata    *runtime.Ref
	controller  *runtime.Ref
	producerIDs *runtime.Ref
	links       *links       // nil: this broker has no peer port
	gossip      *runtime.Ref // nil: the same
	isr         *runtime.Ref
	scrubber    *runtime.Ref
	replicas    replicaLinks // hears what links tell of records; nil: nobody does
	pool        *ioPool
	directories []*dataDir

	places  *places
	credit  *creditPool
	buffers *buffers
	fetches *fetchSessions
	jumpers jumpers
	random  *entropy
	metrics *metrics
	facts   *facts
	sampled *sampledLog

	throttles throttles

	inspection   *Inspection // nil: nobody looks
	checkpointMs int64       // how often durable marks are written; 0: as usual
}

// identity is who this broker is.
type identity struct {
	Broker      ident.BrokerID
	Directory   ident.DirectoryID // that has the metadata log
	Node        ident.NodeID
	Incarnation cluster.Incarnation
}

// dataDir is one data directory and the actors that work for it.
type dataDir struct {
	store    *store.Directory
	opened   store.Opened
	runs     [][16]byte   // of the broker, that had it before
	flusher  *runtime.Ref // of the topics of clients, and of what belongs to the directory as a whole
	internal *runtime.Ref // flusher of internal topics
	used     atomic.Int64 // when a round of clients' topics ended last: an ident.Instant
	recovery *ioPool      // opens, closes, deletes and mends its logs
	repairs  atomic.Int64 // replicas that are being mended
}

// lost tells Root that a directory is out of service. It may be told often.
func (s *shared) lost(from runtime.Sender, d *dataDir, reason error) {
	_ = from.Send(s.root, &directoryLost{dir: d, reason: reason}) // Root is gone only when the broker stops
}

// warm has a cold region read into the page cache; the session hears a signalWarm.
func (s *shared) warm(t *runtime.Turn, to *runtime.Ref, r *store.Region) {
	j := &warmRegion{region: *r, to: to, store: s.buffers}
	j.region.Retain()
	_ = s.pool.give(t, j) // Reject tells the session too
}

// closed logs why a connection was closed by this side, now and then.
func (s *shared) closed(c *handler.Client, reason error) {
	s.metrics.closed.Add(1)
	s.sampled.closed(c, reason)
}

// entropy is the broker's source of randomness. It may be used by several goroutines; a simulation gives it a seeded one.
type entropy struct {
	mu  sync.Mutex
	src io.Reader
}

// fill fills b. A source that fails leaves nothing to go on with: ids would repeat.
func (e *entropy) fill(b []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := io.ReadFull(e.src, b); err != nil {
		panic("broker: no randomness: " + err.Error())
	}
}

// uint32 returns a random number.
func (e *entropy) uint32() uint32 {
	var b [4]byte
	e.fill(b[:])
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}
