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
	if err := t.Send(p.replica.dir.flusher, &p.replica.flush.dirty); err != nil {
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
	_ = t.Send(b.flusher, s) // a flusher that has stopped syncs nothing
}

// passRound takes no part in a round: the log is being truncated. When that is done it asks for one.
func (p *partitionActor) passRound(t *runtime.Turn, b *beginShare) {
	p.dirty = false
	s := &p.replica.flush.share
	*s = share{replica: p.replica}
	_ = t.Send(b.flusher, s) // a flusher that has stopped syncs nothing
}

// syncedLog takes in the result of a round.
func (p *partitionActor) syncedLog(t *runtime.Turn, m *synced) {
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
