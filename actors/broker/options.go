package broker

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/cluster/config"
	"github.com/troupe-broker/troupe/cluster/gossip"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/peer"
)

// Options say what broker to start.
type Options struct {
	// Static are the broker's configs from file, environment and flags, checked by the config package.
	Static config.Set
	// Actors are the ids of the extension actors to run, ActorSettings their settings; see actors.HostOptions.
	Actors        []string
	ActorSettings map[string]string
}

// World is everything of the outside that a broker touches, so that a simulation can be the world.
type World struct {
	FS           store.FS
	System       *runtime.System
	Rand         io.Reader // ids of clusters, directories, topics, fetch sessions
	Log          zerolog.Logger
	BuildVersion string

	// Background runs jobs one after another off the caller's goroutine; see store.DirectoryOptions. Nil runs them in place, as simulations want.
	Background func(job func())
	// Pause makes a goroutine of the I/O pools wait. Nil: compaction is not throttled, as simulations want.
	Pause func(time.Duration)
	// Parallel bounds the goroutines of a flush round; 1 starts none, as simulations want. 0: the store's default.
	Parallel int
	// BallastBytes, RaftReserveBytes and ControlSlots are sizes of the data directory; see store.DirectoryOptions. 0: the store's defaults.
	BallastBytes     int64
	RaftReserveBytes int64
	ControlSlots     int
	// CheckpointMs is how often durable marks are written. 0: once a minute.
	CheckpointMs int64
	// Inspection, if there is one, is attached to the broker; for simulations.
	Inspection *Inspection
	// Listen opens the listeners. Nil: none are opened, and connections come by Broker.Connect.
	Listen func(l config.Listener) (*net.TCPListener, error)
	// ListenPeers opens the peer port, TCP and UDP of one number. Nil: none is opened, whatever peer.listen says.
	ListenPeers func(address string) (*net.TCPListener, net.PacketConn, error)
	// Neighbours, if there are any, are the other brokers of a simulation, in the place of ListenPeers.
	Neighbours Neighbours
}

// ListenTCP opens a listener of the machine.
func ListenTCP(l config.Listener) (*net.TCPListener, error) {
	address, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port))))
	if err != nil {
		return nil, fmt.Errorf("listener %s: %w", l.Name, err)
	}
	t, err := net.ListenTCP("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listener %s: %w", l.Name, err)
	}
	return t, nil
}

// ListenPeers opens a peer port of the machine.
func ListenPeers(address string) (*net.TCPListener, net.PacketConn, error) {
	listener, socket, err := gossip.Bind(context.Background(), address)
	if err != nil {
		return nil, nil, err
	}
	return listener.(*net.TCPListener), socket, nil
}

// Sizes that no config key names.
const (
	// creditDefault is the memory of requests under way when queued.max.request.bytes is -1.
	creditDefault = 64 << 20
	// creditMin is the least that works: eight small frames.
	creditMin = 1 << 20
	// buffersKept is how much of the credit's memory is kept for reuse, as a divisor.
	buffersKept = 2
	// ioWorkers and recoveryWorkers are the goroutines that wait for disks. Opening, closing and deleting a log is a few syncs, which a disk does
	// together when they come together.
	ioWorkers       = 4
	recoveryWorkers = 16
	// raftShare divides the Raft log's reserve: so much is written before a snapshot begins another file, and so much of it is kept behind the snapshot for
	// voters that lag. The rest is for the snapshot, and for what frames take beside their records.
	raftShare = 4
)

// creditSize is the size of the pool.
func creditSize(v *config.BrokerValues) int64 {
	if v.QueuedRequestBytesMax < 0 {
		return creditDefault
	}
	return max(v.QueuedRequestBytesMax, creditMin)
}

// features are what this build can serve, by name.
var features = []cluster.FeatureRange{
	{Name: cluster.GroupVersion, Min: 0, Max: 1},
	{Name: cluster.PeerVersion, Min: peer.VersionMin, Max: peer.VersionMax},
}

// founded are the features that a new cluster begins with: all that this build can serve. An older one gets them by UpdateFeatures.
var founded = []cluster.FeatureLevel{{Name: cluster.GroupVersion, Level: 1}, {Name: cluster.PeerVersion, Level: peer.VersionMax}}
