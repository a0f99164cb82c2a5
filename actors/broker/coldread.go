package broker

import (
	"errors"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/cluster"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// How records that are not in memory are read, though no turn may wait for the disk:
//
//	at the partition ── the way to the records is not in memory ──> lookUp, with the log on loan ──> back at the partition
//	                 ── the records are not in memory, or were there before this process ──> checkRegion, which reads them all and sums them up ──> to the session
//	                 ── they are ──> to the session
//
// The checksums of what is in memory are not looked at again: those bytes were summed up when they came from a client, or when they were read first.

// read finds the records of a read and says whether it can go back to its session now.
func (p *partitionActor) read(t *runtime.Turn, f *fetchRead) (done bool) {
	if p.lent {
		p.wait(&readAgain{f})
		return false
	}
	region, err := p.file.ReadNow(f.from, f.upTo, f.most, true)
	if errors.Is(err, store.ErrWouldWait) {
		p.lent = true
		_ = p.shared.pool.give(t, &lookUp{file: p.file, back: found{read: f}}) // Reject says so
		return false
	}
	return p.took(t, f, region, err)
}

// took goes on with what a read found in the log.
func (p *partitionActor) took(t *runtime.Turn, f *fetchRead, region store.Region, err error) (done bool) {
	if err != nil {
		code := p.readRefusal(t, err)
		if code == wire.CorruptMessage {
			code = f.bad
		}
		f.Refuse(code)
		return true
	}
	f.region = region
	p.replica.stats.fetchedBytes.Add(int64(region.Len()))
	if !region.Trusted() || region.Mapped() == nil && !region.Resident() {
		f.back = true
		_ = p.shared.pool.give(t, &checkRegion{read: f, store: p.shared.buffers}) // Reject says so
		return false
	}
	f.present = true
	f.measure()
	return true
}

// measure notes the size of the first batch, which an answer with several partitions may have to be cut to.
func (r *fetchRead) measure() {
	if r.several && r.region.Len() > 0 {
		r.first = firstBatch(&r.region)
	}
}

// readAgain is a read that met a log on loan.
type readAgain struct{ read *fetchRead }

// Bytes implements runtime.Message.
func (*readAgain) Bytes() int { return 0 }

// Reject implements runtime.Rejecter.
func (r *readAgain) Reject(err error) { r.read.Reject(err) }

func (p *partitionActor) readOnceMore(t *runtime.Turn, f *fetchRead) {
	if p.machine == nil {
		f.Refuse(p.refusal)
	} else if !p.read(t, f) {
		return
	}
	f.back = true
	_ = t.Send(f.session, f)
	p.carryOut(t) // the log may have failed
}

// lookUp reads from a log that is on loan: for a client, a coordinator or a follower, or to learn which segments are due, or dirty.
type lookUp struct {
	file *store.Log
	back found
	most int          // bytes that a follower gets
	wall ident.Millis // when it is not for a read
	high ident.Offset
}

// Bytes implements runtime.Message.
func (*lookUp) Bytes() int { return 0 }

// Reject implements runtime.Rejecter: the pool has stopped, or is full. A read is refused, retention and the cleaner wait for their next time.
func (j *lookUp) Reject(err error) {
	r := j.back.replica
	if j.back.read != nil {
		r = j.back.read.replica
	}
	j.back.Reject(err)
	_ = r.ref.Post(&found{}) // one that has stopped has no log
}

// do implements job.
func (j *lookUp) do(t *runtime.Turn) {
	to := j.back.replica
	switch f := j.back.read; {
	case f != nil:
		to = f.replica
		j.back.region, j.back.err = j.file.Read(f.from, f.upTo, f.most, true)
	case j.back.groups != nil:
		g := j.back.groups
		j.back.region, j.back.err = j.file.Read(g.from, g.upTo, int(g.command.BytesMax), true)
	case j.back.asked != nil:
		a := j.back.asked
		j.back.region, j.back.err = j.file.Read(a.from, a.upTo, j.most, true)
	case j.back.ranged != nil:
		q := &j.back.ranged.ask
		j.back.region, j.back.err = j.file.Read(q.From, q.To, j.most, true)
	case j.back.scrub != nil:
		s := j.back.scrub
		j.back.region, j.back.err = j.file.Read(s.from, s.upTo, j.most, true)
	case j.back.look != nil || j.back.clean != nil:
		_, j.back.err = j.file.Cleanable(j.wall, j.high)
	default:
		j.back.err = j.file.LookForRetention(j.wall, j.high)
	}
	_ = t.Send(to.ref, &j.back) // Reject refuses
}

// found ends the loan of a log.
type found struct {
	err    error
	read   *fetchRead   // nil: for no read of a client
	groups *groupRead   // nil: for none of a coordinator
	asked  *followerAsk // nil: for none of a follower
	ranged *rangeAsk    // nil: for no range of one
	scrub  *scrubPiece  // nil: for no scrub
	region store.Region // of any of them
	look   *cleanLook   // nil: for no look of the cleaner
	clean  *cleanJob    // nil: for no run of it
	// replica is who lent the log, when it was for no client; nil: nothing was done with it.
	replica *replica
}

// Bytes implements runtime.Message.
func (*found) Bytes() int { return 0 }

// Owed implements runtime.Owed.
func (*found) Owed() {}

// Reject implements runtime.Rejecter: the partition has stopped.
func (m *found) Reject(err error) {
	m.region.Release()
	switch {
	case m.read != nil:
		m.read.Reject(err)
	case m.groups != nil:
		m.groups.Reject(err)
	case m.asked != nil:
		m.asked.Reject(err)
	case m.ranged != nil:
		m.ranged.Reject(err)
	case m.scrub != nil:
		m.scrub.Reject(err)
	case m.look != nil:
		m.look.Reject(err)
	case m.clean != nil:
		m.clean.Reject(err)
	}
}

// lend gives the log to the pool to learn which segments are due.
func (p *partitionActor) lendForRetention(t *runtime.Turn) {
	p.lent = true
	_ = p.shared.pool.give(t, &lookUp{ // Reject says so
		file: p.file, back: found{replica: p.replica}, wall: p.now.Wall, high: p.machine.Offsets().HighWatermark,
	})
}

// returned takes the log back.
func (p *partitionActor) returned(t *runtime.Turn, m *found) {
	p.lent = false
	switch {
	case m.read != nil:
		if p.took(t, m.read, m.region, m.err) {
			m.read.back = true
			_ = t.Send(m.read.session, m.read)
		}
	case m.groups != nil:
		p.tookGroups(t, m.groups, m.region, m.err)
	case m.asked != nil:
		p.tookForFollower(t, m.asked, m.region, m.err)
	case m.ranged != nil:
		p.tookRange(t, m.ranged, m.region, m.err)
	case m.scrub != nil:
		p.tookScrub(t, m.scrub, m.region, m.err)
	case m.look != nil:
		p.looked(t, m.look, m.err)
	case m.clean != nil:
		m.clean.err = m.err
		p.cleanNow(t, m.clean)
	case m.err != nil:
		if !store.IsRetriable(m.err) && !errors.Is(m.err, store.ErrDamaged) {
			p.fail(t, m.err)
		}
	case m.replica != nil:
		p.retainNow(t)
	}
	p.tellDamage(t)
	if p.refuseAll != nil && p.machine != nil {
		p.stop(t, p.refuseAll)
	}
	p.carryOut(t)
	p.shareLate(t)
	p.takeWaiting(t)
}

// checkRegion reads a region into the page cache, and as much behind it as a reader that goes on will want, and sums up each batch. What it finds unsound is
// not sent, now or later: its partition is told.
type checkRegion struct {
	read  *fetchRead
	store *buffers
}

// Bytes implements runtime.Message.
func (*checkRegion) Bytes() int { return 0 }

// Reject implements runtime.Rejecter: the session sends the region cold, which costs time and nothing else.
func (j *checkRegion) Reject(error) {
	if err := j.read.session.Post(j.read); err != nil {
		return // Post has rejected the read, which was all there was to do
	}
}

// do implements job.
func (j *checkRegion) do(t *runtime.Turn) {
	f := j.read
	f.region.Prefetch(warmAhead)
	buf := j.store.get(warmStep)
	sound, bad, err := f.region.Check(buf)
	switch {
	case err != nil:
		_ = t.Send(f.replica.ref, &unread{err}) // one that has stopped reads nothing; the session drops the connection
	case f.region.Void():
		// The session drops the connection.
	case sound < int64(f.region.Len()):
		_ = t.Send(f.replica.ref, &unsound{bad, f.region.Generation()}) // before the session can ask again; one that has stopped serves nothing
		if sound == 0 {
			f.region.Release()
			f.Refuse(f.bad)
			break
		}
		f.region = f.region.Slice(0, int(sound))
		fallthrough
	default:
		f.present = true
		f.measure()
	}
	j.store.put(buf)
	_ = t.Send(f.session, f)
}

// unsound tells a partition which records a reader found damaged, of the log as it was in a generation.
type unsound struct {
	store.OffsetRange
	generation ident.Generation
}

// Bytes implements runtime.Message.
func (*unsound) Bytes() int { return 0 }

// Owed implements runtime.Owed: what came from the disk so may come from the page cache to whoever reads it next, and be taken for sound.
func (*unsound) Owed() {}

// take condemns what was found, unless the log was cut since: others may have these offsets now.
func (m *unsound) take(p *partitionActor, t *runtime.Turn) {
	if p.file != nil && p.file.Generation() == m.generation {
		p.condemn(t, m.OffsetRange)
	}
}

// unread tells a partition that the disk did not give what was in a region.
type unread struct{ err error }

// Bytes implements runtime.Message.
func (*unread) Bytes() int { return 0 }

// take gives up the directory, as for any other error of its disk.
func (m *unread) take(p *partitionActor, t *runtime.Turn) {
	if p.machine == nil || p.file == nil {
		return
	}
	p.readRefusal(t, p.file.Unread(m.err))
	p.carryOut(t)
}

// condemn remembers damage that was found outside the log.
func (p *partitionActor) condemn(t *runtime.Turn, r store.OffsetRange) {
	if p.machine == nil {
		return
	}
	r.From = max(r.From, p.file.Start())                // records were deleted meanwhile
	if r.To = min(r.To, p.file.End()); r.From >= r.To { // it may go by an offset that is damaged itself
		return
	}
	if err := p.file.Condemn(r, p.now.Wall); err != nil {
		p.readRefusal(t, err)
	}
	p.tellDamage(t)
	p.carryOut(t)
}

// tellDamage says, once, what was found to be damaged since it was called last. The segment that has it takes no more records.
func (p *partitionActor) tellDamage(t *runtime.Turn) {
	if p.machine == nil {
		return
	}
	news, err := p.file.NewDamage(p.now.Wall)
	for _, d := range news {
		p.log.Error().Int64("offset", int64(d.From)).Int64("end", int64(d.To)).
			Msg(codeDamage + ": damaged records were found; reading them answers CORRUPT_MESSAGE, everything else is served")
	}
	if len(news) > 0 {
		p.tellMark(t, cluster.MarkDamaged) // another member leads, if there is one
		p.replica.stats.damaged.Store(int64(len(p.file.Damage())))
		p.segments = p.file.Segments()
		p.askFlush(t)
		p.repairSoon(t)
	}
	switch {
	case store.IsRetriable(err):
		p.shared.sampled.refused(p.replica, err)
	case err != nil:
		p.fail(t, err)
	}
}
