package broker

import (
	"errors"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// raftLogWriter is the actor that makes the metadata log durable. It owns its goroutine. Saves are carried out in order; one answer covers a batch.
type raftLogWriter struct {
	log     *store.RaftLog
	dir     *store.Directory
	logger  zerolog.Logger
	hard    []byte
	pending bool              // hard is not in the file yet
	entries []store.RaftEntry // in the file, above the snapshot; the bytes are shared with the machine
	failed  error
	closed  bool
}

// save asks for writes to the raft log, in order.
type save struct {
	controller *runtime.Ref // hears the outcome
	saves      []cluster.Save
}

// Bytes implements runtime.Message.
func (s *save) Bytes() int {
	n := 0
	for i := range s.saves {
		for _, e := range s.saves[i].Entries {
			n += len(e.Data)
		}
	}
	return n
}

// closeRaftLog closes the log. done is told, once.
type closeRaftLog struct{ done func(error) }

// Bytes implements runtime.Message.
func (*closeRaftLog) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (c *closeRaftLog) Reject(error) { c.done(nil) }

// joinCluster makes the directory one of a cluster, durably. done is told, once; it may only enqueue.
type joinCluster struct {
	id   ident.ClusterID
	done func(error)
}

// Bytes implements runtime.Message.
func (*joinCluster) Bytes() int { return 0 }

// saved tells that the save, and all before it, are on stable storage, or why not.
type saved struct {
	id  uint64
	err error
}

// Bytes implements runtime.Message.
func (*saved) Bytes() int { return 0 }

// Turn implements runtime.Behaviour.
func (w *raftLogWriter) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case *save:
			for i := range m.saves {
				w.save(t, m.controller, &m.saves[i])
			}
		case *joinCluster:
			m.done(w.dir.JoinCluster(m.id))
		case *closeRaftLog:
			m.done(w.close())
			t.Stop()
		default:
			panic("broker: the metadata log got a message that it does not know")
		}
	}
}

func (w *raftLogWriter) save(t *runtime.Turn, controller *runtime.Ref, s *cluster.Save) {
	if w.failed == nil {
		w.failed = w.write(s)
	}
	_ = t.Send(controller, &saved{id: s.ID, err: w.failed}) // the controller is gone only when the broker stops
}

// write carries out one save. After an error nothing more is written: what the disk holds is not known.
func (w *raftLogWriter) write(s *cluster.Save) error {
	if s.HardState != nil {
		w.hard, w.pending = s.HardState, true
	}
	if !s.Sync && len(s.Entries) == 0 && s.Snapshot == nil {
		return nil // a moved commit index: it goes with the next save, and losing it costs a restart nothing but a replay
	}
	if s.Reset {
		w.entries = nil
	}
	entries := raftEntries(s.Entries)
	w.keep(entries)
	if s.Snapshot != nil {
		w.entries = entriesAfter(w.entries, s.Snapshot.Index)
		w.pending = false
		return w.log.Compact(w.hard, store.RaftSnapshot{Index: s.Snapshot.Index, Term: s.Snapshot.Term, Data: s.Snapshot.Bytes()}, w.entries)
	}
	r := store.RaftSave{Entries: entries}
	if w.pending {
		r.Hard, w.pending = w.hard, false
	}
	return w.log.Save(r)
}

// keep replaces the entries at and above the first of the new ones.
func (w *raftLogWriter) keep(entries []store.RaftEntry) {
	if len(entries) == 0 {
		return
	}
	for i := range w.entries {
		if w.entries[i].Index >= entries[0].Index {
			clear(w.entries[i:])
			w.entries = w.entries[:i]
			break
		}
	}
	w.entries = append(w.entries, entries...)
}

// entriesAfter drops the entries up to an index.
func entriesAfter(entries []store.RaftEntry, index uint64) []store.RaftEntry {
	for i := range entries {
		if entries[i].Index > index {
			return append([]store.RaftEntry(nil), entries[i:]...)
		}
	}
	return nil
}

func raftEntries(entries []cluster.Entry) []store.RaftEntry {
	if len(entries) == 0 {
		return nil
	}
	out := make([]store.RaftEntry, len(entries))
	for i, e := range entries {
		out[i] = store.RaftEntry{Index: e.Index, Term: e.Term, Data: e.Data}
	}
	return out
}

// close closes the log, once, with the newest commit index in it.
func (w *raftLogWriter) close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	var err error
	if w.pending && w.failed == nil {
		err = w.log.Save(store.RaftSave{Hard: w.hard})
	}
	return errors.Join(err, w.log.Close())
}

// Stopping implements runtime.Stopper.
func (w *raftLogWriter) Stopping(*runtime.Turn) {}

// Stopped implements runtime.Stopper.
func (w *raftLogWriter) Stopped(*runtime.Turn) {
	if err := w.close(); err != nil {
		w.logger.Warn().Err(err).Msg("closing the metadata log")
	}
}

// durable is what a raft log held, in the words of the machine.
func durable(s *store.RaftState) cluster.Durable {
	d := cluster.Durable{HardState: s.Hard}
	if s.Snapshot.Index > 0 {
		d.Snapshot = &cluster.Snapshot{Index: s.Snapshot.Index, Term: s.Snapshot.Term, Data: s.Snapshot.Data}
	}
	for _, e := range s.Entries {
		d.Entries = append(d.Entries, cluster.Entry{Index: e.Index, Term: e.Term, Data: e.Data})
	}
	return d
}

// newRaftLogWriter continues a raft log that held this.
func newRaftLogWriter(dir *store.Directory, log *store.RaftLog, held *cluster.Durable, logger zerolog.Logger) *raftLogWriter {
	w := &raftLogWriter{log: log, dir: dir, logger: logger, hard: held.HardState}
	if held.Snapshot != nil {
		w.entries = entriesAfter(raftEntries(held.Entries), held.Snapshot.Index)
	}
	return w
}

// foundAlone founds a cluster of this broker alone.
func foundAlone(log *store.RaftLog, p cluster.Promise) (cluster.Durable, error) {
	d, err := cluster.Genesis(p)
	if err != nil {
		return cluster.Durable{}, err
	}
	s := store.RaftSave{Hard: d.HardState, Snapshot: &store.RaftSnapshot{Index: d.Snapshot.Index, Term: d.Snapshot.Term, Data: d.Snapshot.Data}}
	return d, log.Save(s)
}
