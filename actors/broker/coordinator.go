package broker

import (
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/troupe-broker/troupe/actors/runtime"
	"github.com/troupe-broker/troupe/group"
	"github.com/troupe-broker/troupe/group/coord"
	"github.com/troupe-broker/troupe/group/records"
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
	"github.com/troupe-broker/troupe/wire/record"
)

// coordinatorActor coordinates the groups that hash to one partition of __consumer_offsets: a group.Shard that decides, and this shell, which loads it from
// the partition, appends what it proposes, and holds its answers until that is committed (docs/adr/0012).
//
//	idle ── this broker leads the partition ──> loading ── all was applied ──> serving
//	              ^                               ^  └── it cannot be read ──┐   │
//	              │                               └──── a pause ──── failed <┴───┴── an append failed
//	any ── another leads ──> idle
//
// Whatever is asked while it does not serve is refused with an error that clients retry, each API in its own words (package handler).
type coordinatorActor struct {
	shared  *shared
	log     zerolog.Logger
	replica *replica // of the partition
	world   *groupsWorld
	leading bool
	blamed  bool // crashed the broker too often: it takes nothing

	state   coordinatorState
	now     coord.Now
	shard   *group.Shard         // serving only
	known   *groupsWorld         // what the shard has been told
	out     coord.Out            // the shard's, as long as it lives: it counts
	load    *groupLoad           // loading only
	deleted []coord.DeletedTopic // while loading: the shard has to hear of them

	current inquiry         // being stepped
	id      ident.RequestID // of current; 0: it has been answered
	ids     ident.RequestID
	parked  map[ident.RequestID]inquiry
	held    heldAnswers

	pending    []records.Entry // in no batch yet
	builder    *record.Builder
	key        []byte
	value      []byte
	write      *groupWrite // used again and again, by one batch at a time
	writing    bool
	committed  uint64 // entries of the shard
	owed       uint64 // entries of it that have to be committed before anybody else is heard; see due
	unloadable bool   // the last load failed
	damaged    int    // loads in a row that met damage

	timer  *runtime.Timer
	armed  ident.Instant // when it goes off; 0: it does not
	retry  ident.Instant // when to load, or to go on loading; 0: not
	failed ident.Instant // when the shard was dropped over an error last; 0: never
	flush  ident.Instant // when what lingers is appended; 0: at once
}

// coordinatorState is where a coordinator is in its life.
type coordinatorState uint8

const (
	coordinatorIdle coordinatorState = iota
	coordinatorLoading
	coordinatorServing
	coordinatorFailed
)

// inquiry is a message that asks a coordinator. It is answered once, by answered or, when the message was not handled, by Reject.
type inquiry interface {
	runtime.Message
	runtime.Rejecter
	asks() coord.Command
	stepped()                                 // its command has been, and is not asked for again
	answered(t *runtime.Turn, a coord.Answer) // may only enqueue
}

// Messages of a coordinator, besides inquiries, groupWrite, groupRead and loadedGroups.
type (
	// leadPartition tells whether this broker leads the coordinator's partition. Another epoch is another leadership, though the leader may be the same.
	leadPartition struct{ leading bool }
	// groupsChanged tells of another configuration or other topics.
	groupsChanged struct {
		world   *groupsWorld
		deleted []coord.DeletedTopic
	}
)

// Bytes implements runtime.Message.
func (*leadPartition) Bytes() int { return 0 }
func (*groupsChanged) Bytes() int { return 0 }

const (
	// groupRetry is the pause before a shard that was dropped is loaded again, so that a full disk does not mean one load after the other.
	groupRetry = ident.Instant(time.Second)
	// groupRetryMax is the longest pause, when loads meet damage again and again.
	groupRetryMax = 60 * ident.Instant(time.Second)
	// groupCalm is how long after an error the next one is taken for another, which is not waited for.
	groupCalm = 10 * ident.Instant(time.Second)
)

// Started implements runtime.Starter.
func (c *coordinatorActor) Started(t *runtime.Turn) {
	c.parked = make(map[ident.RequestID]inquiry)
	c.builder = record.NewBuilder()
	c.timer = t.NewTimer(signalTick)
	c.now.Mono, c.now.Wall = t.Now()
	c.shared.inspection.addCoordinator(c)
	if c.blamed {
		c.log.Error().Msg(codeBlamed + ": the broker crashed three times within ten minutes in the coordinator of these groups; it starts offline, the others serve")
		return
	}
	if c.leading {
		c.begin(t)
	}
}

// Turn implements runtime.Behaviour.
func (c *coordinatorActor) Turn(t *runtime.Turn, batch []runtime.Message) {
	c.now.Mono, c.now.Wall = t.Now()
	for i, m := range batch {
		c.take(t, m)
		batch[i] = nil
	}
	c.append(t)
	c.arm()
	c.shared.inspection.turnCoordinator(c)
}

func (c *coordinatorActor) take(t *runtime.Turn, m runtime.Message) {
	switch m := m.(type) {
	case inquiry:
		c.ask(t, m)
	case *groupWrite:
		c.wrote(t, m)
	case *groupRead:
		c.read(t, m)
	case *loadedGroups:
		c.loaded(t, m)
	case *leadPartition:
		c.led(t, m.leading)
	case *groupsChanged:
		c.changed(t, m)
	case *jumpedTo:
		if c.state == coordinatorServing {
			c.tell(t, &m.fact)
		}
	case signal:
		c.due(t)
	default:
		panic(fmt.Sprintf("broker: a coordinator got a %T", m))
	}
}

// led follows the leader of the partition.
func (c *coordinatorActor) led(t *runtime.Turn, leading bool) {
	c.leading = leading
	c.drop(t, wire.NotCoordinator)
	if leading && !c.blamed {
		c.begin(t)
		return
	}
	c.state = coordinatorIdle
}

// changed tells the shard of the world, now or when it is loaded.
func (c *coordinatorActor) changed(t *runtime.Turn, m *groupsChanged) {
	c.world = m.world
	switch c.state {
	case coordinatorServing:
		if len(m.deleted) > 0 {
			c.tell(t, &coord.TopicsDeleted{Topics: m.deleted})
		}
		c.inform(t)
	case coordinatorLoading:
		c.deleted = append(c.deleted, m.deleted...)
	case coordinatorIdle, coordinatorFailed:
	}
}

// inform steps what changed since the shard was told last.
func (c *coordinatorActor) inform(t *runtime.Turn) {
	known := c.known
	c.known = c.world
	if known.config != c.world.config {
		c.tell(t, &coord.Configure{Config: *c.world.config})
	}
	if known.topics != c.world.topics {
		c.tell(t, &coord.TopicsChanged{Topics: c.world.topics})
	}
}

// tell steps a fact.
func (c *coordinatorActor) tell(t *runtime.Turn, fact coord.Command) {
	c.shard.Step(c.now, 0, fact, &c.out)
	c.carryOut(t)
}

// ask steps an inquiry.
func (c *coordinatorActor) ask(t *runtime.Turn, m inquiry) {
	if c.state != coordinatorServing {
		c.refuse(t, m)
		return
	}
	if c.committed < c.owed {
		m.answered(t, refusedNotAvailable)
		return
	}
	c.ids++
	c.current, c.id = m, c.ids
	c.shard.Step(c.now, c.ids, m.asks(), &c.out)
	m.stepped()
	c.carryOut(t)
	if c.id != 0 {
		c.parked[c.id] = m
	}
	c.current, c.id = nil, 0
}

// refuse answers while there is no shard. What clients are told in the place of what they do not take is the handlers' matter.
func (c *coordinatorActor) refuse(t *runtime.Turn, m inquiry) {
	switch {
	case c.blamed:
		m.answered(t, refusedNotAvailable)
		return
	case c.state == coordinatorIdle:
		m.answered(t, refusedNotCoordinator)
		return
	}
	if _, ok := m.asks().(*coord.List); ok && c.unloadable {
		m.answered(t, refusedNotAvailable) // the others of this broker can be listed, as Kafka lists them
		return
	}
	m.answered(t, refusedLoading)
}

// Answers that are given again and again; nobody changes an answer.
var (
	refusedNotCoordinator = &coord.ErrorReply{Code: wire.NotCoordinator}
	refusedLoading        = &coord.ErrorReply{Code: wire.CoordinatorLoadInProgress}
)

// waiter finds whom an answer is for, and forgets that it waits.
func (c *coordinatorActor) waiter(id ident.RequestID) inquiry {
	if id == c.id {
		c.id = 0
		return c.current
	}
	m, ok := c.parked[id]
	if !ok {
		panic(fmt.Sprintf("broker: the coordinator of %s answered request %d, which nobody asked", c.replica.tp, id))
	}
	delete(c.parked, id)
	return m
}

// carryOut takes what a step asks, and empties the bundle.
func (c *coordinatorActor) carryOut(t *runtime.Turn) {
	c.propose()
	for i := range c.out.Replies {
		r := &c.out.Replies[i]
		m := c.waiter(r.Request)
		if r.After <= c.committed {
			m.answered(t, r.Answer)
			continue
		}
		c.held.push(heldAnswer{to: m, after: r.After, answer: r.Answer, deadline: c.now.Mono + ident.Instant(c.world.values.CommitTimeoutMs)*millisecond})
	}
	for i := range c.out.Notes {
		c.note(&c.out.Notes[i])
	}
	c.out.Reset()
}

// due does what time has made due.
func (c *coordinatorActor) due(t *runtime.Turn) {
	c.armed = 0
	if c.retry != 0 && c.retry <= c.now.Mono {
		c.retry = 0
		switch c.state {
		case coordinatorLoading:
			c.readOn(t)
		case coordinatorFailed:
			c.begin(t)
		case coordinatorIdle, coordinatorServing:
		}
	}
	if c.state != coordinatorServing {
		return
	}
	if next, ok := c.shard.Next(); ok && next <= c.now.Mono {
		c.shard.Tick(c.now, &c.out)
		c.carryOut(t)
	}
	// Whoever is given up frees the memory of the request, and not what it has added to what is to be written. While the disk hangs nobody else may add to
	// that: it stays below what all sessions together may have under way.
	c.held.expire(c.now.Mono, func(m inquiry) {
		c.owed = c.out.Proposed()
		c.shared.metrics.groups.timeouts.Add(1)
		m.answered(t, refusedNotAvailable)
	})
}

// arm sees to it that the coordinator is woken when something is due, or before: a timer that goes off early is armed again, so that heartbeats, each of
// which moves a deadline, do not cost a timer each.
func (c *coordinatorActor) arm() {
	next := c.wake()
	if next == 0 || c.armed != 0 && c.armed <= next {
		return
	}
	c.armed = next
	c.timer.Reset(duration(max(next-c.now.Mono, 0)))
}

// wake is when something is due; 0: nothing is. What lingers behind a batch that is under way goes when that comes back.
func (c *coordinatorActor) wake() ident.Instant {
	next := c.retry
	sooner := func(at ident.Instant) {
		if next == 0 || at < next {
			next = at
		}
	}
	if c.state == coordinatorServing {
		if at, ok := c.shard.Next(); ok {
			sooner(at)
		}
		if at, ok := c.held.deadline(); ok {
			sooner(at)
		}
		if c.flush != 0 && !c.writing {
			sooner(c.flush)
		}
	}
	return next
}

// fail drops the shard over an error, and loads another: at once, or after a pause when it has not been long since the last error. What the shard has beyond
// the log cannot be taken back out of it.
func (c *coordinatorActor) fail(t *runtime.Turn, code wire.ErrorCode) {
	c.drop(t, code)
	if !c.repeats() {
		c.begin(t)
		return
	}
	c.state = coordinatorFailed
	c.retry = c.now.Mono + c.pause()
}

// pause is how long to wait before the next load. Damage is mended by nobody but an operator, and each load reads the log up to there.
func (c *coordinatorActor) pause() ident.Instant {
	return min(groupRetry<<min(c.damaged, 10), groupRetryMax)
}

// repeats notes an error, and tells whether it has not been long since the last one.
func (c *coordinatorActor) repeats() bool {
	before := c.failed
	c.failed = c.now.Mono
	return before != 0 && c.now.Mono-before < groupCalm
}

// drop forgets the shard, with everything that was not committed. Whoever waits is told to ask again.
func (c *coordinatorActor) drop(t *runtime.Turn, code wire.ErrorCode) {
	answer := &coord.ErrorReply{Code: code}
	c.held.drop(func(m inquiry) { m.answered(t, answer) })
	for _, id := range sortedIDs(c.parked) {
		c.parked[id].answered(t, answer)
	}
	clear(c.parked)
	clear(c.pending)
	c.pending = c.pending[:0]
	c.shard, c.load, c.known, c.deleted = nil, nil, nil, nil
	c.out = coord.Out{}
	c.committed, c.owed, c.retry, c.flush = 0, 0, 0, 0
	if c.writing {
		c.write, c.writing = nil, false // what comes back is not ours any more
	}
}

// Stopping implements runtime.Stopper: whoever waits is answered.
func (c *coordinatorActor) Stopping(t *runtime.Turn) { c.drop(t, wire.CoordinatorNotAvailable) }

// Stopped implements runtime.Stopper.
func (c *coordinatorActor) Stopped(*runtime.Turn) { c.shared.inspection.removeCoordinator(c) }
