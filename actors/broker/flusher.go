package broker

import (
	"errors"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// flusher is the actor of one data directory that makes it durable: group commit over all its logs. It owns its goroutine, for a sync waits for the disk.
//
//	idle ── dirty ──> asks all dirty partitions for their share of a round ── all shares are in ──> syncs ── results to the partitions ──> idle, or again
//
// A partition asks once and is asked back when a round begins, so that the round takes everything that was appended until then, and the appends that
// come while it runs wait for the next one together.
type flusher struct {
	dir    *dataDir
	shared *shared
	log    zerolog.Logger
	syncer *store.Syncer

	dirty    []*replica // asked since the last round began
	asked    []*replica // by the round that is being prepared
	missing  int        // shares that are not in yet
	works    []store.SyncWork
	owners   []*replica // of works
	results  []store.SyncResult
	lost     bool
	timer    *runtime.Timer
	closings []*closeDirectory
}

// checkpointMs is how often durable marks and log starts are written: Kafka's log.flush.offset.checkpoint.interval.ms, which is not configurable here.
const checkpointMs = 60_000

// Messages of the flusher.
type (
	// dirty says that a partition has something to make durable.
	dirty struct{ replica *replica }
	// share is a partition's part of a round; has is false when there is nothing after all.
	share struct {
		replica *replica
		work    store.SyncWork
		has     bool
	}
	// beginShare asks a partition for its share.
	beginShare struct{ flusher *runtime.Ref }
	// closeDirectory ends the service of the directory, when no round runs. clean says that all logs were closed clean.
	closeDirectory struct {
		clean bool
		epoch ident.BrokerEpoch
		done  func(error)
	}
)

// flushLink holds the messages between one partition and its flusher. Of each at most one is under way: a partition is dirty until it is asked, asked until
// it has shared, and hears the result of one round before it is asked for the next. So a round allocates nothing.
type flushLink struct {
	dirty  dirty
	begin  beginShare
	share  share
	synced synced
}

// Bytes implements runtime.Message.
func (*dirty) Bytes() int          { return 0 }
func (*share) Bytes() int          { return 0 }
func (*beginShare) Bytes() int     { return 0 }
func (*closeDirectory) Bytes() int { return 0 }

// Reject implements runtime.Rejecter: a partition that has stopped has nothing to share.
func (b *beginShare) Reject(error) {
	_ = b.flusher.Post(&share{}) // a flusher that has stopped needs none
}

// Reject implements runtime.Rejecter.
func (c *closeDirectory) Reject(err error) { c.done(err) }

// Started implements runtime.Starter.
func (f *flusher) Started(t *runtime.Turn) {
	f.timer = t.NewTimer(signalCheckpoint)
	f.timer.Reset(millis(checkpointMs))
}

// Turn implements runtime.Behaviour.
func (f *flusher) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case *dirty:
			f.dirty = append(f.dirty, m.replica)
		case *share:
			f.take(m)
		case *closeDirectory:
			f.closings = append(f.closings, m)
		case signal:
			f.checkpoint(t)
		default:
			panic("broker: the flusher got a message that it does not know")
		}
	}
	if f.missing > 0 {
		return
	}
	if len(f.works) > 0 {
		f.sync(t)
	}
	if len(f.dirty) > 0 {
		f.ask(t)
	}
	if f.missing == 0 {
		f.finish(t)
	}
}

// ask begins a round: every dirty partition is asked for its share.
func (f *flusher) ask(t *runtime.Turn) {
	f.asked, f.dirty = f.dirty, f.asked[:0]
	for _, r := range f.asked {
		f.missing++
		r.flush.begin.flusher = t.Self()
		if err := t.Send(r.ref, &r.flush.begin); err != nil {
			continue // Reject has posted an empty share
		}
	}
}

func (f *flusher) take(s *share) {
	f.missing--
	if s.has {
		f.works = append(f.works, s.work)
		f.owners = append(f.owners, s.replica)
	}
}

// sync makes one round durable and tells the owners.
func (f *flusher) sync(t *runtime.Turn) {
	began, _ := t.System().Now()
	f.results = f.syncer.Sync(f.results[:0], f.works)
	ended, _ := t.System().Now()
	f.shared.metrics.flushed(f.dir, len(f.works), ended-began)
	for i := range f.results {
		if err := f.results[i].Err; err != nil && f.dir.store.Offline() != nil {
			f.lose(t, err)
		}
		r := f.owners[i]
		r.flush.synced.result = f.results[i]
		_ = t.Send(r.ref, &r.flush.synced) // a partition that has stopped does not care
	}
	clear(f.works)
	clear(f.owners)
	clear(f.results)
	f.works, f.owners = f.works[:0], f.owners[:0]
}

// lose tells Root, once, that the directory is gone.
func (f *flusher) lose(t *runtime.Turn, err error) {
	if f.lost {
		return
	}
	f.lost = true
	f.shared.lost(t, f.dir, err)
}

// checkpoint writes the durable marks and log starts of all logs of the directory.
func (f *flusher) checkpoint(t *runtime.Turn) {
	defer f.timer.Reset(millis(checkpointMs))
	if f.lost {
		return
	}
	switch err := f.dir.store.Checkpoint(); {
	case err == nil:
	case store.IsRetriable(err):
		f.log.Warn().Err(err).Msg("checkpoints could not be written; it will be tried again")
	default:
		f.lose(t, err)
	}
}

// finish closes the directory once it is asked to and no round runs.
func (f *flusher) finish(t *runtime.Turn) {
	for _, c := range f.closings {
		err := f.syncer.Close()
		err = errors.Join(err, f.dir.store.Close(c.clean && !f.lost, c.epoch))
		c.done(err)
		t.Stop()
	}
	f.closings = nil
}
