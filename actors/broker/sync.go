package broker

import (
	"github.com/troupe-broker/troupe/actors/runtime"
)

// The partition's side of group commit; see flusher.

// askFlush asks the flusher to sync this log, once until it comes.
func (p *partitionActor) askFlush(t *runtime.Turn) {
	if p.dirty {
		return
	}
	p.dirty = true
	p.replica.flush.dirty.replica = p.replica
	if err := t.Send(p.replica.lane, &p.replica.flush.dirty); err != nil {
		p.dirty = false // the broker stops; closing the log syncs it
	}
}

// beginSync hands the flusher what is dirty now.
func (p *partitionActor) beginSync(t *runtime.Turn, b *beginShare) {
	p.dirty = false
	s := &p.replica.flush.share
	*s = share{replica: p.replica}
	if p.file != nil {
		s.work, s.has = p.file.BeginSync()
		if !s.has && p.file.Flushed() >= p.file.End() {
			p.settled(t) // cut down to what was durable before it could be synced
		}
	}
	p.hand(t, b.flusher, s)
}

// hand gives the flusher a share. One that has stopped syncs nothing.
func (p *partitionActor) hand(t *runtime.Turn, flusher *runtime.Ref, s *share) {
	if t.Send(flusher, s) == nil && s.has {
		p.shares++
	}
}

// passRound takes no part in a round: the log is on loan, and the other logs of the directory do not wait for that. Its share follows when it is back.
func (p *partitionActor) passRound(t *runtime.Turn, b *beginShare) {
	p.dirty, p.passed = false, true
	s := &p.replica.flush.share
	*s = share{replica: p.replica}
	_ = t.Send(b.flusher, s) // a flusher that has stopped syncs nothing
}

// shareLate hands the flusher, without being asked, what it was asked for while the log was on loan: the next loan must not come first, or a log that is read
// all the time is never synced.
func (p *partitionActor) shareLate(t *runtime.Turn) {
	if !p.passed {
		return
	}
	p.passed = false
	if p.file == nil {
		return
	}
	if work, has := p.file.BeginSync(); has {
		// The flusher may be at work, and have one of this log in its mailbox.
		p.hand(t, p.replica.lane, &share{replica: p.replica, work: work, has: true, late: true})
	} else if p.file.Flushed() >= p.file.End() {
		p.settled(t)
	}
}

// syncedLog takes in the result of a round.
func (p *partitionActor) syncedLog(t *runtime.Turn, m *synced) {
	p.shares--
	if c := p.closing; c != nil {
		_, _, _ = c.file.Synced(m.result) // what failed fails closing, too
		p.shut(t)
		return
	}
	if p.file == nil {
		return
	}
	if _, _, err := p.file.Synced(m.result); err != nil {
		p.fail(t, err)
		p.carryOut(t)
		return
	}
	p.flushed.Generation, p.flushed.End = m.result.Generation, m.result.End
	p.step(t, &p.flushed)
	p.settled(t)
}
