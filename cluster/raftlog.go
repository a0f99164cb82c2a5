package cluster

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// ErrDamaged says that what a raft log holds cannot be what a voter left there.
var ErrDamaged = errors.New("TRP-4001: the raft log is damaged")

// raftLog is raft.Storage in memory: what is known to be on disk, no more and no less. Saves are added to it when they come back as Persisted.
type raftLog struct {
	hard  *pb.HardState
	conf  *pb.ConfState
	base  *pb.Entry   // index and term before the first entry; its data is gone
	ents  []*pb.Entry // base.Index+1, … without a gap
	bytes int64       // of the entries' data

	// image yields the newest applied image, of which Snapshot makes one when a follower needs it. Its index is never below base.
	image func() *Image
}

// InitialState returns what was saved last.
func (l *raftLog) InitialState() (*pb.HardState, *pb.ConfState, error) { return l.hard, l.conf, nil }

// FirstIndex is the index of the oldest entry that is still there.
func (l *raftLog) FirstIndex() (uint64, error) { return l.base.GetIndex() + 1, nil }

// LastIndex is the index of the newest entry.
func (l *raftLog) LastIndex() (uint64, error) { return l.last(), nil }

// Term returns the term of an entry.
func (l *raftLog) Term(i uint64) (uint64, error) {
	switch base := l.base.GetIndex(); {
	case i < base:
		return 0, raft.ErrCompacted
	case i == base:
		return l.base.GetTerm(), nil
	case i > l.last():
		return 0, raft.ErrUnavailable
	default:
		return l.ents[i-base-1].GetTerm(), nil
	}
}

// Entries returns the entries from lo to below hi, at least one, and no more than fit into bytesMax.
func (l *raftLog) Entries(lo, hi, bytesMax uint64) ([]*pb.Entry, error) {
	base := l.base.GetIndex()
	if lo <= base {
		return nil, raft.ErrCompacted
	}
	if hi > l.last()+1 || lo >= hi {
		return nil, raft.ErrUnavailable
	}
	ents := l.ents[lo-base-1 : hi-base-1]
	size := uint64(0)
	for i, e := range ents {
		size += uint64(proto.Size(e))
		if i > 0 && size > bytesMax {
			ents = ents[:i]
			break
		}
	}
	return slices.Clip(ents), nil
}

// Snapshot makes a snapshot of what is applied.
func (l *raftLog) Snapshot() (*pb.Snapshot, error) {
	m := l.image()
	return &pb.Snapshot{
		Data: EncodeSnapshot(m),
		Metadata: &pb.SnapshotMetadata{
			ConfState: confOf(m.voters),
			Index:     new(m.index),
			Term:      new(m.term),
		},
	}, nil
}

func (l *raftLog) last() uint64 { return l.base.GetIndex() + uint64(len(l.ents)) }

// append adds entries, replacing whatever is at and above the first of them.
func (l *raftLog) append(ents []*pb.Entry) {
	if len(ents) == 0 {
		return
	}
	first, base := ents[0].GetIndex(), l.base.GetIndex()
	if first <= base || first > l.last()+1 {
		panic(fmt.Sprintf("cluster: entry %d does not join a log that holds %d to %d", first, base+1, l.last()))
	}
	for _, e := range l.ents[first-base-1:] {
		l.bytes -= int64(len(e.GetData()))
	}
	keep := l.ents[:first-base-1]
	if first <= l.last() {
		// What is replaced may still be in slices that Entries handed out: leave their memory alone.
		keep = slices.Clip(keep)
	}
	l.ents = append(keep, ents...)
	for _, e := range ents {
		l.bytes += int64(len(e.GetData()))
	}
}

// compact forgets the entries up to and including index.
func (l *raftLog) compact(index uint64) {
	base := l.base.GetIndex()
	if index <= base {
		return
	}
	n := index - base
	l.base = &pb.Entry{Index: new(index), Term: new(l.ents[n-1].GetTerm())}
	for _, e := range l.ents[:n] {
		l.bytes -= int64(len(e.GetData()))
	}
	l.ents = append([]*pb.Entry(nil), l.ents[n:]...)
}

// reset replaces the whole log by a snapshot from the leader.
func (l *raftLog) reset(m *Image) {
	l.base = &pb.Entry{Index: new(m.index), Term: new(m.term)}
	l.conf = confOf(m.voters)
	l.ents, l.bytes = nil, 0
}

// keepFrom returns the index up to which entries may go so that at most bytes stay, and nothing above index goes.
func (l *raftLog) keepFrom(index uint64, bytes int64) uint64 {
	cut := min(index, l.last())
	for cut > l.base.GetIndex() {
		e := l.ents[cut-l.base.GetIndex()-1]
		bytes -= int64(len(e.GetData()))
		if bytes < 0 {
			break
		}
		cut--
	}
	return cut
}

// confOf is the Raft configuration of a voter set.
func confOf(voters []Voter) *pb.ConfState {
	conf := &pb.ConfState{AutoLeave: new(false)}
	for _, v := range voters {
		conf.Voters = append(conf.Voters, uint64(v.Node))
	}
	return conf
}

// load reads what a raft log holds on disk.
func (l *raftLog) load(d Durable) (*Image, error) {
	if d.Snapshot == nil || d.HardState == nil {
		return nil, fmt.Errorf("%w: it has no snapshot or no hard state", ErrDamaged)
	}
	m, err := DecodeSnapshot(d.Snapshot.Data)
	if err != nil {
		return nil, fmt.Errorf("snapshot at index %d: %w", d.Snapshot.Index, damage(err))
	}
	if m.index != d.Snapshot.Index || m.term != d.Snapshot.Term {
		return nil, fmt.Errorf("%w: the snapshot stored for index %d term %d is of index %d term %d", ErrDamaged, d.Snapshot.Index, d.Snapshot.Term, m.index, m.term)
	}
	hard, err := decodeHardState(d.HardState)
	if err != nil {
		return nil, err
	}
	l.conf = confOf(m.voters)
	if err := l.loadEntries(m, d.Entries); err != nil {
		return nil, err
	}
	if hard.GetCommit() < m.index {
		// The commit index is saved without a sync; the snapshot proves more.
		hard.Commit = new(m.index)
	}
	if hard.GetCommit() > l.last() {
		return nil, fmt.Errorf("%w: index %d is committed, the last entry is %d", ErrDamaged, hard.GetCommit(), l.last())
	}
	if last, err := l.Term(l.last()); err != nil || last > hard.GetTerm() {
		return nil, fmt.Errorf("%w: the last entry has term %d, the hard state term %d", ErrDamaged, last, hard.GetTerm())
	}
	l.hard = hard
	return m, nil
}

// damage marks an error of reading what only this build can have written; metadata of a newer version is no damage.
func damage(err error) error {
	if errors.Is(err, ErrNewerVersion) || errors.Is(err, ErrUnknownCode) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

func (l *raftLog) loadEntries(m *Image, entries []Entry) error {
	l.base = &pb.Entry{Index: new(m.index), Term: new(m.term)}
	if n := len(entries); n == 0 || entries[n-1].Index <= m.index {
		return nil // all of them are in the snapshot
	}
	if entries[0].Index > m.index+1 {
		return fmt.Errorf("%w: entries from %d to %d are missing", ErrDamaged, m.index+1, entries[0].Index-1)
	}
	if entries[0].Index <= m.index {
		// Entries were kept behind the snapshot for voters that lag. The first of them lends its place to the base.
		l.base = &pb.Entry{Index: new(entries[0].Index), Term: new(entries[0].Term)}
		entries = entries[1:]
	}
	index, term := l.base.GetIndex(), l.base.GetTerm()
	for _, e := range entries {
		if index++; e.Index != index || e.Term < term {
			return fmt.Errorf("%w: entry %d of term %d follows entry %d of term %d", ErrDamaged, e.Index, e.Term, index-1, term)
		}
		term = e.Term
		decoded, err := decodeEntry(e)
		if err != nil {
			return err
		}
		l.ents = append(l.ents, decoded)
		l.bytes += int64(len(decoded.GetData()))
	}
	return nil
}

// encodeEntry turns Raft's entry into ours: its type is the first byte of the data.
func encodeEntry(e *pb.Entry) Entry {
	data := make([]byte, 0, 1+len(e.GetData()))
	data = append(data, byte(e.GetType()))
	return Entry{Index: e.GetIndex(), Term: e.GetTerm(), Data: append(data, e.GetData()...)}
}

func decodeEntry(e Entry) (*pb.Entry, error) {
	if len(e.Data) == 0 || e.Data[0] > byte(pb.EntryConfChangeV2) {
		return nil, fmt.Errorf("%w: entry %d has no known type", ErrDamaged, e.Index)
	}
	out := &pb.Entry{Index: new(e.Index), Term: new(e.Term), Type: pb.EntryType(e.Data[0]).Enum()}
	if len(e.Data) > 1 {
		out.Data = e.Data[1:]
	}
	return out, nil
}

// encodeHardState writes [term, vote, commit].
func encodeHardState(term, vote, commit uint64) []byte {
	w := newWriter()
	w.array(3)
	w.uint(term)
	w.uint(vote)
	w.uint(commit)
	return w.buf.Bytes()
}

func decodeHardState(b []byte) (*pb.HardState, error) {
	r := newReader(b)
	f := r.fields()
	hard := &pb.HardState{Term: new(uint64(0)), Vote: new(uint64(0)), Commit: new(uint64(0))}
	for _, field := range []*uint64{hard.Term, hard.Vote, hard.Commit} {
		if !f.next() {
			r.fail(errors.New("a hard state of fewer than 3 fields"))
		}
		*field = r.uint()
	}
	f.close()
	if r.err != nil {
		return nil, fmt.Errorf("%w: hard state: %w", ErrDamaged, r.err)
	}
	return hard, nil
}
