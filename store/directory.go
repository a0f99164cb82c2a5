package store

import (
	"io"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// DirectoryOptions says which data directory to open and for whom.
type DirectoryOptions struct {
	FS          FS
	Path        string
	Broker      ident.BrokerID
	Cluster     ident.ClusterID // empty while the broker belongs to none
	Rand        io.Reader       // for a new directory's ids
	Generations *Generations
	Background  func(job func()) // see LogOptions
	// Parallel bounds the goroutines of a flush round. 0: 16. 1: none, in place,
	// as simulations want.
	Parallel int
}

// Meta is the identity of a data directory, kept in meta.properties.
type Meta struct {
	Cluster   ident.ClusterID // empty until the broker has joined or formed one
	Broker    ident.BrokerID
	Directory ident.DirectoryID
	Node      ident.NodeID // Raft node id
}

// Directory is one open data directory. Its methods may be called from several
// goroutines.
type Directory struct{}

// Opened tells how a directory was found.
type Opened struct {
	Created     bool              // it was new
	Mode        RecoveryMode      // how its logs are to be recovered
	CleanEpoch  ident.BrokerEpoch // the epoch in the clean marker, NoBrokerEpoch without one
	ErrorMarked bool              // an I/O error was on record
	Strays      []string          // partition directories set aside now
	Logs        []LogDir          // partition directories, by name
}

// LogDir is a partition directory that was found.
type LogDir struct {
	Partition ident.TopicPartition
	Topic     ident.TopicID
}

// OpenDirectory locks and opens a data directory, making it when it does not
// exist. Errors are *Error with a code and words for the user.
func OpenDirectory(o DirectoryOptions) (*Directory, Opened, error) { panic("not written yet") }

// Path is the directory's path.
func (d *Directory) Path() string { panic("not written yet") }

// Meta is the directory's identity.
func (d *Directory) Meta() Meta { panic("not written yet") }

// JoinCluster writes the cluster id into meta.properties, durably. It may be done
// once.
func (d *Directory) JoinCluster(id ident.ClusterID) error { panic("not written yet") }

// LogHooks are the owner's ears for one log; see [LogOptions].
type LogHooks struct {
	Producers  func(dst []record.ProducerEntry) []record.ProducerEntry
	OnSnapshot func(at ident.Offset, producers []record.ProducerEntry)
	OnBatch    func(v record.View)
}

// OpenLog opens or creates the log of tp below this directory with what the
// directory knows about it.
func (d *Directory) OpenLog(tp ident.TopicPartition, id ident.TopicID, c LogConfig, h LogHooks, now ident.Millis) (*Log, Recovery, error) {
	panic("not written yet")
}

// DeleteLog closes the log and removes its directory: it is renamed to
// <topic>-<partition>.<id>-delete at once, durably, and unlinked in the background.
func (d *Directory) DeleteLog(l *Log) error { panic("not written yet") }

// Checkpoint writes durable marks and log starts of all logs, durably. Call it
// every log.flush.offset.checkpoint.interval.ms.
func (d *Directory) Checkpoint() error { panic("not written yet") }

// Usage describes the file system of the directory.
func (d *Directory) Usage() (Usage, error) { panic("not written yet") }

// Offline is nil, or the error that took the directory out of service.
func (d *Directory) Offline() error { panic("not written yet") }

// Fail takes the directory out of service: it voids the control block, then
// writes the error mark. The first call decides; err must not be nil.
func (d *Directory) Fail(err error) { panic("not written yet") }

// Close gives the directory back. With clean, every log having been closed clean,
// it writes the clean marker that names the broker's epoch.
func (d *Directory) Close(clean bool, epoch ident.BrokerEpoch) error { panic("not written yet") }
