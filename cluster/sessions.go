package cluster

import (
	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// session is what the controller knows about a broker's liveness. A new controller starts every session full: nobody is fenced for heartbeats that
// went to its predecessor. Gossip may judge the predecessor's own broker by its silence as a leader: the election has waited for it already.
type session struct {
	heard   ident.Instant // when its newest heartbeat arrived
	wall    ident.Millis  // the same by the wall clock; ident.NoTimestamp: never in this term
	alive   bool          // it sent a heartbeat to this controller
	led     ident.Instant // when it was last heard as the controller before this one; 0: it was not that
	applied uint64        // index of its image, as it said
	node    ident.NodeID  // by which it would be a voter; 0: it did not say that it observes
	level   ident.Millis  // wall clock when it last had applied all that was committed; ident.NoTimestamp: never in this term
	leaving uint64        // index that everybody must have applied before it may leave; 0: it does not leave
	marks   uint64        // Number of the newest MarkReplicas; 0: none
}

// omen is what others say of a broker's death. Every voter keeps them: a new controller knows at once what its predecessor died of.
type omen struct {
	incarnation Incarnation       // of the run that gossip calls dead
	dead        bool              // by gossip
	epoch       ident.BrokerEpoch // of the run whose connections were found closed
	closed      ident.Instant     // when they were; 0: never
	refused     ident.Instant     // when a connect was refused as well; 0: never
}

// lateMs is how late a check of the sessions may be before the controller blames itself: then sessions are extended by the delay, because heartbeats
// may lie unread.
const lateMs = 1000

const millisecond = ident.Instant(1_000_000)

// succeed notes when the broker that had the controller before was last heard as the leader.
func (c *Controller) succeed() {
	for _, v := range c.image.voters {
		clock, heard := c.voters[v.Node]
		if s, ok := c.sessions[v.Broker]; ok && heard && clock.fetched == ident.NoTimestamp { // it has not answered as a voter
			s.led = clock.heard
			c.sessions[v.Broker] = s
		}
	}
}

// heartbeat keeps a session alive, and fences or unfences as the broker asks.
func (c *Controller) heartbeat(now Now, cmd *Heartbeat) decision {
	if !c.inTouch(now) || cmd.Broker == c.options.Broker && !c.inCloseTouch(now) {
		return refused(refuse(wire.NotController, "this controller has not heard from a majority of the voters; there may be another by now"))
	}
	if err := c.registered(cmd.Broker, cmd.Epoch); err != nil {
		return refused(err)
	}
	b, _ := c.next.Broker(cmd.Broker)
	c.heard(now, b, cmd)

	reply := &HeartbeatReply{CaughtUp: cmd.Applied >= uint64(b.Epoch), Fenced: b.Fenced, ShouldShutDown: b.Fenced && b.ShuttingDown}
	switch {
	case cmd.WantShutdown && !reply.ShouldShutDown:
		return c.shutDown(b, reply)
	case cmd.WantFence && !b.Fenced:
		reply.Fenced = true
		return decision{records: c.fence(b, b.ShuttingDown), body: reply}
	case b.Fenced && !b.ShuttingDown && !cmd.WantFence && !cmd.WantShutdown && reply.CaughtUp:
		reply.Fenced = false
		return decision{records: c.unfence(b), body: reply}
	}
	return decision{body: reply}
}

// heard notes a sign of life.
func (c *Controller) heard(now Now, b *Broker, cmd *Heartbeat) {
	s := c.sessions[b.ID]
	s.heard = min(now.Mono, max(cmd.Arrived, s.heard))
	if !s.alive {
		s.level = ident.NoTimestamp
	}
	s.wall, s.alive, s.applied, s.node = now.Wall, true, cmd.Applied, cmd.Node
	if cmd.Applied >= c.image.index {
		s.level = now.Wall
	}
	c.sessions[b.ID] = s
	if o, ok := c.omens[b.ID]; ok {
		o.closed, o.refused = 0, 0 // gossip's opinion stands until gossip changes it
		c.omens[b.ID] = o
	}
}

// led tells whether a partition's leader has said that its image is as new as its leadership. A session begins with each run of a broker.
func (c *Controller) led(p *Partition) bool {
	s, ok := c.sessions[p.Leader]
	return ok && s.alive && s.applied >= p.led
}

// unfence lets a broker lead again, and brings internal topics to the number of replicas that they now can have.
func (c *Controller) unfence(b *Broker) []Record {
	records := []Record{&UnfenceBrokerRecord{Broker: b.ID, Epoch: b.Epoch}}
	records = append(records, c.arrive(c.next, b.ID)...)
	after, _, err := c.next.Apply(c.next.index, c.next.term, records)
	if err != nil {
		panic("cluster: unfencing contradicts the image: " + err.Error())
	}
	return append(records, c.raiseInternal(after)...)
}

// shutDown is controlled shutdown (KIP-631): first the leaders move, and nobody takes the broker into an ISR any more; when every other broker has heard
// where the leaders are, it is fenced and may go.
func (c *Controller) shutDown(b *Broker, reply *HeartbeatReply) decision {
	var records []Record
	s := c.sessions[b.ID]
	if !b.ShuttingDown {
		records = append(records, &ShutDownBrokerRecord{Broker: b.ID, Epoch: b.Epoch})
		if !b.Fenced {
			records = append(records, c.leave(c.next, b.ID)...)
		}
		s.leaving = c.last + 1
	} else if s.leaving == 0 {
		s.leaving = c.next.index // another controller began it
	}
	c.sessions[b.ID] = s
	if !b.Fenced && !c.allHave(s.leaving, b.ID) {
		return decision{records: records, body: reply}
	}
	reply.Fenced, reply.ShouldShutDown = true, true
	records = append(records, &FenceBrokerRecord{Broker: b.ID, Epoch: b.Epoch, ShuttingDown: true})
	return decision{records: records, body: reply}
}

// allHave tells whether all live brokers but one have applied an index.
func (c *Controller) allHave(index uint64, but ident.BrokerID) bool {
	for b := range c.next.Brokers() {
		if b.ID != but && !b.Fenced && c.sessions[b.ID].applied < index {
			return false
		}
	}
	return true
}

// fence makes the records that fence a broker and move its leaderships away.
func (c *Controller) fence(b *Broker, leaving bool) []Record {
	records := []Record{&FenceBrokerRecord{Broker: b.ID, Epoch: b.Epoch, ShuttingDown: leaving}}
	if b.Fenced {
		return records
	}
	return append(records, c.leave(c.next, b.ID)...)
}

// checkSessions fences brokers that have been silent for too long.
func (c *Controller) checkSessions(now Now, out *Out) {
	if !c.active {
		return
	}
	late := now.Mono - c.checked - ident.Instant(c.options.TickMs)*millisecond
	c.checked = now.Mono
	if late > lateMs*millisecond {
		for b := range c.next.Brokers() {
			s := c.sessions[b.ID]
			s.heard += late
			c.sessions[b.ID] = s
		}
	}
	c.fenceSilent(now, out)
}

// fenceSilent fences whoever counts as dead.
func (c *Controller) fenceSilent(now Now, out *Out) {
	for b := range c.next.Brokers() {
		if b.Fenced || !c.silent(now, b) {
			continue
		}
		if err := c.propose(c.fence(b, b.ShuttingDown)); err != nil {
			// The backlog is full: the next check tries again.
			out.Note = append(out.Note, Note{Kind: NoteDropped, Broker: b.ID, Text: err.Message})
			return
		}
	}
}

// silent tells whether a broker counts as dead: silent for a session; or for a quarter of one while gossip calls this run dead; or with its connections
// closed and nobody listening at its address. The broker that this controller lives in is alive.
func (c *Controller) silent(now Now, b *Broker) bool {
	quiet := now.Mono - c.sessions[b.ID].heard
	if quiet > ident.Instant(c.options.SessionMs)*millisecond {
		return true
	}
	o, ok := c.omens[b.ID]
	if !ok || b.ID == c.options.Broker {
		return false
	}
	if o.refused > 0 && o.epoch == b.Epoch {
		return true
	}
	if s := c.sessions[b.ID]; s.led > 0 && !s.alive {
		quiet = now.Mono - s.led
	}
	return o.dead && o.incarnation == b.Incarnation && quiet > ident.Instant(c.options.SuspectMs)*millisecond
}

// gossipHint notes what gossip thinks of a run of a broker. It decides nothing alone.
func (c *Controller) gossipHint(cmd *GossipHint) {
	o := c.omens[cmd.Broker]
	if cmd.Up {
		if o.incarnation == cmd.Incarnation {
			delete(c.omens, cmd.Broker)
		}
		return
	}
	if b, ok := c.image.Broker(cmd.Broker); !ok || b.Incarnation != cmd.Incarnation {
		return // a run that is not registered, or not any more
	}
	o.dead, o.incarnation = true, cmd.Incarnation
	c.omens[cmd.Broker] = o
}

// linkDown notes that a broker's connections are closed: another run of it may register from then on. When nobody listens at its address either, its process is gone: if it is the controller's, the
// voters look for another at once; the controller fences it at once.
func (c *Controller) linkDown(now Now, cmd *LinkDown, out *Out) {
	if cmd.Broker == c.options.Broker {
		return
	}
	if b, ok := c.image.Broker(cmd.Broker); ok && b.Epoch == cmd.Epoch {
		o := c.omens[cmd.Broker]
		o.closed, o.epoch = max(now.Mono, 1), cmd.Epoch
		if o.refused = 0; cmd.Refused {
			o.refused = o.closed
		}
		c.omens[cmd.Broker] = o
	}
	if !cmd.Refused {
		return
	}
	if c.active {
		c.fenceSilent(now, out)
		return
	}
	c.leaderLost(cmd.Broker, out)
}

// hungUp tells whether the connections of a broker's run are closed, and nothing has come from it since.
func (c *Controller) hungUp(b *Broker) bool {
	o, ok := c.omens[b.ID]
	return ok && o.closed > 0 && o.epoch == b.Epoch
}

// dropOmens forgets what was said about runs that are over, and what is as old as a session: it was true once.
func (c *Controller) dropOmens(now Now) {
	for b := range c.image.Brokers() {
		o, ok := c.omens[b.ID]
		if !ok {
			continue
		}
		if o.closed > 0 && (o.epoch != b.Epoch || now.Mono-o.closed > ident.Instant(c.options.SessionMs)*millisecond) {
			o.closed, o.refused = 0, 0
		}
		o.dead = o.dead && o.incarnation == b.Incarnation
		if o.closed == 0 && !o.dead {
			delete(c.omens, b.ID)
			continue
		}
		c.omens[b.ID] = o
	}
}
