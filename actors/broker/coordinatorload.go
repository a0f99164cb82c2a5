package broker

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/group"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/partition"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// groupLoad is the making of a shard from the log. The coordinator asks the partition for one region after the other (groupRead) and has the I/O pool read
// and apply each (loadGroups); the shard belongs to the pool meanwhile.
//
// The end is the log end as it was when the load began, and what lies below it has to be committed first: a batch of a shard that was dropped may be in the
// log, and what becomes of it must be known.
type groupLoad struct {
	shard *group.Shard
	known *groupsWorld // what the shard was made with
	next  ident.Offset
	end   ident.Offset // -1: the partition has not said
	began ident.Instant

	applied, unknown, bad int64
	lastUnknown           error
}

// groupRead asks the partition for the next region of a load, and comes back with it.
type groupRead struct {
	coordinator *runtime.Ref
	load        *groupLoad
	command     partition.Fetch
	from, upTo  ident.Offset // as the machine allows
	region      store.Region
	start, end  ident.Offset // of the log
	code        wire.ErrorCode
	back        bool
}

// Bytes implements runtime.Message.
func (*groupRead) Bytes() int { return 0 }

// Owed implements runtime.Owed: the coordinator has one out.
func (*groupRead) Owed() {}

// Reject implements runtime.Rejecter.
func (r *groupRead) Reject(err error) {
	if r.back {
		r.region.Release() // the coordinator has stopped
		return
	}
	r.back, r.code = true, refusalOf(err)
	_ = r.coordinator.Post(r)
}

// readGroups reads for a coordinator.
func (p *partitionActor) readGroups(t *runtime.Turn, r *groupRead) {
	if p.machine == nil {
		r.back, r.code = true, p.refusal
		_ = t.Send(r.coordinator, r)
		return
	}
	o := p.machine.Offsets()
	r.start, r.end = o.LogStart, o.End
	r.command.From = max(r.command.From, o.LogStart)
	p.ask(t, r, r.command.Request, &r.command)
}

// replyGroups reads what the machine allows and sends it.
func (p *partitionActor) replyGroups(t *runtime.Turn, r *groupRead, reply *partition.Reply) {
	r.code, r.from, r.upTo, r.command.BytesMax = reply.Code, reply.Fetch.From, reply.Fetch.UpTo, reply.Fetch.BytesMax
	if r.code == wire.NoError && r.from < r.upTo {
		p.findGroups(t, r)
		return
	}
	p.tookGroups(t, r, store.Region{}, nil)
}

// findGroups finds the region, with the log on loan when the way to it is not in memory.
func (p *partitionActor) findGroups(t *runtime.Turn, r *groupRead) {
	if p.lent {
		p.wait(&groupsAgain{r})
		return
	}
	region, err := p.file.ReadNow(r.from, r.upTo, int(r.command.BytesMax), true)
	if errors.Is(err, store.ErrWouldWait) {
		p.lent = true
		_ = p.shared.pool.give(t, &lookUp{file: p.file, back: found{groups: r, replica: p.replica}}) // Reject says so
		return
	}
	p.tookGroups(t, r, region, err)
}

// groupsAgain is a read for a coordinator that met a log on loan.
type groupsAgain struct{ read *groupRead }

// Bytes implements runtime.Message.
func (*groupsAgain) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (r *groupsAgain) Reject(err error) { r.read.Reject(err) }

func (p *partitionActor) readGroupsAgain(t *runtime.Turn, r *groupRead) {
	if p.machine == nil {
		r.code = p.refusal
		p.tookGroups(t, r, store.Region{}, nil)
		return
	}
	p.findGroups(t, r)
	p.carryOut(t) // the log may have failed
}

// tookGroups sends what a read has found.
func (p *partitionActor) tookGroups(t *runtime.Turn, r *groupRead, region store.Region, err error) {
	if err != nil {
		r.code = p.readRefusal(t, err)
	}
	r.region, r.back = region, true
	_ = t.Send(r.coordinator, r)
}

// begin begins a load.
func (c *coordinatorActor) begin(t *runtime.Turn) {
	c.state = coordinatorLoading
	c.load = &groupLoad{shard: group.New(*c.world.config, c.world.topics), known: c.world, end: ident.NoOffset, began: c.now.Mono}
	c.readOn(t)
}

// readOn asks for the next region.
func (c *coordinatorActor) readOn(t *runtime.Turn) {
	c.ids++
	_ = t.Send(c.replica.ref, &groupRead{ // Reject answers
		coordinator: t.Self(), load: c.load,
		command: partition.Fetch{
			Request: groupRequest | c.ids, From: c.load.next, BytesMax: c.world.values.LoadBufferBytes, Isolation: partition.ReadUncommitted,
			CurrentLeaderEpoch: ident.NoLeaderEpoch, LastFetchedEpoch: ident.NoLeaderEpoch,
		},
	})
}

// commitWait is the pause before the partition is asked again for what is not committed yet.
const commitWait = 10 * ident.Instant(time.Millisecond)

// read goes on with a load.
func (c *coordinatorActor) read(t *runtime.Turn, r *groupRead) {
	l := c.load
	if l == nil || r.load != l {
		r.region.Release() // another load began meanwhile
		return
	}
	if r.code != wire.NoError {
		err := errors.New(r.code.String())
		if r.code == wire.CorruptMessage {
			err = fmt.Errorf("%v: %w", r.code, store.ErrDamaged)
		}
		c.cannotLoad(err)
		c.fail(t, wire.CoordinatorNotAvailable)
		return
	}
	reached := l.next
	if r.region.Len() == 0 {
		reached = r.region.Next() // offsets may be missing
	}
	moved := l.advance(r.start, r.end, reached)
	switch {
	case r.region.Len() > 0:
		_ = c.shared.pool.give(t, &loadGroups{ // Reject answers
			coordinator: t.Self(), partition: c.replica.ref, load: l, region: r.region, buffers: c.shared.buffers, log: c.log,
		})
	case l.next < l.end && moved:
		c.readOn(t)
	case l.next < l.end:
		c.retry = c.now.Mono + commitWait
	default:
		c.serve(t)
	}
}

// advance takes over what an answer says of the log, from start to end, and that nothing is left to read below reached. It tells whether the load has come
// further by that: a load that waited for offsets that nobody has would never end (KAFKA-9065).
func (l *groupLoad) advance(start, end, reached ident.Offset) (moved bool) {
	before := l.next
	l.next = max(l.next, start, reached)
	if l.end == ident.NoOffset {
		l.end = end
	}
	return l.next > before
}

// loadGroups applies a region to the shard of a load, on the I/O pool.
type loadGroups struct {
	coordinator *runtime.Ref
	partition   *runtime.Ref // hears of damage
	load        *groupLoad
	region      store.Region
	buffers     *buffers
	log         zerolog.Logger
}

// loadedGroups tells that it is done.
type loadedGroups struct {
	load *groupLoad
	err  error
	bug  string // what failed, and where
}

// Bytes implements runtime.Message.
func (*loadGroups) Bytes() int   { return 0 }
func (*loadedGroups) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (j *loadGroups) Reject(err error) {
	j.region.Release()
	_ = j.coordinator.Post(&loadedGroups{load: j.load, err: err}) // one that has stopped loads nothing
}

// do implements job.
func (j *loadGroups) do(t *runtime.Turn) {
	m := &loadedGroups{load: j.load}
	n := j.region.Len()
	buf := j.buffers.get(n)
	if m.err = j.check(t, buf); m.err == nil {
		_, m.err = j.region.ReadAt(buf[:n], 0)
	}
	if m.err == nil {
		m.bug, m.err = j.guarded(buf[:n])
	}
	if m.err == nil {
		j.load.next = j.region.Next()
	}
	j.buffers.put(buf)
	j.region.Release()
	_ = t.Send(j.coordinator, m) // one that has stopped loads nothing
}

// check verifies the checksums of what is to be applied. Damage ends the load: what the records said of their groups is not known, and groups that go on
// without it would take up old offsets. The partition is told, and answers the next load itself.
func (j *loadGroups) check(t *runtime.Turn, buf []byte) error {
	sound, bad, err := j.region.Check(buf)
	if err != nil || sound == int64(j.region.Len()) {
		return err
	}
	_ = t.Send(j.partition, &unsound{bad, j.region.Generation()}) // one that has stopped serves nothing
	return fmt.Errorf("the records at the offsets from %d to before %d: %w", bad.From, bad.To, store.ErrDamaged)
}

// guarded applies whole batches. A bug on the way is the coordinator's, and it is to be blamed, not the pool: after three exits it starts offline.
func (j *loadGroups) guarded(b []byte) (bug string, err error) {
	defer func() {
		if r := recover(); r != nil {
			bug = fmt.Sprintf("%v\n%s", r, debug.Stack())
		}
	}()
	return "", j.apply(b)
}

// apply applies whole batches. A record that cannot be understood is passed over, told and counted: one must not take all groups with it. A batch that cannot
// be taken apart is an error.
func (j *loadGroups) apply(b []byte) error {
	l := j.load
	var it record.Iterator
	defer it.Close()
	for len(b) > 0 {
		v, rest, err := record.Split(b)
		if err != nil {
			return fmt.Errorf("the records behind offset %d: %w", l.next, err)
		}
		b = rest
		if v.LastOffset() < l.next || v.Attributes().Control() {
			continue
		}
		if err := it.Reset(v, record.Bound{}); err != nil {
			return fmt.Errorf("the records at offset %d: %w", v.BaseOffset(), err)
		}
		for it.Next() {
			r := it.Record()
			if r.Offset >= l.next {
				j.entry(r)
			}
		}
		if err := it.Err(); err != nil {
			return fmt.Errorf("the records at offset %d: %w", v.BaseOffset(), err)
		}
	}
	return nil
}

// entry applies one record.
func (j *loadGroups) entry(r *record.Record) {
	e, err := records.Decode(r.Key, r.Value)
	var unknown *records.UnknownTypeError
	switch {
	case errors.As(err, &unknown):
		j.load.unknown++
		j.load.lastUnknown = err
	case err != nil:
		j.bad(r.Offset, err)
	default:
		j.load.shard.Apply(e)
		j.load.applied++
	}
}

// badToldMax is how many bad records of one load are told one by one.
const badToldMax = 10

func (j *loadGroups) bad(at ident.Offset, err error) {
	if j.load.bad++; j.load.bad <= badToldMax {
		j.log.Error().Err(err).Int64("offset", int64(at)).Msg(codeGroupRecord + ": a group record cannot be read and is passed over; what it said is lost to its group")
	}
}

// loaded goes on when a region has been applied.
func (c *coordinatorActor) loaded(t *runtime.Turn, m *loadedGroups) {
	if m.bug != "" {
		panic("broker: while the groups of " + c.replica.tp.String() + " were loaded: " + m.bug)
	}
	if m.load != c.load || m.load == nil {
		return
	}
	if m.err != nil {
		c.cannotLoad(m.err)
		c.fail(t, wire.CoordinatorNotAvailable)
		return
	}
	c.readOn(t)
}

func (c *coordinatorActor) cannotLoad(err error) {
	if c.unloadable = true; errors.Is(err, store.ErrDamaged) {
		c.damaged++
	} else {
		c.damaged = 0
	}
	if skipped, ok := c.shared.sampled.due(codeGroupLoad); ok {
		c.log.Warn().Err(err).Int64("offset", int64(c.load.next)).Int("skipped", skipped).
			Msg(codeGroupLoad + ": the groups of the partition cannot be loaded; it is tried again and again")
	}
}

// serve begins service with the shard that was loaded.
func (c *coordinatorActor) serve(t *runtime.Turn) {
	l, deleted := c.load, c.deleted
	c.load, c.deleted = nil, nil
	c.state, c.shard, c.known, c.unloadable, c.damaged = coordinatorServing, l.shard, l.known, false, 0
	m := &c.shared.metrics.groups
	m.loads.Add(1)
	m.skipped.Add(l.bad)
	m.load.observe(c.now.Mono - l.began)
	if l.unknown > 0 {
		c.log.Info().Int64("records", l.unknown).Str("last", l.lastUnknown.Error()).Msg("group records of unknown kinds were passed over")
	}
	c.log.Debug().Int64("records", l.applied).Int64("bad", l.bad).Dur("took", duration(c.now.Mono-l.began)).Msg("groups loaded")
	c.shard.Loaded(c.now, &c.out)
	c.carryOut(t)
	if len(deleted) > 0 {
		c.tell(t, &coord.TopicsDeleted{Topics: deleted})
	}
	c.inform(t)
}
