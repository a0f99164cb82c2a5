package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// RaftEntry is one entry of the metadata quorum's log. Kind and Data are opaque
// here.
type RaftEntry struct {
	Index, Term uint64
	Kind        int32
	Data        []byte
}

// RaftSnapshot replaces all entries up to Index. Data is opaque here.
type RaftSnapshot struct {
	Index, Term uint64
	Data        []byte
}

// RaftSave is what one turn of Raft wants durable. Parts that are empty are left
// as they are.
type RaftSave struct {
	Hard     []byte // the hard state (term, vote, commit), opaque
	Entries  []RaftEntry
	Snapshot *RaftSnapshot // received from a leader: replaces all entries
}

// RaftState is what a Raft log held when it was opened.
type RaftState struct {
	Created  bool // there was none: this is a new node
	Hard     []byte
	Snapshot RaftSnapshot
	Entries  []RaftEntry // contiguous, after Snapshot.Index
	Torn     int64       // bytes of an unfinished save that were ignored
}

// raftDir is the directory of the Raft log's two files: one is written, the other
// is the next one, reserved already, so that compaction works on a full disk.
const raftDir = "raft"

var raftFiles = [2]string{"0.raftlog", "1.raftlog"}

const (
	// raftReserve is the size of a fresh file, in bytes.
	raftReserve = 4 << 20
	// raftBallast is the share of it that is kept reserved ahead of the writer, so
	// that the deletion of a topic can still be committed when the disk is full.
	raftBallast = 2
	// raftStep is the share by which a file grows.
	raftStep = 4
)

// noRaftHead is what a file begins with that is not in use.
var noRaftHead [raftHead]byte

// RaftLog keeps the metadata quorum's hard state, entries and snapshot. One owner;
// every method blocks on the disk.
type RaftLog struct {
	health     *health
	reserve    int64 // size of a fresh file
	files      [2]File
	reserved   [2]int64
	active     int
	generation uint64
	pos        int64  // where the next frame goes
	frame      []byte // scratch
	err        error  // sticky: what is on disk is not known any more
}

// OpenRaftLog opens the Raft log, or creates it when the directory never had one.
// A log that is lost or damaged (other than by an unfinished last save) is an
// *Error with CodeRaft: this node may have voted and must not speak under its id.
func (d *Directory) OpenRaftLog() (*RaftLog, RaftState, error) {
	if err := d.health.check(); err != nil {
		return nil, RaftState{}, err
	}
	r := &RaftLog{health: d.health, reserve: d.o.RaftReserveBytes}
	if r.reserve <= 0 {
		r.reserve = raftReserve
	}
	s, err := r.open(d)
	if err == nil && d.raftDoubted() {
		if err = r.renew(s); err == nil {
			err = d.raftRenewed()
		}
	}
	if err != nil {
		return nil, RaftState{}, errors.Join(err, r.Close())
	}
	return r, s, nil
}

// renew writes everything into the other file. After a failed sync what was read
// may be in memory only, on pages that count as clean, so that no sync of the file
// it is in would ever write it.
//
// That file may have a head of the same generation on the disk, of a renewal whose sync
// failed: it goes first.
func (r *RaftLog) renew(s RaftState) error {
	other := 1 - r.active
	if err := r.writeSynced(other, noRaftHead[:], 0); err != nil {
		return r.broken(err, "write "+r.files[other].Name())
	}
	save := RaftSave{Hard: s.Hard, Entries: s.Entries}
	if s.Snapshot.Index > 0 {
		save.Snapshot = &s.Snapshot
	}
	return r.replace(save)
}

func (r *RaftLog) open(d *Directory) (RaftState, error) {
	dir := filepath.Join(d.o.Path, raftDir)
	had := d.Meta().RaftLog
	if !had {
		if err := d.o.FS.MkdirAll(dir, 0o755); err != nil {
			return RaftState{}, r.health.sift(err, "create "+dir)
		}
	}
	for i, name := range raftFiles {
		flag := os.O_RDWR
		if !had {
			flag |= os.O_CREATE
		}
		f, err := d.o.FS.OpenFile(filepath.Join(dir, name), flag, 0o644)
		if isNotExist(err) {
			return RaftState{}, raftLost(dir, err)
		}
		if err == nil {
			r.files[i] = f
			r.reserved[i], err = f.Size()
		}
		if err != nil {
			return RaftState{}, r.health.sift(err, "open "+filepath.Join(dir, name))
		}
	}
	s, found, err := r.load()
	switch {
	case err != nil && errors.Is(err, ErrNewerFormat):
		return s, coded(CodeNewer, err, "%s: %v; start the version that wrote it", dir, err)
	case err != nil && errors.Is(err, ErrFormat):
		return s, raftLost(dir, err)
	case err != nil:
		return s, r.health.sift(err, "read "+dir)
	case found:
		// A full disk is no reason not to start: what is reserved may do until there is room again.
		if err := r.reserveBoth(); err != nil && !errors.Is(err, ErrNoSpace) {
			return s, err
		}
		return s, nil
	case had:
		return s, raftLost(dir, fmt.Errorf("neither file has a head: %w", ErrFormat))
	}
	return RaftState{Created: true}, r.create(d, dir)
}

func raftLost(dir string, cause error) error {
	return coded(CodeRaft, cause, "the metadata quorum's log in %s is lost or damaged: %v; give this broker an empty data directory: it joins the others again, without its vote; only a broker that was alone needs a backup, since an older copy takes back what others have acknowledged", dir, cause)
}

// create makes the first generation, and notes in the directory's identity that
// there is a Raft log from now on.
func (r *RaftLog) create(d *Directory, dir string) error {
	if err := r.reserveBoth(); err != nil {
		return err
	}
	if err := r.begin(0, 1, RaftSave{}); err != nil {
		return err
	}
	for _, path := range []string{dir, d.o.Path} {
		if err := syncDir(d.o.FS, path); err != nil {
			return r.health.sift(err, "sync "+path)
		}
	}
	return d.noteRaftLog()
}

// reserveBoth gives each file the size of a fresh one, durably: the next file is written only when this one is compacted, and until then nothing else syncs
// it. A power loss that took its room would leave a broker that cannot compact when the disk is full.
func (r *RaftLog) reserveBoth() error {
	for i, f := range r.files {
		if r.reserved[i] >= r.reserve {
			continue
		}
		if err := r.reserveFile(i, r.reserve); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return r.broken(err, "sync "+f.Name())
		}
	}
	return nil
}

// begin writes a base frame into file i, then a head that makes it the active one,
// each durable before the next step.
func (r *RaftLog) begin(i int, generation uint64, base RaftSave) error {
	frame, err := r.encode(base, generation)
	if err != nil {
		return err
	}
	if err := r.reserveFile(i, raftHead+int64(len(frame))+r.reserve/raftBallast); err != nil {
		// On a full disk the reserve does.
		if !errors.Is(err, ErrNoSpace) || raftHead+int64(len(frame)) > r.reserved[i] {
			return err
		}
	}
	if err := r.writeSynced(i, frame, raftHead); err != nil {
		return r.disown(i, err)
	}
	if err := r.writeSynced(i, encodeRaftHead(raftHeader{generation: generation}), 0); err != nil {
		return r.disown(i, err)
	}
	r.active, r.generation, r.pos = i, generation, raftHead+int64(len(frame))
	return nil
}

// disown takes the head away from a file that could not be begun. Memory may have all
// of it and the disk not: the next process would take it for the newest, and write over
// the file that is on the disk.
func (r *RaftLog) disown(i int, cause error) error {
	_, _ = r.files[i].WriteAt(noRaftHead[:], 0) // if that fails as well, there is no more to be done
	return r.broken(cause, "write "+r.files[i].Name())
}

func (r *RaftLog) writeSynced(i int, b []byte, at int64) error {
	if _, err := r.files[i].WriteAt(b, at); err != nil {
		return err
	}
	return r.files[i].Sync()
}

// reserveFile grows file i to at least n bytes.
func (r *RaftLog) reserveFile(i int, n int64) error {
	if n <= r.reserved[i] {
		return nil
	}
	step := max(r.reserve/raftStep, 1)
	n = (n + step - 1) / step * step
	if err := r.files[i].Allocate(r.reserved[i], n-r.reserved[i]); err != nil {
		return r.health.sift(err, "reserve space in "+r.files[i].Name())
	}
	r.reserved[i] = n
	return nil
}

func (r *RaftLog) broken(err error, doing string) error {
	r.err = r.health.sift(err, doing)
	if errors.Is(r.err, ErrNoSpace) {
		// Reserved space was refused: the file system breaks its word. What was
		// written is not known.
		r.err = r.health.fail(fmt.Errorf("%s: %w", doing, err))
	}
	return r.err
}

func (r *RaftLog) encode(s RaftSave, generation uint64) ([]byte, error) {
	b := beginFrame(r.frame)
	if s.Snapshot != nil {
		b = appendSnapshot(b, s.Snapshot)
	}
	if len(s.Hard) > 0 {
		b = appendRecord(b, recordHard, s.Hard)
	}
	for i := range s.Entries {
		b = appendEntry(b, &s.Entries[i])
	}
	r.frame = b
	return endFrame(b, generation)
}

// Save makes s durable before it returns. An entry whose index exists replaces it
// and all that follow. On ErrNoSpace nothing changed.
func (r *RaftLog) Save(s RaftSave) error {
	if err := r.usable(); err != nil {
		return err
	}
	if len(s.Hard) == 0 && len(s.Entries) == 0 && s.Snapshot == nil {
		return nil
	}
	frame, err := r.encode(s, r.generation)
	if err != nil {
		return err
	}
	need := r.pos + int64(len(frame))
	if err := r.reserveFile(r.active, need+r.reserve/raftBallast); err != nil {
		if !errors.Is(err, ErrNoSpace) || need > r.reserved[r.active] {
			return err
		}
	}
	if err := r.writeSynced(r.active, frame, r.pos); err != nil {
		return r.broken(err, "write "+r.files[r.active].Name())
	}
	r.pos = need
	return nil
}

func (r *RaftLog) usable() error {
	if r.err != nil {
		return r.err
	}
	return r.health.check()
}

// Reserve is the size of a fresh file in bytes, all of which is there before anything is
// written to it: what fits is written even when the disk is full.
func (r *RaftLog) Reserve() int64 { return r.reserve }

// Size is the number of bytes in use: a measure of when to compact.
func (r *RaftLog) Size() int64 { return r.pos }

// Compact writes snapshot, hard state and the entries after the snapshot into the
// other file and switches to it, durably. On ErrNoSpace nothing changed.
func (r *RaftLog) Compact(hard []byte, s RaftSnapshot, entries []RaftEntry) error {
	if err := r.usable(); err != nil {
		return err
	}
	return r.replace(RaftSave{Hard: hard, Snapshot: &s, Entries: entries})
}

// replace begins the other file and retires this one, durably.
func (r *RaftLog) replace(base RaftSave) error {
	old := r.active
	if err := r.begin(1-old, r.generation+1, base); err != nil {
		return err
	}
	// Retire the old file, so that it is never taken for the newest state should
	// the new one be damaged.
	if err := r.writeSynced(old, encodeRaftHead(raftHeader{generation: r.generation - 1, retired: true}), 0); err != nil {
		return r.broken(err, "retire "+r.files[old].Name())
	}
	if r.reserved[old] > r.reserve {
		if err := r.files[old].Truncate(r.reserve); err != nil {
			return r.broken(err, "shorten "+r.files[old].Name())
		}
		r.reserved[old] = r.reserve
	}
	return nil
}

// load finds the active file and reads it. found is false when neither file has a
// head.
func (r *RaftLog) load() (s RaftState, found bool, err error) {
	var heads [2]raftHeader
	best := -1
	for i, f := range r.files {
		b := make([]byte, raftHead)
		if _, err := f.ReadAt(b, 0); err != nil && !isShort(err) {
			return s, false, err
		}
		h, err := decodeRaftHead(b)
		if errors.Is(err, ErrNewerFormat) {
			return s, false, fmt.Errorf("%s: %w", filepath.Base(f.Name()), err)
		}
		if err != nil {
			continue
		}
		heads[i] = h
		if best < 0 || h.generation > heads[best].generation {
			best = i
		}
	}
	if best < 0 {
		return s, false, nil
	}
	if heads[best].retired {
		return s, false, fmt.Errorf("the file that took over from generation %d has no head: %w", heads[best].generation, ErrFormat)
	}
	b, err := readAll(r.files[best])
	if err != nil {
		return s, false, err
	}
	r.active, r.generation = best, heads[best].generation
	s, r.pos, err = decodeRaftFile(b, r.generation)
	return s, true, err
}

// decodeRaftFile folds the frames of a file whose head is sound, and returns where
// the next one goes. A tail without a frame is an unfinished save, unless another
// frame of the same generation follows: saves are synced one by one, so that is
// damage.
func decodeRaftFile(b []byte, generation uint64) (s RaftState, pos int64, err error) {
	at := raftHead
	for frames := 0; ; frames++ {
		body, size, ok := frameAt(b[min(at, len(b)):], generation)
		if !ok && frames == 0 {
			return s, 0, fmt.Errorf("the first frame is not there: %w", ErrFormat)
		}
		if !ok {
			break
		}
		// What is kept of a frame refers to its bytes: it must not hold the whole file, most of which is empty.
		if err := s.apply(bytes.Clone(body)); err != nil {
			return s, 0, err
		}
		at += size
	}
	end := at
	for next := at + frameAlign; next+frameHead <= len(b); next += frameAlign {
		if _, _, ok := frameAt(b[next:], generation); ok {
			return s, 0, fmt.Errorf("no frame at position %d, but one at %d: %w", at, next, ErrFormat)
		}
	}
	for i := min(at, len(b)); i < len(b); i++ {
		if b[i] != 0 {
			end = i + 1
		}
	}
	s.Torn = int64(end - at)
	return s, int64(at), nil
}

// Close closes the files.
func (r *RaftLog) Close() error {
	var err error
	for i, f := range r.files {
		if f != nil {
			err = errors.Join(err, f.Close())
			r.files[i] = nil
		}
	}
	if r.err == nil {
		r.err = fmt.Errorf("the Raft log: %w", ErrClosed)
	}
	return err
}
