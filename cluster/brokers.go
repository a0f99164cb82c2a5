package cluster

import (
	"slices"

	"github.com/troupe-broker/troupe/wire"
	"github.com/troupe-broker/troupe/wire/ident"
)

// session is what the controller knows about a broker's liveness. A new controller starts every session full: nobody is fenced for heartbeats that
// went to its predecessor.
type session struct {
	heard ident.Instant
	alive bool // it sent a heartbeat to this controller
}

// lateMs is how late a check of the sessions may be before the controller blames itself: then sessions are extended by the delay, because heartbeats
// may lie unread.
const lateMs = 1000

const millisecond = ident.Instant(1_000_000)

// registerBroker gives a run of a broker its epoch. Replicas it led before lose their leader in the same batch, so that each run leads under leader
// epochs of its own.
func (c *Controller) registerBroker(now Now, cmd *RegisterBroker) decision {
	if err := c.checkRegistration(now, cmd); err != nil {
		return refused(err)
	}
	old, known := c.next.Broker(cmd.Broker)
	if known && old.Incarnation == cmd.Incarnation {
		return decision{body: &RegisterBrokerReply{Epoch: old.Epoch}}
	}
	epoch := ident.BrokerEpoch(c.last + 1)
	records := []Record{&RegisterBrokerRecord{Broker: Broker{
		ID: cmd.Broker, Epoch: epoch, Incarnation: cmd.Incarnation, Endpoints: slices.Clone(cmd.Endpoints), Directories: slices.Clone(cmd.Directories),
		Rack: cmd.Rack, Features: slices.Clone(cmd.Features), Fenced: true,
	}}}
	if known && !old.Fenced {
		records = append(records, c.leave(c.next, cmd.Broker)...)
	}
	c.sessions[cmd.Broker] = session{heard: now.Mono}
	return decision{records: records, body: &RegisterBrokerReply{Epoch: epoch}}
}

func (c *Controller) checkRegistration(now Now, cmd *RegisterBroker) *Error {
	switch {
	case cmd.ClusterID != c.next.clusterID:
		return refuse(wire.InconsistentClusterID, "broker %d belongs to cluster %q, this is cluster %q: it has another cluster's data directory", cmd.Broker, cmd.ClusterID, c.next.clusterID)
	case cmd.Broker < 0:
		return refuse(wire.InvalidRegistration, "broker id %d is negative", cmd.Broker)
	case len(cmd.Endpoints) == 0:
		return refuse(wire.InvalidRegistration, "broker %d has no advertised address", cmd.Broker)
	case cmd.Incarnation == Incarnation{}:
		return refuse(wire.InvalidRegistration, "broker %d has no incarnation id", cmd.Broker)
	}
	for _, f := range c.next.features {
		if !serves(cmd.Features, f.Name, f.Level) {
			return refuse(wire.UnsupportedVersion, "the cluster uses %s level %d, which broker %d does not serve", f.Name, f.Level, cmd.Broker)
		}
	}
	old, known := c.next.Broker(cmd.Broker)
	if s := c.sessions[cmd.Broker]; known && !old.Fenced && old.Incarnation != cmd.Incarnation && cmd.Broker != c.options.Broker && s.alive && !c.expired(now, s) {
		return refuse(wire.DuplicateBrokerRegistration, "another process is registered as broker %d and alive; give each broker its own id", cmd.Broker)
	}
	return nil
}

func serves(ranges []FeatureRange, name string, level int16) bool {
	for _, r := range ranges {
		if r.Name == name {
			return r.Min <= level && level <= r.Max
		}
	}
	return false
}

// heartbeat keeps a session alive, and fences or unfences as the broker asks.
func (c *Controller) heartbeat(now Now, cmd *Heartbeat) decision {
	b, ok := c.next.Broker(cmd.Broker)
	if !ok {
		return refused(refuse(wire.BrokerIDNotRegistered, "broker %d is not registered", cmd.Broker))
	}
	if b.Epoch != cmd.Epoch {
		return refused(refuse(wire.StaleBrokerEpoch, "broker %d is registered with epoch %d, not %d", cmd.Broker, b.Epoch, cmd.Epoch))
	}
	heard := min(now.Mono, max(cmd.Arrived, c.sessions[b.ID].heard))
	c.sessions[b.ID] = session{heard: heard, alive: true}

	reply := &HeartbeatReply{CaughtUp: cmd.Applied >= uint64(b.Epoch), Fenced: b.Fenced, ShouldShutDown: b.Fenced && b.ShuttingDown}
	switch {
	case cmd.WantShutdown && !reply.ShouldShutDown:
		reply.Fenced, reply.ShouldShutDown = true, true
		return decision{records: c.fence(b, true), body: reply}
	case cmd.WantFence && !b.Fenced:
		reply.Fenced = true
		return decision{records: c.fence(b, false), body: reply}
	case b.Fenced && !b.ShuttingDown && !cmd.WantFence && !cmd.WantShutdown && reply.CaughtUp:
		reply.Fenced = false
		records := []Record{&UnfenceBrokerRecord{Broker: b.ID, Epoch: b.Epoch}}
		return decision{records: append(records, c.arrive(c.next, b.ID)...), body: reply}
	}
	return decision{body: reply}
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
	for b := range c.next.Brokers() {
		if b.Fenced || !c.expired(now, c.sessions[b.ID]) {
			continue
		}
		if err := c.propose(c.fence(b, false)); err != nil {
			// The backlog is full: the next check tries again.
			out.Note = append(out.Note, Note{Kind: NoteDropped, Broker: b.ID, Text: err.Message})
			return
		}
	}
}

func (c *Controller) expired(now Now, s session) bool {
	return now.Mono-s.heard > ident.Instant(c.options.SessionMs)*millisecond
}

// producerIDBlock is how many producer ids a broker gets at once, as in Kafka.
const producerIDBlock = 1000

// allocateProducerIDs cuts the next block.
func (c *Controller) allocateProducerIDs(cmd *AllocateProducerIDs) decision {
	b, ok := c.next.Broker(cmd.Broker)
	if !ok {
		return refused(refuse(wire.BrokerIDNotRegistered, "broker %d is not registered", cmd.Broker))
	}
	if b.Epoch != cmd.Epoch {
		return refused(refuse(wire.StaleBrokerEpoch, "broker %d is registered with epoch %d, not %d", cmd.Broker, b.Epoch, cmd.Epoch))
	}
	first := c.next.nextProducerID
	if first > 1<<62 {
		return refused(refuse(wire.UnknownServerError, "all producer ids are used up"))
	}
	return decision{
		records: []Record{&ProducerIDsRecord{Broker: b.ID, Epoch: b.Epoch, Next: first + producerIDBlock}},
		body:    &AllocateProducerIDsReply{First: first, Count: producerIDBlock},
	}
}

// noteDelta tells what a committed batch did to brokers and leaders.
func noteDelta(d *Delta, out *Out) {
	for _, b := range d.Brokers {
		n := Note{Broker: b.ID, Index: d.Index}
		switch {
		case b.To == nil:
			continue
		case b.From == nil || b.From.Epoch != b.To.Epoch:
			n.Kind = NoteRegistered
		case b.To.Fenced && !b.From.Fenced:
			n.Kind = NoteFenced
		case !b.To.Fenced && b.From.Fenced:
			n.Kind = NoteUnfenced
		default:
			continue
		}
		out.Note = append(out.Note, n)
	}
	moved := 0
	for _, p := range d.Partitions {
		if p.From == nil || p.To == nil || p.From.Leader == p.To.Leader {
			continue
		}
		moved++
		if p.To.Leader != ident.NoBroker && !p.From.InSync(p.To.Leader) && !slices.Contains(p.From.ELR, p.To.Leader) {
			out.Note = append(out.Note, Note{Kind: NoteUnclean, Broker: p.To.Leader, Index: d.Index, Topic: p.Topic.Name, Partition: p.Partition})
		}
	}
	if moved > 0 {
		out.Note = append(out.Note, Note{Kind: NoteElection, Index: d.Index, Count: moved})
	}
}
