package broker

import (
	"cmp"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// flusher is an actor that makes a data directory durable: group commit over all its logs. It owns its goroutine, for a sync waits for the disk.
//
//	idle ── dirty ──> asks all dirty partitions for their share of a round ── all shares are in ──> syncs ── results to the partitions ──> idle, or again
//
// A partition asks once and is asked back when a round begins, so that the round takes everything that was appended until then, and the appends that
// come while it runs wait for the next one together.
//
// A directory has two: one for the topics of clients, and one for internal topics (docs/adr/0023). Commits of offsets come all the time, and a round of them
// would be under way whenever a producer wants one. While there are rounds of clients' topics, the internal one rests after a round as long as that took: what comes
// meanwhile shares the next one, and the disk is free for clients half of the time. A log belongs to one of the two as long as it is here.
type flusher struct {
	dir      *dataDir
	shared   *shared
	log      zerolog.Logger
	syncer   *store.Syncer
	internal bool // of the broker's own topics

	dirty    []*replica // asked since the last round began
	refused  []*replica // had no room for the question; they are asked again after a pause
	asked    []*replica // by the round that is being prepared
	missing  int        // shares that are not in yet
	works    []store.SyncWork
	owners   []owner // of works
	results  []store.SyncResult
	lost     bool
	soon     bool // the next checkpoint comes within strictMs
	timer    *runtime.Timer
	again    *runtime.Timer
	rest     *runtime.Timer
	resting  bool          // rest is set
	rested   ident.Instant // an internal round begins then at the earliest
	closings []*closeDirectory
	ends     []*closeLane
}

// checkpointMs is how often durable marks and log starts are written: Kafka's log.flush.offset.checkpoint.interval.ms, which is not configurable here.
const checkpointMs = 60_000

// strictMs is how soon strict marks are on disk: until then a loss of power leaves a replica that cannot tell that it is whole. Those of many partitions that
// are made together go together.
const strictMs = 1000

// restMax bounds the pause between two rounds of internal topics: after a sync that hung, commits do not wait as long again.
const restMax = 2 * ident.Instant(time.Millisecond)

// usedMax is how long after a round of clients' topics the next one is expected.
const usedMax = 100 * ident.Instant(time.Millisecond)

// Messages of the flusher.
type (
	// dirty says that a partition has something to make durable.
	dirty struct{ replica *replica }
	// share is a partition's part of a round; has is false when there is nothing after all. One that comes late was asked for in a round before, and the
	// log was on loan; refused says that the question did not arrive.
	share struct {
		replica *replica
		work    store.SyncWork
		has     bool
		late    bool
		refused bool
	}
	// owner is whose a work is, and what the result goes into.
	owner struct {
		replica *replica
		answer  *synced
	}
	// beginShare asks a partition for its share.
	beginShare struct {
		replica *replica
		flusher *runtime.Ref
	}
	// closeDirectory ends the service of the directory, when no round runs. clean says that all logs were closed clean.
	closeDirectory struct {
		clean bool
		epoch ident.BrokerEpoch
		done  func(error)
	}
	// closeLane ends the service of the internal topics, when no round runs.
	closeLane struct{ done func(error) }
)

// syncers are those of the two flushers of a directory.
type syncers struct{ topics, internal *store.Syncer }

func newSyncers(d *store.Directory) (*syncers, error) {
	topics, err := d.NewSyncer()
	if err != nil {
		return nil, err
	}
	internal, err := d.NewSyncer()
	if err != nil {
		return nil, errors.Join(err, topics.Close())
	}
	return &syncers{topics, internal}, nil
}

// Close gives their descriptors back.
func (s *syncers) Close() error { return errors.Join(s.topics.Close(), s.internal.Close()) }

// flushLink holds the messages between one partition and its flusher. Of each at most one is under way: a partition is dirty until it is asked, asked until
// it has shared, and hears the result of one round before it is asked for the next. So a round allocates nothing. A share that comes late is none of them, and
// neither is its result: several may be under way, besides that of a round.
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
func (*closeLane) Bytes() int      { return 0 }

// Reject implements runtime.Rejecter: a partition that has stopped has nothing to share; one with a full mailbox has.
func (b *beginShare) Reject(err error) {
	_ = b.flusher.Post(&share{replica: b.replica, refused: !errors.Is(err, runtime.ErrStopped)}) // a flusher that has stopped needs none
}

// Reject implements runtime.Rejecter.
func (c *closeDirectory) Reject(err error) { c.done(err) }

// Reject implements runtime.Rejecter.
func (c *closeLane) Reject(err error) { c.done(err) }

// Started implements runtime.Starter.
func (f *flusher) Started(t *runtime.Turn) {
	f.again = t.NewTimer(signalTick)
	if f.internal {
		f.rest = t.NewTimer(signalRested)
		return
	}
	f.timer = t.NewTimer(signalCheckpoint)
	f.timer.Reset(millis(cmp.Or(f.shared.checkpointMs, checkpointMs)))
}

// shareRetry is the pause before a partition is asked again that had no room for the question.
const shareRetry = 5 * time.Millisecond

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
		case *closeLane:
			f.ends = append(f.ends, m)
		case signal:
			switch m {
			case signalTick:
				f.dirty, f.refused = append(f.dirty, f.refused...), f.refused[:0]
			case signalRested:
				f.resting = false
			case signalStrict:
				if !f.soon {
					f.soon = true
					f.timer.Reset(millis(strictMs))
				}
			default:
				f.checkpoint(t)
			}
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
	if len(f.dirty) > 0 && f.mayBegin(t) {
		f.ask(t)
	}
	if f.missing == 0 {
		f.finish(t)
	}
}

// mayBegin tells whether a round may begin, and sees to it that there is a turn when it may.
func (f *flusher) mayBegin(t *runtime.Turn) bool {
	if !f.internal || len(f.ends) > 0 {
		return true
	}
	now, _ := t.System().Now() // the turn may have waited for a sync
	if now >= f.rested || now-ident.Instant(f.dir.used.Load()) > usedMax {
		return true
	}
	if !f.resting {
		f.resting = true
		f.rest.Reset(duration(f.rested - now))
	}
	return false
}

// ask begins a round: every dirty partition is asked for its share.
func (f *flusher) ask(t *runtime.Turn) {
	f.asked, f.dirty = f.dirty, f.asked[:0]
	for _, r := range f.asked {
		f.missing++
		r.flush.begin = beginShare{replica: r, flusher: t.Self()}
		if err := t.Send(r.ref, &r.flush.begin); err != nil {
			continue // Reject has posted an empty share
		}
	}
}

func (f *flusher) take(s *share) {
	if !s.late {
		f.missing--
	}
	if s.refused {
		f.refused = append(f.refused, s.replica)
		f.again.Reset(shareRetry)
	}
	if s.has {
		f.works = append(f.works, s.work)
		answer := &s.replica.flush.synced
		if s.late {
			answer = new(synced)
		}
		f.owners = append(f.owners, owner{s.replica, answer})
	}
}

// sync makes one round durable and tells the owners.
func (f *flusher) sync(t *runtime.Turn) {
	began, _ := t.System().Now()
	f.results = f.syncer.Sync(f.results[:0], f.works)
	ended, _ := t.System().Now()
	f.shared.metrics.flushed(f.dir, len(f.works), ended-began)
	f.rested = ended + min(ended-began, restMax)
	if !f.internal {
		f.dir.used.Store(int64(ended))
	}
	for i := range f.results {
		if err := f.results[i].Err; err != nil && f.dir.store.Offline() != nil {
			f.lose(t, err)
		}
		o := f.owners[i]
		o.answer.result = f.results[i]
		_ = t.Send(o.replica.ref, o.answer) // a partition that has stopped does not care
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
	defer f.timer.Reset(millis(cmp.Or(f.shared.checkpointMs, checkpointMs)))
	f.soon = false
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
	for _, c := range f.ends {
		c.done(f.syncer.Close())
		t.Stop()
	}
	f.ends = nil
}
