package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/troupe-broker/troupe/wire/ident"
)

// Opened tells how a directory was found.
type Opened struct {
	Created     bool              // it was new
	Mode        RecoveryMode      // how its logs are to be recovered
	CleanEpoch  ident.BrokerEpoch // the epoch in the clean marker, NoBrokerEpoch without one
	ErrorMarked bool              // an I/O error was on record
	// Untold: this run, or one before it in the same boot, found the directory in a
	// state in which records may be lost, and has not called Told. What survived since
	// in the page cache need not be all there was.
	Untold bool
	Marked bool     // the durable marks could be read
	Strays []string // partition directories set aside now
	Logs   []LogDir // partition directories, by name
}

// LogDir is a partition directory that was found.
type LogDir struct {
	Partition ident.TopicPartition
	Topic     ident.TopicID
}

// opening is a directory being opened.
type opening struct {
	d    *Directory
	out  Opened
	boot string // of the kernel now, empty when it cannot be read
	last string // in the lock file: of the kernel when the directory was last opened

	names   []DirEntry
	control controlFound
	clean   bool
}

// OpenDirectory locks and opens a data directory, making it when it does not
// exist. Errors are *Error with a code and words for the user.
func OpenDirectory(o DirectoryOptions) (*Directory, Opened, error) {
	if o.BallastBytes <= 0 {
		o.BallastBytes = ballastDefault
	}
	if o.ControlSlots <= 0 {
		o.ControlSlots = slotsMax
	}
	d := &Directory{
		o:      o,
		health: &health{path: o.Path, awakeMax: int64(o.OpenLogsMax)},
		slots:  map[uint64]*slot{},
		logs:   map[ident.TopicPartition]*entry{}, deleted: map[ident.TopicPartition]struct{}{},
	}
	n := &opening{d: d}
	n.out.CleanEpoch = ident.NoBrokerEpoch
	if err := n.enter(); err != nil {
		return nil, Opened{}, err
	}
	if err := n.run(); err != nil {
		return nil, Opened{}, errors.Join(err, n.leave())
	}
	d.health.down = d.down
	return d, n.out, nil
}

// enter makes the directory and takes its lock.
func (n *opening) enter() error {
	o := &n.d.o
	info, err := o.FS.Stat(o.Path)
	switch {
	case err == nil && !info.Dir:
		return coded(CodeNotADirectory, nil, "%s is a file, a data directory is wanted; name another path", o.Path)
	case err == nil:
	case isNotExist(err):
		n.out.Created = true
		if err := o.FS.MkdirAll(o.Path, 0o755); err != nil {
			return n.refused(err, "create")
		}
	default:
		return n.refused(err, "look at")
	}
	if _, err := o.FS.Stat(filepath.Join(o.Path, metaFile)); isNotExist(err) { // else its name was synced before its identity was written
		if err := syncAbove(o.FS, o.Path); err != nil {
			return n.refused(err, "sync what is above")
		}
	}
	lock, err := o.FS.Lock(filepath.Join(o.Path, lockFile))
	if errors.Is(err, ErrLocked) {
		return coded(CodeLocked, err, "%s is in use by another broker; stop it, or give this one another data directory", o.Path)
	}
	if err != nil {
		return n.refused(err, "lock")
	}
	n.d.lock = lock
	return nil
}

// leave gives back what enter and run took.
func (n *opening) leave() error {
	err := errors.Join(n.d.control.close(), n.d.lock.Close())
	if n.d.dir != nil {
		err = errors.Join(err, n.d.dir.Close())
	}
	return err
}

// refused puts an error of the disk into words.
func (n *opening) refused(err error, doing string) error {
	path := n.d.o.Path
	var known *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.Is(err, syscall.EROFS):
		return coded(CodeNoPermission, err, "%s the data directory %s: %v; mount it so that it can be written, or name another data directory", doing, path, err)
	case errors.Is(err, fs.ErrPermission):
		return coded(CodeNoPermission, err, "%s the data directory %s: %v; give the broker's user the right to write there", doing, path, err)
	case errors.Is(err, ErrNewerFormat):
		return coded(CodeNewer, err, "%s the data directory %s: %v; start the version that wrote it", doing, path, err)
	case IsNoSpace(err):
		return coded(CodeNoSpace, errors.Join(ErrNoSpace, err), "%s the data directory %s: the disk is full: %v; free some space", doing, path, err)
	case IsExhausted(err):
		return coded(CodeDescriptors, errors.Join(ErrExhausted, err), "%s the data directory %s: too many open files: %v; raise the limit (ulimit -n, LimitNOFILE of systemd)", doing, path, err)
	default:
		return coded(CodeOffline, errors.Join(ErrDirectoryOffline, err), "%s the data directory %s: %v; check the disk", doing, path, err)
	}
}

// run reads everything, decides, and writes the new state.
func (n *opening) run() error {
	d := n.d
	var err error
	if d.dir, err = d.o.FS.OpenDir(d.o.Path); err != nil {
		return n.refused(err, "open")
	}
	if n.names, err = d.o.FS.ReadDir(d.o.Path); err != nil {
		return n.refused(err, "list")
	}
	d.ballast = n.has(ballastFile)
	if err := n.unblock(); err != nil {
		return n.refused(err, "clear")
	}
	if n.boot, err = d.o.FS.BootID(); err != nil {
		n.boot = "" // then nothing of the page cache is believed
	}
	for _, step := range []struct {
		doing string
		do    func() error
	}{
		{"read the identity of", n.readMeta},
		{"read the logs of", n.readLogs},
		{"read the marks of", n.readMarks},
		{"read the control block of", n.readControl},
		{"read the markers of", n.readMarkers},
		{"prepare", n.commit},
	} {
		if err := step.do(); err != nil {
			return n.refused(err, step.doing)
		}
	}
	return nil
}

func (n *opening) has(name string) bool {
	for _, e := range n.names {
		if e.Name == name {
			return true
		}
	}
	return false
}

// unblock renames directories that have the name of a file which the broker can do
// without, or has a copy of: they would be in the way when it is written.
func (n *opening) unblock() error {
	d := n.d
	for _, e := range n.names {
		file := strings.TrimSuffix(e.Name, suffixTemporary)
		switch strings.TrimSuffix(file, suffixSealed) {
		case startsFile, marksFile, cleanedFile, cleanFile, controlFile, ballastFile, runsFile:
		default:
			continue
		}
		if !e.Dir {
			continue
		}
		path := filepath.Join(d.o.Path, e.Name)
		if err := d.o.FS.Rename(path, path+suffixStrayDir); err != nil {
			return err
		}
		d.ballast = d.ballast && e.Name != ballastFile
	}
	return nil
}

// readLogs finds the partition directories and sets strays aside.
func (n *opening) readLogs() error {
	d := n.d
	for _, e := range n.names {
		if !e.Dir {
			continue
		}
		path := filepath.Join(d.o.Path, e.Name)
		if strings.HasSuffix(e.Name, suffixDeleteDir) {
			d.background(func() error { return d.o.FS.RemoveAll(path) })
			continue
		}
		tp, ok := parsePartitionDirName(e.Name)
		if !ok || strings.HasSuffix(e.Name, suffixStrayDir) || strings.HasSuffix(e.Name, suffixFutureDir) {
			continue
		}
		switch err := n.readLog(tp, path); {
		case isObstructed(err), errors.Is(err, ErrNewerFormat):
			// Whoever opens the log hears of it, and the others are served; its marks
			// are kept until then.
			d.logs[tp] = &entry{standing: &standing{}, found: true}
		case err != nil:
			return err
		}
	}
	return nil
}

func (n *opening) readLog(tp ident.TopicPartition, path string) error {
	d := n.d
	id, err := readPartitionMeta(d.o.FS, path)
	switch {
	case err == nil:
		n.out.Logs = append(n.out.Logs, LogDir{tp, id})
		d.logs[tp] = &entry{topic: id, standing: &standing{}, found: true}
		return nil
	case errors.Is(err, ErrNewerFormat):
		return err
	case !isNotExist(err) && !errors.Is(err, ErrFormat):
		return err
	}
	files, lerr := d.o.FS.ReadDir(path)
	if lerr != nil {
		return lerr
	}
	unmade, lerr := n.unmade(path, files)
	if lerr != nil {
		return lerr
	}
	if unmade {
		// The machine died before anything in it was acknowledged.
		return d.o.FS.RemoveAll(path)
	}
	to, err := d.moveAside(tp, suffixStrayDir)
	if err == nil {
		n.out.Strays = append(n.out.Strays, to)
	}
	return err
}

// unmade tells whether a partition directory without a readable identity was just
// being made: nothing is in it but an empty first segment.
func (n *opening) unmade(path string, files []DirEntry) (bool, error) {
	for _, f := range files {
		base, suffix, ok := parseSegmentName(f.Name)
		switch {
		case strings.HasSuffix(f.Name, suffixTemporary), f.Name == partitionMetaFile && !f.Dir:
			continue
		case !ok || base != 0 || suffix != suffixLog:
			return false, nil
		}
		info, err := n.d.o.FS.Stat(filepath.Join(path, f.Name))
		if err != nil || info.Size > 0 {
			return false, err
		}
	}
	return true, nil
}

// readMarks reads durable marks and log starts.
func (n *opening) readMarks() error {
	d := n.d
	starts, found, err := readLines(d.o.FS, d.o.Path, startsFile, false)
	if err != nil {
		return err
	}
	if !found {
		return coded(CodeStartLost, nil, "%s and its copy in %s are lost or damaged, so that deleted records would come back; restore one from a backup, or write \"0\", \"0\" on two lines into %s to begin every log with its first segment", startsFile, d.o.Path, startsFile)
	}
	marks, found, err := readLines(d.o.FS, d.o.Path, marksFile, true)
	if err != nil {
		return err
	}
	d.marked, n.out.Marked = found, found
	if !n.has(startsFile + suffixSealed) {
		// Kafka's own file: it names a start only where DeleteRecords moved it.
		for _, e := range d.logs {
			e.standing.start.Store(int64(ident.NoOffset))
		}
	}
	for _, lines := range [][]markLine{starts, marks} {
		for _, m := range lines {
			if d.logs[m.partition] == nil {
				d.deleted[m.partition] = struct{}{}
			}
		}
	}
	for _, m := range starts {
		if e := d.logs[m.partition]; e != nil && m.of(e) {
			e.standing.start.Store(int64(m.offset))
		}
	}
	for _, m := range marks {
		if e := d.logs[m.partition]; e != nil && m.of(e) {
			e.standing.mark.Store(int64(m.offset))
			e.strict, e.wasSet = m.strict, m.strict
			e.standing.strict.Store(m.strict)
		}
	}
	return d.readCleaned()
}

func (n *opening) readControl() (err error) {
	d := n.d
	if n.control, err = readControl(d.o.FS, d.o.Path); err != nil {
		return err
	}
	b, err := readFile(d.o.FS, filepath.Join(d.o.Path, lockFile))
	if err != nil {
		return err
	}
	if text, err := unseal(b); err == nil {
		n.last = strings.TrimSpace(string(text))
	}
	return nil
}

// readMarkers reads the clean marker and the error mark, and decides how far the
// logs can be believed.
func (n *opening) readMarkers() error {
	d := n.d
	n.out.ErrorMarked = n.has(errorFile) || (n.control.sound && n.control.void)
	b, err := readFile(d.o.FS, filepath.Join(d.o.Path, cleanFile))
	if err != nil && !isNotExist(err) {
		return err
	}
	if err == nil {
		n.clean, n.out.CleanEpoch = true, decodeClean(b)
	}
	n.out.Mode = n.mode()
	if n.out.Mode != RecoverClean {
		n.out.CleanEpoch = ident.NoBrokerEpoch
	}
	switch n.out.Mode {
	case RecoverSameBoot:
		n.out.Untold = n.control.untold
	case RecoverClean:
		n.out.Untold = n.out.CleanEpoch <= 0 // a stop that names no registered run proves nothing
	case RecoverVerify, RecoverCopy:
		n.out.Untold = !n.out.Created // a new directory has nothing to lose
	}
	return nil
}

// decodeClean reads the epoch in the clean marker. The marker counts by being
// there; one without a readable epoch names no broker epoch.
func decodeClean(b []byte) ident.BrokerEpoch {
	var marker struct {
		Version     int    `json:"version"`
		BrokerEpoch *int64 `json:"brokerEpoch"`
	}
	if json.Unmarshal(bytes.TrimSpace(b), &marker) != nil || marker.BrokerEpoch == nil {
		return ident.NoBrokerEpoch
	}
	return ident.BrokerEpoch(*marker.BrokerEpoch)
}

func (n *opening) mode() RecoveryMode {
	sameBlock := n.control.sound && n.control.boot == n.boot && n.boot != ""
	switch {
	case n.clean && !n.out.ErrorMarked:
		return RecoverClean
	case n.boot == "":
		if n.out.ErrorMarked {
			return RecoverCopy
		}
		return RecoverVerify
	case sameBlock && !n.out.ErrorMarked:
		return RecoverSameBoot
	case sameBlock:
		return RecoverCopy
	case n.control.sound || (n.last != "" && n.last != n.boot):
		return RecoverVerify // the machine has been restarted since
	default:
		// The block is lost and the boot is the same, or nobody can tell.
		return RecoverCopy
	}
}

// commit makes what was decided the state of the directory: marks that only the
// control block knew are written before the block is replaced, and the clean
// marker goes before any log is written.
func (n *opening) commit() error {
	d := n.d
	keep := map[uint64]slotState{}
	raised := false
	d.untold.Store(n.out.Untold)
	for _, e := range d.logs {
		e.mode, e.untold = n.out.Mode, n.out.Untold
	}
	for _, l := range n.out.Logs {
		e := d.logs[l.Partition]
		v, ok := n.control.slots[logKey(l.Topic, l.Partition.Partition)]
		if !ok {
			continue
		}
		if n.out.Mode == RecoverSameBoot {
			keep[v.log] = v
		}
		// The mark in a slot was stored after the sync that it tells of.
		if int64(v.flushed) > e.standing.mark.Load() && n.out.Mode != RecoverClean {
			e.standing.mark.Store(int64(v.flushed))
			raised = true
		}
	}
	if raised {
		// On a full disk the old, lower marks stay: more is verified.
		if err := d.writeMarks(); err != nil && !errors.Is(err, ErrNoSpace) {
			return err
		}
	}
	if err := n.newControl(keep); err != nil {
		return err
	}
	if err := n.signLock(); err != nil {
		return err
	}
	if n.clean {
		if err := d.o.FS.Remove(filepath.Join(d.o.Path, cleanFile)); err != nil && !isNotExist(err) {
			return err
		}
	}
	if err := d.dir.Sync(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tainted = n.out.ErrorMarked
	d.raftOld = d.tainted && d.meta.RaftLog
	return errors.Join(d.untaint(), d.loadBallast())
}

// newControl replaces the control block. On a full disk the old one gives way, and
// if that is not enough there is none: then the logs are verified next time.
func (n *opening) newControl(keep map[uint64]slotState) error {
	d := n.d
	taint := n.out.ErrorMarked
	c, slots, err := createControl(d.o.FS, d.o.Path, n.boot, taint, n.out.Untold, keep, d.o.ControlSlots)
	if err != nil && IsNoSpace(err) {
		for _, name := range []string{controlFile, controlFile + suffixTemporary, ballastFile} {
			if rm := d.o.FS.Remove(filepath.Join(d.o.Path, name)); rm != nil && !isNotExist(rm) {
				return rm
			}
		}
		c, slots, err = createControl(d.o.FS, d.o.Path, n.boot, taint, n.out.Untold, keep, d.o.ControlSlots)
		if err != nil && IsNoSpace(err) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	d.control = c
	maps.Copy(d.slots, slots)
	return nil
}

// signLock notes the boot in the lock file, where it is found when the control
// block is lost.
func (n *opening) signLock() error {
	f, err := n.d.o.FS.OpenFile(filepath.Join(n.d.o.Path, lockFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	text := seal([]byte(n.boot + "\n"))
	_, err = f.WriteAt(text, 0)
	if err == nil {
		err = f.Truncate(int64(len(text)))
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); IsNoSpace(err) {
		return nil // an unsigned lock is believed less, which is safe
	}
	return err
}
