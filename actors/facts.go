package actors

import "github.com/troupe-broker/troupe/wire/ident"

// Fact is something that happened in the broker. Facts come as pointers that all
// observers share: they must not be changed. An observer hears a fact some time after
// it was true; it hears Appended once per partition and interval, not per append.
type Fact interface {
	// Bytes is the memory that the fact keeps alive, about.
	Bytes() int
	fact()
}

// Started tells that the broker serves.
type Started struct {
	Broker  ident.BrokerID
	Cluster ident.ClusterID
	Version string
}

// Stopping tells that the broker was asked to stop.
type Stopping struct{}

// TopicCreated tells that a topic was created. It is not told of those that exist when
// the broker starts.
type TopicCreated struct {
	Topic      string
	ID         ident.TopicID
	Partitions int32
}

// TopicDeleted tells that a topic is gone, with all its records.
type TopicDeleted struct {
	Topic string
	ID    ident.TopicID
}

// LeaderElected tells that a replica of this broker leads its partition.
type LeaderElected struct {
	Topic     string
	Partition int32
	Epoch     ident.LeaderEpoch
	// Start is the offset at which the epoch begins.
	Start ident.Offset
}

// ControllerElected tells that this broker is the controller.
type ControllerElected struct {
	// Epoch is the term of the metadata quorum.
	Epoch uint64
}

// Appended sums up what was appended to one replica of this broker since it was last
// told, in about a second.
type Appended struct {
	Topic     string
	Partition int32
	Batches   int64
	Records   int64
	// AppendedBytes is the size of the batches as they are kept.
	AppendedBytes int64
	// End is the log end now.
	End ident.Offset
}

// ConnectionOpened tells that a client has connected.
type ConnectionOpened struct {
	// Client is its address, "host:port".
	Client string
	// Listener is the name of the listener.
	Listener string
}

// ConnectionClosed tells that a connection of a client has ended.
type ConnectionClosed struct {
	Client   string
	Listener string
}

// DirectoryLost tells that a data directory is out of service.
type DirectoryLost struct {
	Path   string
	Reason string
}

const factBytes = 64

// Bytes implements Fact.
func (f *Started) Bytes() int { return factBytes + len(f.Cluster) + len(f.Version) }

// Bytes implements Fact.
func (*Stopping) Bytes() int { return factBytes }

// Bytes implements Fact.
func (f *TopicCreated) Bytes() int { return factBytes + len(f.Topic) }

// Bytes implements Fact.
func (f *TopicDeleted) Bytes() int { return factBytes + len(f.Topic) }

// Bytes implements Fact.
func (f *LeaderElected) Bytes() int { return factBytes + len(f.Topic) }

// Bytes implements Fact.
func (*ControllerElected) Bytes() int { return factBytes }

// Bytes implements Fact.
func (f *Appended) Bytes() int { return factBytes + len(f.Topic) }

// Bytes implements Fact.
func (f *ConnectionOpened) Bytes() int { return factBytes + len(f.Client) + len(f.Listener) }

// Bytes implements Fact.
func (f *ConnectionClosed) Bytes() int { return factBytes + len(f.Client) + len(f.Listener) }

// Bytes implements Fact.
func (f *DirectoryLost) Bytes() int { return factBytes + len(f.Path) + len(f.Reason) }

func (*Started) fact()           {}
func (*Stopping) fact()          {}
func (*TopicCreated) fact()      {}
func (*TopicDeleted) fact()      {}
func (*LeaderElected) fact()     {}
func (*ControllerElected) fact() {}
func (*Appended) fact()          {}
func (*ConnectionOpened) fact()  {}
func (*ConnectionClosed) fact()  {}
func (*DirectoryLost) fact()     {}
