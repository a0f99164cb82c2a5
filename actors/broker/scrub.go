package broker

import (
	"errors"
	"slices"
	"time"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/store"
	"github.com/troupe-broker/troupe/wire/ident"
)

// scrubberActor looks for damage before somebody needs the records: round by round it has every replica read what it has on stable storage, a piece at a time, and
// sum up each batch; a follower compares it with what its leader has (compare.go). What is unsound is the partition's to condemn, and to mend (repair.go). It waits
// for no disk itself, and one piece is under way at a time.
//
//	pause ── log.scrub.interval.ms ──> a piece of a replica ──> pool ──> pause, by log.scrub.max.bytes.per.second ──> the next piece, the next replica ──> pause
//
// An operator may have replicas checked now (checkup.go): they come before what is left of a round, at the same pace. The bytes that a leader reads for a follower
// count at the follower.
type scrubberActor struct {
	shared *shared
	timer  *runtime.Timer
	wanted []*replica    // by an operator, soon
	left   []*replica    // of the round
	began  bool          // a round is under way
	due    ident.Instant // when the next one begins, while none is
	now    *replica      // that is being checked; nil: none is
	from   ident.Offset  // in it
	first  bool          // no piece of it was asked for
}

const (
	// scrubBytes is how much one piece has.
	scrubBytes = 1 << 20
	// scrubDemanded is how many bytes per second are read for an operator where there are no rounds.
	scrubDemanded = 4 << 20
)

// Messages of a scrub.
type (
	// scrubPiece asks a partition for the next piece of its log, and is the job of reading it.
	scrubPiece struct {
		replica  *replica
		scrubber *runtime.Ref
		number   int64 // of the check
		first    bool  // piece of it
		from     ident.Offset
		upTo     ident.Offset
		region   store.Region
		compare  bool
		over     ident.Offset // where the scrub goes on, when it is compared
		bytes    int64        // that were read
		remote   int64        // that the leader has read for it
		shared   *shared
	}
	// scrubbed tells what came of it. Next is where to go on; at or below From: with another replica.
	scrubbed struct {
		from, next    ident.Offset
		bytes, remote int64
	}
	// checkOver tells a partition that all of it was read.
	checkOver struct{ number int64 }
	// checkSoon asks for replicas to be checked before others.
	checkSoon struct {
		replicas []*replica
		answer   func(numbers []int64) // of the checks that begin from now on; nil: the broker stops
	}
)

// Bytes implements runtime.Message.
func (*scrubPiece) Bytes() int { return 0 }
func (*scrubbed) Bytes() int   { return 0 }
func (*checkOver) Bytes() int  { return 0 }
func (*checkSoon) Bytes() int  { return 0 }

// Owed implements runtime.Owed: without it no other piece is asked for.
func (*scrubbed) Owed() {}

// Reject implements runtime.Rejecter: the partition has stopped, or has too much to do.
func (s *scrubPiece) Reject(error) { s.done(s.from) }

// Reject implements runtime.Rejecter.
func (m *checkSoon) Reject(error) { m.answer(nil) }

// done ends the piece.
func (s *scrubPiece) done(next ident.Offset) {
	s.region.Release()
	_ = s.scrubber.Post(&scrubbed{from: s.from, next: next, bytes: s.bytes, remote: s.remote}) // one that has stopped does not count
}

// Started implements runtime.Starter.
func (c *scrubberActor) Started(t *runtime.Turn) {
	c.timer = t.NewTimer(signalTick)
	c.rest(t)
}

// rest waits for the next round.
func (c *scrubberActor) rest(t *runtime.Turn) {
	now, _ := t.Now()
	pause := millis(c.shared.settings.Load().Scrub.IntervalMs)
	c.began, c.due = false, now+ident.Instant(pause)
	c.timer.Reset(pause)
}

// Turn implements runtime.Behaviour.
func (c *scrubberActor) Turn(t *runtime.Turn, batch []runtime.Message) {
	for _, m := range batch {
		switch m := m.(type) {
		case signal:
			c.piece(t)
		case *scrubbed:
			c.scrubbed(t, m)
		case *checkSoon:
			c.soon(m)
		default:
			panic("broker: the scrubber got a message that it does not know")
		}
	}
}

// soon puts replicas before all others.
func (c *scrubberActor) soon(m *checkSoon) {
	numbers := make([]int64, len(m.replicas))
	for i, r := range m.replicas {
		if numbers[i] = r.checks + 1; !slices.Contains(c.wanted, r) {
			c.wanted = append(c.wanted, r)
		}
	}
	m.answer(numbers)
	if c.now == nil && len(c.wanted) > 0 {
		c.timer.Reset(time.Microsecond)
	}
}

// next finds what to check next.
func (c *scrubberActor) next(t *runtime.Turn) bool {
	if len(c.wanted) > 0 {
		c.now, c.wanted = c.wanted[0], c.wanted[1:]
		return true
	}
	if c.shared.settings.Load().Scrub.BytesPerSec == 0 {
		c.left = nil
		c.rest(t)
		return false
	}
	if now, _ := t.Now(); !c.began && now < c.due {
		c.timer.Reset(time.Duration(c.due - now))
		return false
	}
	if !c.began {
		c.began, c.left = true, nil
		for _, e := range c.shared.topics.Load().all() {
			for _, r := range e.replicas {
				if r != nil {
					c.left = append(c.left, r)
				}
			}
		}
	}
	if len(c.left) == 0 {
		c.shared.metrics.scrubRounds.Add(1)
		c.rest(t)
		return false
	}
	c.now, c.left = c.left[0], c.left[1:]
	return true
}

// piece begins with the next piece, or the next replica.
func (c *scrubberActor) piece(t *runtime.Turn) {
	if c.now == nil {
		if !c.next(t) {
			return
		}
		c.from, c.first = 0, true
		c.now.checks++
	}
	first := c.first
	c.first = false
	_ = t.Send(c.now.ref, &scrubPiece{replica: c.now, scrubber: t.Self(), number: c.now.checks, first: first, from: c.from, shared: c.shared}) // Reject answers
}

// scrubbed goes on, when the bytes that were read are paid for.
func (c *scrubberActor) scrubbed(t *runtime.Turn, m *scrubbed) {
	c.shared.metrics.scrubBytes.Add(m.bytes)
	if c.from = m.next; m.next <= m.from {
		_ = t.Send(c.now.ref, &checkOver{number: c.now.checks}) // one that has stopped has no check
		c.now = nil
	}
	rate := c.shared.settings.Load().Scrub.BytesPerSec
	if rate == 0 {
		rate = scrubDemanded
	}
	c.timer.Reset(max(time.Duration(float64(m.bytes+m.remote)/float64(rate)*float64(time.Second)), time.Microsecond))
}

// take finds the piece, with the log on loan when the way to it is not in memory. A check ends where the log was flushed when it began.
func (s *scrubPiece) take(p *partitionActor, t *runtime.Turn) {
	if s.first {
		p.checking = &replicaCheck{number: s.number}
	}
	c := p.checking
	if p.machine == nil || p.file == nil || c == nil || c.number != s.number {
		s.done(s.from)
		return
	}
	if s.first {
		c.goal, c.generation = p.file.Flushed(), p.file.Generation()
	}
	s.from, s.upTo = max(s.from, p.file.Start()), min(p.file.Flushed(), c.goal)
	if s.from >= s.upTo {
		c.whole = true
		s.done(s.from)
		return
	}
	ok, why := p.mayCompare()
	if s.compare = ok && !c.deaf; !ok {
		c.skip(why)
	}
	region, err := p.file.ReadNow(s.from, s.upTo, scrubBytes, true)
	if errors.Is(err, store.ErrWouldWait) {
		p.lent = true
		_ = p.shared.pool.give(t, &lookUp{file: p.file, most: scrubBytes, back: found{scrub: s, replica: p.replica}}) // Reject says so
		return
	}
	p.tookScrub(t, s, region, err)
	p.carryOut(t) // the log may have failed
}

// tookScrub has the piece read. What is known to be damaged is passed over.
func (p *partitionActor) tookScrub(t *runtime.Turn, s *scrubPiece, region store.Region, err error) {
	s.region = region
	switch {
	case errors.Is(err, store.ErrDamaged):
		p.tellDamage(t)
		next := s.from
		for _, d := range p.file.Damage() {
			if d.From <= s.from && s.from < d.To {
				next = d.To
				p.checking.foundDamage(d)
			}
		}
		s.done(next)
	case err != nil:
		if !store.IsRetriable(err) && !errors.Is(err, store.ErrOffsetOutOfRange) {
			p.fail(t, err)
		}
		s.done(s.from)
	case region.Len() == 0:
		s.done(region.Next())
	default:
		_ = p.shared.pool.give(t, s) // Reject answers
	}
}

// do implements job.
func (s *scrubPiece) do(t *runtime.Turn) {
	buf := s.shared.buffers.get(warmStep)
	sound, bad, err := s.region.Check(buf)
	s.shared.buffers.put(buf)
	next := s.region.Next()
	s.bytes = int64(s.region.Len())
	m := &pieceRead{piece: s, end: s.from, generation: s.region.Generation()}
	switch {
	case err != nil:
		_ = t.Send(s.replica.ref, &unread{err}) // one that has stopped serves nothing
		next, sound = s.from, 0                 // this round is over with the replica
	case s.region.Void():
		sound = 0
	case sound < s.bytes && bad.From < bad.To:
		_ = t.Send(s.replica.ref, &unsound{bad, s.region.Generation()}) // one that has stopped serves nothing
		next, m.bad = bad.To, bad
	}
	m.next = next
	if s.compare && sound > 0 {
		m.bytes, m.end = make([]byte, sound), next
		n, _ := s.region.ReadAt(m.bytes, 0) // what is missing now is found to be damaged in another round
		n, end := soundPrefix(m.bytes[:n])
		if m.bytes = m.bytes[:n]; int64(n) < s.bytes {
			m.end = end
		}
		if s.region.Void() {
			m.end = s.from
		}
	}
	s.region.Release()
	_ = t.Send(s.replica.ref, m) // Reject ends it
}
