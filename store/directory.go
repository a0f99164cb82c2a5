package store

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// Files of a data directory.
const (
	lockFile    = ".lock"
	cleanFile   = ".kafka_cleanshutdown"
	marksFile   = "recovery-point-offset-checkpoint"
	startsFile  = "log-start-offset-checkpoint"
	cleanedFile = "cleaner-offset-checkpoint"
	errorFile   = "io-error"
	ballastFile = "ballast"
	// suffixSealed marks the second copy of a checkpoint, with a checksum. It is
	// written first and believed first; Kafka's tools read the plain one.
	suffixSealed = ".sealed"
)

// ballastDefault is set aside so that the small files which free space (log
// starts, durable marks) can still be written when the disk is full, in bytes.
const ballastDefault = 2 << 20

// DirectoryOptions says which data directory to open and for whom.
type DirectoryOptions struct {
	FS          FS
	Path        string
	Broker      ident.BrokerID
	Cluster     ident.ClusterID // empty while the broker belongs to none
	Rand        io.Reader       // for a new directory's ids
	Generations *Generations
	// Background runs jobs one after another, in order, off the caller's
	// goroutine; see [Worker]. Nil runs each in place, as simulations want.
	Background func(job func())
	// Parallel bounds the goroutines of a flush round. 0: 16. 1: none, in place,
	// as simulations want.
	Parallel int
	// OpenLogsMax is how many logs may keep a file open while they have nothing to
	// sync. 0: all.
	OpenLogsMax int
	// BallastBytes is set aside for the small files that free space. 0: 2 MiB.
	BallastBytes int64
	// RaftReserveBytes is the size of a fresh file of the Raft log, half of which is
	// kept free ahead of the writer. 0: 4 MiB.
	RaftReserveBytes int64
	// ControlSlots is how many logs the control block may come to have room for: that
	// of all of them is mapped. 0: 32,768.
	ControlSlots int
}

// Directory is one open data directory. Its methods may be called from several
// goroutines.
type Directory struct {
	o      DirectoryOptions
	health *health
	lock   io.Closer
	dir    Dir   // of the data directory itself
	scans  scans // of logs that are being opened

	deleting sync.RWMutex // read-held while a log is deleted, which Close waits for; before mu

	mu     sync.Mutex // guards all below
	meta   Meta
	slots  map[uint64]*slot // of logs that are not open, by logKey
	logs   map[ident.TopicPartition]*entry
	closed bool
	// tainted: an error of this boot is on record. It is over when every log that
	// was here then has been recovered.
	tainted bool
	// raftOld: the Raft log of a tainted directory was not renewed yet.
	raftOld bool
	marked  bool     // the durable marks could be read
	cleaned [][]byte // what cleanedFile was last written with, the newest last; two when the directory could not be synced then
	// deleted: the checkpoints may still have lines of these, which are gone. One that comes back is another log, and inherits nothing.
	deleted map[ident.TopicPartition]struct{}

	write   sync.Mutex // held while checkpoints are written, so that none overtakes another
	ballast bool       // the ballast file is there; guarded by write
	control *controlBlock
	untold  atomic.Bool // see Told
}

// entry is what the directory knows of one log.
type entry struct {
	topic    ident.TopicID
	standing *standing
	strict   bool         // the flag "strict, confirmed" is, or may be, on disk
	wasSet   bool         // it was, when the directory was opened
	untold   bool         // as the directory was then; until the log was opened and closed again
	log      *Log         // while it is open
	mode     RecoveryMode // how it is to be recovered when it is opened
	found    bool         // it was here when the directory was opened, and was not opened since
	fresh    bool         // it was not here, and was not opened yet
}

// Path is the directory's path.
func (d *Directory) Path() string { return d.o.Path }

// Meta is the directory's identity.
func (d *Directory) Meta() Meta {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.meta
}

// JoinCluster writes the cluster id into meta.properties, durably. A directory
// belongs to one cluster for ever: another id is an *Error with CodeForeign.
func (d *Directory) JoinCluster(id ident.ClusterID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.meta.Cluster == id {
		return nil
	}
	if d.meta.Cluster != "" {
		return coded(CodeForeign, nil, "%s belongs to cluster %s, not to %s; use another data directory", d.o.Path, d.meta.Cluster, id)
	}
	m := d.meta
	m.Cluster = id
	return d.writeMeta(m)
}

// noteRaftLog writes into meta.properties that the directory has a Raft log.
func (d *Directory) noteRaftLog() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.meta
	m.RaftLog = true
	return d.writeMeta(m)
}

// writeMeta replaces the identity, durably. Caller holds mu.
func (d *Directory) writeMeta(m Meta) error {
	if err := d.replace(metaFile, encodeMeta(m)); err != nil {
		return err
	}
	d.meta = m
	return nil
}

// LogHooks are the owner's ears for one log; see [LogOptions].
type LogHooks struct {
	Producers  func(dst []record.ProducerEntry) []record.ProducerEntry
	OnSnapshot func(at ident.Offset, producers []record.ProducerEntry)
	OnBatch    func(v record.View)
}

// OpenLog opens or creates the log of tp below this directory with what the
// directory knows about it. With ErrStray the old directory was set aside, and a
// second call creates the log. A log may be opened once at a time.
func (d *Directory) OpenLog(tp ident.TopicPartition, id ident.TopicID, c LogConfig, h LogHooks, now ident.Millis) (*Log, Recovery, error) {
	if err := d.health.check(); err != nil {
		return nil, Recovery{}, err
	}
	o := LogOptions{
		FS: d.o.FS, Path: filepath.Join(d.o.Path, partitionDirName(tp)), Partition: tp, Topic: id,
		Config: c, Generations: d.o.Generations, Now: now, Background: d.o.Background,
		Producers: h.Producers, OnSnapshot: h.OnSnapshot, OnBatch: h.OnBatch,
		health: d.health, scans: &d.scans, persist: d.persist, onClose: d.logClosed,
	}
	e, err := d.admit(&o)
	if err != nil {
		return nil, Recovery{}, err
	}
	l, r, err := OpenLog(o)
	if errors.Is(err, ErrStray) {
		if moved := d.setAsideStray(tp); moved != nil {
			err = errors.Join(err, moved)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err = d.settle(tp, e, l, &o, err); err != nil {
		return nil, Recovery{}, err
	}
	return l, r, nil
}

// admit fills the hint and the slot of a log about to be opened.
func (d *Directory) admit(o *LogOptions) (*entry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("data directory %s: %w", d.o.Path, ErrClosed)
	}
	e := d.logs[o.Partition]
	if e == nil {
		if _, gone := d.deleted[o.Partition]; gone {
			if err := d.checkpoint(); err != nil {
				return nil, err
			}
		}
		e = &entry{topic: o.Topic, standing: &standing{}, fresh: true}
		d.logs[o.Partition] = e
	} else if e.log != nil {
		return nil, fmt.Errorf("the log of %s is open already", o.Partition)
	}
	o.standing = e.standing
	o.Hint = RecoveryHint{Mode: e.mode, Mark: ident.Offset(e.standing.mark.Load()), Start: ident.Offset(e.standing.start.Load()), Untold: e.untold}
	if e.found && !d.marked {
		o.Hint.Mark = ident.NoOffset
	}
	key := logKey(o.Topic, o.Partition.Partition)
	if o.slot = d.slots[key]; o.slot == nil {
		o.slot = d.control.take()
	}
	delete(d.slots, key)
	return e, nil
}

// settle notes that a log was opened, or could not be. Caller holds mu.
func (d *Directory) settle(tp ident.TopicPartition, e *entry, l *Log, o *LogOptions, err error) error {
	switch {
	case err == nil:
		e.log, e.found, e.fresh = l, false, false
	case errors.Is(err, ErrStray):
		d.control.give(o.slot)
		d.forget(tp)
	default:
		// It may be tried again.
		d.keepSlot(o)
		if e.fresh {
			delete(d.logs, tp) // a log that never was is not one that was not closed
		}
		return err
	}
	return errors.Join(err, d.untaint())
}

func (d *Directory) keepSlot(o *LogOptions) {
	if o.slot != nil {
		d.slots[logKey(o.Topic, o.Partition.Partition)] = o.slot
	}
}

// untaint clears the error mark once no log depends on it. Caller holds mu.
func (d *Directory) untaint() error {
	if !d.tainted || d.raftOld {
		return nil
	}
	for _, e := range d.logs {
		if e.found {
			return nil
		}
	}
	err := d.o.FS.Remove(filepath.Join(d.o.Path, errorFile))
	if err != nil && !isNotExist(err) {
		return d.health.sift(err, "remove the error mark")
	}
	if err := syncDir(d.o.FS, d.o.Path); err != nil {
		return d.health.sift(err, "sync "+d.o.Path)
	}
	d.control.setVoid(false)
	d.tainted = false
	return nil
}

// Told says that whoever counts on the logs has heard in what state the directory was
// found (Opened.Untold). Until then each run of this boot finds it in that state, also
// after a death of the process, and no log gets the flag "strict, confirmed" that had it
// not: what is on disk by now may not be all that it had told.
func (d *Directory) Told() {
	d.untold.Store(false)
	d.control.setUntold(false)
}

// raftDoubted tells whether a failed sync may have left parts of the Raft log in
// memory only.
func (d *Directory) raftDoubted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.raftOld
}

// raftRenewed ends the doubt.
func (d *Directory) raftRenewed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.raftOld = false
	return d.untaint()
}

// logClosed is called by a log that was closed and stays in the directory.
func (d *Directory) logClosed(l *Log, clean bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.logs[l.o.Partition]
	if e == nil || e.log != l {
		return
	}
	e.log, e.mode, e.untold = nil, RecoverSameBoot, false
	if clean {
		e.mode = RecoverClean
	}
	d.keepSlot(&l.o)
}

// DeleteLog closes the log and removes its directory: it is renamed to
// <topic>-<partition>.<id>-delete at once, durably, and unlinked in the background.
func (d *Directory) DeleteLog(l *Log) error {
	if err := d.health.check(); err != nil {
		return err
	}
	d.deleting.RLock()
	defer d.deleting.RUnlock()
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return ErrClosed
	}
	// From here on no job of the log looks for its files by name.
	l.shared.Lock()
	l.shared.gone = true
	l.shared.Unlock()
	err := l.Close(false)
	to, moveErr := d.moveAside(l.o.Partition, suffixDeleteDir)
	if to != "" {
		d.mu.Lock()
		delete(d.slots, logKey(l.o.Topic, l.o.Partition.Partition))
		d.control.give(l.slot)
		d.forget(l.o.Partition)
		d.mu.Unlock()
	}
	if err = errors.Join(err, moveErr); err != nil {
		return d.health.siftOne(err, "delete "+l.o.Path)
	}
	d.background(func() error { return d.o.FS.RemoveAll(to) })
	return nil
}

// DeleteUnopened removes what the directory found of a log when it was opened, as
// [Directory.DeleteLog] does, without reading it: for logs that nobody has opened
// since, or could, and nobody is about to. One that the directory does not know, or
// that is of another topic, is no error and stays.
func (d *Directory) DeleteUnopened(tp ident.TopicPartition, id ident.TopicID) error {
	if err := d.health.check(); err != nil {
		return err
	}
	d.deleting.RLock()
	defer d.deleting.RUnlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.logs[tp]
	switch {
	case d.closed:
		return ErrClosed
	case e == nil || e.topic != id:
		return nil
	case e.log != nil:
		return fmt.Errorf("the log of %s is open", tp)
	}
	to, err := d.moveAside(tp, suffixDeleteDir)
	if to != "" {
		key := logKey(id, tp.Partition)
		d.control.give(d.slots[key])
		delete(d.slots, key)
		d.forget(tp)
	}
	if err != nil {
		return d.health.siftOne(err, "delete the log of "+tp.String())
	}
	d.background(func() error { return d.o.FS.RemoveAll(to) })
	return d.untaint()
}

// forget ends what is known of a log whose directory has another name now: the next log of its name inherits nothing. Caller holds mu.
func (d *Directory) forget(tp ident.TopicPartition) {
	delete(d.logs, tp)
	d.deleted[tp] = struct{}{}
}

// moveAside renames a partition's directory, durably, and returns its new path. With a path and an error it has the new name, and a power cut may take that back.
func (d *Directory) moveAside(tp ident.TopicPartition, suffix string) (string, error) {
	var unique [16]byte
	if _, err := io.ReadFull(d.o.Rand, unique[:]); err != nil {
		return "", fmt.Errorf("draw a name: %w", err)
	}
	to := filepath.Join(d.o.Path, movedDirName(tp, unique, suffix))
	if err := d.o.FS.Rename(filepath.Join(d.o.Path, partitionDirName(tp)), to); err != nil {
		return "", err
	}
	return to, syncDir(d.o.FS, d.o.Path)
}

func (d *Directory) setAsideStray(tp ident.TopicPartition) error {
	_, err := d.moveAside(tp, suffixStrayDir)
	return d.health.siftOne(err, "set the stray directory of "+tp.String()+" aside")
}

func (d *Directory) background(job func() error) {
	run := func() {
		// What may not be removed stays, under a name that says so; the next start
		// tries again.
		if err := job(); err != nil && !IsRetriable(err) && !isObstructed(err) {
			_ = d.health.fail(err) // whoever asks the directory hears of it
		}
	}
	if d.o.Background == nil {
		run()
		return
	}
	d.o.Background(run)
}

// NewSyncer returns a syncer for the logs of d. Make it before the first log is
// written: a whole-file-system sync reports the errors since its descriptor was
// opened.
func (d *Directory) NewSyncer() (*Syncer, error) {
	s := &Syncer{d: d, parallel: d.o.Parallel}
	if s.parallel <= 0 {
		s.parallel = 16
	}
	u, err := d.o.FS.Usage(d.o.Path)
	if err != nil {
		return nil, d.health.sift(err, "look at the file system of "+d.o.Path)
	}
	if u.Own && u.Flushes {
		if s.whole, err = d.o.FS.OpenDir(d.o.Path); err != nil {
			return nil, d.health.sift(err, "open "+d.o.Path)
		}
	}
	return s, nil
}

// Usage describes the file system of the directory.
func (d *Directory) Usage() (Usage, error) { return d.o.FS.Usage(d.o.Path) }

// Offline is nil, or the error that took the directory out of service.
func (d *Directory) Offline() error { return d.health.check() }

// down is what taking the directory out of service does: it voids the control block,
// then writes the error mark. Its own error is only
// told: what is left then is the caller's, which says that the disk is broken.
func (d *Directory) down(cause error) error {
	// The block first: it is a store into memory, and works when the disk does
	// not. The file may fail to be written, which the block then makes up for.
	d.control.setVoid(true)
	text := seal(fmt.Appendf(nil, "troupe-io-error 1\n%q\n", cause.Error()))
	return replaceFile(d.o.FS, filepath.Join(d.o.Path, errorFile), text)
}

// Close gives the directory back. With clean it writes the clean marker that names
// the broker's epoch, provided that every log was closed clean; else it says which
// was not.
func (d *Directory) Close(clean bool, epoch ident.BrokerEpoch) error {
	d.deleting.Lock()
	defer d.deleting.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	err := d.health.check()
	if clean && err == nil {
		err = d.closeClean(epoch)
	}
	// A log that is still open must not touch the control block any more.
	d.health.close()
	return errors.Join(err, d.control.close(), d.dir.Close(), d.lock.Close())
}

func (d *Directory) closeClean(epoch ident.BrokerEpoch) error {
	var dirty []ident.TopicPartition
	for tp, e := range d.logs {
		if e.log != nil || e.mode != RecoverClean {
			dirty = append(dirty, tp)
		}
	}
	if len(dirty) > 0 {
		first := slices.MinFunc(dirty, ident.TopicPartition.Compare) // the same of equal histories
		return fmt.Errorf("no clean marker for %s: the log of %s was not closed clean", d.o.Path, first)
	}
	if err := d.checkpoint(); err != nil {
		return err
	}
	text := fmt.Appendf(nil, `{"version":0,"brokerEpoch":%d}`, epoch)
	return d.replace(cleanFile, text)
}
